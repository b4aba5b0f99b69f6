//! `ld` and `st`: all spaces, orders, widths and vectors; what is extended, and which bytes are
//! left alone.

use crate::form::Kind::{self, H, L, W};
use crate::form::{Form, across, check};
use crate::values::low;

/// The types of memory: name, bytes, signed.
pub const TYPES: [(&str, u32, bool); 14] = [
    ("b8", 1, false),
    ("u8", 1, false),
    ("s8", 1, true),
    ("b16", 2, false),
    ("u16", 2, false),
    ("s16", 2, true),
    ("b32", 4, false),
    ("u32", 4, false),
    ("s32", 4, true),
    ("f32", 4, false),
    ("b64", 8, false),
    ("u64", 8, false),
    ("s64", 8, true),
    ("f64", 8, false),
];

/// A space and the address of 16 bytes in it that are the thread's own.
const SPACES: [(&str, &str); 10] = [
    (".global", "%rd33"),
    (".shared", "%r31"),
    (".shared::cta", "%r31"),
    (".local", "l"),
    ("", "%rd30"),
    ("", "%rd31"),
    ("", "%rd32"),
    (".local", "%rd25"),
    (".param", "p"),
    (".param::func", "p"),
];

/// The orders of loads, or of stores, for which `one_sided` is `acquire` or `release`.
fn orders(one_sided: &str) -> Vec<String> {
    let scoped = ["relaxed", one_sided]
        .into_iter()
        .flat_map(|order| ["cta", "gpu", "sys"].map(|scope| format!(".{order}.{scope}")));
    ["", ".weak", ".volatile"].map(String::from).into_iter().chain(scoped).collect()
}

/// The registers that values of a type may be loaded to and stored from.
fn registers(name: &str, bytes: u32) -> &'static [Kind] {
    match bytes {
        1 | 2 => &[H, W, L],
        4 if name != "f32" => &[W, L],
        4 => &[W],
        _ => &[L],
    }
}

/// `{d}, {e}` in braces if there are several.
fn vector(names: &[&str], count: u32) -> String {
    let names = names[..count as usize].join(", ");
    if count == 1 { names } else { format!("{{{names}}}") }
}

/// Calls `visit` with space, address, order, vector, type and register of all accesses there are.
fn each(orders: &[String], mut visit: impl FnMut(&str, &str, &str, u32, (&str, u32, bool), Kind)) {
    for (space, address) in SPACES {
        for order in orders {
            let is_local = space == ".local" || space.starts_with(".param");
            if is_local && !["", ".weak"].contains(&&**order) {
                continue;
            }
            for count in [1, 2, 4] {
                for ty @ (name, bytes, _) in TYPES {
                    if count * bytes > 16 {
                        continue;
                    }
                    // Every register for plain accesses, the first one for the others.
                    let registers = registers(name, bytes);
                    let plain = order.is_empty();
                    for &kind in &registers[..if plain { registers.len() } else { 1 }] {
                        visit(space, address, order, count, ty, kind);
                    }
                }
            }
        }
    }
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    each(&orders("acquire"), |space, address, order, count, ty, kind| {
        let opcode = format!("ld{order}{space}{}.{}", lanes(count), ty.0);
        let pair = "{{1}, {2}}";
        let before = format!("mov.u64 %rd25, l; st{space}.v2.b64 [{address}], {pair};");
        all.push(load(&opcode, &before, address, count, ty, kind));
    });
    each(&orders("release"), |space, address, order, count, ty, kind| {
        let opcode = format!("st{order}{space}{}.{}", lanes(count), ty.0);
        all.push(store(&opcode, space, address, count, ty, kind));
    });
    hints(&mut all);
    all
}

fn lanes(count: u32) -> &'static str {
    ["", "", ".v2", "", ".v4"][count as usize]
}

