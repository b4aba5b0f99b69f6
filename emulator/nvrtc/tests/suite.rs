//! NVRTC where it is installed, and attacks by files that pretend to be NVRTC.
//!
//! The attacks compile a library as bait, put it into a place where a search could find it, and run
//! this program again to search there. The bait creates a file when it is loaded, so the test knows
//! whether its code ran. The rules for files and folders have their unit tests in `src/trust.rs`.
//! Tests that need NVRTC are ignored unless they are asked for.

mod compiling {
    //! Errors of NVRTC contain its own message, and a file that is not NVRTC is refused.

    use std::fs;
    use std::path::Path;

    use nvrtc::Nvrtc;

    #[test]
    #[allow(unsafe_code)]
    fn a_file_that_is_not_a_library_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libnvrtc.so.12");
        fs::write(&file, "not a library").unwrap();
        // SAFETY: none of these files contains code.
        let (load, load_below) =
            unsafe { (|file: &Path| Nvrtc::load(file), |folder: &Path| Nvrtc::load_below(folder)) };
        let error = load(&file).unwrap_err().to_string();
        assert!(error.contains("could not be loaded: its builtins are not in the same"), "{error}");
        fs::write(folder.path().join("libnvrtc-builtins.so.12.0"), "nor this").unwrap();
        let error = load(&file).unwrap_err().to_string();
        assert!(error.contains("could not be loaded"), "{error}");
        let error = load_below(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("NVRTC: ") && error.contains("libnvrtc.so.12"), "{error}");
        let error = load_below(&folder.path().join("empty")).unwrap_err().to_string();
        assert!(error.contains("there is no NVRTC in"), "{error}");
        for file in ["libnvrtc.so.12", "./libnvrtc.so.12"] {
            let error = load(Path::new(file)).unwrap_err().to_string();
            assert!(error.ends_with("could not be loaded: it is not an absolute path"), "{error}");
        }
    }

    /// The tests that the gate leaves out where NVRTC is not installed.
    mod with_nvrtc {
        use nvrtc::Program;

        use super::*;

        #[test]
        #[ignore = "needs NVRTC"]
        fn an_error_of_the_compiler_is_part_of_the_sentence() {
            let nvrtc = Nvrtc::find().unwrap_or_else(|error| panic!("{error}"));
            let plain = |source: &'static str| Program::new("mine.cu", source);
            let unknown_option = Program { options: vec!["--nonsense".into()], ..plain("") };
            for (program, expected) in [
                (
                    plain("__global__ void f() { y = 3; }"),
                    "mine.cu(1): error: identifier \"y\" is undefined",
                ),
                (plain("#include \"none.cuh\"\n"), "none.cuh"),
                (plain("__global__ void f() {}").with_entries(["g<float>"]), "g"),
                (plain("// \0"), "the source holds a zero byte"),
                (unknown_option, "--nonsense"),
            ] {
                let error = nvrtc.compile(&program, 80).unwrap_err().to_string();
                assert!(error.starts_with("NVRTC: mine.cu could not be compiled"), "{error}");
                assert!(error.contains(expected), "`{expected}` is not in: {error}");
            }
            let error =
                nvrtc::compile(&plain("__global__ void f() {}"), 10).unwrap_err().to_string();
            assert!(error.ends_with("does not compile for compute capability 1.0"), "{error}");
        }

        #[test]
        #[ignore = "needs NVRTC"]
        fn a_warning_is_not_an_error_and_is_in_the_log() {
            let program = Program::new("mine.cu", "__global__ void f() { int unused = 1; }");
            let compiled = nvrtc::compile(&program.with_entries(["f"]), 80).unwrap();
            assert!(compiled.log.contains("unused"), "{}", compiled.log);
            assert_eq!(compiled.ptx.symbol("f"), Some("f"));
        }
    }
}
#[cfg(target_os = "linux")]
mod foreign {
    //! The search for NVRTC runs no code of other users: neither from the current folder nor from a
    //! folder that others may write to.
    //!
    //! Each test lays out bait, starts this program again as [`VICTIM`] next to it, and checks
    //! whether the bait ran.

    use std::env;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use nvrtc::Nvrtc;
    use tempfile::TempDir;

    /// The test that searches for NVRTC when the other tests start it.
    const VICTIM: &str = "foreign::looks_for_nvrtc";
    /// The variable with the file that [`VICTIM`] loads unchecked. If it is empty, [`VICTIM`]
    /// searches for NVRTC.
    const FILE: &str = "LINREC_TEST_LOAD";
    /// The variable with the file that the bait creates when it runs.
    const RAN: &str = "LINREC_TEST_RAN";

