//! The command as a shell sees it: what it prints, and how it ends.

mod bad {
    //! What cannot be run is told, and nothing panics.

    use crate::Shell;

    #[test]
    fn wrong_words_are_told_with_what_there_is() {
        let shell = Shell::new();
        for (words, said) in [
            (
                "",
                "say which kernel, with --kernel; there are `saxpy`, `store`, `follow`, `spin`, `refused`",
            ),
            ("--kernel none", "there is no kernel `none`; there are `saxpy`"),
            ("--kernel refused", "the kernel `refused` is not emulated: PTX line "),
            ("--kernel follow", "0 arguments are given, and the kernel takes 1: .u64"),
            (
                "--kernel follow --arg u32=1",
                "argument 0, `u32=1`: has 4 bytes, and the kernel takes 8 there (.u64 in the PTX)",
            ),
            ("--kernel follow --arg &y", "there is no buffer `y`; there is none"),
            ("--kernel follow --arg f32[9999999999999]=0", "there is no memory for"),
            ("--kernel follow --arg f32[9999999999999]", "out of memory"),
            ("--kernel follow --arg f32[2]=@none.bin", "cannot read none.bin"),
            ("--kernel spin --grid 0", "a grid of 0 x 1 x 1 blocks"),
            ("--kernel spin --block 2000", "blocks of 2000 x 1 x 1 threads: 1 to 1024 in all"),
            ("--kernel spin --shared 1000000", "is given 1000000 more"),
            ("--kernel spin --blocks 0..9", "blocks 0..9 are not in the grid's 0..1"),
            (
                "--kernel spin --variable none:u32=1",
                "the module has no variable `none`; it has calls, factors",
            ),
            ("--kernel spin --variable calls:u64=1", "8 bytes, and the variable has 4"),
            ("--kernel spin --variable calls", "it is not NAME:TYPE[COUNT]=FILL"),
            ("--kernel spin --buffer u32=1", "no buffer"),
            (
                "--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3} --print none",
                "there is no buffer or variable `none`; there are to",
            ),
            (
                "--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3} --print to:x",
                "`x` is no number of elements",
            ),
            (
                "--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3} --expect to",
                "is not NAME=FILL",
            ),
            (
                "--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3} --expect to=1,2",
                "2 numbers are given, and there are 1",
            ),
            (
                "--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3} --write to=/none/x",
                "cannot write /none/x",
            ),
            ("--grid 1,2,3,4", "4 numbers; there are three axes"),
            ("--grid x", "`x` is no number of blocks"),
            ("--blocks 1", "`1` is no range"),
            ("--none", "unexpected argument '--none'"),
        ] {
            let ended = shell.run(words);
            let all = format!("{}{}", ended.out, ended.error);
            assert!(all.contains(said), "{words}: {ended:?}");
            let expected = if ended.out.is_empty() { 2 } else { ended.code };
            assert!(
                ended.code == expected && (ended.code == 1 || ended.code == 2),
                "{words}: {ended:?}"
            );
        }
    }

    #[test]
    fn files_that_are_no_ptx_are_told() {
        let shell = Shell::new();
        let ptx = include_str!("suite/kernels.ptx");
        shell.write("empty.ptx", b"");
        shell.write("binary.ptx", &[0xff, 0xfe, 0, 1]);
        shell.write("other.ptx", b"int main() {}");
        shell.write("half.ptx", &ptx.as_bytes()[..ptx.len() / 2]);
        for (file, said) in [
            ("none.ptx", "cannot read none.ptx"),
            (".", "cannot read ."),
            ("empty.ptx", "PTX line 1"),
            ("binary.ptx", "binary.ptx is no text"),
            ("other.ptx", "PTX line 1"),
            ("half.ptx", "half.ptx: PTX line"),
        ] {
            for command in ["run", "list"] {
                let ended = shell.simt(&[command, file]);
                assert!(ended.code == 2 && ended.error.contains(said), "{file}: {ended:?}");
            }
        }
    }

