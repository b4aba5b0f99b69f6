//! Asks the parser which opcodes it accepts, and fails for an opcode that nothing tests: a row of a
//! family's table, a test of the suite, or a case in `../cases`.
//!
//! An opcode without operands is refused in one of two ways: it is not known, or it lacks operands.
//! So all combinations of the modifiers of PTX can be tried. They are written as patterns: slots
//! between spaces, and the choices of a slot between bars, of which one may be empty.

use std::collections::BTreeSet;
use std::path::Path;

use simt::Module;

use crate::kernel::HEAD;
use crate::{
    approximate, arithmetic, atomics, bits, carry, compare, convert, copies, format, halves,
    integer, matrices, matrix_rows, moves, simd, surfaces, textures, transfer, variables, video,
    warp, wmma,
};

/// The number of opcodes that the parser accepts, without hints of caches. Whoever adds an opcode
/// adds a row or a case, and counts it here.
const OPCODES: usize = 15_930;

/// The number of rows in the tables of all families, so that none is lost unnoticed.
const FORMS: usize = 21_632;

const TYPES: &str = "b8|u8|s8|b16|u16|s16|b32|u32|s32|b64|u64|s64|b128|f16|bf16|f16x2|bf16x2|tf32\
    |f32|f32x2|f64|e4m3x2|pred";
/// The types of atomic operations.
const ATOMS: &str = "u16|s16|b32|u32|s32|b64|u64|s64|b128|f16|bf16|f16x2|bf16x2|tf32|f32|f32x2|f64";
const ROUNDINGS: &str = "|rn|rz|rm|rp|rni|rzi|rmi|rpi";
const SPACES: &str = "|global|shared|shared::cta|shared::cluster|local|const|param";
const ORDERS: &str = "|weak|volatile|relaxed|acquire|release|acq_rel|sc|mmio";
const SCOPES: &str = "|cta|cluster|gpu|sys";
const COMPUTING: &str = "add|sub|mul|mad|addc|subc|madc|fma|div|rem|abs|neg|min|max|sad|sqrt|rcp\
    |rsqrt|ex2|lg2|sin|cos|tanh|copysign|and|or|xor|not|cnot|shl|shr|shf|lop3|prmt|popc|clz|bfind\
    |brev|bfe|bfi|setp|selp|mov|cvta";
const MODIFIERS: &str = "|rn|rz|rm|rp|rna|sat|ftz|approx|full|lo|hi|wide|cc|l|r|wrap|clamp|shiftamt\
    |relu|NaN|xorsign|noftz|eq|ne|lt|le|gt|ge|ls|hs|equ|neu|ltu|leu|gtu|geu|num|nan|and|or|xor|to\
    |global|shared|shared::cta|local|const|param|f4e|b4e|rc8|ecl|ecr|rc16|uni";
/// Modifiers that follow another.
const SECOND: &str =
    "|sat|ftz|relu|and|or|xor|wrap|clamp|global|shared|shared::cta|local|const|param|approx|cc";
const COMPARISONS: &str = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan";
const WARP: &str = "up|down|bfly|idx|all|any|uni|ballot|add|min|max|and|or|xor";
const VIDEO: &str = "vadd|vsub|vavrg|vabsdiff|vmin|vmax|vset|vshl|vshr|vmad";
const CONTROL: &str = "bar|barrier|bra|brx|call|ret|exit|trap|brkpt|nanosleep|membar|fence|prefetch\
    |prefetchu|isspacep|discard|pmevent";
const WORDS: &str = "|sync|arrive|red|warp|cta|cluster|aligned|uni|gl|sys|gpu|sc|acq_rel|u32|popc\
    |and|or|global|local|L1|L2|proxy";
const SHAPES: &str = "m8n8k4|m8n8k16|m8n8k32|m8n8k128|m16n8k4|m16n8k8|m16n8k16|m16n8k32|m16n8k64\
    |m16n8k128|m16n8k256|m16n16k16|m16n16k8|m8n32k16|m32n8k16";
