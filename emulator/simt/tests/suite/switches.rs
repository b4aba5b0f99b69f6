//! `brx.idx`, which a `switch` becomes; and `isspacep`.

use simt::{Class, ReportKind};

use crate::kernel::{AROUND, Bench};

const SWITCH: &str = "
    and.b32 %r5, %r2, 3; setp.lt.u32 %p1, %r2, 40; mov.u32 %r6, 9;
    LIST:
    .branchtargets ZERO, ONE, TWO, ONE;
    @%p1 brx.idx %r5, LIST;
    bra END;
    ZERO: mov.u32 %r6, 100; bra END;
    ONE: add.u32 %r6, %r5, 200; bra END;
    TWO: mov.u32 %r6, 300;
    END: st.global.u32 [%rd4], %r6;";

fn wanted(lane: usize) -> u32 {
    match (lane < 40, lane % 4) {
        (false, _) => 9,
        (_, 0) => 100,
        (_, 2) => 300,
        (_, case) => 200 + case as u32,
    }
}

#[test]
fn lanes_go_where_their_index_says() {
    for uni in ["", ".uni"] {
        let bench = Bench::new(&SWITCH.replace("brx.idx", &format!("brx.idx{uni}"))).threads(64);
        let counters = bench.run().unwrap();
        assert_eq!(bench.words::<64>(), std::array::from_fn(wanted));
        assert_eq!(bench.gone_through(false), Ok(counters));
    }
    // All lanes go the same way: it counts as one instruction, whichever way that is.
    for case in 0..4 {
        let one = SWITCH.replace("and.b32 %r5, %r2, 3", &format!("mov.u32 %r5, {case}"));
        let counters = Bench::new(&one).run().unwrap();
        let behind = if case == 2 { 1 } else { 2 };
        assert_eq!(counters.instructions, AROUND + 3 + 1 + behind + 1, "{case}");
        assert_eq!(counters.class(Class::Control), 1 + behind - 1 + 1, "{case}");
        assert_eq!(counters.divergent_branches, 0);
    }
}

#[test]
fn an_index_must_be_one_of_the_list() {
    let body = SWITCH.replace("and.b32 %r5, %r2, 3", "mov.u32 %r5, %r2");
    let bench = Bench::new(&body);
    let message = "branches by an index that is not among those of its list of labels";
    let report = bench.reports(bench.run(), ReportKind::Trap, "brx.idx", message);
    assert_eq!(report.lanes, !0xf);
}

#[test]
fn lists_are_of_labels() {
    for (body, reason) in [
        (
            "brx.idx %r5, LIST; LIST: ret;",
            "`LIST` is no list of `.branchtargets` before it that is not used",
        ),
        (
            "L: .branchtargets A; A: brx.idx %r5, L; brx.idx %r5, L;",
            "`L` is no list of `.branchtargets` before it that is not used",
        ),
        (".branchtargets A; A: ret;", "`.branchtargets` stands behind a label"),
        (
            "L: .branchtargets A; brx.idx %r5, L;",
            "the label `A` is not declared where it is branched to",
        ),
        (
            "L: .branchtargets A; A: brx.idx %r5;",
            "it takes an index and the label of a list of labels",
        ),
        (
            "L: .branchtargets A; A: brx.idx %f5, L;",
            "`%f5` is a `.f32` register, and `.u32` is asked for",
        ),
    ] {
        let error =
            simt::Module::parse(&crate::kernel::source(body)).and_then(simt::Module::complete);
        assert!(error.unwrap_err().message.ends_with(reason), "{body}");
    }
}

/// What `coverage` asks for.
pub fn opcodes() -> impl Iterator<Item = String> {
    let spaces =
        ["global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"];
    spaces.into_iter().map(|space| format!("isspacep.{space}"))
}

#[test]
fn addresses_lie_in_their_spaces() {
    let places = "cvt.u64.u32 %rd5, %r3; cvta.shared.u64 %rd5, %rd5; mov.u64 %rd6, l; cvta.local.u64 %rd6, %rd6;
        mov.b64 %rd7, a; cvta.param.u64 %rd7, %rd7; mov.u64 %rd8, 0;";
    let mut body = places.to_string();
    let names: Vec<String> = opcodes().collect();
    for (number, opcode) in names.iter().enumerate() {
        for (i, address) in ["%rd1", "%rd5", "%rd6", "%rd7", "%rd8"].iter().enumerate() {
            let at = 4 * (5 * number + i);
            body += &format!(
                "{opcode} %p1, {address}; selp.u32 %r5, 1, 0, %p1; st.global.u32 [%rd2+{at}], %r5;"
            );
        }
    }
    let bench = Bench::new(&body).threads(1);
    bench.run().unwrap_or_else(|report| panic!("{report}"));
    let words = bench.words::<35>();
    for (number, opcode) in names.iter().enumerate() {
        let wanted = match opcode.split('.').nth(1).unwrap() {
            "global" => [1, 0, 0, 0, 1],
            "local" => [0, 0, 1, 0, 0],
            "param" | "param::entry" => [0, 0, 0, 1, 0],
            _ => [0, 1, 0, 0, 0],
        };
        assert_eq!(words[5 * number..][..5], wanted, "{opcode}");
    }
}
