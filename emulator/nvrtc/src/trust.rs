//! Checks that no other user of this machine can have put a file where it is, or changed it.
//!
//! On Unix the file, every folder above it and every link on the way must belong to the user or to
//! root, and nobody else may write to any of them: whoever can write to one of the folders decides
//! what is in the file. A folder in which everybody may create files and remove only their own
//! (`/tmp`) may be above, because nobody else can replace what belongs to the user there. Code may
//! not be in such a folder itself, where others could put a library next to it that it loads.
//! A group may write if it is the user's own: a group of the same name without other members, which
//! many Linux systems make for each user. Access lists are not read, but the write permissions in
//! them show as permissions of the group.
//!
//! On Windows only access lists say who may write, and they are not read here. There a path must
//! only be absolute, so that nothing comes from the current folder.
//!
//! The crate `fs-mistrust` trusts the group of the user's name whoever else is in it, and takes the
//! name from `$USER`. The tests below refuse both, and `tests/suite.rs` attacks from outside.

use std::path::{Path, PathBuf};

/// The folders that may be above a trusted file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Above {
    /// A folder that nobody else may write to; shared folders (`/tmp`) only above it. For code.
    Closed,
    /// Also a shared folder directly above. For data that is verified again.
    OrShared,
}

/// Returns `path` with all links followed, if nobody but the user and root can have put it there.
///
/// # Errors
///
/// The reason, as a sentence that names the path.
#[cfg(unix)]
pub fn check(path: &Path, above: Above) -> Result<PathBuf, String> {
    unix::Trusted::of_this_user().follow(path, above)
}