const FACTORS: &str = "f16|bf16|tf32|f64|s8|u8|s4|u4|b1";
const SUMS: &str = "f16|f32|f64|s32";
const GEOMETRIES: &str = "|1d|2d|3d|a1d|a2d|cube|acube|2dms|a2dms";
const ASKED: &str = "width|height|depth|array_size|normalized_coords|channel_data_type\
    |channel_order|num_mipmap_levels|num_samples|filter_mode|addr_mode_0|memory_layout\
    |force_unnormalized_coords";

#[test]
fn every_opcode_that_the_parser_accepts_is_tested() {
    let mut accepted = BTreeSet::new();
    let mut tried = 0;
    let mut all = |pattern: String| {
        each("", &pattern, &mut |opcode| {
            tried += 1;
            if is_known(opcode) {
                accepted.insert(opcode.to_string());
            }
        });
    };
    all(format!("{COMPUTING} {MODIFIERS} {SECOND} {TYPES}"));
    all("cvt rna |relu|satfinite tf32 f32".to_string());
    all(format!("cvt {ROUNDINGS} |ftz |relu|sat {TYPES} {TYPES}"));
    // Three modifiers or more.
    all(format!("add|sub|mul|fma|mad {ROUNDINGS} ftz sat|relu {TYPES}"));
    all(format!("setp {COMPARISONS} and|or|xor ftz {TYPES}"));
    all(format!("min|max |ftz NaN {TYPES}"));
    all(format!("set {COMPARISONS} |and|or|xor |ftz {TYPES} {TYPES}"));
    all(format!("slct |ftz {TYPES} {TYPES}"));
    all(format!("testp finite|infinite|number|notanumber|normal|subnormal |ftz {TYPES}"));
    all(format!("dp4a|dp2a |lo|hi {TYPES} {TYPES}"));
    all(format!("mul24|mad24|szext|bmsk|fns {MODIFIERS} |sat {TYPES}"));
    all(format!("prmt b32 {MODIFIERS}"));
    let spaces = format!("{SPACES}|param::entry|param::func");
    all(format!("ld|st|ldu {ORDERS} {SCOPES} {spaces} |v2|v4|v8 {TYPES}"));
    let near = "|global|shared|shared::cta|shared::cluster|local";
    let atomic = "add|min|max|and|or|xor|exch|cas|inc|dec|noftz|popc";
    all(format!("atom|red {ORDERS} {SCOPES} {near} {SCOPES} {atomic} {ATOMS}"));
    all(format!("atom|red {ORDERS} {SCOPES} {near} {SCOPES} add|min|max noftz {ATOMS}"));
    all(format!("shfl|vote|redux|activemask|match|elect |sync {WARP}| {TYPES}|"));
    all(format!("match any|all| |sync {TYPES}|"));
    all(format!("bar|barrier |cta red|arrive popc|and|or| |aligned {TYPES}|"));
    all(format!("isspacep {SPACES}|param::entry|generic"));
    let (types, ends) = ("u32|s32|b32", "|sat|add|min|max");
    for count in ["", "2", "4"] {
        let video = format!("{VIDEO}|").replace('|', &format!("{count}|"));
        let video = format!("{} {types} {types}", &video[..video.len() - 1]);
        all(format!("{video} {types} {ends}"));
        all(format!("{video} {COMPARISONS} {ends}"));
        all(format!("{video} {types} sat add|min|max"));
        all(format!("{video} {types} |sat clamp|wrap|shr7|shr15 {ends}"));
        all(format!("{video} {types} po |sat |clamp|wrap|shr7|shr15"));
    }
    all(format!("{CONTROL} {WORDS} {WORDS} {WORDS}"));
    all("cp async ca|cg|commit_group|wait_group|wait_all|bulk".to_string());
    all(format!("cp async ca|cg {SPACES} {SPACES} |L2::64B|L2::128B|L2::256B"));
    let ways = "mbarrier::complete_tx::bytes|bulk_group|";
    all(format!("cp async bulk {SPACES} {SPACES} {ways} |L2::cache_hint"));
    all(format!("cp async bulk prefetch L2 {SPACES} |L2::cache_hint"));
    all("cp async bulk commit_group|wait_group|wait_all |read |L2::cache_hint".to_string());
    all(format!("cp async mbarrier arrive |noinc {SPACES} b64|"));
    all("fence proxy async|alias|tensormap |global|shared::cta|shared::cluster".to_string());
    all("fence mbarrier_init release cluster|cta".to_string());
    let operations = "init|inval|arrive|arrive_drop|test_wait|try_wait|pending_count|expect_tx\
        |complete_tx";
    let kinds = "|parity|noComplete|expect_tx";
    all(format!("mbarrier {operations} {kinds} {ORDERS} {SCOPES} {SPACES} |b64|b32|u64"));
    let sums = format!("|satfinite {SUMS} {FACTORS} {FACTORS} {SUMS} |xor.popc|and.popc");
    all(format!("mma sync aligned {SHAPES} row col {sums}"));
    let mma = format!("wmma mma sync aligned row|col row|col {SHAPES} {SUMS}");
    all(format!("{mma} {SUMS}"));
    all(format!("{mma} {FACTORS} {FACTORS} {SUMS} |satfinite"));
    let places = format!("row|col {SHAPES} {SPACES} {FACTORS}|f32|s32");
    all(format!("wmma load|store a|b|c|d sync aligned {places}"));
    let matrices = format!("m8n8|m16n8 |x1|x2|x4 |trans {SPACES} b16|b8");
    all(format!("ldmatrix|stmatrix|movmatrix sync aligned {matrices}"));
    all(format!("tex |level|base|grad {GEOMETRIES} |v2|v4 {TYPES} f32|s32|u32"));
    all(format!("tld4 r|g {GEOMETRIES} |v2|v4 {TYPES} f32|s32"));
    all(format!("suld|sust|sured b|p| |add {GEOMETRIES} |v2|v4 {TYPES} |trap|clamp|zero"));
    all(format!("txq|suq |level {ASKED} |b32|u32"));

    macro_rules! forms {
        ($($family:ident)*) => { [$($family::forms()),*] };
    }
    let families = forms! {
        approximate arithmetic atomics bits carry compare convert copies halves integer matrices
        moves simd transfer video warp
    };
    let rows: usize = families.iter().map(Vec::len).sum();
    let mut tested: BTreeSet<String> =
        families.into_iter().flatten().map(|form| form.opcode).collect();
    tested.extend(variables::opcodes());
    tested.extend(wmma::opcodes());
    tested.extend(matrix_rows::opcodes());
    tested.extend(textures::opcodes());
    tested.extend(surfaces::opcodes());
    tested.extend(copies::GROUPS.map(String::from));
    tested.extend(of_cases());

    // Every opcode of the emulator's table is tested, also one that no pattern above tries.
    let bases: BTreeSet<_> = tested.iter().filter_map(|opcode| opcode.split('.').next()).collect();
    for (_, row, opcodes) in simt::instructions() {
        for opcode in *opcodes {
            assert!(bases.contains(opcode), "no test uses `{opcode}` of the row {row}");
        }
    }
    let untested: Vec<&String> = accepted.difference(&tested).collect();
    let (count, some) = (untested.len(), &untested[..untested.len().min(200)]);
    assert!(untested.is_empty(), "{count} opcodes have no row and no case: {some:?}");
    println!("{tried} opcodes tried, {} accepted, {rows} forms in the table", accepted.len());
    assert_eq!(accepted.len(), OPCODES, "an opcode has been added: count it here");
    assert_eq!(rows, FORMS, "a row has been added: count it here");
}

