//! The PTX parser: what it accepts, what it refuses and in which words, and that nothing makes it
//! panic.

use std::path::{Path, PathBuf};

use simt::Module;
use simt_fuzz::parser as fuzz;

use crate::kernel::HEAD as MODULE;
use crate::unpacked;

const HEAD: &str = ".version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .b32 table[2] = {1, 2};
.visible .entry kernel(.param .u64 pointer, .param .u32 count, .param .align 8 .b8 task[24])
{
.shared .align 4 .b8 tile[128];
.local .align 4 .b8 local[64];
.reg .pred %p<4>;
.reg .b16 %rs<4>;
.reg .b32 %r<8>;
.reg .b64 %rd<4>;
.reg .f32 %f<4>;
.reg .f64 %fd<4>;
";

/// A kernel of these statements. They begin on the line after `HEAD`.
fn kernel(statements: &str) -> String {
    format!("{HEAD}{statements}\nend:\nret;\n}}\n")
}

fn ptx_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_ptx = |path: &PathBuf| path.to_string_lossy().trim_end_matches(".gz").ends_with(".ptx");
    paths.filter(is_ptx).collect()
}

#[test]
fn real_files_are_accepted() {
    let files = ptx_files();
    assert!(files.len() >= 17);
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let source = match path.extension() {
            Some(end) if end == "gz" => unpacked(&bytes),
            _ => String::from_utf8(bytes).unwrap(),
        };
        let module = Module::parse(&source)
            .and_then(Module::complete)
            .unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert_eq!(module.kernels().count(), source.matches(".entry").count(), "{path:?}");
        let is_by_hand = path.ends_with("every_form.ptx");
        assert_eq!(module.unrounded().is_empty(), !is_by_hand, "{path:?}");
        for kernel in module.kernels() {
            assert!(kernel.instructions() > 1 && module.kernel(kernel.name()).is_some());
        }
    }
}

#[test]
fn head_of_a_kernel() {
    let source = ".version 8.4
        .target sm_90a
        .address_size 64
        .shared .align 8 .b8 unused[1000];
        .shared .align 16 .b8 used[100];
        .extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 arguments);
        .weak .entry first(
            .param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 16 .b8 c[20], .param .f32 d
        )
        .maxntid 16, 8
        .minnctapersm 2
        {
            .reg .b32 %r<2>;
            .shared .b32 flag;
            .local .align 8 .b8 stack[24];
            mov.u32 %r1, used;
            ld.shared.u32 %r1, [flag];
            st.local.u32 [stack+4], %r1;
        }
        .entry second .reqntid 32 { ret; }";
    let module = Module::parse(source).unwrap();
    let names: Vec<_> = module.kernels().map(|kernel| kernel.name()).collect();
    assert_eq!(names, ["first", "second"]);
    let first = module.kernel("first").unwrap();
    let params: Vec<_> = first.params().iter().map(|p| (&*p.name, p.bytes, p.offset)).collect();
    assert_eq!(params, [("a", 1, 0), ("b", 8, 8), ("c", 20, 16), ("d", 4, 36)]);
    assert_eq!(first.shared_bytes(), 104, "variables that nobody uses take no place");
    assert_eq!(first.local_bytes(), 24);
    assert_eq!(first.max_threads_per_block(), 128);
    assert_eq!(first.instructions(), 4, "a kernel that falls off its end exits there");
    assert_eq!(module.kernel("second").unwrap().max_threads_per_block(), 32);
    assert!(module.kernel("third").is_none());
}

#[test]
fn a_kernel_that_is_refused_leaves_the_others() {
    let source = ".version 8.0 .target sm_80 .address_size 64
        .shared .b32 flag;
        .entry first(.param .u64 a) { .reg .b32 %r<2>; mov.u32 %r1, 1; }
        .entry second(.param .u64 a, .param .v4 .f32 b) .maxntid 32 { ret; }
        .entry third(.param .u64 a) .pragma \"{\";
        {
            .shared .b8 tile[64];
            .reg .f32 %f<3>;
            add.f32 %f1, %f1, %f2;
            { { bra.uni onwards; wgmma.mma_async {%f1}, '#' ; } }
        onwards: ret; }
        .entry fourth(.param .u64 a) {
            .reg .b32 %r<2>; .shared .b32 tile; st.shared.u32 [flag], 1; ld.shared.u32 %r1, [tile];
        }";
    let module = Module::parse(source).unwrap();
    let names: Vec<_> = module.kernels().map(|kernel| kernel.name()).collect();
    assert_eq!(names, ["first", "fourth"]);
    assert_eq!(module.kernel("fourth").unwrap().shared_bytes(), 8);
    assert!(module.unrounded().is_empty(), "of a kernel that does not run");
    let refusals: Vec<_> = module.refusals().map(|(name, error)| (name, error.line)).collect();
    assert_eq!(refusals, [("second", 4), ("third", 10)]);
    let third = module.refusal("third").unwrap().to_string();
    assert!(third.starts_with("PTX line 10: ") && third.ends_with("there are no tensor cores"));
    assert!(module.kernel("third").is_none());
    assert!(module.refusal("first").is_none() && module.refusal("fifth").is_none());
    assert_eq!(module.complete().unwrap_err().line, 4);

    // Its name is taken all the same, and where it ends must be known.
    for (more, sentence) in [
        (".entry second() { ret; }", "`second` is declared twice"),
        (".entry fifth() { foo; ", "`foo` is not an instruction"),
        (".entry fifth() { foo; }}", "a directive was expected, not `}`"),
    ] {
        let error = Module::parse(&format!("{source}{more}")).unwrap_err();
        assert!(error.message.contains(sentence), "{error}");
    }
}

