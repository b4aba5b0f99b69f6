//! Rows of `ldmatrix` and `stmatrix`; and wrong uses of what multiplies, loads and stores matrices.

use std::collections::BTreeSet;

use simt::ReportKind;

use crate::kernel::Bench;

/// What `coverage` asks for.
pub fn opcodes() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for count in ["x1", "x2", "x4"] {
        for trans in ["", ".trans"] {
            for space in ["", ".shared", ".shared::cta"] {
                all.insert(format!("ldmatrix.sync.aligned.m8n8.{count}{trans}{space}.b16"));
                all.insert(format!("stmatrix.sync.aligned.m8n8.{count}{trans}{space}.b16"));
            }
        }
    }
    all
}

/// Rows of eight halves of the numbers 0, 1, 2, … in shared memory, from offset 16 on; with
/// `extra`, halves are stored as such, too.
fn rows(body: &str, extra: bool) -> String {
    let extra = if extra { "@%p2 st.shared.u16 [s], %h5;" } else { "" };
    format!(
        "setp.lt.u32 %p2, %r2, 0; mov.u16 %h5, 0; {extra}
        FILL: shr.u32 %r5, %r4, 1; add.u32 %r6, %r5, 1; shl.b32 %r6, %r6, 16; or.b32 %r6, %r6, %r5;
        add.u32 %r7, %r3, %r4; st.shared.u32 [%r7+16], %r6; add.u32 %r4, %r4, 128;
        setp.lt.u32 %p1, %r4, 512; @%p1 bra FILL; bar.sync 0;
        {body}"
    )
}

#[test]
fn rows_are_dealt_out_to_lanes() {
    for (count, registers) in [(1, "{%r10}"), (2, "{%r10, %r11}"), (4, "{%r10, %r11, %r12, %r13}")]
    {
        for trans in ["", ".trans"] {
            for (space, extra) in [("", false), (".shared", true), (".shared::cta", false)] {
                // Lane `l` gives row `l xor 3`; generic addresses are those of a window.
                let address = match space {
                    "" => "cvt.u64.u32 %rd5, %r8; cvta.shared.u64 %rd5, %rd5;",
                    _ => "cvt.u64.u32 %rd5, %r8;",
                };
                let body = format!(
                    "xor.b32 %r8, %r2, 3; mad.lo.u32 %r8, %r8, 16, %r3; add.u32 %r8, %r8, 16; {address}
                    ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {registers}, [%rd5];
                    bar.sync 0; {}",
                    (0..count)
                        .map(|i| format!("st.global.b32 [%rd4+{}], %r{};", 128 * i, 10 + i))
                        .collect::<String>()
                );
                let bench = Bench::new(&rows(&body, extra));
                let counters = bench.run().unwrap_or_else(|report| panic!("{report}"));
                let words = bench.words::<128>();
                let element =
                    |matrix: u32, row: u32, column: u32| ((8 * matrix + row) ^ 3) * 8 + column;
                for matrix in 0..count {
                    for lane in 0..32 {
                        let half = |i: u32| match trans {
                            "" => element(matrix, lane / 4, 2 * (lane % 4) + i),
                            _ => element(matrix, 2 * (lane % 4) + i, lane / 4),
                        };
                        let got = words[(32 * matrix + lane) as usize];
                        assert_eq!(got, half(1) << 16 | half(0), "x{count}{trans} lane {lane}");
                    }
                }
                let site =
                    counters.sites.iter().find(|site| site.opcode.starts_with("ldmatrix")).unwrap();
                assert_eq!((site.requests, site.wavefronts), (1, count.into()));
                // And back to where they were, and from there to global memory.
                let back = format!(
                    "{body} stmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 [%rd5+1024], {registers}; bar.sync 0;
                    mul.lo.u32 %r4, %r2, 4; add.u32 %r8, %r3, %r4; add.u64 %rd4, %rd4, 512;
                    {}",
                    (0..count)
                        .map(|i| {
                            format!(
                                "ld.shared.b32 %r9, [%r8+{}]; st.global.b32 [%rd4+{}], %r9;",
                                1040 + 128 * i,
                                128 * i
                            )
                        })
                        .collect::<String>()
                );
                let bench = Bench::new(&rows(&back, extra).replace("512; @", "640; @"));
                bench.run().unwrap_or_else(|report| panic!("{report}"));
                for (i, word) in
                    bench.words::<256>()[128..].iter().take(32 * count as usize).enumerate()
                {
                    let first = 2 * i as u32;
                    assert_eq!(*word, (first + 1) << 16 | first, "x{count}{trans} word {i}");
                }
            }
        }
    }
}
const MMA: &str = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f5, %f6, %f7, %f8}, {%r5, %r6}, {%r7}, {%f5, %f6, %f7, %f8};";

