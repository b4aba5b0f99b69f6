//! Which opcodes the parser accepts, asked of the parser itself; and whether a row tests each.
//!
//! An opcode without operands is refused in one of two ways: it is not known, or it lacks operands.
//! So all combinations of the modifiers that PTX has can be tried.

use std::collections::BTreeSet;

use simt::Module;

use crate::{
    approximate, arithmetic, atomics, bits, bulk, carry, compare, convert, copies, halves, integer,
    matrices, matrix_rows, mbarriers, moves, parameters, switches, video, wmma,
};
use crate::{simd, surfaces, textures, transfer, variables, warp};

/// How many opcodes the parser accepts, hints of caches not counted. Whoever adds one adds a row
/// and counts here.
const OPCODES: usize = 15_930;

/// How many rows the tables of all families have: so that none is lost unnoticed.
const FORMS: usize = 21_632;

/// Opcodes that `barriers`, `calls`, `divergence` and `reports` are about.
const CONTROL: [&str; 8] = ["bra", "bra.uni", "call", "call.uni", "ret", "ret.uni", "exit", "trap"];

const TYPES: [&str; 23] = [
    "b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "b128", "f16",
    "bf16", "f16x2", "bf16x2", "tf32", "f32", "f32x2", "f64", "e4m3x2", "pred",
];
const ROUNDINGS: [&str; 9] = ["", "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"];
const SPACES: [&str; 8] =
    ["", "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param"];
const ORDERS: [&str; 9] =
    ["", "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "mmio"];
const SCOPES: [&str; 5] = ["", "cta", "cluster", "gpu", "sys"];

const COMPUTING: [&str; 44] = [
    "add", "sub", "mul", "mad", "addc", "subc", "madc", "fma", "div", "rem", "abs", "neg", "min",
    "max", "sad", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "copysign", "and",
    "or", "xor", "not", "cnot", "shl", "shr", "shf", "lop3", "prmt", "popc", "clz", "bfind",
    "brev", "bfe", "bfi", "setp", "selp", "mov", "cvta",
];
const MODIFIERS: [&str; 56] = [
    "",
    "rn",
    "rz",
    "rm",
    "rp",
    "rna",
    "sat",
    "ftz",
    "approx",
    "full",
    "lo",
    "hi",
    "wide",
    "cc",
    "l",
    "r",
    "wrap",
    "clamp",
    "shiftamt",
    "relu",
    "NaN",
    "xorsign",
    "noftz",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "ls",
    "hs",
    "equ",
    "neu",
    "ltu",
    "leu",
    "gtu",
    "geu",
    "num",
    "nan",
    "and",
    "or",
    "xor",
    "to",
    "global",
    "shared",
    "shared::cta",
    "local",
    "const",
    "param",
    "f4e",
    "b4e",
    "rc8",
    "ecl",
    "ecr",
    "rc16",
    "uni",
];

const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu",
    "geu", "num", "nan",
];

/// Modifiers that follow another.
const SECOND: [&str; 17] = [
    "",
    "sat",
    "ftz",
    "relu",
    "and",
    "or",
    "xor",
    "wrap",
    "clamp",
    "global",
    "shared",
    "shared::cta",
    "local",
    "const",
    "param",
    "approx",
    "cc",
];

