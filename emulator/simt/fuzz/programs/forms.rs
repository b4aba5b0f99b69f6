//! Single instructions: every form of `every_form.ptx`, with registers drawn at random.
//!
//! Only results that PTX defines to the last bit may show, because a program must give the same on
//! every machine. So [`is_defined`] leaves forms out, and [`instruction`] adds instructions that
//! keep an operand away from undefined results. Some forms are left out because the driver's
//! compiler translates them otherwise than PTX defines; the README lists these. The test
//! `programs` of `simt-suite` runs the programs on the emulator.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{CLASSES, REGISTERS, predicate};
use crate::parser::Random;

/// The forms of each opcode: hundreds for some opcodes, and one for others.
static FORMS: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
    let mut opcodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let lines = include_str!("../../tests/data/every_form.ptx").lines().map(str::trim);
    for line in lines.filter(|line| line.ends_with(';') && is_defined(line)) {
        opcodes.entry(opcode(line)).or_default().push(line);
    }
    opcodes.into_values().collect()
});

/// The opcodes that are not a statement by themselves: control, instructions that only work with
/// other lanes or after other instructions, and results that differ from run to run. Left out is
/// also `cnot`: the driver compiles shifts of 16 bits by its result to shifts by a register that
/// nothing has written.
const LEFT_OUT: &str = "ret exit bra brx call trap bar barrier shfl vote match redux activemask \
    elect cp mbarrier prefetch prefetchu nanosleep cvta addc subc madc ldmatrix stmatrix mma wmma \
    tex tld4 suld sust txq suq istypep isspacep fns movmatrix cnot";

fn opcode(line: &str) -> &str {
    line.split(['.', ' ', ';']).next().unwrap_or_default()
}

/// Returns the first type of `set.lt.f16.f32`.
fn type_of_result(name: &str) -> &str {
    name.rsplit('.').nth(1).unwrap_or_default()
}

/// Returns whether the instruction is usable, and its result defined to the last bit.
fn is_defined(line: &str) -> bool {
    let name = line.split(' ').next().unwrap_or_default();
    let has = |part: &str| name.split('.').any(|other| other == part);
    let any = |parts: &[&str]| parts.iter().any(|part| has(part));
    let opcode = opcode(line);
    let is_float = any(&["f16", "f16x2", "bf16", "bf16x2", "f32", "f64"]);
    let is_rounded = any(&["rn", "rz", "rm", "rp"]);
    // A compiler may fuse the instruction with another.
    let may_fuse = matches!(opcode, "add" | "sub" | "mul") && is_float && !is_rounded;
    let is_half = any(&["f16", "f16x2", "bf16", "bf16x2"]);
    let is_inexact = any(&["approx", "full"]) && (opcode == "div" || has("f64") || is_half);
    // The driver's compiler simplifies `rcp` of `rcp` or of `ex2` as in algebra, changes the sign
    // of halves that are NaN, and computes functions of constants with another rounding.
    let is_algebra = opcode == "rcp" && has("approx")
        || opcode == "neg" && is_half
        || opcode == "mov" && line.contains(", 0f");
    // Parts of registers are not renumbered.
    let operands = line.split_once(' ').map_or("", |(_, operands)| operands);
    let has_part = operands.contains(".b") || operands.contains(".h");
    // The driver's compiler assumes zero in the upper half of its register, wrongly.
    let is_doubled = opcode == "set" && ["f16", "bf16"].contains(&type_of_result(name));
    // Their result for NaN is not known.
    let adds_halves = has("noftz") && matches!(opcode, "atom" | "red");
    // These need memory that nobody writes while the kernel runs, or that is read only once more.
    let is_special = any(&["nc", "lu"]);
    let is_clock = ["%clock", "%globaltimer", "%gridid", "smid", "%envreg", "%warpid"];
    !LEFT_OUT.split(' ').any(|name| name == opcode)
        && !line.starts_with(['@', '.', '/'])
        && !may_fuse
        && !is_inexact
        && !is_algebra
        && !is_special
        && !has_part
        && !is_doubled
        && !adds_halves
        && !has("cc")
        && !is_clock.iter().any(|word| line.contains(word))
        && !["stat", "dyn", "loc", "unused"].iter().any(|word| line.contains(word))
        && (!line.contains("[p") || line.contains("[p2"))
}

