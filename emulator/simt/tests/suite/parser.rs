//! The PTX parser: what it accepts, what it refuses and in which words, and that nothing makes it
//! panic.

use std::path::{Path, PathBuf};

use simt::{Module, ParseError};
use simt_fuzz::parser as fuzz;

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

fn refusal(source: &str) -> ParseError {
    Module::parse(source)
        .and_then(Module::complete)
        .err()
        .unwrap_or_else(|| panic!("accepted:\n{source}"))
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
fn names_live_in_blocks() {
    let accepted = [
        "{ .reg .f32 %r1; mov.f32 %r1, 0f3F800000; } mov.u32 %r1, 1;",
        "{ inner: bra inner; } { inner: bra inner; }",
        "{ bra end; { bra outer; } outer: }",
        ".reg .b32 a, b<3>, c9; add.s32 a, b2, c9;",
        ".reg .b32 x01; mov.b32 x01, 3;",
        "bra.uni forward; forward: @%p1 bra forward;",
    ];
    for statements in accepted {
        if let Err(error) = Module::parse(&kernel(statements)).and_then(Module::complete) {
            panic!("{statements}: {error}");
        }
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

/// Statements of a kernel, and what is said of them.
const REFUSED: &[(&str, &str)] = &[
    // Forms that are near to ones that are known.
    (
        "sin.approx.f16 %rs1, %rs1;",
        "`sin.approx.f16` is not an instruction that the emulator knows: the approximate functions are those of f32",
    ),
    ("fma.rz.f16 %rs1, %rs1, %rs1, %rs1;", "`fma.rz.f16` is not"),
    ("fma.rn.sat.bf16 %rs1, %rs1, %rs1, %rs1;", "`fma.rn.sat.bf16` is not"),
    ("add.rn.ftz.bf16 %rs1, %rs1, %rs1;", "`add.rn.ftz.bf16` is not"),
    ("mad.rn.f16 %rs1, %rs1, %rs1, %rs1;", "`mad.rn.f16` is not"),
    ("add.f16x2 %r1, %r1, 1.0;", "does not go with the type `.f16x2`"),
    ("add.f16 %rs1, %rs1, %f1;", "`%f1` is a `.f32` register, and `.f16` is asked for"),
    ("setp.lt.f16x2 %p1, %r1, %r2;", "of two halves there are two destinations"),
    ("setp.lt.f16 %p1|%p2, %rs1, %rs2;", "of one half there is one destination"),
    ("cvt.rp.relu.f16.f32 %rs1, %f1;", "`cvt.rp.relu.f16.f32` is not"),
    ("cvt.bf16.f16 %rs1, %rs2;", "`cvt.bf16.f16` is not"),
    ("add.ftz.rn.f32 %f1, %f2, %f3;", "`add.ftz.rn.f32` is not"),
    ("add.rn.ftz.f64 %fd1, %fd2, %fd3;", "`add.rn.ftz.f64` is not"),
    ("div.rn.ftz.sat.f32 %f1, %f2, %f3;", "`div.rn.ftz.sat.f32` is not"),
    ("cvt.rn.ftz.f16.f64 %rs1, %fd1;", "`cvt.rn.ftz.f16.f64` is not"),
    ("add.rn.rn.f32 %f1, %f2, %f3;", "`add.rn.rn.f32` is not"),
    ("add.sat.rn.f32 %f1, %f2, %f3;", "`add.sat.rn.f32` is not"),
    ("add.rn.sat.f64 %fd1, %fd2, %fd3;", "`add.rn.sat.f64` is not"),
    ("add.sat.s32 %r1, %r2, %r3;", "`add.sat.s32` is not"),
    ("add.cc.u16 %rs1, %rs2, %rs3;", "the carry flag is that of 32- and 64-bit integers"),
    ("addc.lo.u32 %r1, %r2, %r3;", "`addc.lo.u32` is not"),
    ("madc.cc.u32 %r1, %r2, %r3, %r1;", "`madc.cc.u32` is not"),
    ("add.b32 %r1, %r2, %r3;", "`add.b32` is not"),
    ("add %r1, %r2, %r3;", "`add` is not"),
    ("fma.f32 %f1, %f2, %f3, %f1;", "`fma.f32` is not"),
    ("mul.s32 %r1, %r2, %r3;", "`mul.s32` is not"),
    ("mul.wide.s64 %rd1, %rd2, %rd3;", "`mul.wide.s64` is not"),
    ("and.u32 %r1, %r2, %r3;", "`and.u32` is not"),
    ("min.NaN.f64 %fd1, %fd2, %fd3;", "`min.NaN.f64` is not"),
    ("sqrt.f32 %f1, %f2;", "`sqrt.f32` is not"),
    ("tanh.approx.ftz.f32 %f1, %f2;", "`tanh.approx.ftz.f32` is not"),
    ("setp.lt.b32 %p1, %r1, %r2;", "`setp.lt.b32` is not"),
    ("setp.ltu.s32 %p1, %r1, %r2;", "`setp.ltu.s32` is not"),
    ("setp.lo.s32 %p1, %r1, %r2;", "`setp.lo.s32` is not"),
    ("setp.lt.ftz.f64 %p1, %fd1, %fd2;", "`setp.lt.ftz.f64` is not"),
    ("setp.ftz.lt.f32 %p1, %f1, %f2;", "`setp.ftz.lt.f32` is not"),
    ("cvt.s32.f32 %r1, %f1;", "`cvt.s32.f32` is not"),
    ("cvt.rn.s32.f32 %r1, %f1;", "`cvt.rn.s32.f32` is not"),
    ("cvt.f32.f64 %f1, %fd1;", "`cvt.f32.f64` is not"),
    ("cvt.rn.f64.f32 %fd1, %f1;", "`cvt.rn.f64.f32` is not"),
    ("cvt.rm.tf32.f32 %r1, %f1;", "`cvt.rm.tf32.f32` is not"),
    ("cvt.rna.relu.tf32.f32 %r1, %f1;", "`cvt.rna.relu.tf32.f32` is not"),
    ("shf.l.b32 %r1, %r2, %r3, 4;", "`shf.l.b32` is not"),
    ("prmt.f4e.b32 %r1, %r2, %r3, 4;", "`prmt.f4e.b32` is not"),
    ("set.lt.u64.u32 %rd1, %r2, %r3;", "`set.lt.u64.u32` is not"),
    ("set.lt.u16.f32 %rs1, %f2, %f3;", "`set.lt.u16.f32` is not"),
    ("set.lt.b32.u32 %r1, %r2, %r3;", "`set.lt.b32.u32` is not"),
    ("slct.ftz.u32.s32 %r1, %r2, %r3, %r4;", "`slct.ftz.u32.s32` is not"),
    ("set.lt.f16.bf16 %rs1, %rs2, %rs3;", "`set.lt.f16.bf16` is not"),
    ("set.lt.ftz.bf16.f32 %rs1, %f2, %f3;", "`set.lt.ftz.bf16.f32` is not"),
    ("set.lt.and.ftz.bf16.f16 %rs1, %rs2, %rs3, %p1;", "`set.lt.and.ftz.bf16.f16` is not"),
    ("cvt.rn.bf16.u8 %rs1, %rs2;", "`cvt.rn.bf16.u8` is not"),
    ("cvt.rzi.s8.bf16 %rs1, %rs2;", "`cvt.rzi.s8.bf16` is not"),
    ("bar.arrive 1;", "it takes 2 operands, not 1"),
    ("bar.arrive 16, 64;", "the barrier is a literal from 0 to 15, or a register"),
    ("bar.sync %f1;", "`%f1` is a `.f32` register, and `.u32` is asked for"),
    ("bar.red.popc.aligned.u32 %r1, 0, %p1;", "`bar.red.popc.aligned.u32` is not"),
    ("bar.red.and.pred %r1, 0, %p1;", "`%r1` is a `.b32` register, and `.pred` is asked for"),
    ("match.any.b32 %r1, %r2, -1;", "only the form with `.sync` is supported"),
    ("match.any.sync.b32 %r1|%p1, %r2, -1;", "the destination must be a `.b32` register"),
    ("vadd.u32.u32.u32.min %r1, %r2, %r3, %r4;", "in another way than PTX says"),
    ("vadd.u32.u32.u32 %r1, %r2, %r3, %r4;", "the fourth operand is for a part of the result"),
    ("vadd.u32.u32.u32.add %r1.b0, %r2, %r3, %r4;", "only if nothing else is done with it"),
    ("vadd.u32.u32.u32 %r1, %r2.b4, %r3;", "`%r2.b4` is not declared"),
    ("vshl.u32.u32.s32.clamp %r1, %r2, %r3;", "`vshl.u32.u32.s32.clamp` is not"),
    ("vadd4.u32.u32 %r1, %r2, %r3, %r4;", "`vadd4.u32.u32` is not"),
    ("vset4.u32.u32.eq.sat %r1, %r2, %r3, %r4;", "`vset4.u32.u32.eq.sat` is not"),
    ("testp.nan.f32 %p1, %f1;", "`testp.nan.f32` is not"),
    ("mad24.lo.sat.s32 %r1, %r2, %r3, %r4;", "`mad24.lo.sat.s32` is not"),
    ("ld.global.b128 %rd1, [%rd2];", "`ld.global.b128` is not"),
    ("ld.global.v8.u32 {%r1, %r2, %r3, %r4}, [%rd1];", "no access is wider than 16 bytes"),
    ("ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd1}, [%rd1];", "`ld.global.v4.u64` is not"),
    ("ld.release.gpu.u32 %r1, [%rd1];", "`ld.release.gpu.u32` is not"),
    ("ld.relaxed.u32 %r1, [%rd1];", "`ld.relaxed.u32` is not"),
    ("ld.relaxed.cluster.u32 %r1, [%rd1];", "there are no clusters of blocks"),
    ("ld.global.wt.u32 %r1, [%rd1];", "`ld.global.wt.u32` is not"),
    ("ld.shared.nc.u32 %r1, [%rd1];", "`ld.shared.nc.u32` is not"),
    ("ld.global.nc.cs.u32 %r1, [%rd1];", "`ld.global.nc.cs.u32` is not"),
    ("ld.const.nc.u32 %r1, [%rd1];", "`ld.const.nc.u32` is not"),
    ("st.const.u32 [%rd1], %r1;", "kernels only read constant memory"),
    ("ld.const.u32 %r1, [table];", "`table` lies in another state space"),
    ("mov.u32 %r1, table;", "the address of `table` has 64 bits"),
    ("st.acquire.gpu.u32 [%rd1], %r1;", "`st.acquire.gpu.u32` is not"),
    ("st.param.u32 [count], %r1;", "a kernel only reads its parameters"),
    ("st.param.u32 [%rd1], %r1;", "a kernel only reads its parameters"),
    ("atom.global.add.s64 %rd1, [%rd2], %rd3;", "`atom.global.add.s64` is not"),
    ("atom.local.add.u32 %r1, [%rd2], %r3;", "`atom.local.add.u32` is not"),
    ("red.acquire.gpu.global.add.u32 [%rd2], %r3;", "`red.acquire.gpu.global.add.u32` is not"),
    ("fence.acq_rel.cluster;", "there are no clusters of blocks"),
    ("fence.proxy.alias;", "`fence.proxy.alias` is not"),
    ("shfl.up.b32 %r1, %r2, 1, 0;", "only the form with `.sync` is supported"),
    ("vote.all.pred %p1, %p2;", "only the form with `.sync` is supported"),
    (
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
        "there are no tensor maps",
    ),
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, [%r3], %rs1;",
        "there are no clusters of blocks",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;",
        "without reductions",
    ),
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16;",
        "it takes 4 operands, not 3",
    ),
    ("cp.async.bulk.wait_group %r1;", "the number of groups is a literal up to 65536"),
    ("elect.sync %r1, -1;", "the destination is a register and a predicate"),
    ("bar.sync 0, 64, 1;", "it takes the barrier's number, and that of threads"),
    ("bar.sync 16;", "the barrier is a literal from 0 to 15"),
    ("call.uni (%r1), function, (%r2);", "`function` is not declared"),
    ("call (%r1), tile, (%r2);", "`tile` is no function"),
    ("call.foo %rd1;", "`call.foo` is not an instruction"),
    ("call (5), %rd1;", "a number is no result"),
    ("call %rd1, (tile);", "`tile` is not handed to functions"),
    ("call %rd1, (%p1);", "`%p1` is not handed to functions"),
    ("call %r1;", "`%r1` is a `.b32` register, and `.u64` is asked for"),
    ("mma.sync.aligned.m16n8k8 %r1, %r2;", "the shapes and types of an A100"),
    (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%r1}, {%r1}, {%r1}, {%r1};",
        "the shapes and types of an A100",
    ),
    (
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r1}, {%f1}, %r1, 0;",
        "no products of sparse matrices",
    ),
    (
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r1}, {%f1};",
        "it takes 4 registers there, not 1",
    ),
    (
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, %fd1, {%fd2}, {%fd1, %fd2};",
        "registers in braces were expected",
    ),
    (
        "wmma.load.a.sync.aligned.row.m16n16k16.f32 {%r1}, [%rd1];",
        "the shapes and types of an A100",
    ),
    ("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1}, [%rd1];", "one, two or four matrices"),
    ("ldmatrix.sync.aligned.m8n8.x1.x1.shared.b16 {%r1}, [%rd1];", "one, two or four matrices"),
    ("wgmma.fence.sync.aligned;", "there are no tensor cores"),
    ("foo;", "`foo` is not an instruction that the emulator knows"),
    // Operands.
    ("add.s32 %r1, %r2;", "it takes 3 operands, not 2"),
    ("add.s32 %f1, %r2, %r3;", "`%f1` is a `.f32` register, and `.s32` is asked for"),
    ("add.rn.f32 %f1, %f2, %rd3;", "`%rd3` is a `.b64` register, and `.f32` is asked for"),
    ("add.s64 %rd1, %rd2, %r3;", "`%r3` is a `.b32` register, and `.s64` is asked for"),
    ("and.b32 %p1, %p2, %p3;", "`%p1` is a `.pred` register, and `.b32` is asked for"),
    ("and.pred %r1, %r2, %r3;", "`%r1` is a `.b32` register, and `.pred` is asked for"),
    ("ld.global.u32 %rs1, [%rd1];", "`%rs1` is a `.b16` register, and `.u32` is asked for"),
    ("ld.global.u32 %r1, [%r2];", "`%r2` is a `.b32` register, and `.b64` is asked for"),
    ("ld.global.u32 %r1, [tile];", "`tile` lies in another state space"),
    ("ld.global.u32 %r1, %rd1;", "an address in brackets was expected"),
    ("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];", "the access has 2 values"),
    ("ld.global.v2.u16 {%rs1, %r2}, [%rd1];", "the registers of a vector differ in size"),
    ("ld.param.u64 %rd1, [count];", "parameter `count` has 4 bytes"),
    ("ld.param.u64 %rd1, [task+4];", "8 bytes of parameters are read at byte 20"),
    ("ld.param.u64 %rd1, [%r2];", "`%r2` is a `.b32` register, and `.b64` is asked for"),
    ("ld.param.u64 %rd1, [tile];", "`tile` is no parameter"),
    ("mov.u32 %r1, pointer;", "the address of `pointer` is no `.u32`"),
    ("ld.global.u32 %r1, [pointer];", "`pointer` is a parameter, and a register or variable"),
    ("add.u32 %r1, %r1, %clock;", "`%clock` is not supported: it can only be moved"),
    (
        "mov.u32 %r1, %clock64;",
        "`%clock64` is not supported: it can only be moved, as a whole and to its own size",
    ),
    ("mov.u32 %r1, %envreg32;", "`%envreg32` is not declared"),
    ("mov.u32 %r1, %envreg01;", "`%envreg01` is not declared"),
    ("mov.u32 %r1, %pm0;", "there are no performance counters"),
    ("mov.u32 %r1, %tid;", "it has the components .x, .y and .z"),
    ("mov.u32 %tid.x, %r1;", "the special register `%tid.x` can only be read"),
    ("add.s32 %r1, %r2, %tid.x;", "`%tid.x` can only be moved and converted"),
    ("add.s32 %r1, %r2, 1.5;", "does not go with the type `.s32`"),
    ("mov.f32 %f1, 1;", "does not go with the type `.f32`"),
    ("mov.f32 %f1, 0f3F8;", "`0f3F8` is not a number"),
    ("mov.u32 %r1, 0x;", "`0x` is not a number"),
    ("mov.u32 %r1, 09;", "`09` is not a number"),
    ("mov.u64 %rd1, 18446744073709551616;", "is not a number"),
    ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "the table is a number from 0 to 255"),
    ("cp.async.cg.shared.global [%r1], [%rd1], 8;", "with `.cg` 16 bytes are copied"),
    (
        "cp.async.ca.shared.global [%r1], [%rd1], 4, 8;",
        "8 bytes are more than the 4 that are copied",
    ),
    ("mov.b64 %rd1, {%r1, %r2, %r3};", "a `.b64` is not moved as 3 elements"),
    ("bra %r1;", "the label `%r1` is not declared where it is branched to"),
    // Names.
    ("mov.u32 %r8, 1;", "`%r8` is not declared"),
    ("mov.u32 %r01, 1;", "`%r01` is not declared"),
    ("@%q bra end;", "`%q` is not declared"),
    ("@%r1 bra end;", "`%r1` is a `.b32` register, and `.pred` is asked for"),
    ("mov.u32 %r1, end;", "`end` is not declared"),
    ("bra nowhere;", "the label `nowhere` is not declared where it is branched to"),
    ("{ inside: } bra inside;", "the label `inside` is not declared where it is branched to"),
    ("end:", "`end` is declared twice"),
    (".reg .b32 %r3;", "`%r3` is declared twice"),
    (".reg .b32 %r<2>;", "`%r<2>` is declared twice"),
    (".reg .b32 x, x;", "`x` is declared twice"),
    (".reg .b32 x4; .reg .b32 x<5>;", "`x<5>` is declared twice"),
    (".reg .b32 %r<1000000000>;", "a number up to 1048576 was expected"),
    (".reg .b8 x;", "registers of type `.b8` are not supported"),
    (".reg .v2 .f32 x;", "registers of type `.v2` are not supported"),
    (".shared .align 3 .b8 x;", "an alignment of 3 is no power of two"),
    (".shared .b8 big[50000]; st.shared.b8 [big], 1;", "take more than 49152 bytes"),
    (".local .b8 big[4294967295]; st.local.b8 [big], 1;", "take more than 524288 bytes"),
    (".local .b64 big[4294967295];", "a variable of more than 4 GB"),
    // Syntax.
    ("@%p1 label:", "a label cannot have a guard"),
    ("add.s32 %r1, %r2, %r3", "a semicolon is missing before"),
    ("add.s32 %r1 %r2, %r3;", "a semicolon is missing before `%r2`"),
    ("add.s32 %r1, , %r3;", "an operand was expected, not `,`"),
    ("ld.global.u32 %r1, [%rd1;", "`]` was expected, not `;`"),
    ("ld.global.u32 %r1, [%rd1-8];", "`]` was expected, not `-`"),
    ("mov.b64 {%r1, %r2, %rd1;", "`,` was expected, not `;`"),
    (".loc 1 2;", "a number was expected, not `;`"),
    (".branchtargets end;", "`.branchtargets` stands behind a label"),
    ("brx %r1, end;", "branches to a computed target are not supported"),
    ("ex2.approx.bf16 %rs1, %rs2;", "of bf16 there is the form with `.ftz`"),
    ("ex2.approx.ftz.f16 %rs1, %rs2;", "`ex2.approx.ftz.f16` is not"),
    ("isspacep.const %p1, %rd1;", "constant memory has no addresses of its own here"),
    ("mov.u32 %r1, \"text\";", "an operand was expected, not \"text\""),
    ("mov.u32 %r1, é;", "the character 'é' has no meaning here"),
    ("5;", "an instruction was expected, not `5`"),
    ("{", "the kernel's closing brace is missing"),
    ("}", "a directive was expected, not `end`"),
    ("/* no end", "a comment that begins with `/*` does not end"),
    (".pragma \"no end;", "a string does not end"),
];

