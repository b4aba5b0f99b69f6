//! The parameters of kernels in any PTX, also of kernels that the emulator does not run. ptxas 12.9
//! for sm_90 decides which declarations are valid, and at which offset each parameter is.

use simt::{Declarations, Module, ParseError};

const HEAD: &str = ".version 8.6\n.target sm_100a\n.address_size 64\n";

/// The parameters of the one kernel of a source, as offsets and sizes.
fn layout(params: &str) -> Result<Vec<(u32, u32)>, ParseError> {
    let source = format!("{HEAD}.visible .entry k({params}) {{ unheard.of [;] }}");
    let declarations = Declarations::parse(&source)?;
    let [kernel] = declarations.entries() else { panic!("{declarations:?}") };
    Ok(kernel.params().iter().map(|param| (param.offset, param.bytes)).collect())
}

#[test]
fn parameters_have_the_sizes_and_places_that_the_compiler_gives_them() {
    for (params, expected) in [
        ("", vec![]),
        (".param .align 8 .b8 p [4096]", vec![(0, 4096)]),
        (".param.align 8 .b8 p[4]", vec![(0, 4)]),
        (".param .u64 .ptr .global .align 16 p", vec![(0, 8)]),
        (".param .u64 .ptr.const.align 1 p, .param .u8 .ptr q", vec![(0, 8), (8, 1)]),
        (
            ".param .u8 a, .param .f32 b, .param .u16 c, .param .u64 d",
            vec![(0, 1), (4, 4), (8, 2), (16, 8)],
        ),
        (".param .u8 a,.param .b128 b", vec![(0, 1), (16, 16)]),
        (".param .u8 a, .param .align 1 .u64 b", vec![(0, 1), (8, 8)]),
        (".param .u8 a, .param .align 16 .u32 b", vec![(0, 1), (16, 4)]),
        (".param .u8 a, .param .align 2 .b32 b[4]", vec![(0, 1), (4, 16)]),
        (".param .u8 a, .param .align 8 .align 4 .b8 b[8]", vec![(0, 1), (8, 8)]),
        (".param .u8 a, .param .align 4 .align 8 .b8 b[8]", vec![(0, 1), (8, 8)]),
        (".param .u8 a, .param .align 4 .b8 .align 8 b[8]", vec![(0, 1), (4, 8)]),
        (".param .u8 a, .param .texref b, .param .u32 c", vec![(0, 1), (1, 0), (4, 4)]),
        (".param .b8 p[0x10], .param .b8 q[020]", vec![(0, 16), (16, 16)]),
        (
            ".param .b8 p[0b11], .param .b8 q[16U], .param .b8 r[WARP_SZ]",
            vec![(0, 3), (3, 16), (19, 32)],
        ),
        (".param .b32 p [ 2 ] /* by */ [3]", vec![(0, 24)]),
        (".param .b8 p[32764]", vec![(0, 32_764)]),
        (
            ".param .u64 %p, .param .u64 _q$1, .param .u64 $r, .param .u64 tid",
            vec![(0, 8), (8, 8), (16, 8), (24, 8)],
        ),
        (".param // .u8 q,\n .u64 /* ) { \" */ p\n", vec![(0, 8)]),
    ] {
        assert_eq!(
            layout(params).unwrap_or_else(|error| panic!("{params}: {error}")),
            expected,
            "{params}"
        );
    }
}

#[test]
fn parameters_that_no_compiler_takes_are_refused() {
    for (params, said) in [
        (".param .u64 p,", "a parameter begins with `.param`"),
        (".reg .u64 p", "a parameter begins with `.param`"),
        (".param .v4 .f32 p", "a parameter of type `.v4` is not supported"),
        (".param .pred p", "a parameter of type `.pred`"),
        (".param .u64", "a name was expected, not `)`"),
        (".param .b8 p[]", "a parameter needs a size"),
        (".param .b8 p[0]", "a parameter needs a size"),
        (".param .b8 p[-1]", "a number up to"),
        (".param .b8 p[2*8]", "the character '*' has no meaning here"),
        (".param .b8 p[4", "`]` was expected"),
        (".param .texref p[16]", "`,` was expected, not `[`"),
        (".param .b8 p<4>", "`,` was expected, not `<`"),
        (".param .b8 p[65536][65536]", "more than 4 GB"),
        (".param .b8 p[32765]", "parameters of more than 32764 bytes"),
        (".param .b8 p[32764], .param .u8 q", "parameters of more than 32764 bytes"),
        (".param .align 3 .b8 p[8]", "an alignment of 3 is no power of two"),
        (".param .align 0 .b8 p[8]", "an alignment of 0 is no power of two"),
        (".param .u64 p.q", "a name was expected, not `p.q`"),
        (".param .align 8.b8 p[4]", "`8.b8` is not a number"),
        (".param .u64 p%q", "`,` was expected, not `%q`"),
        (".param .u64 p = 4", "`,` was expected, not `=`"),
        (".param .u64 ré", "the character 'é' has no meaning here"),
    ] {
        let error = layout(params).expect_err(params);
        assert!(error.message.contains(said) && error.line == 4, "{params}: {error}");
    }
}

