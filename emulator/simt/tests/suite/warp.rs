//! Shuffles, votes and reductions of a warp, and instructions without a result.
//!
//! A row's results depend on the operands of all lanes of a warp, and are computed from the
//! formulas of the PTX ISA. The masks here name all lanes, or the lanes whose predicate holds.
//! Wrong masks and lanes that are missing are in `cases/barriers.ptx`. Barriers and fences have no
//! result here; what they order is in `cases/races.ptx` and `cases/blocks.ptx`.

use crate::form::Kind::{L, P, W};
use crate::form::{Form, across, check, several};
use crate::values::{Random, integers, low};

/// The lane that a shuffle reads, and whether it is in range: PTX ISA, `shfl.sync`.
fn source(mode: &str, lane: i64, b: u64, c: u64) -> (i64, bool) {
    let (b, clamp, segment) = ((b & 31) as i64, (c & 31) as i64, (c >> 8 & 31) as i64);
    let bound = lane & segment | clamp & !segment;
    let lowest = lane & segment;
    let (source, valid) = match mode {
        "up" => (lane - b, lane - b >= bound),
        "down" => (lane + b, lane + b <= bound),
        "bfly" => (lane ^ b, lane ^ b <= bound),
        _ => {
            let source = lowest | b & !segment & 31;
            (source, source <= bound)
        }
    };
    (if valid { source } else { lane }, valid)
}

/// `c` for segments of 1 to 32 lanes: CUDA's, with 0 as the bound of `up`; and any.
fn bounds(mode: &str) -> Vec<u64> {
    let widths = [1_u64, 2, 4, 8, 16, 32];
    let mut all: Vec<u64> =
        widths.iter().map(|w| (32 - w) << 8 | if mode == "up" { 0 } else { 31 }).collect();
    let mut random = Random(5);
    all.extend((0..30).map(|_| random.next() & 0x1fff));
    all
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    let values = integers(32);
    for mode in ["up", "down", "bfly", "idx"] {
        let opcode = format!("shfl.sync.{mode}.b32");
        let offsets: Vec<u64> = (0..=33).chain([63, u32::MAX.into()]).collect();
        let wanted = move |warp: &[Vec<u64>], lane: usize| {
            let (from, valid) = source(mode, lane as i64, warp[lane][1], warp[lane][2]);
            vec![warp[from as usize][0], valid.into()]
        };
        for (text, predicate) in [("{d}|{e}", true), ("{d}|_", false), ("{d}", false)] {
            let text = format!("{opcode} {text}, {{1}}, {{2}}, {{3}}, -1;");
            let text = if predicate { text } else { format!("{text} setp.eq.u32 {{e}}, 0, 0;") };
            let form = across(&opcode, &text, [W, P], [W; 3], move |warp, lane| {
                let mut wanted = wanted(warp, lane);
                if !predicate {
                    wanted[1] = 1;
                }
                wanted
            });
            all.push(form.over(&[&values, &offsets, &bounds(mode)]));
        }
        // The destination is the source.
        let text = format!("mov.b32 {{d}}, {{1}}; {opcode} {{d}}|{{e}}, {{d}}, {{2}}, {{3}}, -1;");
        let form = across(&opcode, &text, [W, P], [W; 3], wanted);
        all.push(form.over(&[&values, &offsets, &bounds(mode)]));
    }
    votes(&mut all);
    reductions(&mut all);
    matches(&mut all);
    block_reductions(&mut all);
    quiet(&mut all);
    all
}

