//! Sectors of global accesses, and counters of ranges of blocks. Kernels that were counted by hand
//! are in `cases/counters.ptx`.

use std::collections::BTreeSet;

use simt::{Access, Counters, Site};

use crate::kernel::Bench;

fn count(bench: &Bench) -> Counters {
    bench.run().unwrap_or_else(|report| panic!("{report}"))
}

fn only(counters: &Counters, access: Access) -> &Site {
    let mut sites = counters.sites.iter().filter(|site| site.access == access);
    let site = sites.next().unwrap();
    assert!(sites.next().is_none());
    site
}

/// Lane `i` accesses `bytes` bytes at `start` plus a multiple of `i`.
#[test]
fn sectors_of_global_accesses() {
    let rows = [
        ("b8", 1, 1),
        ("b8", 1, 100),
        ("b16", 2, 2),
        ("b32", 4, 4),
        ("b32", 4, 0),
        ("b32", 4, 8),
        ("b32", 4, 28),
        ("b32", 4, 32),
        ("b32", 4, 100),
        ("b64", 8, 8),
        ("b64", 8, 24),
        ("v2.b32", 8, 8),
        ("v4.b32", 16, 16),
        ("v2.b64", 16, 48),
    ];
    for (shape, bytes, stride) in rows {
        let value = if shape.contains("b64") { "%rd8" } else { "%r8" };
        let value = match &shape[..2] {
            "v2" => format!("{{{value}, {value}}}"),
            "v4" => format!("{{{value}, {value}, {value}, {value}}}"),
            _ => value.to_string(),
        };
        // In order, not from the beginning of a sector; the lanes mixed up; some of them alone.
        for (start, factor, guard) in [(0, 1, ""), (16, 1, ""), (0, 13, ""), (16 * 3, 1, "@%p1 ")] {
            let body = format!(
                "setp.lt.u32 %p1, %r2, 9;
                mul.lo.u32 %r5, %r2, {factor};
                and.b32 %r5, %r5, 31;
                mul.wide.u32 %rd5, %r5, {stride};
                add.u64 %rd5, %rd5, %rd1;
                {guard}ld.global.{shape} {value}, [%rd5+{start}];"
            );
            let counters = count(&Bench::new(&body));
            let lanes = if guard.is_empty() { 32 } else { 9 };
            let touched: BTreeSet<u64> =
                (0..lanes).map(|lane| (start + lane * stride) / 32).collect();
            let site = only(&counters, Access::GlobalLoad);
            let wanted = (1, touched.len() as u64, lanes * bytes);
            assert_eq!((site.requests, site.sectors, site.bytes), wanted, "{body}");
            assert_eq!(site.sectors_per_request(), touched.len() as f64);
        }
    }
}

/// The counters of ranges add up to those of the whole launch, however it is cut.
#[test]
fn ranges_add_up() {
    let body = "mov.u32 %r5, 0;
        AGAIN:
        @%p1 add.rn.f32 %f1, %f1, %f1;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p2, %r5, 10;
        @%p2 bra AGAIN;
        st.shared.u32 [%r4], %r5;
        bar.sync 0;
        shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;
        st.global.f32 [%rd4], %f1;
        setp.lt.u32 %p3, %r1, 70;
        @%p3 ret;
        st.shared.u32 [%r4], %r5;";
    let bench = Bench::new(body).threads(32).blocks(5);
    let whole = count(&bench);
    assert_eq!((whole.divergent_branches, whole.blocks), (0, 5));
    assert_eq!(whole.sites.last().unwrap().requests, 3);
    for cuts in [vec![0, 2, 5], vec![0, 0, 1, 2, 3, 4, 5], vec![0, 5, 5]] {
        let mut sum = Counters::default();
        bench
            .with(|launch, _| {
                for pair in cuts.windows(2) {
                    sum += &launch.run(pair[0]..pair[1])?;
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(sum, whole, "{cuts:?}");
    }
    // Run together they execute the same.
    assert_eq!(bench.run_together().unwrap(), whole);
}

/// Lines that are printed come in the order of the blocks, whatever the order of the ranges is.
#[test]
fn printed_lines_of_ranges_are_in_the_order_of_the_blocks() {
    let source = crate::kernel::source(
        ".local .align 4 .b8 args[4]; .param .b64 p0; .param .b64 p1; .param .b32 r;
        mov.u32 %r6, %ctaid.x; st.local.u32 [args], %r6;
        mov.u64 %rd5, format; cvta.global.u64 %rd5, %rd5;
        mov.u64 %rd6, args; cvta.local.u64 %rd6, %rd6;
        st.param.b64 [p0], %rd5; st.param.b64 [p1], %rd6;
        call.uni (r), vprintf, (p0, p1);",
    );
    let declarations = ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
        .global .align 1 .b8 format[] = {37, 100, 0};";
    let bench = Bench::of(&source.replacen(".visible", &format!("{declarations}.visible"), 1));
    let parts = bench.threads(34).blocks(5).with(|launch, _| {
        let mut counters = launch.run(3..5)?;
        counters += &launch.run(0..3)?;
        Ok(counters)
    });
    let printed = parts.unwrap().printed;
    let places: Vec<(u64, u32, u32)> =
        printed.iter().map(|line| (line.block, line.warp, line.lane)).collect();
    let wanted = (0..5).flat_map(|block| (0..34).map(move |i| (block, i / 32, i % 32)));
    assert_eq!(places, wanted.collect::<Vec<_>>());
    assert!(printed.iter().all(|line| line.text == line.block.to_string()));
}
