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
        ("--kernel store --block 1 --arg {to:f32[1];u32=2;f32=3} --expect to", "is not NAME=FILL"),
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
    let ptx = include_str!("kernels.ptx");
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

/// Every beginning of an argument, and every one with a character changed: an error or a launch,
/// and no panic.
#[test]
fn no_argument_makes_it_panic() {
    let shell = Shell::new();
    let whole = "{to:f32[1]=0;u32=2;f32(1)=3}";
    let cut = (0..whole.len()).map(|end| whole[..end].to_owned());
    let changed = (0..whole.len()).step_by(3).flat_map(|at| {
        ["{", "*", "é", "-"].map(|other| format!("{}{other}{}", &whole[..at], &whole[at + 1..]))
    });
    for argument in cut.chain(changed) {
        let words = ["run", "kernels.ptx", "--kernel", "store", "--block", "1", "--arg", &argument];
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
