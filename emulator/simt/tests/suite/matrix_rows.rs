//! Rows of `ldmatrix` and `stmatrix`. Wrong uses are in `cases/products.ptx`.

use std::collections::BTreeSet;

use crate::kernel::Bench;

/// The opcodes that these tests cover.
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