    /// Every beginning of an argument, and every one with a character changed: an error or a
    /// launch, and no panic.
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
            assert!((0..=2).contains(&ended.code), "{argument}: {ended:?}");
        }
    }

    /// CUDA C++ without its compiler, or one that does not compile, is an error like others.
    #[test]
    fn wrong_cuda_is_told() {
        let shell = Shell::new();
        shell.write("wrong.cu", b"__global__ void k() { no such thing }");
        let ended = shell.simt(&["run", "wrong.cu"]);
        assert!(ended.code == 2 && !ended.error.is_empty(), "{ended:?}");
    }

    #[cfg(feature = "nvrtc")]
    #[test]
    fn headers_are_names_with_files() {
        let shell = Shell::new();
        shell.write("k.cu", b"");
        for (header, said) in [("x", "is not NAME=FILE"), ("x=none.h", "cannot read none.h")] {
            let ended = shell.simt(&["compile", "k.cu", "--header", header]);
            assert!(ended.code == 2 && ended.error.contains(said), "{ended:?}");
        }
        assert!(shell.simt(&["compile", "none.cu"]).error.contains("cannot read none.cu"));
    }
}
mod run {
    //! What goes well.

    use std::fs;

    use crate::Shell;

    const SAXPY: &str = "--kernel saxpy --grid 4 --block 256 --arg u32=1000 --arg f32=2 --arg x:f32[1000]=1 --arg y:f32[1000]=index";

    #[test]
    fn a_launch_prints_what_is_in_its_buffers_and_what_it_cost() {
        let ended = Shell::new().run(SAXPY);
        assert_eq!((ended.code, ended.error.as_str()), (0, ""));
        let lines: Vec<_> = ended.out.lines().collect();
        assert!(lines[0].starts_with("4 blocks, "), "{}", ended.out);
        assert_eq!(lines[1], "x: f32[1000] 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 …");
        assert_eq!(lines[2], "y: f32[1000] 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 …");
    }

    #[test]
    fn results_are_written_and_compared() {
        let shell = Shell::new();
        let ended = shell.run(&format!("{SAXPY} --write y=y.bin"));
        assert_eq!(ended.code, 0, "{ended:?}");
        let written = fs::read(shell.path("y.bin")).unwrap();
        let expected: Vec<u8> = (0..1000).flat_map(|i| (2.0 + i as f32).to_le_bytes()).collect();
        assert_eq!(written, expected);

        let ended = shell.run(&format!("{SAXPY} --expect y=@y.bin --expect x=1"));
        assert_eq!(
            (ended.code, ended.out.contains("y: 1000 numbers as expected")),
            (0, true),
            "{ended:?}"
        );
        let ended = shell.run(&format!("{SAXPY} --expect y=index+1"));
        let said = "1000 of 1000 numbers are not as expected; the first is number 0: 2.0 where 1.0 was expected";
        assert_eq!((ended.code, ended.out.contains(said)), (1, true), "{ended:?}");
        let ended = shell.run(&format!("{SAXPY} --expect y=index+1 --tolerance 1"));
        assert_eq!(ended.code, 0, "{ended:?}");
    }

    #[test]
    fn structs_hold_addresses_and_variables_are_read_and_written() {
        let shell = Shell::new();
        let words = "--kernel store --arg {to:f32[1];u32=2;f32=3} --block 1 --variable calls:u32 --variable factors:f32[2] --print";
        let ended = shell.run(&format!("{words} to --print calls --print factors"));
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(
            ended.out.ends_with("to: f32[1] 6.0\ncalls: u32[1] 42\nfactors: f32[2] 1.0 2.0\n"),
            "{}",
            ended.out
        );
        let ended = shell.run("--kernel store --arg {to:f32[1];u32=2;f32=3} --block 1 --variable calls:u32=5 --variable factors:f32[2]=0,9 --print to --print calls");
        assert!(ended.out.ends_with("to: f32[1] 27.0\ncalls: u32[1] 7\n"), "{ended:?}");
        // The same as bytes, but for the address.
        let ended = shell
            .run("--kernel store --arg {to:f32[1];bytes=0200000000004040} --block 1 --expect to=6");
        assert_eq!(ended.code, 0, "{ended:?}");
    }