/// Loads from the upper part of 16 bytes that hold the first two operands.
fn load(
    opcode: &str,
    before: &str,
    address: &str,
    count: u32,
    (_, bytes, signed): (&str, u32, bool),
    kind: Kind,
) -> Form {
    let offset = 16 - count * bytes;
    let names = vector(&["{d}", "{e}", "{f}", "{g}"], count);
    let text = format!("{before} {opcode} {names}, [{address}+{offset}];");
    let wanted = move |warp: &[Vec<u64>], lane: usize| {
        let memory = u128::from(warp[lane][0]) | u128::from(warp[lane][1]) << 64;
        let element = |i: u32| {
            let value = low((memory >> (8 * (offset + i * bytes))) as u64, 8 * bytes);
            let unused = 64 - 8 * bytes;
            if signed { ((value << unused) as i64 >> unused) as u64 } else { value }
        };
        (0..count).map(element).collect()
    };
    let form = match count {
        1 => across(opcode, &text, [kind; 1], [L; 2], wanted),
        2 => across(opcode, &text, [kind; 2], [L; 2], wanted),
        _ => across(opcode, &text, [kind; 4], [L; 2], wanted),
    };
    form.at_most(128)
}

/// Stores over the middle of 16 bytes that hold the first two operands.
fn store(
    opcode: &str,
    space: &str,
    address: &str,
    count: u32,
    (_, bytes, _): (&str, u32, bool),
    kind: Kind,
) -> Form {
    let size = count * bytes;
    let offset = 8 / size * size;
    let names = vector(&["{3}", "{4}", "{5}", "{6}"], count);
    let (before, after) = ("{{1}, {2}}", "{{d}, {e}}");
    let text = format!(
        "mov.u64 %rd25, l;
        st{space}.v2.b64 [{address}], {before};
        {opcode} [{address}+{offset}], {names};
        ld{space}.v2.b64 {after}, [{address}];"
    );
    let wanted = move |warp: &[Vec<u64>], lane: usize| {
        let values = &warp[lane];
        let mut memory = u128::from(values[0]) | u128::from(values[1]) << 64;
        for i in 0..count {
            let shift = 8 * (offset + i * bytes);
            let field = u128::from(low(u64::MAX, 8 * bytes)) << shift;
            let value = u128::from(low(values[2 + i as usize], 8 * bytes)) << shift;
            memory = memory & !field | value;
        }
        vec![memory as u64, (memory >> 64) as u64]
    };
    let form = match count {
        1 => across(opcode, &text, [L; 2], [L, L, kind], wanted),
        2 => across(opcode, &text, [L; 2], [L, L, kind, kind], wanted),
        _ => across(opcode, &text, [L; 2], [L, L, kind, kind, kind, kind], wanted),
    };
    form.at_most(128)
}

/// Hints change no value. They read the operands where the kernel was given them.
fn hints(all: &mut Vec<Form>) {
    let float = ("f32", 4, false);
    let policies = [
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L1::evict_first",
        "L1::evict_last",
        "L1::no_allocate",
    ];
    let seconds = ["L2::64B", "L2::128B", "L2::256B"];
    let hints = ["ca", "cg", "cs", "lu", "cv", "nc", "ca.nc", "nc.L1::no_allocate.L2::128B"];
    for hint in hints.iter().chain(&policies).chain(&seconds) {
        for count in [1, 4] {
            let opcode = format!("ld.global.{hint}{}.f32", lanes(count));
            all.push(load(&opcode, "", "%rd20", count, float, W));
        }
    }
    for hint in ["wb", "cg", "cs", "wt"].iter().chain(&policies) {
        for count in [1, 4] {
            let opcode = format!("st.global.{hint}{}.f32", lanes(count));
            all.push(store(&opcode, ".global", "%rd33", count, float, W));
        }
    }
}

#[test]
fn loads_and_stores_move_the_right_bytes() {
    check("loads and stores", &forms());
}

#[test]
fn literals_and_sinks_in_vectors() {
    let stored = across(
        "st.global.v4.u32",
        "st.global.v4.u32 [%rd33], {1, {1}, -1, 0x10};
         ld.global.v4.u32 {_, {d}, {e}, _}, [%rd33];
         ld.global.v2.u32 {{f}, {g}}, [%rd33+8];",
        [W; 4],
        [W],
        |warp, lane| vec![warp[lane][0], u32::MAX.into(), u32::MAX.into(), 16],
    );
    let floats = across(
        "st.shared.v2.f32",
        "st.shared.v2.f32 [%r31], {0f3F800000, {1}}; ld.shared.v2.b32 {{d}, {e}}, [%r31];",
        [W; 2],
        [W],
        |warp, lane| vec![0x3f80_0000, warp[lane][0]],
    );
    check("vectors with literals", &[stored, floats]);
}
