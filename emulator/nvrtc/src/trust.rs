//! Whether a file can have been put where it is, or changed, by another user of the machine.
//!
//! On Unix a file belongs to the user or to root, and so does every folder above it, with every
//! link on the way; nobody else may write any of them. Without that, whoever may write one of the
//! folders decides what is in the file. A folder in which everybody may make files and remove only
//! their own (`/tmp`) may lie above: what belongs to the user there, nobody else can replace. But
//! code does not lie in such a folder itself, where others could put a library beside it that it
//! loads. A group may write if it is the user's own: one of the same name that nobody else is in,
//! as many Linux systems make for each user. Access lists are not read, but what they let others
//! write shows as a right of the group.
//!
//! Windows says who may write in lists of rights alone, which are not read here: there only whole
//! paths are asked for, so that nothing comes from the current folder.

use std::path::{Path, PathBuf};

/// What may lie above a file or folder that is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Above {
    /// A folder that nobody else may write, and shared ones (`/tmp`) only above it: for code.
    Closed,
    /// Also directly a folder that everybody may write if each removes only their own: for data
    /// that is checked again.
    OrShared,
}

/// `path` with all links followed, if nobody but the user and root can have put it there.
///
/// # Errors
///
/// Why not, as a sentence that names the path.
#[cfg(unix)]
pub fn check(path: &Path, above: Above) -> Result<PathBuf, String> {
    unix::Trusted::of_this_user().follow(path, above)
}

/// `path`, if it is there and a whole path.
///
/// # Errors
///
/// Why not, as a sentence that names the path.
#[cfg(not(unix))]
pub fn check(path: &Path, _above: Above) -> Result<PathBuf, String> {
    if !path.is_absolute() {
        return Err(format!("{} is not a whole path", path.display()));
    }
    match path.metadata() {
        Ok(_) => Ok(path.to_owned()),
        Err(error) => Err(format!("{} cannot be looked at: {error}", path.display())),
    }
}

#[cfg(unix)]
mod unix {
    use std::collections::VecDeque;
    use std::fs::{self, Metadata};
    use std::os::unix::fs::MetadataExt;
    use std::path::{Component, Path, PathBuf};

    use super::Above;

    const ROOT: u32 = 0;
    /// As many as Linux follows.
    const MOST_LINKS: usize = 40;

