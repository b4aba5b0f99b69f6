//! Operations on the values of other lanes or threads, for places that all threads of the block
//! reach together.

use super::frame::THREADS;
use super::{REGISTERS, predicate};
use crate::parser::Random;

/// Draws a statement with one such operation and the barriers that it needs.
pub(super) fn lines(random: &mut Random) -> Vec<String> {
    match random.below(8) {
        0 | 1 => vec![shuffle(random)],
        2 => vec![vote(random)],
        3 => vec![reduction(random)],
        4 => barrier(random),
        5 => exchange(random),
        6 => gathered(random),
        _ => copied(random),
    }
}

fn register(class: &str, random: &mut Random) -> String {
    format!("%{class}{}", random.below(REGISTERS))
}

fn pick(of: &[&'static str], random: &mut Random) -> &'static str {
    of[random.below(of.len())]
}

fn shuffle(random: &mut Random) -> String {
    let mode = pick(&["up", "down", "bfly", "idx"], random);
    let (d, p, a) = (register("r", random), register("p", random), register("r", random));
    let b = match random.below(2) {
        0 => register("r", random),
        _ => random.below(32).to_string(),
    };
    // Segments of 1 to 32 lanes, and other masks.
    let segment = (32 - (1 << random.below(6))) << 8;
    let c = match random.below(4) {
        0 => register("r", random),
        1 => (segment | random.below(32)).to_string(),
        _ => (segment | if mode == "up" { 0 } else { 31 }).to_string(),
    };
    match random.below(2) {
        0 => format!("shfl.sync.{mode}.b32 {d}, {a}, {b}, {c}, -1;"),
        _ => format!("shfl.sync.{mode}.b32 {d}|{p}, {a}, {b}, {c}, -1;"),
    }
}

fn vote(random: &mut Random) -> String {
    let (r, a, d) = (register("r", random), predicate(random), register("p", random));
    let (value, wide) = (register("r", random), register("rd", random));
    match random.below(8) {
        0 => format!("vote.sync.all.pred {d}, {a}, -1;"),
        1 => format!("vote.sync.any.pred {d}, {a}, -1;"),
        2 => format!("vote.sync.uni.pred {d}, {a}, -1;"),
        3 => format!("match.any.sync.b32 {r}, {value}, -1;"),
        4 => format!("match.any.sync.b64 {r}, {wide}, -1;"),
        5 => format!("match.all.sync.b32 {r}|{d}, {value}, -1;"),
        _ => format!("vote.sync.ballot.b32 {r}, {a}, -1;"),
    }
}

fn reduction(random: &mut Random) -> String {
    let op = pick(
        &[
            "add.s32", "add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32", "or.b32",
            "xor.b32",
        ],
        random,
    );
    format!("redux.sync.{op} {}, {}, -1;", register("r", random), register("r", random))
}

fn barrier(random: &mut Random) -> Vec<String> {
    let id = random.below(16);
    let (r, p, a) = (register("r", random), register("p", random), predicate(random));
    vec![match random.below(4) {
        0 => format!("bar.red.popc.u32 {r}, {id}, {a};"),
        1 => format!("bar.red.and.pred {p}, {id}, {a};"),
        2 => format!("barrier.red.or.aligned.pred {p}, {id}, {a};"),
        _ => format!("bar.sync {id};"),
    }]
}

/// Each thread writes a word to shared or global memory, and reads the word of another thread of
/// its block or its warp.
fn exchange(random: &mut Random) -> Vec<String> {
    let (own, board, space) = match random.below(3) {
        0 => ("%mg", "%bg", "global"),
        _ => ("%ms", "%bs", "shared"),
    };
    let wait = if random.below(2) == 0 { "bar.sync 0;" } else { "bar.warp.sync -1;" };
    let mut lines = vec![
        format!("st.{space}.b32 [{own}], {};", register("r", random)),
        wait.to_string(),
        format!("and.b32 %w, {}, {};", register("r", random), THREADS - 1),
    ];
    if wait.starts_with("bar.warp") {
        lines.push("and.b32 %w, %w, 31;".into());
        lines.push(format!("and.b32 %x, %tx, {};", THREADS - 32));
        lines.push("or.b32 %w, %w, %x;".into());
    }
    lines.extend([
        "mul.wide.u32 %wd, %w, 4;".into(),
        format!("add.s64 %wd, %wd, {board};"),
        format!("ld.{space}.b32 {}, [%wd];", register("r", random)),
        wait.to_string(),
    ]);
    lines
}

/// All threads change one word of shared memory, by operations whose order does not matter.
fn gathered(random: &mut Random) -> Vec<String> {
    let op = pick(
        &[
            "add.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "add.s32",
            "add.u64", "xor.b64",
        ],
        random,
    );
    let (class, bits) = if op.ends_with("64") { ("rd", 64) } else { ("r", 32) };
    let place = format!("[%bs+{}]", 4 * THREADS);
    vec![
        "setp.eq.u32 %z, %tx, 0;".into(),
        format!("@%z st.shared.b{bits} {place}, {};", register(class, random)),
        "bar.sync 0;".into(),
        format!("red.shared.{op} {place}, {};", register(class, random)),
        "bar.sync 0;".into(),
        format!("ld.shared.b{bits} {}, {place};", register(class, random)),
        "bar.sync 0;".into(),
    ]
}

/// Copies from the thread's own global memory to its own shared memory.
fn copied(random: &mut Random) -> Vec<String> {
    let bytes = [4, 8, 16][random.below(3)];
    let cache = if bytes == 16 { pick(&["ca", "cg"], random) } else { "ca" };
    let mut place = || random.below(64 / bytes) * bytes;
    let (to, from) = (place(), place());
    vec![
        format!("cp.async.{cache}.shared.global [%os+{to}], [%og+{from}], {bytes};"),
        "cp.async.commit_group;".into(),
        "cp.async.wait_group 0;".into(),
    ]
}
