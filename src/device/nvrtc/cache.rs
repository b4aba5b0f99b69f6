//! PTX that was compiled before, on disk.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernels::{Hash, Program, Ptx};

/// The folder where compiled PTX is kept between runs, if there is one.
///
/// `LINREC_CACHE` names it (empty: nothing is kept); else it is `linrec` in the user's folder for caches.
/// It may be deleted at any time.
pub fn folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if env::var_os("LINREC_CACHE").is_some() {
        return variable("LINREC_CACHE");
    }
    let caches = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        env::home_dir().map(|home| home.join("Library/Caches"))
    } else {
        // Relative paths are to be ignored, says the XDG Base Directory Specification.
        let named = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        named.or_else(|| env::home_dir().map(|home| home.join(".cache")))
    };
    Some(caches?.join("linrec"))
}

/// What an entry of the cache is found by.
pub(super) struct Key {
    folder: Option<PathBuf>,
    name: String,
}

impl Key {
    /// For `program` as `compute_{architecture}`, by NVRTC of this version.
    pub(super) fn new(program: &Program, architecture: u32, version: (u32, u32)) -> Key {
        Key::inside(folder(), program, architecture, version)
    }

    fn inside(
        folder: Option<PathBuf>,
        program: &Program,
        architecture: u32,
        (major, minor): (u32, u32),
    ) -> Key {
        let hash = program.hash();
        Key { folder, name: format!("{hash}-sm_{architecture}-nvrtc_{major}.{minor}.ptx") }
    }

    /// The entry, if it is there and whole.
    pub(super) fn load(&self) -> Option<Ptx> {
        let text = fs::read_to_string(self.folder.as_ref()?.join(&self.name)).ok()?;
        let (check, ptx) = text.strip_prefix("// check ")?.split_once('\n')?;
        // A disk that ran full or a file someone edited: as good as not there.
        (check == Hash::EMPTY.and(ptx).to_string()).then(|| Ptx::from_text(ptx.to_owned()))
    }

    /// Keeps `ptx`. That it could not be kept costs time at the next run and is no failure.
    pub(super) fn store(&self, ptx: &Ptx) {
        if let Some(folder) = &self.folder {
            let _ = self.write(folder, ptx);
        }
    }

    /// Under a name of its own first, and renamed when it is whole: others never read half of it.
    fn write(&self, folder: &Path, ptx: &Ptx) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(folder)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unfinished = folder.join(format!("{}.{}-{count}", self.name, process::id()));
        let check = Hash::EMPTY.and(ptx.text());
        let written = fs::write(&unfinished, format!("// check {check}\n{}", ptx.text()))
            .and_then(|()| fs::rename(&unfinished, folder.join(&self.name)));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_and_what_is_damaged_is_not() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("made when needed");
        let program = Program::new("a.cu", "__global__ void a() {}");
        let key = |program, architecture, version| {
            Key::inside(Some(folder.clone()), program, architecture, version)
        };
        let ptx = Ptx::new(&[], "h", &[], ".version 8.0\n");
        let this = key(&program, 80, (12, 0));
        assert!(this.load().is_none());
        this.store(&ptx);
        assert_eq!(this.load(), Some(ptx));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing unfinished is left");

        let other = Program { options: vec!["-G".into()], ..program.clone() };
        for key in
            [key(&program, 90, (12, 0)), key(&program, 80, (12, 1)), key(&other, 80, (12, 0))]
        {
            assert!(key.load().is_none());
        }

        let file = folder.join(&this.name);
        let text = fs::read_to_string(&file).unwrap();
        for damage in [&text[..text.len() - 3], "", "// check 0\n", &text.replace("8.0", "9.9")] {
            fs::write(&file, damage).unwrap();
            assert!(this.load().is_none(), "{damage}");
        }
        fs::write(&file, [0xFF, 0xFE]).unwrap();
        assert!(this.load().is_none());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_failure() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a file");
        fs::write(&file, "").unwrap();
        let program = Program::new("a.cu", "");
        for folder in [None, Some(file.join("below"))] {
            let key = Key::inside(folder, &program, 80, (12, 0));
            key.store(&Ptx::from_text(""));
            assert!(key.load().is_none());
        }
    }
}