    #[allow(unsafe_code)]
    // SAFETY: POSIX declares it so: it takes nothing, cannot fail, and `uid_t` has 32 bits.
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }

    /// Whose files are trusted.
    pub(super) struct Trusted {
        user: u32,
        /// `/etc/passwd` and `/etc/group`.
        users: String,
        groups: String,
    }

    /// Whose a file is, and who may write it.
    #[derive(Debug, Clone, Copy)]
    struct Rights {
        owner: u32,
        group: u32,
        mode: u32,
    }

    impl Rights {
        fn of(metadata: &Metadata) -> Rights {
            Rights { owner: metadata.uid(), group: metadata.gid(), mode: metadata.mode() }
        }
    }

    impl Trusted {
        pub(super) fn of_this_user() -> Trusted {
            let text = |path| fs::read_to_string(path).unwrap_or_default();
            Trusted { user: geteuid(), users: text("/etc/passwd"), groups: text("/etc/group") }
        }

        /// Goes along `path` as the system does, and looks at all that decides where it leads.
        pub(super) fn follow(&self, path: &Path, above: Above) -> Result<PathBuf, String> {
            if !path.is_absolute() {
                return Err(format!("{} is not a whole path", path.display()));
            }
            let mut at = PathBuf::from("/");
            let mut rest: VecDeque<PathBuf> = parts(path).collect();
            let mut links = 0;
            self.look_at(&at, above, rest.len())?;
            while let Some(part) = rest.pop_front() {
                match part.components().next() {
                    Some(Component::RootDir) => at = PathBuf::from("/"),
                    Some(Component::ParentDir) => drop(at.pop()),
                    Some(Component::Normal(name)) => {
                        at.push(name);
                        let Some(target) = self.look_at(&at, above, rest.len())? else {
                            continue;
                        };
                        links += 1;
                        if links > MOST_LINKS {
                            return Err(format!("{} leads in a circle", path.display()));
                        }
                        at.pop();
                        for part in parts(&target).rev() {
                            rest.push_front(part);
                        }
                    }
                    _ => {}
                }
            }
            Ok(at)
        }

        /// Looks at one step of a path, which has so many further ones; where a link leads.
        fn look_at(
            &self,
            path: &Path,
            above: Above,
            further: usize,
        ) -> Result<Option<PathBuf>, String> {
            let unseen = |error| format!("{} cannot be looked at: {error}", path.display());
            let metadata = path.symlink_metadata().map_err(unseen)?;
            let rights = Rights::of(&metadata);
            let kind = metadata.file_type();
            let objection = if kind.is_symlink() {
                // Everybody may write to a link, which means nothing: it cannot be changed, only
                // replaced.
                self.objection_to_owner(rights)
            } else if kind.is_dir() || kind.is_file() {
                let least = if above == Above::OrShared { 1 } else { 2 };
                let shared = kind.is_dir() && further >= least;
                self.objection(rights, shared)
            } else {
                Some("is neither a file nor a folder".to_owned())
            };
            match objection {
                Some(objection) => Err(format!("{} {objection}", path.display())),
                None if kind.is_symlink() => fs::read_link(path).map(Some).map_err(unseen),
                None => Ok(None),
            }
        }

        /// Why something with these rights is not trusted; a folder that is `shared` may be
        /// everybody's.
        fn objection(&self, rights: Rights, shared: bool) -> Option<String> {
            const STICKY: u32 = 0o1000;
            if let Some(objection) = self.objection_to_owner(rights) {
                return Some(objection);
            }
            let Rights { group, mode, .. } = rights;
            let bits = mode & 0o7777;
            if shared && mode & STICKY != 0 {
                None
            } else if mode & 0o002 != 0 {
                Some(format!("may be written by every user (mode {bits:o})"))
            } else if mode & 0o020 != 0 && !self.is_alone_in(group) {
                Some(format!("may be written by the users of group {group} (mode {bits:o})"))
            } else {
                None
            }
        }

        fn objection_to_owner(&self, Rights { owner, .. }: Rights) -> Option<String> {
            let user = self.user;
            let trusted = [user, ROOT].contains(&owner);
            (!trusted)
                .then(|| format!("belongs to user {owner}, who is neither user {user} nor root"))
        }

        /// Whether the group is the user's own, or root's: it has the user's name, and nobody else
        /// is in it.
        fn is_alone_in(&self, group: u32) -> bool {
            let is = |field: Option<&&str>, number| {
                field.and_then(|text| text.parse().ok()) == Some(number)
            };
            let users: Vec<_> = table(&self.users).collect();
            let mut named = table(&self.groups).filter(|line| is(line.get(2), group));
            let (Some(own), None) = (named.next(), named.next()) else { return false };
            let name = own[0];
            let members = own.get(3).copied().unwrap_or_default().split(',');
            let user = users.iter().find(|line| line[0] == name);
            let trusted =
                user.is_some_and(|user| is(user.get(2), self.user) || is(user.get(2), ROOT));
            let mut others = users.iter().filter(|line| line[0] != name);
            trusted
                && members.into_iter().all(|member| member.is_empty() || member == name)
                && others.all(|other| !is(other.get(3), group))
        }
    }

    fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
        path.components().map(|part| PathBuf::from(part.as_os_str()))
    }

    /// The fields of each line of `/etc/passwd` or `/etc/group`.
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
            Trusted {
                user: ANNA,
                users: "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n\
                        bert:x:1001:1001::/home/bert:/bin/sh\ncarl:x:1002:100::/home/carl:/bin/sh\n"
                    .to_owned(),
                groups:
                    "root:x:0:\nusers:x:100:\nstaff:x:50:anna,bert\nanna:x:1000:\nbert:x:1001:\n"
                        .to_owned(),
            }
        }

        #[test]
        fn what_others_may_write_is_not_trusted() {
            let rights = |owner, group, mode| Rights { owner, group, mode };
            for (rights, objection) in [
                (rights(0, 0, 0o755), None),
                (rights(ANNA, OWN, 0o644), None),
                (rights(ANNA, OWN, 0o2775), None),
                (rights(0, 0, 0o775), None),
                (
                    rights(1001, OWN, 0o755),
                    Some("belongs to user 1001, who is neither user 1000 nor root"),
                ),
                (rights(ANNA, OWN, 0o777), Some("may be written by every user (mode 777)")),
                (rights(0, 0, 0o1777), Some("may be written by every user (mode 1777)")),
                (
                    rights(ANNA, 50, 0o775),
                    Some("may be written by the users of group 50 (mode 775)"),
                ),
                // carl's first group is `users`, which names no members; nobody's is 7; 1001 is
                // bert's.
                (
                    rights(ANNA, 100, 0o775),
                    Some("may be written by the users of group 100 (mode 775)"),
                ),
                (rights(ANNA, 7, 0o775), Some("may be written by the users of group 7 (mode 775)")),
                (
                    rights(ANNA, 1001, 0o775),
                    Some("may be written by the users of group 1001 (mode 775)"),
                ),
            ] {
                assert_eq!(anna().objection(rights, false).as_deref(), objection, "{rights:?}");
            }
            assert_eq!(anna().objection(rights(0, 0, 0o1777), true), None);
            for open in [rights(0, 0, 0o777), rights(0, 50, 0o775), rights(1001, 0, 0o1777)] {
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

        /// What is found out about a path in a folder of this user, which may lie in `/tmp`.
        fn follow(path: &Path) -> Result<PathBuf, String> {
            Trusted::of_this_user().follow(path, Above::OrShared)
        }

        fn open_to_all(path: &Path) {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }

        #[test]
        fn every_folder_and_link_on_the_way_is_looked_at() {
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

            open_to_all(&root.join("open"));
            symlink(&file, root.join("open/in")).unwrap();
            // The folder above, a link into it, and a link in it that leads where all is well.
            for path in
                ["open/inner/file", "mine/out", "open/in", "mine/../open/../mine/inner/file"]
            {
                let refusal = follow(&root.join(path)).unwrap_err();
                let expected =
                    format!("{} may be written by every user", root.join("open").display());
                assert!(refusal.starts_with(&expected), "{path}: {refusal}");
            }
            open_to_all(&file);
            let refusal = follow(&file).unwrap_err();
            assert_eq!(
                refusal,
                format!("{} may be written by every user (mode 777)", file.display())
            );
        }

        #[test]
        fn what_cannot_be_followed_is_refused() {
            let root = tempfile::tempdir().unwrap();
            symlink("circle", root.path().join("circle")).unwrap();
            for (path, reason) in [
                (Path::new("mine/file"), "mine/file is not a whole path"),
                (Path::new(""), " is not a whole path"),
                (&root.path().join("circle"), "leads in a circle"),
                (&root.path().join("none"), "cannot be looked at"),
                (Path::new("/dev/null"), "is neither a file nor a folder"),
            ] {
                let refusal = follow(path).unwrap_err();
                assert!(refusal.contains(reason), "{refusal}");
            }
        }

        /// A folder that is everybody's is none for code, even where each removes only their own;
        /// one in it may be.
        #[test]
        fn code_does_not_lie_in_a_shared_folder() {
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            let shared = root.join("shared");
            fs::create_dir_all(shared.join("mine")).unwrap();
            fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
            let mine = shared.join("mine");
            assert_eq!(follow(&mine), Ok(mine.clone()));
            let closed = |path: &Path| Trusted::of_this_user().follow(path, Above::Closed);
            assert!(closed(&mine).is_err());
            fs::create_dir(mine.join("inner")).unwrap();
            assert_eq!(closed(&mine.join("inner")), Ok(mine.join("inner")));
            fs::set_permissions(&mine, fs::Permissions::from_mode(0o777)).unwrap();
            assert!(closed(&mine.join("inner")).is_err());
            fs::set_permissions(&mine, fs::Permissions::from_mode(0o755)).unwrap();
            // Itself it may not be everybody's either way.
            assert!(follow(&shared).is_err());
        }
    }
}
