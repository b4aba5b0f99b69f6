//! The cache of compiled PTX on disk.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::trust::{self, Above};
use crate::{Error, Hash, Program, Ptx};

/// Returns the folder in which compiled PTX is cached between runs; `None` if nothing is cached.
///
/// `LINREC_CACHE` names the folder, and disables the cache if it is empty. The default is `linrec`
/// in the user's folder for caches. The folder is created at the first write, for this user alone,
/// and may be deleted at any time.
///
/// # Errors
///
/// If other users could put files there. Then nothing is cached either.
pub fn cache_folder() -> Result<Option<PathBuf>, Error> {
    let Some(folder) = named() else { return Ok(None) };
    // A folder that does not exist yet will be the user's own.
    if !folder.exists() {
        return Ok(Some(folder));
    }
    own(&folder).map(Some).map_err(Error::new)
}

fn named() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if env::var_os("LINREC_CACHE").is_some() {
        return variable("LINREC_CACHE");
    }
    let caches = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        env::home_dir().map(|home| home.join("Library/Caches"))
    } else {
        // The XDG Base Directory Specification requires that relative paths are ignored.
        let named = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        named.or_else(|| env::home_dir().map(|home| home.join(".cache")))
    };
    Some(caches?.join("linrec"))
}

/// Returns the folder as an absolute path, if nobody else can put files there.
fn own(folder: &Path) -> Result<PathBuf, String> {
    trust::check(folder, Above::OrShared).map_err(|refusal| {
        format!("compiled kernels are not cached in {}: {refusal}", folder.display())
    })
}

/// The key of an entry of the cache.
///
/// An entry is a file that has the key as its name, and contains the key, a hash and the PTX. It is
/// ignored if its hash is not the hash of its key and PTX, or if its key differs.
pub(crate) struct Key {
    folder: Option<PathBuf>,
    /// The hash of the program with all its texts, its architecture, and its compiler.
    name: String,
}

impl Key {
    /// Returns the key of `program` as `compute_{architecture}`, compiled by NVRTC of this version.
    pub(crate) fn new(program: &Program, architecture: u32, version: (u32, u32)) -> Key {
        Key::inside(named(), program, architecture, version)
    }

    fn inside(
        folder: Option<PathBuf>,
        program: &Program,
        architecture: u32,
        (major, minor): (u32, u32),
    ) -> Key {
        let (hash, by) = (program.hash(), env!("CARGO_PKG_VERSION"));
        let name = format!("{hash}-compute_{architecture}-nvrtc_{major}.{minor}-by_{by}");
        Key { folder, name }
    }

    /// Reads the entry, if it exists and is intact.
    pub(crate) fn load(&self) -> Option<Ptx> {
        let folder = own(self.folder.as_ref()?).ok()?;
        let text = fs::read_to_string(folder.join(self.file())).ok()?;
        let (_, ptx) = text.split_once("\n// hash ")?.1.split_once('\n')?;
        // The disk may have been full, and someone may have edited or renamed the file.
        (text == self.entry(ptx)).then(|| Ptx::from_text(ptx.to_owned()))
    }

    /// Writes the entry. A failure only costs time at the next run, and is ignored.
    pub(crate) fn store(&self, ptx: &Ptx) {
        if let Some(folder) = &self.folder {
            let _ = self.write(folder, ptx);
        }
    }

    fn file(&self) -> String {
        format!("{}.ptx", self.name)
    }

    /// Returns the text of the file.
    fn entry(&self, ptx: &str) -> String {
        let hash = Hash::of([&*self.name, ptx]);
        format!("// key {}\n// hash {hash}\n{ptx}", self.name)
    }

    /// Writes the file under a temporary name and renames it, so that nobody reads half of it.
    fn write(&self, folder: &Path, ptx: &Ptx) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        make(folder)?;
        let folder = own(folder).map_err(io::Error::other)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unfinished = folder.join(format!("{}.{}-{count}", self.name, process::id()));
        let written = fs::write(&unfinished, self.entry(ptx.text()))
            .and_then(|()| fs::rename(&unfinished, folder.join(self.file())));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }
}

/// Creates the folder and the missing folders above it, for this user alone.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        Program::new("a.cu", "__global__ void a() {}")
    }

    #[test]
    fn an_entry_is_found_under_its_own_key_alone() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("made when/needed");
        let program = program();
        let key = |program, architecture, version| {
            Key::inside(Some(folder.clone()), program, architecture, version)
        };
        let ptx = Ptx::new(&[], "h", &[], ".version 8.0\n");
        let this = key(&program, 80, (12, 0));
        assert!(this.load().is_none());
        this.store(&ptx);
        assert_eq!(this.load(), Some(ptx));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no unfinished file is left");

        let other = Program { options: vec!["-G".into()], ..program.clone() };
        let others =
            [key(&program, 90, (12, 0)), key(&program, 80, (12, 1)), key(&other, 80, (12, 0))];
        for key in others {
            assert!(key.load().is_none());
            // Nor is it found when the file is copied to the other key's name.
            fs::copy(folder.join(this.file()), folder.join(key.file())).unwrap();
            assert!(key.load().is_none(), "{}", key.name);
        }
    }

    #[test]
    fn damaged_entries_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let key = Key::inside(Some(root.path().to_owned()), &program(), 80, (12, 0));
        let ptx = Ptx::new(&[], "h", &[], ".version 8.0\n");
        key.store(&ptx);
        let file = root.path().join(key.file());
        let text = fs::read_to_string(&file).unwrap();
        // Cut anywhere, and with any one byte changed.
        let cut = (0..text.len()).map(|len| text.as_bytes()[..len].to_vec());
        let changed = (0..text.len()).map(|at| {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            bytes
        });
        for damaged in cut
            .chain(changed)
            .chain([text.replace('\n', "\r\n").into(), [&*text, "\n"].concat().into()])
        {
            fs::write(&file, &damaged).unwrap();
            assert!(key.load().is_none(), "{}", String::from_utf8_lossy(&damaged));
        }
        // An earlier version had this weak hash, which anyone can make match any text.
        fs::write(&file, "// check 0\n.version 9.9\n").unwrap();
        assert!(key.load().is_none());
        key.store(&ptx);
        assert_eq!(key.load(), Some(ptx));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_not_a_failure() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a file");
        fs::write(&file, "").unwrap();
        for folder in [None, Some(file.join("below"))] {
            let key = Key::inside(folder, &program(), 80, (12, 0));
            key.store(&Ptx::from_text(""));
            assert!(key.load().is_none());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;

        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/cache");
        let key = Key::inside(Some(folder.clone()), &program(), 80, (12, 0));
        key.store(&Ptx::from_text("1"));
        for made in [folder.clone(), root.path().join("a")] {
            assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert!(key.load().is_some());

        // Once others may write to the folder, nothing is read from it or written to it.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(key.load().is_none());
        fs::remove_file(folder.join(key.file())).unwrap();
        key.store(&Ptx::from_text("1"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        let refusal = own(&folder).unwrap_err();
        let expected = format!("compiled kernels are not cached in {0}: ", folder.display());
        assert!(refusal.starts_with(&expected) && refusal.contains("every user"), "{refusal}");
    }
}