/// The sections of the emulator's table of instructions, as the README describes them.
const SECTIONS: [(&str, &str); 7] = [
    ("computing", "registers alone"),
    ("voting", "the lanes that a mask names"),
    ("flowing", "the flow of control"),
    ("together", "all lanes of a warp: matrices"),
    ("moving", "memory, without waiting"),
    ("fetching", "textures and surfaces"),
    ("stepping", "memory, shuffles, barriers and calls"),
];

/// The README lists the opcodes of the emulator's table. `README=update` rewrites the list.
#[test]
fn the_readme_lists_the_instructions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let mut list = "\n| an instruction on | opcodes |\n|---|---|\n".to_string();
    for (section, title) in SECTIONS {
        let rows = simt::instructions().iter().filter(|(of, ..)| *of == section);
        let opcodes: BTreeSet<&str> = rows.flat_map(|(.., opcodes)| *opcodes).copied().collect();
        let opcodes: Vec<String> = opcodes.iter().map(|opcode| format!("`{opcode}`")).collect();
        list += &format!("| {title} | {} |\n", opcodes.join(" "));
    }
    let listed: Vec<&str> = SECTIONS.iter().map(|(section, _)| *section).collect();
    assert!(simt::instructions().iter().all(|(section, ..)| listed.contains(section)));
    let (before, rest) = readme.split_once("<!-- instructions -->\n").unwrap();
    let (found, after) = rest.split_once("<!-- end of the instructions -->").unwrap();
    if std::env::var("README").is_ok_and(|value| value == "update") {
        let marks = ["<!-- instructions -->\n", "<!-- end of the instructions -->"];
        std::fs::write(&path, [before, marks[0], &list, "\n", marks[1], after].concat()).unwrap();
    } else {
        assert_eq!(found.trim(), list.trim(), "README=update rewrites the list");
    }
}

