//! What `Counters` say of kernels that were counted by hand.

use std::collections::BTreeSet;

use simt::{Access, Class, Counters, Site};

use crate::kernel::{AROUND, Bench};

fn count(bench: &Bench) -> Counters {
    bench.run().unwrap_or_else(|report| panic!("{report}"))
}

/// Ten rounds of a loop; half of the lanes add.
const LOOP: &str = "
    mov.u32 %r5, 0;
    setp.lt.u32 %p1, %r2, 16;
    mov.f32 %f1, 0f3F800000;
    AGAIN:
    @%p1 add.rn.f32 %f1, %f1, %f1;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 10;
    @%p2 bra AGAIN;
    st.shared.u32 [%r4], %r5;
    ex2.approx.f32 %f2, %f1;
    bar.sync 0;
    @!%p1 membar.gl;
    shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;
    @%p9 ld.global.u32 %r6, [%rd4];
    st.global.f32 [%rd4], %f1;
";

#[test]
fn a_kernel_counted_by_hand() {
    let counters = count(&Bench::new(LOOP));
    let executed = AROUND + 3 + 10 * 4 + 7;
    assert_eq!(counters.instructions, executed);
    // Half of the lanes are missing in ten additions and a fence, all in the last branch and a
    // load.
    assert_eq!(counters.thread_instructions, 32 * executed - 16 * (10 + 1) - 32 - 32);
    let classes = [
        (Class::Float, 10),
        // Around: three moves of special registers and an address, and six of arithmetic.
        (Class::Integer, 9 + 3 + 2 * 10),
        (Class::Special, 1),
        (Class::Control, 10 + 1),
        (Class::Barrier, 1),
        (Class::Shuffle, 1),
        (Class::Parameter, 2),
        (Class::Global, 2),
        (Class::Shared, 1),
        (Class::Atomic, 1),
    ];
    assert_eq!(counters.classes, classes.into_iter().collect());
    assert_eq!((counters.barriers, counters.divergent_branches, counters.blocks), (1, 0, 1));
    // The load whose guard held nowhere is no request.
    assert_eq!(counters.requests(Access::GlobalLoad), 0);
    assert_eq!(counters.requests(Access::GlobalStore), 1);
}

#[test]
fn warps_that_are_not_full_and_several_blocks() {
    // Two warps, of 32 lanes and of 8, in each of three blocks.
    let body = "st.global.u32 [%rd4], %r1; bar.sync 0;";
    let counters = count(&Bench::new(body).threads(40).blocks(3));
    assert_eq!(counters.instructions, 3 * 2 * (AROUND + 2));
    assert_eq!(counters.thread_instructions, 3 * 40 * (AROUND + 2));
    assert_eq!((counters.barriers, counters.blocks), (3, 3));
    let [site] = &counters.sites[..] else { panic!("{:?}", counters.sites) };
    assert_eq!((site.requests, site.bytes), (6, 3 * 40 * 4));
    // Blocks begin 160 bytes apart, on a border of sectors: four sectors and one.
    assert_eq!(site.sectors, 3 * 5);
    assert_eq!((site.wavefronts, site.conflicts), (0, 0));
}