/// Draws a statement: an instruction, with the instructions that it needs before and behind it.
pub(super) fn lines(random: &mut Random) -> Vec<String> {
    let mut lines = match random.below(12) {
        0 => carried(random),
        1 => moved(random),
        2 => called(random),
        _ => {
            let forms = &FORMS[random.below(FORMS.len())];
            instruction(forms[random.below(forms.len())], random)
        }
    };
    // All instructions of a statement have the same guard.
    if random.below(6) == 0 && !lines.iter().any(|line| line.starts_with('{')) {
        let guard = predicate(random);
        // No instruction of the statement may write the guard.
        let name = guard.trim_start_matches('!');
        let writes =
            |line: &String| line.split([',', ';']).next().is_some_and(|d| d.contains(name));
        let is_free = lines.len() == 1 || !lines.iter().any(writes);
        if is_free && !lines.iter().any(|line| ignores_its_guard(line)) {
            lines.iter_mut().for_each(|line| *line = format!("@{guard} {line}"));
        }
    }
    lines
}

/// Returns whether the driver (580) executes an instruction although its guard is false: `testp`
/// writes its result, and `set` converts the old value of its register. By PTX neither does
/// anything, so machines differ.
fn ignores_its_guard(line: &str) -> bool {
    match opcode(line) {
        // With `%z` as its result it is part of `canonical`, and nobody reads `%z` later.
        "testp" => !line.contains("%z,"),
        "set" => true,
        _ => false,
    }
}

fn instruction(form: &str, random: &mut Random) -> Vec<String> {
    let name = form.split(' ').next().unwrap_or_default();
    let ty = name.rsplit('.').next().unwrap_or_default();
    let mut operands = with_registers(name, &form[name.len()..], random).replace("[p2+16]", "[p2]");
    if let (Some(begin), Some(end)) = (operands.find('['), operands.find(']'))
        && !operands[begin..end].contains("[p2")
    {
        operands.replace_range(begin..=end, &place(name, random));
    }
    let registers = registers(&operands);
    let mut lines = Vec::new();
    match opcode(form) {
        "div" | "rem" if !matches!(ty, "f32" | "f64") => {
            let divisor = &registers[registers.len() - 1];
            let (bits, most) =
                (&ty[1..], (1_u64 << (ty[1..].parse::<u32>().unwrap_or(64) - 1)) - 1);
            // The divisor is neither 0 nor -1.
            lines.push(format!("and.b{bits} {divisor}, {divisor}, {most};"));
            lines.push(format!("or.b{bits} {divisor}, {divisor}, 1;"));
        }
        // The smallest number has no opposite. The GPU holds the opposite of 16 bits in 32, and
        // compilers assume that an absolute value is positive.
        "neg" | "abs" if ty.starts_with('s') => {
            let (bits, source) = (&ty[1..], &registers[registers.len() - 1]);
            let least = -(i64::MAX >> (64 - bits.parse::<u32>().unwrap_or(64)));
            lines.push(format!("max.s{bits} {source}, {source}, {least};"));
        }
        // The compiler assumes that the absolute value or power in a selector is not negative, and
        // forgets NaN.
        "slct" if ty == "f32" => {
            let c = &registers[registers.len() - 1];
            lines.push(format!("testp.notanumber.f32 %z, {c};"));
            lines.push(format!("selp.f32 {c}, 0f3F800000, {c}, %z;"));
        }
        // If the compiler knows that the register holds a half, it stores the number as an integer.
        "st" if matches!(ty, "b8" | "u8" | "s8") => {
            let shorts = registers.iter().filter(|register| register.starts_with("%rs"));
            lines.extend(shorts.map(|short| format!("and.b16 {short}, {short}, 255;")));
        }
        // The sign of NaN is not defined. (A conversion from `f64` to halves seems to keep it.)
        "copysign" | "st" | "atom" | "red" | "cvt" if opcode(form) != "cvt" || ty == "f64" => {
            registers.iter().for_each(|register| lines.extend(canonical(register)));
        }
        _ => {}
    }
    if takes_literals(form)
        && random.below(3) == 0
        && let Some((before, _)) = operands.rsplit_once(", %r")
    {
        operands = format!("{before}, {};", literal(random));
    }
    lines.push(format!("{name}{operands}"));
    // A sum that is NaN has no defined sign either.
    if matches!(opcode(form), "atom" | "red") && matches!(ty, "f32" | "f64") {
        let (begin, end) = (operands.find('[').unwrap_or(0), operands.find(']').unwrap_or(0));
        let (address, temporary) =
            (&operands[begin..=end], if ty == "f32" { "%zf" } else { "%zfd" });
        let space = name.split('.').find(|part| part.starts_with("shared") || *part == "global");
        let space = space.map_or(String::new(), |space| format!(".{space}"));
        lines.push(format!("ld{space}.{ty} {temporary}, {address};"));
        lines.extend(canonical(temporary));
        lines.push(format!("st{space}.{ty} {address}, {temporary};"));
    }
    lines
}

