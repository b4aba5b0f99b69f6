//! The tests of this package's public items, in one program so that it is linked once.

#[cfg(unix)]
mod bundle {
    //! Tests the bundle's scripts, with programs of this folder in place of the probe, ncu and
    //! compute-sanitizer. The output of these tools on a real GPU is not tested here, only what the
    //! scripts make of it.

    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    fn fixture() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture/bundle")
    }

    fn script(name: &str, out: &Path, options: &[&str], variables: &[(&str, &str)]) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("bundle").join(name))
            .arg("--probe")
            .arg(fixture().join("probe"))
            .arg("--out")
            .arg(out)
            .args(options)
            .env("PATH", format!("{}:{path}", fixture().display()))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("LINREC_GPU", "a GPU of paper")
            .envs(variables.iter().copied())
            .output()
            .expect("python3 is needed for the tests of the bundle's scripts")
    }

    /// Returns the last line, which the summary shows for the script's step.
    fn last_line(output: &Output) -> String {
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().last().unwrap_or_default().to_owned()
    }

    fn row(folder: &Path, file: &str, name: &str) -> String {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let start = format!("{name},");
        let line = text.lines().find(|line| line.starts_with(&start));
        line.unwrap_or_else(|| panic!("{file} has no row for {name}:\n{text}")).to_owned()
    }

    #[test]
    fn equal_counters_pass() {
        let out = tempfile::tempdir().unwrap();
        let output = script("counters.py", out.path(), &["--enough", "1"], &[]);
        assert!(output.status.success(), "{output:?}");
        let line = last_line(&output);
        assert!(line.contains("equal in 5 of 6 comparisons over 3 kernels"), "{line}");
        assert!(line.contains("instruction by instruction in 2 kernels; 0 failures"), "{line}");
        let loads = row(out.path(), "counters.csv", "copies/copy");
        assert!(loads.starts_with("copies/copy,load,8,8,32,32,4.0,yes,a GPU of paper"), "{loads}");
        // The number of requests of a kernel that polls is not limited.
        let loads = row(out.path(), "counters.csv", "waits/wait");
        assert!(loads.starts_with("waits/wait,load,5,900,5,900,1.0,waits"), "{loads}");
        // An asynchronous copy counts as a load.
        let loads = row(out.path(), "counters.csv", "copies/ahead");
        assert!(loads.starts_with("copies/ahead,load,16,16,256,256,16.0,yes"), "{loads}");
        let single = row(out.path(), "accesses.csv", "copies/copy");
        assert!(single.contains("ld.global.f32,k.cu:1,LDG.E,8,8,32,32,4.0"), "{single}");
        let module = row(out.path(), "modules.csv", "copies");
        assert!(module.starts_with("copies,2,40,456,0,200,2060,10.3,"), "{module}");
        let executed = row(out.path(), "instructions.csv", "copies/copy");
        assert!(executed.starts_with("copies/copy,100,1160,11.6"), "{executed}");
    }

    #[test]
    fn both_forms_of_ncu_are_read() {
        let out = tempfile::tempdir().unwrap();
        // The page of single instructions is missing, but each access is the only one of its kind.
        let output = script("counters.py", out.path(), &["--enough", "1"], &[("FAKE_NCU", "wide")]);
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn a_sector_too_many_fails() {
        let out = tempfile::tempdir().unwrap();
        let output =
            script("counters.py", out.path(), &["--enough", "0"], &[("FAKE_NCU", "different")]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("copies/copy: the loads differ"), "{text}");
        assert!(text.contains("copies/ahead: the loads differ"), "{text}");
    }

    #[test]
    fn too_few_kernels_and_a_failing_profiler_fail() {
        let out = tempfile::tempdir().unwrap();
        let output = script("counters.py", out.path(), &[], &[]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("agree in 2 kernels, not in 6"));
        let output = script("counters.py", out.path(), &[], &[("FAKE_NCU", "failing")]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("ERR_NVGPUCTRPERM"), "{output:?}");
    }

    #[test]
    fn the_sanitizers_table_shows_what_finds_each_mistake() {
        let out = tempfile::tempdir().unwrap();
        let output = script("sanitize.py", out.path(), &["--seconds", "3"], &[]);
        assert!(output.status.success(), "{output:?}");
        for (kernel, outcomes) in [
            ("copies/copy", "correct,clean,clean,clean,clean,clean,right"),
            ("broken/race", "broken,clean,found,clean,clean,found,stopped"),
            ("broken/lost", "broken,clean,clean,clean,clean,clean,wrong"),
            ("broken/hang", "broken,hang,hang,hang,hang,found,stopped"),
        ] {
            let row = row(out.path(), "sanitize.csv", kernel);
            assert!(row.starts_with(&format!("{kernel},{outcomes},a GPU of paper")), "{row}");
        }
        let mistake = row(out.path(), "mistakes.csv", "race");
        assert!(mistake.starts_with("race,clean,found,clean,clean,found,stopped,"), "{mistake}");
        let says = fs::read_to_string(out.path().join("sanitize_says.csv")).unwrap();
        assert!(says.contains("broken/race,racecheck,found,Error: Race reported"), "{says}");
        assert!(says.contains("in broken/race.cu:84"), "{says}");
    }

    #[test]
    fn a_finding_in_a_correct_kernel_fails() {
        let out = tempfile::tempdir().unwrap();
        let variables = [("FAKE_SANITIZER", "copies/copy")];
        let output = script("sanitize.py", out.path(), &["--seconds", "3"], &variables);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let row = row(out.path(), "sanitize.csv", "copies/copy");
        assert!(row.starts_with("copies/copy,correct,found,clean"), "{row}");
    }

    #[test]
    fn the_run_script_reports_a_missing_gpu_and_unknown_steps() {
        let out = tempfile::tempdir().unwrap();
        // A bundle whose probe always fails, as it does without a driver.
        let here = out.path().join("bundle");
        fs::create_dir_all(here.join("bin")).unwrap();
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("bundle/run"), here.join("run"))
            .unwrap();
        fs::write(here.join("bin/probe"), "#!/bin/sh\necho no driver\nexit 2\n").unwrap();
        let run = |arguments: &[&str]| {
            Command::new("sh")
                .arg(here.join("run"))
                .args(arguments)
                .current_dir(&out)
                .output()
                .unwrap()
        };
        let output = run(&[]);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("no driver") && text.contains("bundle: 0 steps ran"), "{text}");
        assert_eq!(run(&["--help"]).status.code(), Some(0));
        assert_eq!(run(&["bitz"]).status.code(), Some(2));
    }
}
mod candidates {
    //! Tests which configurations of a kernel exist and which are worth measuring at a length; each
    //! kernel family decides this for itself.