#[test]
fn refusals_name_the_statement() {
    let line = HEAD.lines().count() as u32 + 1;
    for (statements, sentence) in REFUSED {
        let error = refusal(&kernel(statements));
        assert!(error.message.contains(sentence), "{statements}: {error}");
        // What is only found out at the end of the source is blamed on a line further down.
        let is_late = ["end:", "{", "}"].contains(statements);
        assert!(error.line == line || is_late && error.line > line, "{statements}: {error}");
    }
    let error = refusal(&kernel("\n\n  fma.rz.f16\t%rs1,  %rs1, %rs2, %rs3;"));
    assert_eq!(
        error.to_string(),
        "PTX line 18: `fma.rz.f16 %rs1, %rs1, %rs2, %rs3;`: `fma.rz.f16` is not an instruction that the \
         emulator knows"
    );
}

#[test]
fn refusals_of_modules() {
    let head = ".version 8.0 .target sm_80 .address_size 64\n";
    let long_file = format!("{head}//{}", " ".repeat(16 << 20));
    let long_params = format!("{head}.entry a(.param .b8 b[32765]) {{}}");
    let deep = format!("{head}.entry a {{ {} }}", "{".repeat(100));
    let registers: String = (0..70_000).map(|i| format!(".reg .b32 r{i};")).collect();
    let registers = format!("{head}.entry a {{ {registers} }}");
    let cases = [
        ("", 1, "PTX begins with `.version`"),
        (".version 6.5 .target sm_80", 1, "the version is not one of 7.0 to 9.x"),
        (".version 8.0\n.address_size 64", 2, "`.version` is followed by `.target`"),
        (".version 8.0 .target sm_80, texmode_independent", 1, "the target `texmode_independent`"),
        (".version 8.0 .target sm_80\n.address_size 32", 2, "`.address_size 64` is needed"),
        (&format!("{head}.entry a() {{}} .entry a() {{}}"), 2, "`a` is declared twice"),
        (&format!("{head}.entry a(.param .b32 b, .param .b32 b) {{}}"), 2, "`b` is declared twice"),
        (&format!("{head}.entry a(.param .b32 b;"), 2, "`,` was expected, not `;`"),
        (&format!("{head}.entry a();"), 2, "a directive was expected, not `;`"),
        (&format!("{head}.entry a() .reqnctapercluster 2 {{}}"), 2, "`.reqnctapercluster` is not"),
        (&format!("{head}.entry a() .maxntid 0 {{}}"), 2, "a block cannot have 0 threads"),
        (&format!("{head}.entry a() {{\n.loc 7 1 1\n}}\n.file 1 \"a\""), 3, "`.loc` names file 7"),
        (&format!("{head}.file 1 \"a\"\n.file 1 \"b\""), 3, "file 1 has two names"),
        (&format!("{head}.section .debug_str {{"), 2, "`}` is missing"),
        (&format!("{head}.section .text {{}}"), 2, "the section `.text` is not supported"),
        (&format!("{head}.shared .b8 x[];"), 2, "an `.extern` variable, and no other, has no size"),
        (&format!("{head}.alias a, b;"), 2, "`a` is no such name, or `b` no such function"),
        (
            &format!("{head}.func a(); .func b();\n.alias a, b;"),
            3,
            "`a` is no such name, or `b` no such function",
        ),
        (&format!("{head}ret;"), 2, "a directive was expected, not `ret`"),
        (&long_file, 1, "the source has more than 16777216 bytes"),
        (&long_params, 2, "parameters of more than 32764 bytes"),
        (&deep, 2, "braces nested more than 32 deep"),
        (&registers, 2, "more than 65535 registers of one size"),
    ];
    for (source, line, sentence) in cases {
        let error = refusal(source);
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
    let head = ".version 8.0 .target sm_80 .address_size 64\n";
    let kernels = numbered(|i| format!(".entry a{i}{{}}"));
    assert!(fuzz::parse(format!("{head}{kernels}").as_bytes()));
    let params = numbered(|i| format!(".param .b8 a{i},"));
    assert!(!fuzz::parse(format!("{head}.entry a({params}) {{}}").as_bytes()));
    let variables = numbered(|i| format!(".shared .b8 a{i};"));
    let kernels = numbered(|i| format!(".entry b{i}{{}}"));
    assert!(fuzz::parse(format!("{head}{variables}{kernels}").as_bytes()));
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
