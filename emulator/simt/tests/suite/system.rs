//! `printf` and `assert` in kernels.

use simt::ReportKind;

use crate::kernel::Bench;

/// Bytes of a string, with the zero at its end, as NVRTC writes them.
fn bytes(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().chain([0]).map(|byte| byte.to_string()).collect();
    format!("[{}] = {{{}}}", bytes.len(), bytes.join(", "))
}

/// A kernel that prints: by its lane in `%r1`, its block in `%r2`, and by what it puts into `args`.
fn source(format: &str, body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .extern .func (.param .b32 r) vprintf (.param .b64 format, .param .b64 arguments);
        .extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s) .noreturn;
        .global .align 1 .b8 format{};
        .global .align 1 .b8 name{};
        .visible .entry k(.param .u64 a, .param .u64 b)
        {{
            .local .align 8 .b8 args[32];
            .reg .pred %p<4>; .reg .b32 %r<8>; .reg .f64 %fd<4>; .reg .b64 %rd<10>;
            mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
            mov.u64 %rd1, format; cvta.global.u64 %rd1, %rd1;
            mov.u64 %rd2, args; cvta.local.u64 %rd2, %rd2;
            mov.u64 %rd3, name; cvta.global.u64 %rd3, %rd3;
            ld.param.u64 %rd4, [b];
            {body}
            ret;
        }}",
        bytes(format),
        bytes("na\u{ef}ve"),
    )
}

const PRINT: &str = "{ .param .b64 p0; .param .b64 p1; .param .b32 r;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2;
    call.uni (r), vprintf, (p0, p1); ld.param.b32 %r3, [r]; }";

#[test]
fn what_is_printed_comes_with_the_counters() {
    let body = format!(
        "st.local.u32 [args], %r1; mov.f64 %fd1, 0d3FF8000000000000; st.local.f64 [args+8], %fd1;
        st.local.u64 [args+16], %rd3; st.local.u32 [args+24], %r2;
        {PRINT} @%p1 {}
        setp.eq.u32 %p2, %r1, 0; @%p2 st.global.u32 [%rd4], %r3;",
        "bra END; END:"
    );
    let bench = Bench::of(&source("%3d%% %.2f %s, block %d\n", &body)).threads(34);
    let counters = bench.run().unwrap();
    assert_eq!(bench.words(), [4]);
    assert_eq!(counters.printed.len(), 34);
    let printed = &counters.printed[33];
    assert_eq!((printed.block, printed.warp, printed.lane), (0, 1, 1));
    assert_eq!(printed.text, " 33% 1.50 na\u{ef}ve, block 0\n");

    // In the order of the blocks, in whatever order and way they run.
    let bench = Bench::of(&source("%d", &format!("st.local.u32 [args], %r2; {PRINT}")));
    let bench = bench.threads(1).blocks(5);
    let order = |counters: &simt::Counters| -> String {
        counters.printed.iter().map(|printed| printed.text.as_str()).collect()
    };
    let parts = bench.with(|launch, _| {
        let mut counters = launch.run(3..5)?;
        counters += &launch.run(0..3)?;
        Ok(counters)
    });
    assert_eq!(order(&parts.unwrap()), "01234");
    assert_eq!(order(&bench.run_together().unwrap()), "01234");
    assert_eq!(order(&bench.gone_through(false).unwrap()), "01234");
}

#[test]
fn mistakes_with_what_is_printed_are_reported() {
    for (format, body, kind, message) in [
        (
            "%s",
            "st.local.u64 [args], 0;",
            ReportKind::OutOfBounds,
            "reads 1 byte at a null pointer",
        ),
        ("%2000d", "", ReportKind::Call, "prints with a width or precision of more than 1000"),
        (
            "%s",
            ".shared .b8 s[4]; mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5; st.local.u64 [args], %rd5;",
            ReportKind::Call,
            "prints what lies in shared memory or among the parameters, which is not supported",
        ),
        (
            "%d %d %d %d %d %d %d %d %d %d %d %d %d %d",
            "",
            ReportKind::OutOfBounds,
            "prints 4 bytes at offset 52 of its local memory, which has 52 bytes",
        ),
        ("%n %5", "trap;", ReportKind::Trap, "executes trap"),
    ] {
        let body = format!("{body}\n{PRINT}");
        let bench = Bench::of(&source(format, &body));
        let at = if kind == ReportKind::Trap { "trap" } else { "vprintf" };
        bench.reports(bench.run(), kind, at, message);
    }
    let text = format!("mov.u64 %rd2, 0; {PRINT}");
    let bench = Bench::of(&source(&"x".repeat(20_000), &text));
    bench.reports(bench.run(), ReportKind::Call, "vprintf", "prints more than 16384 bytes at once");
}

#[test]
fn what_is_printed_keeps_to_the_bounds() {
    let mut bench = Bench::of(&source(&"x".repeat(1000), &format!("AGAIN: {PRINT} bra AGAIN;")));
    bench.host_bytes = 1 << 20;
    let report = bench.run().unwrap_err();
    assert_eq!(report.kind, ReportKind::HostBytes);
    assert!(
        report.message.contains("more bytes of the host for what the kernel prints"),
        "{report}"
    );
}

#[test]
fn an_assertion_that_fails_is_reported() {
    let body = "setp.gt.u32 %p1, %r1, 36; @!%p1 bra END;
        { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
          st.param.b64 [m], %rd1; st.param.b64 [f], %rd3; st.param.b32 [l], 12; st.param.b64 [n], %rd3; st.param.b64 [s], 1;
          call.uni __assertfail, (m, f, l, n, s); }
        END:";
    let bench = Bench::of(&source("i < 37", body)).threads(64);
    let message =
        "fails the assertion `i < 37` of na\u{ef}ve:12 in `na\u{ef}ve`, thread (37, 0, 0)";
    let report = bench.reports(bench.run(), ReportKind::Assert, "__assertfail", message);
    assert_eq!((report.warp, report.lanes), (1, !0x1f));
}