/// The opcodes that cases test.
const OF_CASES: [&str; 14] = [
    "bra|call|ret |uni",
    "exit|trap",
    "elect.sync",
    "isspacep global|shared|shared::cta|shared::cluster|local|param|param::entry",
    "mbarrier init|inval|arrive|arrive.release.cta shared|shared::cta b64",
    "mbarrier test_wait|try_wait |parity |acquire.cta shared|shared::cta b64",
    "mbarrier expect_tx |relaxed.cta shared|shared::cta b64",
    "mbarrier arrive.expect_tx |relaxed.cta|release.cta shared|shared::cta b64",
    "cp.async.mbarrier.arrive |noinc shared|shared::cta b64",
    "cp.async.bulk shared::cta|shared::cluster global.mbarrier::complete_tx::bytes |L2::cache_hint",
    "cp.async.bulk global.shared::cta.bulk_group |L2::cache_hint",
    "cp.async.bulk.prefetch.L2.global |L2::cache_hint",
    "cp.async.bulk commit_group|wait_group|wait_group.read",
    "brx.idx |uni",
];

fn of_cases() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for pattern in OF_CASES {
        each("", pattern, &mut |opcode| drop(all.replace(opcode.to_string())));
    }
    all
}

#[test]
fn the_opcodes_of_cases_are_in_a_case() {
    let mut written = BTreeSet::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases");
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for case in format::parse(&text).unwrap() {
            let names = case.variants.iter().flat_map(|one| format::combinations(&one.with));
            for source in names.map(|names| case.source(&names)) {
                // Behind a label, a guard, or neither.
                let words = source.split([';', '\n', '{']).flat_map(|text| {
                    text.split_whitespace().filter(|word| !word.ends_with(':')).take(2)
                });
                written.extend(words.map(String::from));
            }
        }
    }
    let missing: Vec<String> = of_cases().difference(&written).cloned().collect();
    assert!(missing.is_empty(), "no case has {missing:?}");
}

/// Calls `visit` with every opcode of a pattern, behind what has been chosen.
fn each(chosen: &str, pattern: &str, visit: &mut impl FnMut(&str)) {
    let (slot, rest) = pattern.split_once(' ').unwrap_or((pattern, ""));
    for choice in slot.split('|') {
        let dot = if chosen.is_empty() || choice.is_empty() { "" } else { "." };
        let opcode = format!("{chosen}{dot}{choice}");
        match rest {
            "" => visit(&opcode),
            rest => each(&opcode, rest, visit),
        }
    }
}

fn is_known(opcode: &str) -> bool {
    let source = format!("{HEAD}.entry k() {{ {opcode}; }}");
    match Module::parse(&source).and_then(Module::complete) {
        Ok(_) => true,
        Err(error) => !error.message.contains("is not an instruction that the emulator knows"),
    }
}