/// Returns instructions that replace NaN in a register by the canonical one.
pub(super) fn canonical(register: &str) -> Vec<String> {
    let (ty, nan) = match register.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "%f" | "%zf" => ("f32", "0f7FFFFFFF"),
        "%fd" | "%zfd" => ("f64", "0d7FFFFFFFFFFFFFFF"),
        _ => return Vec::new(),
    };
    vec![
        format!("testp.notanumber.{ty} %z, {register};"),
        format!("selp.{ty} {register}, {nan}, {register}, %z;"),
    ]
}

/// Returns whether the driver's compiler mistranslates an instruction that has a register twice:
/// `min` and `max` of a half and itself become that half, even if it is NaN; `lop3` before an `xor`
/// becomes another function; `mad.hi` onto its own operand loses rounds of a loop.
fn needs_others(name: &str) -> bool {
    let has = |part: &str| name.split('.').any(|other| other == part);
    let is_half = ["f16", "f16x2", "bf16", "bf16x2"].iter().any(|ty| has(ty));
    match opcode(name) {
        "min" | "max" => is_half,
        "lop3" => true,
        "mad" => has("hi"),
        _ => false,
    }
}

/// Returns operands with registers drawn at random.
fn with_registers(name: &str, operands: &str, random: &mut Random) -> String {
    // Several results must be in different registers.
    let distinct = operands.contains(['{', '|']) || needs_others(name);
    let (start, step) = (random.below(REGISTERS), 1 + 2 * random.below(REGISTERS / 2));
    let random = RefCell::new(random);
    super::moved(operands, |number| match distinct {
        true => (start + step * number) % REGISTERS,
        false => random.borrow_mut().below(REGISTERS),
    })
}

fn registers(operands: &str) -> Vec<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '%';
    let words = operands.split(|c| !is_word(c));
    let of_class =
        |word: &&str| CLASSES.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
    words.filter(of_class).map(str::to_string).collect()
}

fn takes_literals(form: &str) -> bool {
    let name = form.split(' ').next().unwrap_or_default();
    let ty = name.rsplit('.').next().unwrap_or_default();
    let opcodes =
        ["add", "sub", "and", "or", "xor", "min", "max", "setp", "mul", "shl", "shr", "selp"];
    let is_plain = !["wide", "relu", "sat", "hi"].iter().any(|part| name.contains(part));
    is_plain
        && opcodes.contains(&opcode(form))
        && matches!(ty, "u32" | "s32" | "b32")
        && !form.contains("%p")
        && !form.contains("WARP_SZ")
}

pub(super) fn literal(random: &mut Random) -> String {
    match random.below(4) {
        0 => random.below(40).to_string(),
        1 => format!("{:#x}", random.draw() as u32),
        2 => format!("{:#x}", 1_u32 << random.below(32)),
        _ => ["0x7fffffff", "0xffffffff", "0x80000000", "255"][random.below(4)].to_string(),
    }
}

/// Draws an address in the thread's own 64 bytes of a space, aligned for the access.
fn place(name: &str, random: &mut Random) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let has = |part: &str| parts.contains(&part);
    let bits = parts
        .iter()
        .rev()
        .find_map(|part| part.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().ok());
    let bytes = match bits.unwrap_or(128_usize) / 8 {
        bytes if bytes > 8 || has("v2") || has("v4") || name.contains("x2") => 16,
        bytes => bytes,
    };
    // Local memory allows plain accesses only.
    let is_plain = parts.len() <= 3 && matches!(parts[0], "ld" | "st");
    let base = if has("global") {
        "%og"
    } else if name.contains(".shared") {
        "%os"
    } else if has("local") {
        "%ol"
    } else {
        ["%og", "%gs", "%gl"][random.below(if is_plain { 3 } else { 2 })]
    };
    format!("[{base}+{}]", random.below(64 / bytes) * bytes)
}