fn wrong(body: &str, threads: u32, kind: ReportKind, at: &str, message: &str) {
    let bench = Bench::new(body).threads(threads);
    bench.reports(bench.run(), kind, at, message);
}

#[test]
fn all_lanes_of_a_warp_are_needed() {
    Bench::new(MMA).run().unwrap();
    let some = format!("setp.lt.u32 %p1, %r2, 16;\n@%p1 {MMA}");
    let message = "needs all lanes of its warp together, and lanes 16-31 skip it";
    wrong(&some, 32, ReportKind::Shuffle, "mma.sync", message);
    let message =
        "needs all 32 lanes of its warp, and so lanes 24-31, which the block does not have";
    wrong(MMA, 24, ReportKind::Shuffle, "mma.sync", message);
    let left = format!("setp.eq.u32 %p1, %r2, 7;\n@%p1 ret;\n{MMA}");
    let message =
        "needs all 32 lanes of its warp, and so lane 7, some of which left the kernel before";
    wrong(&left, 32, ReportKind::Shuffle, "mma.sync", message);
    let apart = format!(
        "setp.lt.u32 %p1, %r2, 16;\n@%p1 bra LOW;\nbar.sync 0;\nbra END;\nLOW:\n{MMA}\nEND:"
    );
    let bench = Bench::new(&apart);
    let message = format!(
        "waits for all lanes of its warp, while lanes 16-31 wait at PTX line {}",
        bench.line_of("bar.sync 0;")
    );
    bench.reports(bench.run(), ReportKind::Shuffle, "mma.sync", &message);
    // One after the other they come to the same.
    let later =
        format!("setp.lt.u32 %p1, %r2, 16;\n@%p1 bra LOW;\nadd.u32 %r9, %r2, 1;\nLOW:\n{MMA}");
    Bench::new(&later).run().unwrap();
}

#[test]
fn a_product_counts_once() {
    let counters = Bench::new(MMA).run().unwrap();
    assert_eq!(counters.instructions, crate::kernel::AROUND + 1);
    assert_eq!(counters.class(simt::Class::Matrix), 1);
}

#[test]
fn matrices_in_memory_are_looked_at() {
    let load = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12}, [s], 16;";
    let use_it =
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd2], {%r5, %r6, %r7, %r8}, 16;";
    let fill = "mul.lo.u32 %r13, %r2, 16; add.u32 %r13, %r13, %r3; st.shared.v4.u32 [%r13], {%r2, %r2, %r2, %r2};";
    let body = |fill: &str, load: &str| format!("{fill}\n{load}\n{use_it}");
    // The last one that lane 0 reads of them: row 8, from column 8 on.
    let message = "reads 4 bytes at offset 272 of shared memory, which nothing has written";
    wrong(&body("", load), 32, ReportKind::Uninitialized, "wmma.load", message);
    let report = Bench::new(&body(fill, load)).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    let barrier = format!(
        "{fill} bar.sync 0; st.shared.v4.u32 [%r13+512], {{%r2, %r2, %r2, %r2}}; bar.sync 0;"
    );
    Bench::new(&body(&barrier, load)).run().unwrap();
    let apart = load.replace("[s], 16", "[%r13], 16");
    let message =
        "gives the address and the stride of a matrix, and lane 1 of the same warp gives others";
    wrong(&body(&barrier, &apart), 32, ReportKind::Shuffle, "wmma.load", message);
    let outside = "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12}, [%rd1+4092], 16;";
    let report = Bench::new(&body("", outside)).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
    // What is not used is no mistake: a row of which the product's result is not kept.
    Bench::new(load).run().unwrap();
    let rows = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r6];";
    let with =
        |address: &str, rows: &str| format!("{barrier} mul.lo.u32 %r6, %r2, 16; {address}\n{rows}");
    Bench::new(&with("add.u32 %r6, %r6, %r3;", rows)).run().unwrap();
    let message = "reads 16 bytes at offset 8 of shared memory, which is no multiple of 16";
    wrong(&with("add.u32 %r6, %r6, 8;", rows), 32, ReportKind::Misaligned, "ldmatrix", message);
    let generic = "ldmatrix.sync.aligned.m8n8.x1.b16 {%r5}, [%rd1];";
    let report = Bench::new(generic).run().unwrap_err();
    assert_eq!(report.kind, ReportKind::OutOfBounds);
    assert_eq!(
        report.message,
        "reads a row of a matrix at offset 0 of buffer `inputs` (4096 bytes), which is not shared memory"
    );
}