/// `match`: of all lanes, and of those whose predicate holds, which name each other.
fn matches(all: &mut Vec<Form>) {
    // Warps of one value, of a few, and one in which a single lane differs.
    let pool: Vec<u64> = (0..64_u64)
        .map(|_| 5)
        .chain((0..96).map(|i| i % 3 + ((i % 2) << 40)))
        .chain((0..96).map(|i| u64::from(i % 32 == 9) << 63 | 7))
        .collect();
    for kind in [W, L] {
        let bits = kind.bits();
        for (mode, is_all) in [("any", false), ("all", true)] {
            let opcode = format!("match.{mode}.sync.b{bits}");
            let wanted = move |warp: &[Vec<u64>], lane: usize, members: u64| {
                let value = |i: usize| low(warp[i][0], bits);
                let same = (0..32).filter(|&i| members >> i & 1 == 1 && value(i) == value(lane));
                let same = same.fold(0_u64, |mask, i| mask | 1 << i);
                if is_all {
                    [if same == members { same } else { 0 }, u64::from(same == members)]
                } else {
                    [same, 1]
                }
            };
            let d = if is_all { "{d}|{e}" } else { "{d}" };
            let set = "setp.eq.u32 {e}, 0, 0;";
            let text = format!("{set} {opcode} {d}, {{1}}, -1;");
            let row = across(&opcode, &text, [W, P], [kind, P], move |warp, lane| {
                wanted(warp, lane, u32::MAX.into()).to_vec()
            });
            all.push(row.over(&[&pool, &[0]]));
            let text = format!(
                "{set} mov.b32 {{d}}, 77; vote.sync.ballot.b32 %r25, {{2}}, -1; @{{2}} {opcode} {d}, {{1}}, %r25;"
            );
            let row = across(&opcode, &text, [W, P], [kind, P], move |warp, lane| {
                let members =
                    warp.iter().enumerate().fold(0, |mask, (i, values)| mask | values[1] << i);
                if warp[lane][1] == 1 { wanted(warp, lane, members).to_vec() } else { vec![77, 1] }
            });
            all.push(row.over(&[&pool, &[0, 1]]));
        }
    }
}

/// `bar.red`, by blocks of four warps that all do the same: the other tests of barriers have warps
/// that differ.
fn block_reductions(all: &mut Vec<Form>) {
    let endings = ["bar.red", "bar.cta.red", "barrier.red", "barrier.cta.red"];
    for base in endings {
        for aligned in [false, true] {
            if aligned && base.starts_with("bar.") {
                continue;
            }
            let opcode = |op: &str, ty: &str| {
                format!("{base}.{op}{}.{ty}", if aligned { ".aligned" } else { "" })
            };
            for (holds, count) in [("0", 0), ("1", 128)] {
                let rows = [
                    ("popc", "u32", W, count),
                    ("and", "pred", P, count / 128),
                    ("or", "pred", P, count / 128),
                ];
                for (op, ty, kind, wanted) in rows {
                    let opcode = opcode(op, ty);
                    for operands in [format!("0, {holds}"), format!("3, 128, {holds}")] {
                        let text = format!("{opcode} {{d}}, {operands};");
                        all.push(
                            several(&opcode, &text, [kind], [], move |[]| [wanted]).at_most(128),
                        );
                    }
                }
            }
        }
    }
}

/// The lanes whose first operand is true, as a mask.
fn ballot(warp: &[Vec<u64>]) -> u64 {
    warp.iter().enumerate().fold(0, |mask, (lane, values)| mask | values[0] << lane)
}

fn votes(all: &mut Vec<Form>) {
    // Warps in which all, none or some hold: the pool's order makes runs of equal lanes.
    let mut runs = vec![0; 64];
    runs.extend([1; 96]);
    runs.extend((0..96).map(|i| u64::from(i % 7 == 3)));
    runs.extend((0..96).map(|i| u64::from(i % 32 != 9)));
    const FULL: u64 = u32::MAX as u64;
    for (negation, flip) in [("", 0), ("!", FULL)] {
        let mut vote = |mode: &str, kind, wanted: fn(u64) -> u64| {
            let ty = if mode == "ballot" { "b32" } else { "pred" };
            let opcode = format!("vote.sync.{mode}.{ty}");
            let text = format!("{opcode} {{d}}, {negation}{{1}}, -1;");
            let form = across(&opcode, &text, [kind], [P], move |warp, _| {
                vec![wanted(ballot(warp) ^ flip)]
            });
            all.push(form.over(&[&runs]));
        };
        vote("all", P, |mask| u64::from(mask == FULL));
        vote("any", P, |mask| u64::from(mask != 0));
        vote("uni", P, |mask| u64::from(mask == FULL || mask == 0));
        vote("ballot", W, |mask| mask);
    }
}

