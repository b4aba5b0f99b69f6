//! What NVRTC refuses is an error with its words, and so is a file that is no NVRTC.

use std::fs;
use std::path::Path;

use nvrtc::Nvrtc;

#[test]
#[allow(unsafe_code)]
fn what_is_no_library_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libnvrtc.so.12");
    fs::write(&file, "not a library").unwrap();
    // SAFETY: there is no code in any of these files.
    let (load, load_below) =
        unsafe { (|file: &Path| Nvrtc::load(file), |folder: &Path| Nvrtc::load_below(folder)) };
    let error = load(&file).unwrap_err().to_string();
    assert!(error.contains("could not be loaded: its builtins are not beside it"), "{error}");
    fs::write(folder.path().join("libnvrtc-builtins.so.12.0"), "nor this").unwrap();
    let error = load(&file).unwrap_err().to_string();
    assert!(error.contains("could not be loaded"), "{error}");
    let error = load_below(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("NVRTC: ") && error.contains("libnvrtc.so.12"), "{error}");
    let error = load_below(&folder.path().join("empty")).unwrap_err().to_string();
    assert!(error.contains("there is no NVRTC in"), "{error}");
    for file in ["libnvrtc.so.12", "./libnvrtc.so.12"] {
        let error = load(Path::new(file)).unwrap_err().to_string();
        assert!(error.ends_with("could not be loaded: it is not a whole path"), "{error}");
    }
}

/// What the gate leaves out where there is none.
mod with_nvrtc {
    use nvrtc::Program;

    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn what_does_not_compile_is_a_sentence_with_the_compilers_own() {
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
        let error = nvrtc::compile(&plain("__global__ void f() {}"), 10).unwrap_err().to_string();
        assert!(error.ends_with("does not compile for compute capability 1.0"), "{error}");
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn a_warning_is_no_error_and_is_handed_on() {
        let program = Program::new("mine.cu", "__global__ void f() { int unused = 1; }");
        let compiled = nvrtc::compile(&program.with_entries(["f"]), 80).unwrap();
        assert!(compiled.log.contains("unused"), "{}", compiled.log);
        assert_eq!(compiled.ptx.symbol("f"), Some("f"));
    }
}