    #[test]
    fn buffers_hold_addresses() {
        let ended = Shell::new()
            .run("--kernel follow --block 1 --buffer x:u32[4]=0 --arg *{null;&x+8} --print x");
        assert!(ended.out.ends_with("x: u32[4] 0 0 7 0\n"), "{ended:?}");
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let ended = Shell::new().run(&SAXPY.replace("x:f32[1000]", "x:f32[999]"));
        assert_eq!(ended.code, 1);
        assert!(ended.out.starts_with("saxpy at PTX line "), "{}", ended.out);
        assert!(
            ended.out.contains("block 3, warp 7, lane 7")
                && ended.out.contains("buffer `x` (3996 bytes)"),
            "{}",
            ended.out
        );
        let ended = Shell::new().run(&SAXPY.replace("x:f32[1000]=1", "x:f32[1000]"));
        assert!(ended.code == 1 && ended.out.contains("which nothing has written"), "{ended:?}");
    }

    #[test]
    fn a_bound_ends_what_has_no_end() {
        let ended = Shell::new().run("--kernel spin --instructions 10000");
        assert!(ended.code == 1 && ended.out.contains("10000"), "{ended:?}");
    }

    #[test]
    fn counters_and_traces_are_printed() {
        let ended = Shell::new().run(&format!("{SAXPY} --counters --trace 2"));
        assert_eq!(ended.code, 0, "{ended:?}");
        let site = ended.out.lines().find(|line| line.contains("st.global.f32")).unwrap();
        let numbers: Vec<_> = site.split_whitespace().rev().take(4).collect();
        assert_eq!(numbers, ["0", "0", "125", "32"], "{site}");
        let loads: Vec<_> =
            ended.out.lines().filter(|line| line.contains(": load global 4 bytes 0: [")).collect();
        assert!(
            loads.len() == 2 && loads[0].starts_with("block 0 warp 0 PTX line "),
            "{}",
            ended.out
        );
        assert!(ended.out.contains(" events more"), "{}", ended.out);
        let some = Shell::new().run(&format!("{SAXPY} --blocks 1..3 --print y:1"));
        assert!(
            some.out.starts_with("2 blocks, ") && some.out.ends_with("y: f32[1000] 0.0 …\n"),
            "{some:?}"
        );
    }

    #[test]
    fn a_file_is_listed() {
        let ended = Shell::new().simt(&["list", "kernels.ptx"]);
        assert_eq!(ended.code, 0, "{ended:?}");
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
        for arguments in [
            &["--help"][..],
            &["run", "--help"],
            &["list", "--help"],
            &["compile", "--help"],
            &["--version"],
        ] {
            let ended = shell.simt(arguments);
            assert!(ended.code == 0 && ended.out.contains("simt"), "{ended:?}");
        }
    }