#[test]
fn every_opcode_that_the_parser_accepts_is_tested() {
    let mut accepted = BTreeSet::new();
    let mut tried = 0;
    let mut all = |base: &str, slots: &[&[&str]]| {
        each(base, slots, &mut |opcode| {
            tried += 1;
            if is_known(opcode) {
                accepted.insert(opcode.to_string());
            }
        });
    };
    for base in COMPUTING {
        all(base, &[&MODIFIERS, &SECOND, &TYPES]);
    }
    all("cvt", &[&["rna"], &["", "relu", "satfinite"], &["tf32"], &["f32"]]);
    all("cvt", &[&ROUNDINGS, &["", "ftz"], &["", "relu", "sat"], &TYPES, &TYPES]);
    // What has three modifiers or more.
    for base in ["add", "sub", "mul", "fma", "mad"] {
        all(base, &[&ROUNDINGS, &["ftz"], &["sat", "relu"], &TYPES]);
    }
    all("setp", &[&COMPARISONS, &["and", "or", "xor"], &["ftz"], &TYPES]);
    for base in ["min", "max"] {
        all(base, &[&["", "ftz"], &["NaN"], &TYPES]);
    }
    all("set", &[&COMPARISONS, &["", "and", "or", "xor"], &["", "ftz"], &TYPES, &TYPES]);
    all("slct", &[&["", "ftz"], &TYPES, &TYPES]);
    let classes = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
    all("testp", &[&classes, &["", "ftz"], &TYPES]);
    for base in ["dp4a", "dp2a"] {
        all(base, &[&["", "lo", "hi"], &TYPES, &TYPES]);
    }
    for base in ["mul24", "mad24", "szext", "bmsk", "fns"] {
        all(base, &[&MODIFIERS, &["", "sat"], &TYPES]);
    }
    all("prmt", &[&["b32"], &MODIFIERS]);
    for base in ["ld", "st", "ldu"] {
        let spaces = [&SPACES[..], &["param::entry", "param::func"]].concat();
        all(base, &[&ORDERS, &SCOPES, &spaces, &["", "v2", "v4", "v8"], &TYPES]);
    }
    let atomic =
        ["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", "noftz", "popc"];
    for base in ["atom", "red"] {
        all(base, &[&ORDERS, &SCOPES, &SPACES[..6], &SCOPES, &atomic, &TYPES[4..21]]);
        let (add, noftz) = (["add", "min", "max"], ["noftz"]);
        all(base, &[&ORDERS, &SCOPES, &SPACES[..6], &SCOPES, &add, &noftz, &TYPES[4..21]]);
    }
    let warp = [
        "up", "down", "bfly", "idx", "all", "any", "uni", "ballot", "add", "min", "max", "and",
        "or", "xor",
    ];
    let (sync, types) = (["", "sync"], [&TYPES[..], &[""]].concat());
    for base in ["shfl", "vote", "redux", "activemask", "match", "elect"] {
        all(base, &[&sync, &[&warp[..], &[""]].concat(), &types]);
    }
    all("match", &[&["any", "all", ""], &sync, &types]);
    for base in ["bar", "barrier"] {
        let parts = ["", "aligned"];
        let operations = ["popc", "and", "or", ""];
        all(base, &[&["", "cta"], &["red", "arrive"], &operations, &parts, &types]);
    }
    all("isspacep", &[&[&SPACES[..], &["param::entry", "generic"]].concat()]);
    let (types, ends) = (["u32", "s32", "b32"], ["", "sat", "add", "min", "max"]);
    for base in
        ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr", "vmad"]
    {
        for count in ["", "2", "4"] {
            all(&format!("{base}{count}"), &[&types, &types, &types, &ends]);
            all(&format!("{base}{count}"), &[&types, &types, &COMPARISONS, &ends]);
            let (sat, modes) = (["", "sat"], ["", "clamp", "wrap", "shr7", "shr15"]);
            let last = ["add", "min", "max"];
            all(&format!("{base}{count}"), &[&types, &types, &types, &["sat"], &last]);
            all(&format!("{base}{count}"), &[&types, &types, &types, &sat, &modes[1..], &ends]);
            all(&format!("{base}{count}"), &[&types, &types, &types, &["po"], &sat, &modes]);
        }
    }
    let words = [
        "", "sync", "arrive", "red", "warp", "cta", "cluster", "aligned", "uni", "gl", "sys",
        "gpu", "sc", "acq_rel", "u32", "popc", "and", "or", "global", "local", "L1", "L2", "proxy",
    ];
    for base in [
        "bar",
        "barrier",
        "bra",
        "brx",
        "call",
        "ret",
        "exit",
        "trap",
        "brkpt",
        "nanosleep",
        "membar",
        "fence",
        "prefetch",
        "prefetchu",
        "isspacep",
        "discard",
        "pmevent",
    ] {
        all(base, &[&words, &words, &words]);
    }
    let hints = ["", "L2::64B", "L2::128B", "L2::256B"];
    all("cp", &[&["async"], &["ca", "cg", "commit_group", "wait_group", "wait_all", "bulk"]]);
    all("cp", &[&["async"], &["ca", "cg"], &SPACES, &SPACES, &hints]);
    let ways = ["mbarrier::complete_tx::bytes", "bulk_group", ""];
    let hinted = ["", "L2::cache_hint"];
    all("cp", &[&["async"], &["bulk"], &SPACES, &SPACES, &ways, &hinted]);
    all("cp", &[&["async"], &["bulk"], &["prefetch"], &["L2"], &SPACES, &hinted]);
    let groups = ["commit_group", "wait_group", "wait_all"];
    all("cp", &[&["async"], &["bulk"], &groups, &["", "read"], &hinted]);
    all("cp", &[&["async"], &["mbarrier"], &["arrive"], &["", "noinc"], &SPACES, &["b64", ""]]);
    let proxies = ["async", "alias", "tensormap"];
    all("fence", &[&["proxy"], &proxies, &["", "global", "shared::cta", "shared::cluster"]]);
    all("fence", &[&["mbarrier_init"], &["release"], &["cluster", "cta"]]);
    let operations = [
        "init",
        "inval",
        "arrive",
        "arrive_drop",
        "test_wait",
        "try_wait",
        "pending_count",
        "expect_tx",
        "complete_tx",
    ];
    let kinds = ["", "parity", "noComplete", "expect_tx"];
    all("mbarrier", &[&operations, &kinds, &ORDERS, &SCOPES, &SPACES, &["", "b64", "b32", "u64"]]);

    let shapes = [
        "m8n8k4",
        "m8n8k16",
        "m8n8k32",
        "m8n8k128",
        "m16n8k4",
        "m16n8k8",
        "m16n8k16",
        "m16n8k32",
        "m16n8k64",
        "m16n8k128",
        "m16n8k256",
        "m16n16k16",
        "m16n16k8",
        "m8n32k16",
        "m32n8k16",
    ];
    let factors = ["f16", "bf16", "tf32", "f64", "s8", "u8", "s4", "u4", "b1"];
    let (sums, sat) = (["f16", "f32", "f64", "s32"], ["", "satfinite"]);
    let (layouts, bits) = (["row", "col"], ["", "xor.popc", "and.popc"]);
    let aligned = [&["sync"][..], &["aligned"]];
    let parts = [&shapes[..], &["row"], &["col"], &sat, &sums, &factors, &factors, &sums, &bits];
    all("mma", &[&aligned[..], &parts].concat());
    let parts = [&["mma"][..], &["sync"], &["aligned"], &layouts, &layouts, &shapes, &sums];
    all("wmma", &[&parts[..], &[&sums]].concat());
    all("wmma", &[&parts[..], &[&factors, &factors, &sums, &sat]].concat());
    let matrices = ["a", "b", "c", "d"];
    for what in ["load", "store"] {
        let types = [&factors[..], &["f32", "s32"]].concat();
        let parts = [&[what][..], &matrices, &["sync"], &["aligned"], &layouts, &shapes, &SPACES];
        all("wmma", &[&parts[..], &[&types]].concat());
    }
    for base in ["ldmatrix", "stmatrix", "movmatrix"] {
        let counts = ["", "x1", "x2", "x4"];
        let parts = [&["m8n8", "m16n8"][..], &counts, &["", "trans"], &SPACES, &["b16", "b8"]];
        all(base, &[&aligned[..], &parts].concat());
    }

    let geometries = ["", "1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms"];
    let counts = ["", "v2", "v4"];
    let levels = ["", "level", "base", "grad"];
    all("tex", &[&levels, &geometries, &counts, &TYPES, &["f32", "s32", "u32"]]);
    all("tld4", &[&["r", "g"], &geometries, &counts, &TYPES, &["f32", "s32"]]);
    let outside = ["", "trap", "clamp", "zero"];
    for base in ["suld", "sust", "sured"] {
        all(base, &[&["b", "p", ""], &["", "add"], &geometries, &counts, &TYPES, &outside]);
    }
    let asked = [
        "width",
        "height",
        "depth",
        "array_size",
        "normalized_coords",
        "channel_data_type",
        "channel_order",
        "num_mipmap_levels",
        "num_samples",
        "filter_mode",
        "addr_mode_0",
        "memory_layout",
        "force_unnormalized_coords",
    ];
    for base in ["txq", "suq"] {
        all(base, &[&["", "level"], &asked, &["", "b32", "u32"]]);
    }

    let families = [
        approximate::forms(),
        arithmetic::forms(),
        atomics::forms(),
        bits::forms(),
        carry::forms(),
        compare::forms(),
        convert::forms(),
        copies::forms(),
        halves::forms(),
        integer::forms(),
        matrices::forms(),
        moves::forms(),
        simd::forms(),
        transfer::forms(),
        video::forms(),
        warp::forms(),
    ];
    let rows: usize = families.iter().map(Vec::len).sum();
    let mut tested: BTreeSet<String> =
        families.into_iter().flatten().map(|form| form.opcode).collect();
    tested.extend(parameters::opcodes());
    tested.extend(variables::opcodes());
    tested.extend(mbarriers::opcodes());
    tested.extend(wmma::opcodes());
    tested.extend(bulk::opcodes());
    tested.extend(switches::opcodes());
    tested.extend(matrix_rows::opcodes());
    tested.extend(textures::opcodes());
    tested.extend(surfaces::opcodes());
    tested.extend(CONTROL.iter().chain(&copies::GROUPS).map(|opcode| opcode.to_string()));

    let untested: Vec<&String> = accepted.difference(&tested).collect();
    assert!(
        untested.is_empty(),
        "{} opcodes have no row: {:?}",
        untested.len(),
        &untested[..untested.len().min(200)]
    );
    println!("{tried} opcodes tried, {} accepted, {rows} forms in the table", accepted.len());
    assert_eq!(accepted.len(), OPCODES, "an opcode has been added: count it here");
    assert_eq!(rows, FORMS, "a row has been added: count it here");
}

/// Calls `visit` with the base and every choice of one modifier from each slot; an empty one is
/// left out.
fn each(base: &str, slots: &[&[&str]], visit: &mut impl FnMut(&str)) {
    let Some((first, rest)) = slots.split_first() else { return visit(base) };
    for modifier in *first {
        match *modifier {
            "" => each(base, rest, visit),
            modifier => each(&format!("{base}.{modifier}"), rest, visit),
        }
    }
}

fn is_known(opcode: &str) -> bool {
    let source =
        format!(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {{ {opcode}; }}");
    match Module::parse(&source).and_then(Module::complete) {
        Ok(_) => true,
        Err(error) => !error.message.contains("is not an instruction that the emulator knows"),
    }
}