/// Draws sums and products of several words.
fn carried(random: &mut Random) -> Vec<String> {
    let bits = if random.below(3) == 0 { 64 } else { 32 };
    let class = if bits == 64 { "%rd" } else { "%r" };
    let mut register = || format!("{class}{}", random.below(REGISTERS));
    let drawn: Vec<[String; 4]> =
        (0..4).map(|_| [register(), register(), register(), register()]).collect();
    let count = 2 + random.below(3);
    let mut lines = Vec::new();
    for (number, [d, a, b, c]) in drawn.into_iter().take(count).enumerate() {
        let (first, last) = (number == 0, number + 1 == count);
        let carry = if first { "" } else { "c" };
        let cc = if last { "" } else { ".cc" };
        let sign = ["u", "s"][random.below(2)];
        lines.push(match random.below(4) {
            0 => format!("mad{carry}.lo{cc}.{sign}{bits} {d}, {a}, {b}, {c};"),
            // The result must not be an operand: see `needs_others`.
            1 if d != c => format!("mad{carry}.hi{cc}.{sign}{bits} {d}, {a}, {b}, {c};"),
            2 => format!("sub{carry}{cc}.{sign}{bits} {d}, {a}, {b};"),
            _ => format!("add{carry}{cc}.{sign}{bits} {d}, {a}, {b};"),
        });
    }
    // The flag of `sub` means the opposite for `addc`, so a chain has one kind.
    let kind = if lines[0].starts_with("sub") { "sub" } else { "add" };
    lines.retain(|line| line.starts_with("sub") == (kind == "sub"));
    if let Some(last) = lines.last_mut() {
        *last = last.replace(".cc", "");
    }
    if lines.len() == 1 {
        lines[0] = format!("add.u{bits} {class}0, {class}1, {class}2;")
    }
    lines
}

/// Draws a move of bits between classes of registers, or from a table or a special register.
fn moved(random: &mut Random) -> Vec<String> {
    let mut register = |class: &str| format!("{class}{}", random.below(REGISTERS));
    let (r, other, rd, f, fd) =
        (register("%r"), register("%r"), register("%rd"), register("%f"), register("%fd"));
    let special = "%tid.x %tid.y %ntid.x %ntid.z %ctaid.x %nctaid.x %laneid %lanemask_lt \
        %lanemask_ge %lanemask_eq %lanemask_gt %lanemask_le";
    let special: Vec<_> = special.split(' ').collect();
    match random.below(8) {
        0 => [canonical(&f), vec![format!("mov.b32 {r}, {f};")]].concat(),
        1 => [canonical(&fd), vec![format!("mov.b64 {rd}, {fd};")]].concat(),
        2 => vec![format!("mov.b32 {f}, {r};")],
        3 => vec![format!("mov.b64 {fd}, {rd};")],
        4 => vec![format!("mov.b64 {rd}, {{{r}, {other}}};")],
        5 => vec![
            format!("and.b32 %w, {r}, 15;"),
            "mul.wide.u32 %wd, %w, 4;".into(),
            "add.s64 %wd, %wd, %tc;".into(),
            format!("ld.const.u32 {other}, [%wd];"),
        ],
        6 => vec![
            format!("and.b32 %w, {r}, 15;"),
            "mul.wide.u32 %wd, %w, 4;".into(),
            "add.s64 %wd, %wd, %tg;".into(),
            format!("ld.global.nc.u32 {other}, [%wd];"),
        ],
        _ => vec![format!("mov.u32 {r}, {};", special[random.below(special.len())])],
    }
}

/// Draws a call of one of the module's functions.
fn called(random: &mut Random) -> Vec<String> {
    let mut register = |class: &str| format!("{class}{}", random.below(REGISTERS));
    let (d, a, b) = (register("%r"), register("%r"), register("%rd"));
    let function = ["mix", "fold", "count"][random.below(3)];
    vec![
        "{".into(),
        ".param .b32 given; .param .b64 wide; .param .b32 got;".into(),
        format!("st.param.b32 [given], {a};"),
        format!("st.param.b64 [wide], {b};"),
        format!("call (got), {function}, (given, wide);"),
        format!("ld.param.b32 {d}, [got];"),
        "}".into(),
    ]
}