    /// Copies what a texture holds, of coordinates one off, to a surface.
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
        let run = |from: &str, to: &str| {
            let words =
                ["run", "shift.ptx", "--grid", "2", "--block", "5", "--arg", from, "--arg", to];
            shell.simt(&words)
        };
        for (mode, wanted) in
            [("", "1.0 1.0 2.0"), (", clamp", "1.0 1.0 2.0"), (", border", "0.0 1.0 2.0")]
        {
            let ended =
                run(&format!("t:tex2d(f32, 4x2{mode})=1,2,3,4,5,6,7,8"), "s:surf2d(f32, 3x2)=0");
            assert_eq!((ended.code, ended.error.as_str()), (0, ""), "{ended:?}");
            assert!(ended.out.contains("\nt: f32[8] 1.0 2.0 3.0"), "{ended:?}");
            assert!(ended.out.contains(&format!("\ns: f32[6] {wanted} ")), "{ended:?}");
        }
        let ended = run("t:tex2d(u8, 4x2)=1", "s:surf2d(f32, 3x2)=0");
        assert!(
            ended.code == 1 && ended.out.contains("texture `t` (a 2-D array of 4 x 2) as a float"),
            "{ended:?}"
        );
        let ended = run("tex2d(u8, 4x2, floats)=255", "s:surf2d(f32, 3x2)");
        assert!(ended.out.contains("\ns: f32[6] 1.0 1.0 1.0"), "{ended:?}");
        let ended = run("tex2d(f32, 4x2, linear)=1", "s:surf2d(f32, 3x2)=0");
        assert!(
            ended.code == 2 && ended.error.contains("(`cudaFilterModeLinear`) is not emulated"),
            "{ended:?}"
        );
    }

    /// Who closes the output early is no mistake; what is full is one.
    #[test]
    #[cfg(target_os = "linux")]
    fn an_output_that_is_closed_or_full_does_not_make_it_panic() {
        use std::fs::File;
        use std::process::{Command, Stdio};

        let shell = Shell::new();
        let ends = |out: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_simt"));
            let command = command.arg("list").arg(shell.path("kernels.ptx")).stdout(out);
            let ended = command.stderr(Stdio::piped()).output().expect("the command is there");
            (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
        };
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(ends(writer.into()), (Some(0), String::new()));
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let (code, said) = ends(full.into());
        assert_eq!(code, Some(2), "{said}");
        assert!(said.starts_with("simt: the standard output cannot be written: "), "{said}");
    }

    #[test]
    fn a_launch_is_saved_with_all_its_bytes() {
        let shell = Shell::new();
        let ended = shell.run("--kernel store --arg {to:f32[1]=1;u32=2;f32=3} --block 1 --variable calls:u32=5 --variable factors:f32[2]=0,9 --save here");
        assert_eq!((ended.code, ended.error.as_str()), (0, ""), "{ended:?}");
        let read = |file: &str| fs::read(shell.path("here").join(file)).unwrap();
        assert_eq!(
            String::from_utf8(read("launch.txt")).unwrap(),
            "kernel store\nargument 0 00000000000000000200000000004040 0&to+0\nbuffer to f32 4\n\
         variable calls u32 4 calls\nvariable factors f32 8 factors\n"
        );
        let bytes = |value: f32| value.to_le_bytes().to_vec();
        assert_eq!((read("before/to"), read("after/to")), (bytes(1.0), bytes(27.0)));
        assert_eq!(
            (read("before/calls"), read("after/calls")),
            (vec![5, 0, 0, 0], vec![7, 0, 0, 0])
        );

        let words = "--kernel follow --block 1 --buffer x:u32[4]=0 --arg *{null;&x+8} --save there";
        assert_eq!(shell.run(words).code, 0);
        let text = fs::read_to_string(shell.path("there/launch.txt")).unwrap();
        assert!(text.ends_with("buffer x u32 16\nbuffer arg0 u64 16 8&x+8\n"), "{text}");
    }
}

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder with kernels, and the command in it.
pub(crate) struct Shell {
    folder: TempDir,
}

/// How the command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Shell {
    pub(crate) fn new() -> Shell {
        let folder = tempfile::tempdir().expect("a folder for tests");
        fs::write(folder.path().join("kernels.ptx"), include_str!("suite/kernels.ptx"))
            .expect("room for it");
        Shell { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("room for it");
    }

    /// Runs the command with these words as arguments, those with blanks included.
    pub(crate) fn simt(&self, arguments: &[&str]) -> Ended {
        simt(self.folder.path(), arguments)
    }

    /// `simt run kernels.ptx …`, cut at the blanks.
    pub(crate) fn run(&self, arguments: &str) -> Ended {
        let words: Vec<_> =
            ["run", "kernels.ptx"].into_iter().chain(arguments.split_whitespace()).collect();
        self.simt(&words)
    }
}

fn simt(folder: &Path, arguments: &[&str]) -> Ended {
    let output =
        Command::new(env!("CARGO_BIN_EXE_simt")).current_dir(folder).args(arguments).output();
    let output = output.expect("the command is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // Who panics ends with 101.
    let code = output.status.code().expect("no signal ends it");
    Ended { code, out: text(&output.stdout), error: text(&output.stderr) }
}
