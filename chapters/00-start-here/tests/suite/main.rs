//! Tests the program `tour`, started as a user starts it.

mod cli;
mod doctor {
    //! Tests `tour doctor` on machines that lack something: it must explain and go on.

    use std::process::Command;

    fn doctor(variables: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tour"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        command.arg("doctor").current_dir(folder.path()).env_remove("LINREC_DEVICE");
        let output = command.envs(variables.iter().copied()).output().expect("the tour starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn what_is_missing_is_explained() {
        let (code, text) = doctor(&[
            ("CUDA_VISIBLE_DEVICES", ""),
            ("LINREC_DEVICE", "gpu"),
            ("LINREC_NVRTC", "nowhere"),
        ]);
        assert_eq!(code, Some(0), "{text}");
        for words in [
            "the emulator of a GPU",
            "CUDA: ",
            "NVRTC: ",
            "nowhere",
            "LINREC_DEVICE: `gpu` is no device; choose from simt, cuda",
            "ref:64@simt, f32",
            "Everything that this machine needs is there.",
        ] {
            assert!(text.contains(words), "`{words}` is not in:\n{text}");
        }
        assert!(!text.contains("panicked"), "{text}");
    }
}
mod puzzles;