/// Returns `path`, if it exists and is absolute.
///
/// # Errors
///
/// The reason, as a sentence that names the path.
#[cfg(not(unix))]
pub fn check(path: &Path, _above: Above) -> Result<PathBuf, String> {
    if !path.is_absolute() {
        return Err(format!("{} is not an absolute path", path.display()));
    }
    match path.metadata() {
        Ok(_) => Ok(path.to_owned()),
        Err(error) => Err(format!("{} cannot be inspected: {error}", path.display())),
    }
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Component, Path, PathBuf};

    use super::Above;

    const ROOT: u32 = 0;
    /// The number of links that Linux follows.
    const MOST_LINKS: usize = 40;

    #[allow(unsafe_code)]
    // SAFETY: POSIX declares it so: it takes nothing, cannot fail, and `uid_t` has 32 bits.
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }

    /// The user whose files are trusted, and everything that the machine knows about its users.
    pub(super) struct Trusted {
        user: u32,
        /// The text of `/etc/passwd`.
        users: String,
        /// The text of `/etc/group`.
        groups: String,
    }

    /// The owner of a file, its group, and its mode.
    type Rights = (u32, u32, u32);

    impl Trusted {
        pub(super) fn of_this_user() -> Trusted {
            let text = |path| fs::read_to_string(path).unwrap_or_default();
            Trusted { user: geteuid(), users: text("/etc/passwd"), groups: text("/etc/group") }
        }

        /// Follows `path` as the system does, and checks everything that decides where it leads.
        pub(super) fn follow(&self, path: &Path, above: Above) -> Result<PathBuf, String> {
            if !path.is_absolute() {
                return Err(format!("{} is not an absolute path", path.display()));
            }
            let mut at = PathBuf::from("/");
            // The parts that are still to be followed, the next one last.
            let mut rest = reversed(path);
            let mut links = 0;
            self.check(&at, above, rest.len())?;
            while let Some(part) = rest.pop() {
                match part.components().next() {
                    Some(Component::RootDir) => at = PathBuf::from("/"),
                    Some(Component::ParentDir) => drop(at.pop()),
                    Some(Component::Normal(name)) => {
                        at.push(name);
                        let Some(target) = self.check(&at, above, rest.len())? else { continue };
                        links += 1;
                        if links > MOST_LINKS {
                            return Err(format!("{} leads in a circle", path.display()));
                        }
                        at.pop();
                        rest.extend(reversed(&target));
                    }
                    _ => {}
                }
            }
            Ok(at)
        }

        /// Checks one file, folder or link that `further` parts of the path follow. Returns where a
        /// link leads.
        fn check(
            &self,
            path: &Path,
            above: Above,
            further: usize,
        ) -> Result<Option<PathBuf>, String> {
            let unseen = |error| format!("{} cannot be inspected: {error}", path.display());
            let metadata = path.symlink_metadata().map_err(unseen)?;
            let kind = metadata.file_type();
            let (owner, mode) = (metadata.uid(), metadata.mode());
            let objection = if kind.is_symlink() {
                // Everybody may write to a link. It cannot be changed, only replaced.
                self.objection((owner, ROOT, 0), false)
            } else if kind.is_dir() || kind.is_file() {
                let least = if above == Above::OrShared { 1 } else { 2 };
                let may_be_shared = kind.is_dir() && further >= least;
                self.objection((owner, metadata.gid(), mode), may_be_shared)
            } else {
                Some("is neither a file nor a folder".to_owned())
            };
            match objection {
                Some(objection) => Err(format!("{} {objection}", path.display())),
                None if kind.is_symlink() => fs::read_link(path).map(Some).map_err(unseen),
                None => Ok(None),
            }
        }

        /// Returns why something with these rights is not trusted. `may_be_shared` is true for a
        /// folder in which everybody may create files and remove only their own.
        fn objection(&self, (owner, group, mode): Rights, may_be_shared: bool) -> Option<String> {
            const STICKY: u32 = 0o1000;
            let (user, bits) = (self.user, mode & 0o7777);
            if owner != user && owner != ROOT {
                Some(format!("belongs to user {owner}, who is neither user {user} nor root"))
            } else if may_be_shared && mode & STICKY != 0 {
                None
            } else if mode & 0o002 != 0 {
                Some(format!("may be written by every user (mode {bits:o})"))
            } else if mode & 0o020 != 0 && !self.is_alone_in(group) {
                Some(format!("may be written by the users of group {group} (mode {bits:o})"))
            } else {
                None
            }
        }

        /// Returns whether the group is the user's own or root's: it has the name of that user, and
        /// nobody else is in it.
        fn is_alone_in(&self, group: u32) -> bool {
            // Both files have the id in the third field. In the fourth, users have their group's.
            let number = |line: &[&str], field: usize| line.get(field)?.parse::<u32>().ok();
            let mut named = table(&self.groups).filter(|line| number(line, 2) == Some(group));
            let (Some(own), None) = (named.next(), named.next()) else { return false };
            let name = own[0];
            let user = table(&self.users).find(|line| line[0] == name);
            let id = user.and_then(|user| number(&user, 2));
            let mut others = table(&self.users).filter(|line| line[0] != name);
            let mut members = own.get(3).into_iter().flat_map(|members| members.split(','));
            id.is_some_and(|id| id == self.user || id == ROOT)
                && members.all(|member| member.is_empty() || member == name)
                && others.all(|other| number(&other, 3) != Some(group))
        }
    }

    /// Returns the parts of a path, the last one first.
    fn reversed(path: &Path) -> Vec<PathBuf> {
        path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
    }

    /// Returns the fields of each line of `/etc/passwd` or `/etc/group`.
    fn table(text: &str) -> impl Iterator<Item = Vec<&str>> {
        text.lines().map(|line| line.split(':').collect())
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::{PermissionsExt, symlink};

        use super::*;

        const ANNA: u32 = 1000;
        const OWN: u32 = 1000;

        fn anna() -> Trusted {
            let users = "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n\
                         bert:x:1001:1001::/home/bert:/bin/sh\ncarl:x:1002:100::/home/carl:/bin/sh\n";
            let groups =
                "root:x:0:\nusers:x:100:\nstaff:x:50:anna,bert\nanna:x:1000:\nbert:x:1001:\n";
            Trusted { user: ANNA, users: users.to_owned(), groups: groups.to_owned() }
        }

        #[test]
        fn files_that_others_may_write_are_not_trusted() {
            for (rights, objection) in [
                ((0, 0, 0o755), ""),
                ((ANNA, OWN, 0o644), ""),
                ((ANNA, OWN, 0o2775), ""),
                ((0, 0, 0o775), ""),
                ((1001, OWN, 0o755), "belongs to user 1001, who is neither user 1000 nor root"),
                ((ANNA, OWN, 0o777), "may be written by every user (mode 777)"),
                ((0, 0, 0o1777), "may be written by every user (mode 1777)"),
                ((ANNA, 50, 0o775), "may be written by the users of group 50 (mode 775)"),
                // The group `users` names no members, but is carl's first; 1001 is bert's; the
                // group 7 does not exist.
                ((ANNA, 100, 0o775), "may be written by the users of group 100 (mode 775)"),
                ((ANNA, 7, 0o775), "may be written by the users of group 7 (mode 775)"),
                ((ANNA, 1001, 0o775), "may be written by the users of group 1001 (mode 775)"),
            ] {
                let found = anna().objection(rights, false).unwrap_or_default();
                assert_eq!(found, objection, "{rights:?}");
            }
            assert_eq!(anna().objection((0, 0, 0o1777), true), None);
            for open in [(0, 0, 0o777), (0, 50, 0o775), (1001, 0, 0o1777)] {
                assert!(anna().objection(open, true).is_some(), "{open:?}");
            }
        }

        #[test]
        fn a_group_with_another_member_is_not_the_users_own() {
            let joined = |users: &str, groups: &str| {
                let Trusted { user, users: all, groups: named } = anna();
                Trusted { user, users: all + users, groups: named + groups }.is_alone_in(OWN)
            };
            assert!(joined("", ""));
            assert!(!joined("dora:x:1003:1000::/home/dora:/bin/sh\n", ""));
            assert!(!joined("", "other:x:1000:\n"));
            let groups = "anna:x:1000:anna,bert\n".to_owned();
            assert!(!Trusted { groups, ..anna() }.is_alone_in(OWN));
            assert!(!Trusted { users: String::new(), ..anna() }.is_alone_in(OWN));
        }

        /// Follows a path in a folder of this user, which may be directly in `/tmp`.
        fn follow(path: &Path) -> Result<PathBuf, String> {
            Trusted::of_this_user().follow(path, Above::OrShared)
        }

        fn set_mode(path: &Path, mode: u32) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }

        #[test]
        fn every_folder_and_link_on_the_way_is_checked() {
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            for folder in ["mine/inner", "open/inner"] {
                fs::create_dir_all(root.join(folder)).unwrap();
                fs::write(root.join(folder).join("file"), "").unwrap();
            }
            let file = root.join("mine/inner/file");
            assert_eq!(follow(&file), Ok(file.clone()));
            symlink("../mine/../mine/inner", root.join("mine/link")).unwrap();
            assert_eq!(follow(&root.join("mine/link/./file")), Ok(file.clone()));
            symlink(root.join("open/inner/file"), root.join("mine/out")).unwrap();
            assert_eq!(follow(&root.join("mine/out")), Ok(root.join("open/inner/file")));

            set_mode(&root.join("open"), 0o777);
            symlink(&file, root.join("open/in")).unwrap();
            // The folder above, a link into it, and a link in it to a place where all is well.
            for path in
                ["open/inner/file", "mine/out", "open/in", "mine/../open/../mine/inner/file"]
            {
                let refusal = follow(&root.join(path)).unwrap_err();
                let expected =
                    format!("{} may be written by every user", root.join("open").display());
                assert!(refusal.starts_with(&expected), "{path}: {refusal}");
            }
            set_mode(&file, 0o777);
            let expected = format!("{} may be written by every user (mode 777)", file.display());
            assert_eq!(follow(&file), Err(expected));
        }

        #[test]
        fn paths_that_cannot_be_followed_are_refused() {
            let root = tempfile::tempdir().unwrap();
            symlink("circle", root.path().join("circle")).unwrap();
            for (path, reason) in [
                (Path::new("mine/file"), "mine/file is not an absolute path"),
                (Path::new(""), " is not an absolute path"),
                (&root.path().join("circle"), "leads in a circle"),
                (&root.path().join("none"), "cannot be inspected"),
                (Path::new("/dev/null"), "is neither a file nor a folder"),
            ] {
                let refusal = follow(path).unwrap_err();
                assert!(refusal.contains(reason), "{refusal}");
            }
        }

        /// Code may be below a shared folder, but not directly in it.
        #[test]
        fn code_is_not_trusted_in_a_shared_folder() {
            let root = tempfile::tempdir().unwrap();
            let shared = root.path().canonicalize().unwrap().join("shared");
            let mine = shared.join("mine");
            fs::create_dir_all(mine.join("inner")).unwrap();
            set_mode(&shared, 0o1777);
            assert_eq!(follow(&mine), Ok(mine.clone()));
            let closed = |path: &Path| Trusted::of_this_user().follow(path, Above::Closed);
            assert!(closed(&mine).is_err());
            assert_eq!(closed(&mine.join("inner")), Ok(mine.join("inner")));
            set_mode(&mine, 0o777);
            assert!(closed(&mine.join("inner")).is_err());
            set_mode(&mine, 0o755);
            // The shared folder itself is not trusted either way.
            assert!(follow(&shared).is_err());
        }
    }
}