fn reductions(all: &mut Vec<Form>) {
    type Reduce = fn(u64, u64) -> u64;
    let rows: [(&str, Reduce); 9] = [
        ("add.u32", |a, b| a.wrapping_add(b)),
        ("add.s32", |a, b| a.wrapping_add(b)),
        ("min.u32", u64::min),
        ("max.u32", u64::max),
        ("min.s32", |a, b| if (b as i32) < a as i32 { b } else { a }),
        ("max.s32", |a, b| if b as i32 > a as i32 { b } else { a }),
        ("and.b32", |a, b| a & b),
        ("or.b32", |a, b| a | b),
        ("xor.b32", |a, b| a ^ b),
    ];
    for (name, reduce) in rows {
        let opcode = format!("redux.sync.{name}");
        let all_lanes = format!("{opcode} {{d}}, {{1}}, -1;");
        all.push(across(&opcode, &all_lanes, [W], [W, P], move |warp, _| {
            vec![warp.iter().map(|values| values[0]).reduce(reduce).unwrap_or(0)]
        }));
        // Only the lanes whose predicate holds, which name each other.
        let some = format!(
            "vote.sync.ballot.b32 %r25, {{2}}, -1;
            mov.b32 {{d}}, 77;
            @{{2}} {opcode} {{d}}, {{1}}, %r25;"
        );
        all.push(across(&opcode, &some, [W], [W, P], move |warp, lane| {
            let members = warp.iter().filter(|values| values[1] == 1).map(|values| values[0]);
            vec![if warp[lane][1] == 1 { members.reduce(reduce).unwrap_or(0) } else { 77 }]
        }));
    }
    let text = "mov.b32 {d}, 0; @{1} activemask.b32 {d};";
    all.push(across("activemask.b32", text, [W], [P], |warp, lane| {
        vec![if warp[lane][0] == 1 { ballot(warp) } else { 0 }]
    }));
}

/// Instructions without a result, which must leave other registers alone.
fn quiet(all: &mut Vec<Form>) {
    let fences = ["membar.cta", "membar.gl", "membar.sys", "fence.cta", "fence.gpu", "fence.sys"];
    let kinds = ["fence.sc", "fence.acq_rel"];
    let scoped =
        kinds.iter().flat_map(|kind| ["cta", "gpu", "sys"].map(|scope| format!("{kind}.{scope}")));
    let barriers = [
        "bar.sync",
        "bar.cta.sync",
        "barrier.sync",
        "barrier.sync.aligned",
        "barrier.cta.sync",
        "barrier.cta.sync.aligned",
    ];
    let mut rows: Vec<(String, &str)> = fences.iter().map(|name| (name.to_string(), "")).collect();
    rows.extend(scoped.map(|name| (name, "")));
    rows.extend(barriers.iter().map(|name| (name.to_string(), " 0")));
    let arrivals = [
        "bar.arrive",
        "bar.cta.arrive",
        "barrier.arrive",
        "barrier.arrive.aligned",
        "barrier.cta.arrive",
        "barrier.cta.arrive.aligned",
    ];
    rows.extend(arrivals.iter().map(|name| (name.to_string(), " 1, 128")));
    rows.extend(
        ["", ".global", ".shared::cta", ".shared::cluster"]
            .map(|space| (format!("fence.proxy.async{space}"), "")),
    );
    rows.push(("fence.mbarrier_init.release.cluster".to_string(), ""));
    rows.push(("bar.sync".to_string(), " 15"));
    rows.push(("bar.warp.sync".to_string(), " -1"));
    rows.push(("nanosleep.u32".to_string(), " 100"));
    rows.push(("nanosleep.u32".to_string(), " {1}"));
    for name in ["prefetch.global.L1", "prefetch.global.L2"] {
        rows.push((name.to_string(), " [%rd33]"));
    }
    for name in ["prefetch.L1", "prefetch.L2", "prefetchu.L1"] {
        rows.push((name.to_string(), " [%rd30]"));
    }
    for name in ["prefetch.local.L1", "prefetch.local.L2"] {
        rows.push((name.to_string(), " [l]"));
    }
    for (opcode, operands) in rows {
        let text = format!("not.b32 {{d}}, {{1}}; {opcode}{operands};");
        all.push(several(&opcode, &text, [W], [W], |[a]| [!a]).at_most(128));
    }
}

#[test]
fn lanes_exchange_vote_and_reduce() {
    check("across a warp", &forms());
}
