//! The command as a shell sees it: what it prints, what it writes, and how it ends.
//!
//! Each test runs the program in a separate folder, which contains `kernels.ptx`. A launch that
//! one line of output describes is a line of `suite/cases.txt`: options, the syntax of arguments,
//! fills, numbers and textures, their errors, and results. The tests here are the others: files,
//! commands without a launch, and output that takes more than one line to describe.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A folder with kernels, in which the command runs.
struct Shell {
    folder: TempDir,
}

/// The exit code and the output of the command.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    error: String,
}

impl Shell {
    fn new() -> Shell {
        let shell = Shell { folder: tempfile::tempdir().expect("a folder for tests") };
        shell.write("kernels.ptx", include_bytes!("suite/kernels.ptx"));
        shell
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("the folder can be written");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simt"));
        command.current_dir(self.folder.path()).args(arguments);
        command
    }

    /// Runs the command with these arguments, which may have blanks.
    fn simt(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).stdout(Stdio::piped()))
    }

    /// Runs `simt run kernels.ptx …` with the words between the blanks as arguments.
    fn run(&self, words: &str) -> Ended {
        let words = words.split_whitespace();
        self.simt(&["run", "kernels.ptx"].into_iter().chain(words).collect::<Vec<_>>())
    }
}

/// Runs a command to its end. A panic has the code 101.
fn ended(command: &mut Command) -> Ended {
    let output = command.stderr(Stdio::piped()).output().expect("the command runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    Ended { code: output.status.code(), out, error }
}

const STORE: &str = "--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3}";
const SAXPY: &str =
    "--kernel saxpy --grid 4 --block 256 --arg u32=1000 --arg f32=2 --arg x:f32[1000]=1";

/// The launches in `cases.txt`.
#[test]
fn cases() {
    let launches = [
        ("STORE", STORE),
        ("FOLLOW", "--kernel follow"),
        ("SPIN", "--kernel spin"),
        ("SAXPY", SAXPY),
        ("SHIFT", "--kernel shift --grid 2 --block 5"),
    ];
    let shell = Shell::new();
    let lines = include_str!("suite/cases.txt").lines();
    let mut failures = Vec::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (words, expected) = line.split_once(" => ").expect("a case has an arrow");
        let (code, words) = words.split_once(' ').expect("a case begins with an exit code");
        let all = |words: String, (name, launch): (&str, &str)| words.replace(name, launch);
        let ended = shell.run(&launches.into_iter().fold(words.to_owned(), all));
        let saved = fs::read_to_string(shell.path("saved/launch.txt")).unwrap_or_default();
        let _ = fs::remove_dir_all(shell.path("saved"));
        let printed = format!("^{}{}{saved}$", ended.out, ended.error);
        let is_expected = ended.code == code.parse().ok()
            && ended.error.is_empty() == (code != "2")
            && printed.contains(&expected.replace("\\n", "\n"));
        failures.extend((!is_expected).then(|| format!("{line}: {ended:?}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Mistakes are errors, and never panics.
mod bad {
    use super::*;

    #[test]
    fn files_that_are_not_ptx_are_refused() {
        let shell = Shell::new();
        let ptx = include_str!("suite/kernels.ptx");
        shell.write("empty.ptx", b"");
        shell.write("binary.ptx", &[0xff, 0xfe, 0, 1]);
        shell.write("other.ptx", b"int main() {}");
        shell.write("half.ptx", &ptx.as_bytes()[..ptx.len() / 2]);
        for (file, expected) in [
            ("none.ptx", "cannot read none.ptx"),
            (".", "cannot read ."),
            ("empty.ptx", "PTX line 1"),
            ("binary.ptx", "binary.ptx is not text"),
            ("other.ptx", "PTX line 1"),
            ("half.ptx", "half.ptx: PTX line"),
        ] {
            for command in ["run", "list"] {
                let ended = shell.simt(&[command, file]);
                let is_refused = ended.code == Some(2) && ended.error.contains(expected);
                assert!(is_refused, "{file}: {ended:?}");
            }
        }
    }

    /// Every beginning of an argument, the argument with one character changed, and deep nesting.
    #[test]
    fn no_argument_makes_it_panic() {
        let shell = Shell::new();
        let whole = "{to:f32[1]=0;u32=2;f32(1)=3}";
        let cut = (0..whole.len()).map(|end| whole[..end].to_owned());
        let changed = (0..whole.len()).step_by(3).flat_map(|at| {
            ["{", "*", "é", "-"].map(|other| format!("{}{other}{}", &whole[..at], &whole[at + 1..]))
        });
        for argument in cut.chain(changed) {
            let words =
                ["run", "kernels.ptx", "--kernel", "store", "--block", "1", "--arg", &argument];
            let ended = shell.simt(&words);
            assert!(matches!(ended.code, Some(0..=2)), "{argument}: {ended:?}");
        }
        for deep in ["*".repeat(100_000), ["{".repeat(1000), "}".repeat(1000)].concat()] {
            let ended = shell.simt(&["run", "kernels.ptx", "--kernel", "follow", "--arg", &deep]);
            assert!(ended.code == Some(2) && ended.error.contains("braces in each other"));
        }
    }

    /// CUDA C++ that does not compile, or has no compiler here, is an error like others.
    #[test]
    fn wrong_cuda_is_refused() {
        let shell = Shell::new();
        shell.write("wrong.cu", b"__global__ void k() { no such thing }");
        let ended = shell.simt(&["run", "wrong.cu"]);
        assert!(ended.code == Some(2) && !ended.error.is_empty(), "{ended:?}");
    }

    #[cfg(feature = "nvrtc")]
    #[test]
    fn headers_are_names_with_files() {
        let shell = Shell::new();
        shell.write("k.cu", b"");
        for (header, expected) in [
            ("x", "'x' for '--header <NAME=FILE>': it has no `=`"),
            ("x=none.h", "cannot read none.h"),
        ] {
            let ended = shell.simt(&["compile", "k.cu", "--header", header]);
            assert!(ended.code == Some(2) && ended.error.contains(expected), "{ended:?}");
        }
        assert!(shell.simt(&["compile", "none.cu"]).error.contains("cannot read none.cu"));
    }
}

/// Launches and listings that succeed.
mod run {
    use super::*;

    #[test]
    fn results_are_written_and_compared_with_files() {
        let shell = Shell::new();
        let launch = format!("{SAXPY} --arg y:f32[1000]=index");
        let ended = shell.run(&format!("{launch} --write y=y.bin"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let expected: Vec<u8> = (0..1000).flat_map(|i| (2.0 + i as f32).to_le_bytes()).collect();
        assert_eq!(fs::read(shell.path("y.bin")).unwrap(), expected);
        let ended = shell.run(&format!("{launch} --expect y=@y.bin"));
        assert!(ended.code == Some(0) && ended.out.contains("y: 1000 numbers as expected"));
    }

    #[test]
    fn a_file_is_listed() {
        let ended = Shell::new().simt(&["list", "kernels.ptx"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for line in [
            "saxpy(int, float, float const*, float*)",
            "    named       _Z5saxpyifPKfPf",
            "    takes       .u32, .f32, .u64, .u64",
            "    takes       .b8[16]",
            "device variable calls (calls): 4 bytes",
            "constant variable factors (factors): 8 bytes",
        ] {
            assert!(ended.out.lines().any(|found| found == line), "{line}\n{}", ended.out);
        }
        assert!(ended.out.contains("    not emulated: PTX line "), "{}", ended.out);
    }

    #[test]
    fn every_command_has_help() {
        let shell = Shell::new();
        for words in ["--help", "run --help", "list --help", "compile --help", "--version"] {
            let ended = shell.simt(&words.split(' ').collect::<Vec<_>>());
            assert!(ended.code == Some(0) && ended.out.contains("simt"), "{ended:?}");
        }
    }

    /// Closing the output early is accepted, but a full output is an error.
    #[test]
    #[cfg(target_os = "linux")]
    fn an_output_that_is_closed_or_full_does_not_make_it_panic() {
        let shell = Shell::new();
        let list = |out: Stdio| ended(shell.command(&["list", "kernels.ptx"]).stdout(out));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let closed = list(writer.into());
        assert_eq!((closed.code, closed.error.as_str()), (Some(0), ""));
        let full =
            list(fs::File::options().write(true).open("/dev/full").expect("Linux has it").into());
        let expected = "simt: the standard output cannot be written: ";
        assert!(full.code == Some(2) && full.error.starts_with(expected), "{full:?}");
    }

    #[test]
    fn a_launch_is_saved_with_all_its_bytes() {
        let shell = Shell::new();
        let saves = |words: &str| {
            let ended = shell.run(words);
            assert_eq!((ended.code, ended.error.as_str()), (Some(0), ""), "{ended:?}");
        };
        saves(
            "--kernel store --arg {to:f32[1]=1;u32=2;f32=3} --block 1 --variable calls:u32=5 \
             --variable factors:f32[2]=0,9 --save here",
        );
        let read = |file: &str| fs::read(shell.path(file)).unwrap();
        let text = |file: &str| String::from_utf8(read(file)).unwrap();
        assert_eq!(
            text("here/launch.txt"),
            "kernel store\nargument 0 00000000000000000200000000004040 0&to+0\nbuffer to f32 4\n\
             variable calls u32 4 calls\nvariable factors f32 8 factors\n"
        );
        for (file, bytes) in [
            ("before/to", 1_f32.to_le_bytes()),
            ("after/to", 27_f32.to_le_bytes()),
            ("before/calls", [5, 0, 0, 0]),
            ("after/calls", [7, 0, 0, 0]),
        ] {
            assert_eq!(read(&format!("here/{file}")), bytes, "{file}");
        }
        saves("--kernel follow --block 1 --buffer x:u32[4]=0 --arg *{null;&x+8} --save there");
        let lines = text("there/launch.txt");
        assert!(lines.ends_with("buffer x u32 16\nbuffer arg0 u64 16 8&x+8\n"), "{lines}");
    }
}