/// What only becomes zero is not asked of memory: half of a warp's lanes copy, of these half two
/// bytes of four; then none.
#[test]
fn copies_of_nothing_are_no_requests() {
    let body = "
        setp.lt.u32 %p1, %r2, 8;
        setp.lt.u32 %p2, %r2, 16;
        selp.b32 %r5, 2, 0, %p2;
        selp.b32 %r5, 4, %r5, %p1;
        add.u32 %r6, %r3, %r4;
        cp.async.ca.shared.global [%r6], [%rd3], 4, %r5;
        mov.u32 %r7, 0;
        cp.async.ca.shared.global [%r6+1024], [%rd3], 4, %r7;
        cp.async.wait_all;
    ";
    let counters = count(&Bench::new(body));
    let bytes: u64 = counters.sites.iter().map(|site| site.bytes).sum();
    let (requests, sectors) =
        (counters.requests(Access::CopyAsync), counters.sectors(Access::CopyAsync));
    assert_eq!((requests, sectors, bytes), (1, 2, 8 * 4 + 8 * 2));
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

/// Lanes so many words apart, the passes that the access takes, and those among them that conflicts
/// cost.
#[test]
fn bank_conflicts_of_shared_accesses() {
    let rows = [
        ("b32", "%r5", 4, 1, (1, 0)),
        ("b32", "%r5", 4, 0, (1, 0)),
        ("b32", "%r5", 4, 2, (2, 1)),
        ("b32", "%r5", 4, 3, (1, 0)),
        ("b32", "%r5", 4, 4, (4, 3)),
        ("b32", "%r5", 4, 31, (1, 0)),
        ("b32", "%r5", 4, 32, (32, 31)),
        ("b64", "%rd5", 8, 2, (2, 0)),
        ("b64", "%rd5", 8, 4, (4, 2)),
        ("v4.b32", "{%r5, %r5, %r5, %r5}", 16, 4, (4, 0)),
        ("v4.b32", "{%r5, %r5, %r5, %r5}", 16, 8, (8, 4)),
        ("v4.b32", "{%r5, %r5, %r5, %r5}", 16, 20, (4, 0)),
        ("v2.b64", "{%rd5, %rd5}", 16, 32, (32, 28)),
    ];
    for (shape, value, bytes, words, wanted) in rows {
        let body = format!(
            "mov.u32 %r5, 7;
            mov.u64 %rd5, 7;
            mul.lo.u32 %r6, %r2, {};
            st.shared.{shape} [%r6], {value};
            bar.sync 0;
            ld.shared.{shape} {value}, [%r6];",
            4 * words
        );
        let counters = count(&Bench::new(&body));
        for access in [Access::SharedStore, Access::SharedLoad] {
            let site = only(&counters, access);
            assert_eq!((site.wavefronts, site.conflicts), wanted, "{body}");
            assert_eq!((site.requests, site.bytes, site.sectors), (1, 32 * bytes, 0));
        }
    }
}

#[test]
fn kinds_of_sites() {
    let bench = Bench::new(
        "ld.global.u32 %r5, [%rd3];
        st.shared.u32 [%r4], %r5;
        atom.shared.add.u32 %r6, [%r4], 1;
        ld.shared.u32 %r6, [%r4];
        st.local.u32 [l], %r6;
        ld.local.u32 %r6, [l];
        st.global.u32 [%rd4], %r6;
        red.global.add.u32 [%rd4], 1;
        st.u32 [%rd4], %r6;
        cp.async.ca.shared.global [%r4+128], [%rd3], 4;
        cp.async.wait_all;",
    );
    let counters = count(&bench);
    let found: Vec<(&str, Access)> =
        counters.sites.iter().map(|site| (&*site.opcode, site.access)).collect();
    let wanted = [
        ("ld.global.u32", Access::GlobalLoad),
        ("st.shared.u32", Access::SharedStore),
        ("atom.shared.add.u32", Access::SharedAtomic),
        ("ld.shared.u32", Access::SharedLoad),
        ("st.local.u32", Access::LocalStore),
        ("ld.local.u32", Access::LocalLoad),
        ("st.global.u32", Access::GlobalStore),
        ("red.global.add.u32", Access::GlobalAtomic),
        ("st.u32", Access::Generic),
        ("cp.async.ca.shared.global", Access::CopyAsync),
    ];
    assert_eq!(found, wanted);
    for site in &counters.sites {
        assert!(bench.line(site.line).starts_with(&*site.opcode), "{site:?}");
        assert_eq!((site.requests, site.bytes), (1, 128), "{site:?}");
    }
}

/// The sum of the counters of ranges is that of the whole, in any cut.
#[test]
fn ranges_add_up() {
    let body = format!("{LOOP} setp.lt.u32 %p3, %r1, 70; @%p3 ret; st.shared.u32 [%r4], %r5;");
    let bench = Bench::new(&body).threads(32).blocks(5);
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
