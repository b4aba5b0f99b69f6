//! The command as a shell sees it: what it prints, what it writes, and how it ends.
//!
//! Each test runs the program in a folder of its own, which holds `kernels.ptx`. Tables have a line
//! for each case: the words of a command, ` => `, and a part of what it must print. The syntax of
//! arguments, fills, numbers and textures has its tests beside the code, in `src`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A folder with kernels, in which the command runs.
struct Shell {
    folder: TempDir,
}

/// How the command ended, and what it printed.
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

    /// Runs it likewise, and asserts that it ends with this code and prints this to no other stream
    /// than the standard output.
    fn prints(&self, words: &str, code: i32, expected: &str) -> Ended {
        let ended = self.run(words);
        assert_eq!((ended.code, ended.error.as_str()), (Some(code), ""), "{words}: {ended:?}");
        assert!(ended.out.contains(expected), "`{expected}` is not printed by {words}: {ended:?}");
        ended
    }
}

/// Runs a command to its end. A panic has the code 101.
fn ended(command: &mut Command) -> Ended {
    let output = command.stderr(Stdio::piped()).output().expect("the command runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    Ended { code: output.status.code(), out, error }
}

/// What cannot be run is an error and never a panic.
mod bad {
    use super::*;

    const STORED: &str = "--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3}";

    /// Lines that end in code 2 with nothing on the standard output.
    const REFUSED: &str = "\
 => name the kernel with --kernel; kernels are `saxpy`, `store`, `follow`, `spin`, `refused`
--kernel none => there is no kernel `none`; kernels are `saxpy`
--kernel refused => the kernel `refused` is not emulated: PTX line
--kernel follow => 0 arguments are given, and the kernel takes 1: .u64
--kernel follow --arg u32=1 => argument 0, `u32=1`: has 4 bytes, and the kernel takes 8 there (.u64
--kernel follow --arg &y => there is no buffer `y` yet; there are none
--kernel follow --arg f32[9999999999999]=0 => there is no memory for
--kernel follow --arg f32[9999999999999] => out of memory
--kernel follow --arg f32[2]=@none.bin => cannot read none.bin
--kernel spin --grid 0 => a grid of 0 x 1 x 1 blocks
--kernel spin --block 2000 => blocks of 2000 x 1 x 1 threads: 1 to 1024 in all
--kernel spin --shared 1000000 => is given 1000000 more
--kernel spin --blocks 0..9 => blocks 0..9 are not in the grid's 0..1
--kernel spin --variable none:u32=1 => `none`: the module does not have it; it has calls, factors
--kernel spin --variable calls:u64=1 => `calls`: 8 bytes are given, and it has 4
--kernel spin --variable calls => 'calls' for '--variable <NAME:TYPE[COUNT]=FILL>': it has no `:`
--kernel spin --buffer u32=1 => it does not describe a buffer
--kernel spin --buffer {f32[1]} => it does not describe a buffer
STORED --print to:x => '--print <NAME[:COUNT]>': `x` is not a number of elements
STORED --expect to => '--expect <NAME=FILL>': it has no `=`
--grid 1,2,3,4 => 4 numbers for three axes
--grid x => `x` is not a number of blocks or threads
--blocks 1 => `1` is not a range
--none => unexpected argument '--none'";

    /// Lines that end in code 2 after the kernel has run.
    const RAN: &str = "\
STORED --print none => there is no buffer or variable `none`; there are to
STORED --expect to=1,2 => 2 numbers are given, and 1 are needed
STORED --write to=/none/x => cannot write /none/x";

    #[test]
    fn wrong_options_are_refused_with_what_there_is() {
        let shell = Shell::new();
        for (line, has_run) in
            REFUSED.lines().map(|l| (l, false)).chain(RAN.lines().map(|l| (l, true)))
        {
            let (words, expected) = line.split_once(" => ").expect("a case has an arrow");
            let ended = shell.run(&words.replace("STORED", STORED));
            assert!(ended.code == Some(2) && ended.error.contains(expected), "{words}: {ended:?}");
            assert_eq!(!ended.out.is_empty(), has_run, "{words}: {ended:?}");
        }
    }

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

    /// Every beginning of an argument, and the argument with one character changed.
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

/// What runs.
mod run {
    use super::*;

    const SAXPY: &str = "--kernel saxpy --grid 4 --block 256 --arg u32=1000 --arg f32=2 \
                         --arg x:f32[1000]=1 --arg y:f32[1000]=index";

    #[test]
    fn a_launch_prints_its_buffers_and_its_cost() {
        let ended =
            Shell::new().prints(SAXPY, 0, "\nx: f32[1000] 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 …\n");
        assert!(ended.out.starts_with("4 blocks, "), "{ended:?}");
        let last = ended.out.lines().nth(2);
        assert_eq!(last, Some("y: f32[1000] 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 …"));
    }

    #[test]
    fn results_are_written_and_compared() {
        let shell = Shell::new();
        shell.prints(&format!("{SAXPY} --write y=y.bin"), 0, "");
        let expected: Vec<u8> = (0..1000).flat_map(|i| (2.0 + i as f32).to_le_bytes()).collect();
        assert_eq!(fs::read(shell.path("y.bin")).unwrap(), expected);
        for (words, code, expected) in [
            ("--expect y=@y.bin --expect x=1", 0, "y: 1000 numbers as expected"),
            (
                "--expect y=index+1",
                1,
                "1000 of 1000 numbers are not as expected; the first is number 0: 2.0 where 1.0 was",
            ),
            ("--expect y=index+1 --tolerance 1", 0, "y: 1000 numbers as expected"),
        ] {
            shell.prints(&format!("{SAXPY} {words}"), code, expected);
        }
    }

    #[test]
    fn structs_hold_addresses_and_variables_are_read_and_written() {
        let shell = Shell::new();
        let store = "--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3}";
        for (words, expected) in [
            (
                "--variable calls:u32 --variable factors:f32[2] \
                 --print to --print calls --print factors",
                "to: f32[1] 6.0\ncalls: u32[1] 42\nfactors: f32[2] 1.0 2.0\n",
            ),
            (
                "--variable calls:u32=5 --variable factors:f32[2]=0,9 --print to --print calls",
                "to: f32[1] 27.0\ncalls: u32[1] 7\n",
            ),
        ] {
            let ended = shell.prints(&format!("{store} {words}"), 0, "");
            assert!(ended.out.ends_with(expected), "{ended:?}");
        }
        // The same as bytes, apart from the address.
        let store = "--kernel store --block 1 --arg {to:f32[1];bytes=0200000000004040}";
        shell.prints(&format!("{store} --expect to=6"), 0, "as expected");
    }

    #[test]
    fn buffers_hold_addresses() {
        let words = "--kernel follow --block 1 --buffer x:u32[4]=0 --arg *{null;&x+8} --print x";
        Shell::new().prints(words, 0, "x: u32[4] 0 0 7 0\n");
    }

    #[test]
    fn a_mistake_is_reported_with_its_place() {
        let ended = Shell::new().prints(
            &SAXPY.replace("x:f32[1000]", "x:f32[999]"),
            1,
            "block 3, warp 7, lane 7",
        );
        assert!(ended.out.starts_with("saxpy at PTX line "), "{ended:?}");
        assert!(ended.out.contains("buffer `x` (3996 bytes)"), "{ended:?}");
        let unwritten = SAXPY.replace("x:f32[1000]=1", "x:f32[1000]");
        Shell::new().prints(&unwritten, 1, "which nothing has written");
    }

    #[test]
    fn a_bound_ends_an_endless_loop() {
        Shell::new().prints("--kernel spin --instructions 10000", 1, "10000");
    }

    #[test]
    fn counters_and_traces_are_printed() {
        let ended =
            Shell::new().prints(&format!("{SAXPY} --counters --trace 2"), 0, " events more");
        let site = ended.out.lines().find(|line| line.contains("st.global.f32")).unwrap();
        let numbers: Vec<_> = site.split_whitespace().rev().take(4).collect();
        assert_eq!(numbers, ["0", "0", "125", "32"], "{site}");
        let loads = ended.out.lines().filter(|line| line.contains(": load global 4 bytes 0: ["));
        let loads: Vec<_> = loads.collect();
        assert!(loads.len() == 2 && loads[0].starts_with("block 0 warp 0 PTX line "), "{ended:?}");
    }

    #[test]
    fn some_blocks_of_a_grid_are_run() {
        let ended = Shell::new().prints(&format!("{SAXPY} --blocks 1..3 --print y:1"), 0, "");
        let (out, last) = (&ended.out, "y: f32[1000] 0.0 …\n");
        assert!(out.starts_with("2 blocks, ") && out.ends_with(last), "{ended:?}");
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

    /// Copies what a texture holds to a surface, at coordinates that are off by one.
    const SHIFT: &[u8] = b".version 8.0 .target sm_80 .address_size 64
.visible .entry shift(.param .u64 from, .param .u64 to) {
    .reg .b32 %r<4>; .reg .f32 %f<7>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r1, 2;
    cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2; add.rn.f32 %f1, %f1, 0fBF800000;
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
    sust.b.2d.b32.zero [%rd2, {%r3, %r2}], {%f3};
}";

    #[test]
    fn textures_and_surfaces_are_made() {
        let shell = Shell::new();
        shell.write("shift.ptx", SHIFT);
        let (filled, empty) = ("s:surf2d(f32, 3x2)=0", "s:surf2d(f32, 3x2)");
        for (from, to, code, expected) in [
            ("t:tex2d(f32, 4x2)=1,2,3,4,5,6,7,8", filled, 0, "\nt: f32[8] 1.0 2.0 3.0"),
            ("t:tex2d(f32, 4x2)=1,2,3,4,5,6,7,8", filled, 0, "\ns: f32[6] 1.0 1.0 2.0 "),
            ("t:tex2d(f32, 4x2, clamp)=1,2,3,4,5,6,7,8", filled, 0, "\ns: f32[6] 1.0 1.0 2.0 "),
            ("t:tex2d(f32, 4x2, border)=1,2,3,4,5,6,7,8", filled, 0, "\ns: f32[6] 0.0 1.0 2.0 "),
            ("t:tex2d(u8, 4x2)=1", filled, 1, "texture `t` (a 2-D array of 4 x 2) as a float"),
            ("tex2d(u8, 4x2, floats)=255", empty, 0, "\ns: f32[6] 1.0 1.0 1.0"),
            ("tex2d(f32, 4x2, linear)=1", filled, 2, "(`cudaFilterModeLinear`) is not emulated"),
        ] {
            let words =
                ["run", "shift.ptx", "--grid", "2", "--block", "5", "--arg", from, "--arg", to];
            let ended = shell.simt(&words);
            assert_eq!((ended.code, ended.error.is_empty()), (Some(code), code < 2), "{ended:?}");
            assert!([ended.out, ended.error].concat().contains(expected), "{from}: {expected}");
        }
    }

    /// An output that is closed early is no mistake; one that is full is a mistake.
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
        let words = "--kernel store --arg {to:f32[1]=1;u32=2;f32=3} --block 1 \
                     --variable calls:u32=5 --variable factors:f32[2]=0,9 --save here";
        shell.prints(words, 0, "");
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
        let words = "--kernel follow --block 1 --buffer x:u32[4]=0 --arg *{null;&x+8} --save there";
        shell.prints(words, 0, "");
        let lines = text("there/launch.txt");
        assert!(lines.ends_with("buffer x u32 16\nbuffer arg0 u64 16 8&x+8\n"), "{lines}");
    }
}