#[test]
fn unrounded_arithmetic_is_reported() {
    let source =
        kernel("add.rn.f32 %f1, %f1, %f2;\nmul.f32 %f1, %f1, %f2;\nsub.f64 %fd1, %fd2, 1.0;");
    let module = Module::parse(&source).unwrap();
    let unrounded: Vec<_> = module.unrounded().iter().map(|(line, op)| (*line, &**op)).collect();
    assert_eq!(unrounded, [(17, "mul.f32"), (18, "sub.f64")]);
}

/// The other modules that are refused are in `cases/refusals.ptx`.
#[test]
fn modules_that_are_too_large_are_refused() {
    let long_file = format!("{MODULE}//{}", " ".repeat(16 << 20));
    let deep = format!("{MODULE}.entry a {{ {} }}", "{".repeat(100));
    let registers: String = (0..70_000).map(|i| format!(".reg .b32 r{i};")).collect();
    let registers = format!("{MODULE}.entry a {{ {registers} }}");
    for (source, line, sentence) in [
        ("", 1, "PTX begins with `.version`"),
        (".version 8.0\n.address_size 64", 2, "`.version` is followed by `.target`"),
        (&long_file, 1, "the source has more than 16777216 bytes"),
        (&deep, 4, "braces nested more than 32 deep"),
        (&registers, 4, "more than 65535 registers of one size"),
    ] {
        let error = Module::parse(source).and_then(Module::complete).unwrap_err();
        assert!(error.message.contains(sentence), "{error}, not: {sentence}");
        assert_eq!(error.line, line, "{error}");
    }
}

/// Sources of a megabyte that would take a second or a gigabyte if anything in the parser were
/// not linear.
#[test]
fn large_sources_take_little_time() {
    const BYTES: usize = 1 << 20;
    let many = |piece: &str| piece.repeat(BYTES / piece.len());
    let numbered = |piece: fn(usize) -> String| (0..BYTES / 20).map(piece).collect::<String>();
    let bodies = [
        many("{"),
        many("{}"),
        many("{ bra end; "),
        many("/*"),
        many("@"),
        many("bra end; "),
        many("a.b"),
        many("a"),
        many("%r1, "),
        many("add.s32 %r1, %r1, %r1; "),
        many(".loc 1 2 3 "),
        many(".pragma \"a\";"),
        format!("mov.u32 %r1, {};", many("1")),
        format!("mov.f64 %fd1, 1.{};", many("1")),
        format!("mov.u32 %r1, {};", many("[")),
        format!(".reg .b32 {};", many("x, ")),
        numbered(|i| format!("label{i}: bra label{i};")),
        numbered(|i| format!("bra label{i}; ")),
        numbered(|i| format!("{{ .reg .b32 x<{i}>; }}")),
        numbered(|i| format!(".reg .b32 x{}<9>;", "y".repeat(i % 7))),
        numbered(|i| format!(".shared .b32 x{i};")),
        numbered(|i| format!("mov.u32 %r1, {i};")),
        numbered(|i| format!(".loc {i} 1 1 ")),
    ];
    for body in bodies {
        fuzz::parse(kernel(&body).as_bytes());
    }
    let kernels = numbered(|i| format!(".entry a{i}{{}}"));
    assert!(fuzz::parse(format!("{MODULE}{kernels}").as_bytes()));
    let params = numbered(|i| format!(".param .b8 a{i},"));
    assert!(!fuzz::parse(format!("{MODULE}.entry a({params}) {{}}").as_bytes()));
    let variables = numbered(|i| format!(".shared .b8 a{i};"));
    let kernels = numbered(|i| format!(".entry b{i}{{}}"));
    assert!(fuzz::parse(format!("{MODULE}{variables}{kernels}").as_bytes()));
}

#[test]
fn mutated_sources_neither_panic_nor_grow() {
    let seeds = fuzz::corpus();
    assert!(seeds.len() > 100);
    for seed in &seeds {
        assert!(fuzz::parse(seed.as_bytes()), "refused:\n{seed}");
    }
    let mut random = fuzz::Random(1);
    for _ in 0..50_000 {
        let input = fuzz::mutate(&seeds, &mut random);
        if std::panic::catch_unwind(|| fuzz::parse(&input)).is_err() {
            panic!("this panics:\n{}", String::from_utf8_lossy(&input));
        }
    }
}