    /// A library that only creates a file when it is loaded.
    const LIBRARY: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
    __attribute__((constructor)) static void ran(void) {\n\
    FILE *file = fopen(getenv(\"LINREC_TEST_RAN\"), \"w\"); if (file) fclose(file); }\n";
    const PYTHON: &str = "import os\nopen(os.environ['LINREC_TEST_RAN'], 'w').close()\n";
    const SHELL: &str = "#!/bin/sh\n: >\"$LINREC_TEST_RAN\"\n";

    /// A library that is not NVRTC.
    struct Bait {
        folder: TempDir,
        library: PathBuf,
    }

    impl Bait {
        fn new() -> Bait {
            let folder = tempfile::tempdir().unwrap();
            let (source, library) = (folder.path().join("bait.c"), folder.path().join("bait.so"));
            fs::write(&source, LIBRARY).unwrap();
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
            let made = compiler.output().expect("a C compiler, as Rust's linker is one");
            assert!(made.status.success(), "{made:?}");
            Bait { folder, library }
        }

        /// Copies it into `folder` as NVRTC and as NVRTC's builtins.
        fn lay(&self, folder: &Path) {
            fs::create_dir_all(folder).unwrap();
            for name in ["libnvrtc.so.12", "libnvrtc-builtins.so.12.0"] {
                fs::copy(&self.library, folder.join(name)).unwrap();
            }
        }

        /// Runs the search for NVRTC in `folder`. Returns its output, and whether the bait ran.
        fn search(&self, folder: &Path, variables: &[(&str, &str)]) -> (String, bool) {
            let ran = self.folder.path().join("ran");
            let _ = fs::remove_file(&ran);
            let mut victim = Command::new(env::current_exe().unwrap());
            victim
                .args(["--exact", VICTIM, "--ignored", "--nocapture"])
                .current_dir(folder)
                .env(RAN, &ran)
                .env(FILE, "");
            for variable in
                ["LINREC_NVRTC", "CUDA_PATH", "CUDA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX"]
            {
                victim.env_remove(variable);
            }
            // There is no NVRTC in this workspace's own place, so that every other place is
            // searched.
            victim.env("CARGO_TARGET_DIR", self.folder.path());
            let output = victim.envs(variables.iter().copied()).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
            (printed, ran.exists())
        }
    }

    #[test]
    #[ignore = "is run by the tests below, with a file to load or none"]
    #[allow(unsafe_code)]
    fn looks_for_nvrtc() {
        let file = env::var_os(FILE).unwrap_or_default();
        let found = if file.is_empty() {
            Nvrtc::find().map(|nvrtc| nvrtc.path().to_owned())
        } else {
            // SAFETY: the file is the bait above, which only creates a file.
            unsafe { Nvrtc::load(Path::new(&file)) }.map(|nvrtc| nvrtc.path().to_owned())
        };
        println!(
            "{}",
            found.map_or_else(|error| error.to_string(), |path| path.display().to_string())
        );
    }

    #[test]
    fn nothing_is_run_from_the_current_folder() {
        let bait = Bait::new();
        let root = tempfile::tempdir().unwrap();
        let path = env::var("PATH").unwrap();

        // Bait that is requested does run. Otherwise the attacks below would prove nothing.
        bait.lay(&root.path().join("requested"));
        let library = root.path().join("requested/libnvrtc.so.12");
        assert!(bait.search(root.path(), &[(FILE, library.to_str().unwrap())]).1);

        let write = |file: PathBuf, text: &str| {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let here_and_path = format!(":{path}");
        type Lay<'a> = &'a dyn Fn(&Path);
        type Variables<'a> = &'a [(&'a str, &'a str)];
        let attacks: &[(&str, Lay, Variables)] = &[
            (
                "the place of a workspace's own NVRTC",
                &|here| bait.lay(&here.join("target/nvrtc/lib64")),
                &[],
            ),
            (
                "the same in a folder above",
                &|here| bait.lay(&here.parent().unwrap().join("target/nvrtc/lib64")),
                &[],
            ),
            (
                "a module of Python",
                &|here| {
                    for module in
                        ["importlib", "site", "sitecustomize", "contextlib", "types", "warnings"]
                    {
                        write(here.join(module).with_extension("py"), PYTHON);
                    }
                },
                &[],
            ),
            ("a package of Python", &|here| bait.lay(&here.join("nvidia/cuda_nvrtc/lib")), &[]),
            (
                "Python, first",
                &|here| write(here.join("python3"), SHELL),
                &[("PATH", &here_and_path)],
            ),
            (
                "Python, last",
                &|here| write(here.join("python3"), SHELL),
                &[("PATH", ":/no-such-folder")],
            ),
            ("Python, by a dot", &|here| write(here.join("python3"), SHELL), &[("PATH", "./:.")]),
            (
                "a shell for a Python that is a script",
                &|here| write(here.join("bash"), SHELL),
                &[("PATH", &here_and_path)],
            ),
            (
                "an empty entry of the linker",
                &|here| bait.lay(here),
                &[("LD_LIBRARY_PATH", "/no-such-folder:")],
            ),
            (
                "an entry of the linker",
                &|here| bait.lay(&here.join("lib")),
                &[("LD_LIBRARY_PATH", "lib")],
            ),
            ("a toolkit", &|here| bait.lay(&here.join("lib64")), &[("CUDA_PATH", ".")]),
            ("an environment", &|here| bait.lay(&here.join("env/lib")), &[("VIRTUAL_ENV", "env")]),
            (
                "the library",
                &|here| bait.lay(&here.join("lib")),
                &[("LINREC_NVRTC", "lib/libnvrtc.so.12")],
            ),
            (
                "the library's folder",
                &|here| bait.lay(&here.join("lib")),
                &[("LINREC_NVRTC", "lib")],
            ),
        ];
        let mut ran = Vec::new();
        for (attack, (name, lay, variables)) in attacks.iter().enumerate() {
            let here = root.path().join(format!("{attack}/inner"));
            fs::create_dir_all(&here).unwrap();
            lay(&here);
            let (printed, bait_ran) = bait.search(&here, variables);
            if bait_ran {
                ran.push(format!("{name}: {printed}"));
            }
        }
        assert!(ran.is_empty(), "{} of {} attacks:\n{}", ran.len(), attacks.len(), ran.join("\n"));
    }

    /// Bait that `LINREC_NVRTC` names, two folders of this user deep.
    struct Laid {
        bait: Bait,
        root: TempDir,
    }

    impl Laid {
        fn new() -> Laid {
            let laid = Laid { bait: Bait::new(), root: tempfile::tempdir().unwrap() };
            laid.bait.lay(&laid.folder());
            let (printed, ran) = laid.find();
            assert!(ran, "only this user can write to it: {printed}");
            laid
        }

        /// Returns the outer folder, with all links followed as in the sentences.
        fn root(&self) -> PathBuf {
            self.root.path().canonicalize().unwrap()
        }

        fn folder(&self) -> PathBuf {
            self.root().join("nvrtc")
        }

        /// Returns everything that decides which code runs.
        fn parts(&self) -> [PathBuf; 4] {
            let [library, builtins] = ["libnvrtc.so.12", "libnvrtc-builtins.so.12.0"]
                .map(|name| self.folder().join(name));
            [library, builtins, self.folder(), self.root()]
        }

        /// Searches for NVRTC there. Returns the output, and whether the bait ran.
        fn find(&self) -> (String, bool) {
            let folder = self.folder();
            self.bait.search(Path::new("/"), &[("LINREC_NVRTC", folder.to_str().unwrap())])
        }

        /// Asserts that the bait does not run, for this reason.
        fn is_refused(&self, reason: &str) {
            let (printed, ran) = self.find();
            assert!(!ran, "{reason}: {printed}");
            assert!(printed.contains(reason), "`{reason}` is not in: {printed}");
        }
    }

    /// Runs `body` while a file or folder has another mode.
    fn with_mode(path: &Path, mode: u32, body: impl FnOnce()) {
        let usual = path.metadata().unwrap().permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        body();
        fs::set_permissions(path, usual).unwrap();
    }

    #[test]
    fn a_library_that_others_can_change_is_refused_with_the_reason() {
        let laid = Laid::new();
        let parts = laid.parts();
        let [library, _, _, root] = &parts;
        // The folder above the library's own may be a shared one like `/tmp`, in which users can
        // remove only their own files.
        with_mode(root, 0o1777, || assert!(laid.find().1));
        for changed in &parts {
            let everybody = if changed == root { 0o777 } else { 0o1777 };
            with_mode(changed, everybody, || {
                laid.is_refused(&format!(
                    "{} is not loaded: {} may be written by every user (mode {everybody:o})",
                    library.display(),
                    changed.display()
                ));
            });
        }
        assert!(laid.find().1);
    }

    #[test]
    #[ignore = "needs root, to give files to another user"]
    fn a_library_of_another_user_is_refused_with_the_reason() {
        const SOMEBODY: u32 = 54321;
        let laid = Laid::new();
        for changed in laid.parts() {
            chown(&changed, Some(SOMEBODY), None).unwrap();
            laid.is_refused(&format!("{} belongs to user {SOMEBODY}", changed.display()));
            chown(&changed, Some(0), None).unwrap();
        }
        assert!(laid.find().1);
    }
}