#[test]
fn only_kernels_that_have_a_body_are_found() {
    let source = format!(
        "// .version 1.0 .entry a( {{ \"\n/* .entry b( */ {HEAD}\
         .file 1 \".entry c(.param .u64 q) {{ ret; }}\\\"\n\
         .file 2 \"over two\nlines {{\", 12, 34\n\
         .extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n\
         .func (.param .align 8 .b8 r[16]) f(.param .b64 x, .reg .u32 y)\n.noreturn\n{{ {{ }} call (r), f, (x); }}\n\
         .visible .alias g, f;\n\
         .global .align 8 .u64 table[2] = {{generic(h)+8, ~(1 * 2) ? 3 : 4}};\n\
         .extern .entry elsewhere(.param .u64 x);\n\
         .visible .entry first(.param .u8 p);\n\
         .visible.entry first(.param.u8 p)\n\
         .maxntid WARP_SZ, 2, 1 .minnctapersm 2 .pragma \"nounroll\", \"{{\"; .explicitcluster\n\
         {{ // }} '\n @%p wgmma.mma_async.sync {{%r1, %r2}}, `^#\\ ; \"}}\" }}\n\
         .weak .entry %second$ {{ ret; }}\n\
         .entry third() {{ .param .u64 local; }}\n\
         .section .debug_info {{ .b8 1\nL: .b64 .debug_str }}\n# \u{1a} é"
    );
    let declarations = Declarations::parse(&source).unwrap();
    let names: Vec<_> = declarations.entries().iter().map(|entry| entry.name()).collect();
    assert_eq!(names, ["first", "%second$", "third"]);
    let sizes: Vec<_> = declarations.entries().iter().map(|entry| entry.param_bytes()).collect();
    assert_eq!(sizes, [1, 0, 0]);
    let param = &declarations.entry("first").unwrap().params()[0];
    assert_eq!(
        (&*param.name, param.ty, param.bytes, param.align, param.offset),
        ("p", "u8", 1, 1, 0)
    );
    assert!(declarations.entry("elsewhere").is_none());
    assert!(Module::parse(&source).is_err(), "not for the emulator");
}

#[test]
fn what_is_no_ptx_is_refused() {
    for (source, line, said) in [
        ("", 1, "PTX begins with `.version`"),
        ("\n.target sm_90", 2, "PTX begins with `.version`"),
        (".version 8", 1, "a version was expected, not `8`"),
        (".version \"8.0\"", 1, "a version was expected, not \"8.0\""),
        // Here ptxas takes the parameters from the body, for any GPU.
        (
            ".version 1.3\n.target sm_13\n.entry k { .param .u64 x; exit; }",
            1,
            "declares parameters in a kernel's body",
        ),
        (&format!("{HEAD}.entry k"), 4, "a kernel's body was expected, not the end of the file"),
        (&format!("{HEAD}.entry"), 4, "a name was expected"),
        (&format!("{HEAD}.entry k.l() {{}}"), 4, "a name was expected, not `k.l`"),
        (&format!("{HEAD}.entry k(.param .u64 a"), 4, "`,` was expected, not the end of the file"),
        (&format!("{HEAD}.entry k() {{\n ret;"), 4, "a closing brace is missing"),
        (&format!("{HEAD}.entry k() {{}} }}"), 4, "nothing is open that `}` closes"),
        (&format!("{HEAD}.entry k() ) {{}}"), 4, "a kernel's body was expected, not `)`"),
        (&format!("{HEAD}.entry k() {{}}\n.entry k(.param .u8 p) {{}}"), 5, "is there already"),
        (&format!("{HEAD}/* no end"), 4, "a comment that begins with `/*` does not end"),
        (&format!("{HEAD}\n.pragma \"no\nend"), 5, "a string does not end"),
    ] {
        let error = Declarations::parse(source).expect_err(source);
        assert!(error.message.contains(said) && error.line == line, "{error}, not: {said}");
    }
}