    use bench::LENGTHS;
    use linrec::kernels::{ElementType, KernelChoice};

    #[test]
    fn every_configuration_occurs_once_and_has_a_name() {
        for element in ElementType::ALL {
            for kernel in KernelChoice::families() {
                let all = KernelChoice::candidates(kernel, element);
                assert!(!all.is_empty());
                for (place, choice) in all.iter().enumerate() {
                    assert_eq!(choice.name(), kernel);
                    assert_eq!(choice.to_string().parse(), Ok(*choice));
                    assert!(!all[..place].contains(choice), "{choice}");
                }
            }
        }
        assert!(KernelChoice::candidates("other", ElementType::F32).is_empty());
    }

    #[test]
    fn every_length_has_configurations_and_every_configuration_a_length() {
        for element in ElementType::ALL {
            for kernel in ["ref", "pipe", "rows", "wide"] {
                let all = KernelChoice::candidates(kernel, element);
                for len in LENGTHS {
                    // Rows must fit into a warp.
                    if kernel == "rows" && len > 32 {
                        continue;
                    }
                    if kernel == "wide" && len < 256 {
                        continue;
                    }
                    let here =
                        all.iter().filter(|choice| choice.is_worth(element, len as u64)).count();
                    assert!(here > 0, "{kernel} of {element} at {len}");
                }
                for choice in all {
                    let somewhere = LENGTHS.iter().any(|&len| choice.is_worth(element, len as u64));
                    assert!(somewhere, "{choice} of {element}");
                }
            }
        }
    }

    #[test]
    fn a_launch_is_measured_once() {
        for kernel in ["tile", "pipe"] {
            for len in LENGTHS {
                let worth = KernelChoice::candidates(kernel, ElementType::F32)
                    .into_iter()
                    .filter(|choice| choice.is_worth(ElementType::F32, len as u64));
                let mut launches = Vec::new();
                for choice in worth {
                    let pass = linrec::kernels::Pass::Forward;
                    let geometry = choice.geometry(ElementType::F32, pass, 1, len as u64);
                    let name = choice.to_string();
                    let (elems, rest) = name.split_once('x').unwrap();
                    let memcode = rest.split_once(':').unwrap().1;
                    let launch = (geometry.threads, elems.to_owned(), memcode.to_owned());
                    assert!(!launches.contains(&launch), "{choice} at {len}");
                    launches.push(launch);
                }
            }
        }
    }
}
