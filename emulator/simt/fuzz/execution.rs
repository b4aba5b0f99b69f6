//! The machine under test: mutated kernels run with small bounds, on pointers that are valid and
//! invalid.
//!
//! Nearly all of these kernels are wrong, so their results cannot be checked. [`execute`] asserts
//! what must hold for any kernel: the machine does not panic, keeps its bounds, reports a place
//! that exists, changes only bytes that a store of the kernel names, and does the same when it is
//! traced. The test `execution` of `simt-suite` runs a fixed number of them, and the example `fuzz`
//! of this package any number.

use std::sync::atomic::AtomicBool;

use simt::{
    Counters, Element, Event, Extent, Image, Kernel, Launch, Memory, Module, Report, ReportKind,
    Sampler, Trace, What,
};

use super::parser::{Random, corpus as sources, is_declaration, mutate};

/// The outcome of running a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The parser refused it.
    Refused,
    /// It ran to its end.
    Ran,
    /// The machine reported a mistake.
    Reported(ReportKind),
}

/// The sizes of the buffers in bytes: two that kernels get, one that no kernel gets, and one
/// without contents.
const SIZES: [u64; 4] = [4096, 1001, 256, 1 << 24];
/// The address of the first buffer, and the distance of each buffer from the one before.
const FIRST: u64 = 1 << 40;
const NAMES: [&str; 4] = ["a", "b", "other", "large"];
/// The handle of the first texture. Each further handle is larger by 16.
const OBJECTS: u64 = 1 << 38;
/// The number of the first variable of a module, after these buffers and one that has been freed.
const VARIABLES: u64 = 6;
const EVENTS: usize = 20_000;

/// Parses a source, runs its first kernel, and asserts what must hold for every launch.
pub fn execute(bytes: &[u8], random: &mut Random) -> Outcome {
    let Ok(source) = std::str::from_utf8(bytes) else { return Outcome::Refused };
    let Ok(module) = Module::parse(source) else { return Outcome::Refused };
    let Some(kernel) = module.kernels().find(|kernel| kernel.instructions() > 1) else {
        return Outcome::Refused;
    };
    let arguments = arguments(kernel, random);
    let flag = AtomicBool::new(random.below(50) == 0);
    let launch = Launch {
        dynamic_shared: pick(&[0, 0, 16, 1000, 48 << 10], random),
        instructions: 1 << random.below(14),
        host_bytes: 1 << (16 + random.below(9)),
        cancel: (random.below(4) == 0).then_some(&flag),
        ..Launch::new(
            kernel,
            pick(&[[1, 1, 1], [1, 1, 1], [2, 1, 1], [3, 2, 2]], random),
            pick(&[[32, 1, 1], [32, 1, 1], [1, 1, 1], [33, 1, 1], [8, 4, 3], [128, 1, 1]], random),
            &arguments,
        )
    };
    let together = random.below(2) == 0;

    let (plain, traced) = (memory(), memory());
    let before = contents(&plain);
    let found = run(launch, &plain, together, None);
    let mut trace = Trace::new(EVENTS);
    let again = run(launch, &traced, together, Some(&mut trace));
    check(&launch, source, &found);
    check(&launch, source, &again);

    let after = contents(&plain);
    // A trace takes bytes, so that only one of the two may run out of them.
    let is_short = |found: &Result<Counters, Report>| {
        found.as_ref().is_err_and(|report| report.kind == ReportKind::HostBytes)
    };
    if !is_short(&found) && !is_short(&again) {
        assert_eq!(found, again, "a traced launch ends differently");
        assert!(after == contents(&traced), "a traced launch writes something else");
        // A trace does not show atomic operations, nor a store that was reported halfway.
        let shows_all = trace.left_out == 0
            && !source.contains("atom")
            && !source.contains("red.")
            && found.as_ref().err().is_none_or(|report| stores_nothing(report.kind));
        if shows_all {
            assert_only_stores(&before, &after, &trace.events);
        }
    }
    if launch.cancel.is_some_and(|flag| flag.load(std::sync::atomic::Ordering::Relaxed)) {
        assert!(after == before, "a launch that was cancelled before it began stores");
        assert!(found.is_err());
    }
    assert!(plain.read(FIRST * 5, &mut [0]).is_err(), "a freed buffer can be read");
    match found {
        Ok(_) => Outcome::Ran,
        Err(report) => Outcome::Reported(report.kind),
    }
}

fn run(
    launch: Launch,
    memory: &Memory,
    together: bool,
    trace: Option<&mut Trace>,
) -> Result<Counters, Report> {
    let prepared = launch.prepare(memory)?;
    let (blocks, half) = (launch.blocks(), launch.blocks() / 2);
    match trace {
        trace if together => prepared.run_together(0..blocks, trace),
        Some(trace) => prepared.run_traced(0..blocks, trace),
        None => {
            let mut counters = prepared.run(0..half)?;
            counters += &prepared.run(half..blocks)?;
            Ok(counters)
        }
    }
}

/// Asserts what must hold for any counters and any report.
fn check(launch: &Launch, source: &str, found: &Result<Counters, Report>) {
    match found {
        Ok(counters) => {
            assert!(counters.instructions <= launch.instructions);
            assert!(counters.thread_instructions <= 32 * counters.instructions);
            assert_eq!(counters.blocks, launch.blocks());
            assert_eq!(counters.classes.values().sum::<u64>(), counters.instructions);
        }
        Err(report) => {
            assert_eq!(report.kernel, launch.kernel.name());
            assert!(report.line as usize <= source.lines().count());
            assert!((0..3).all(|axis| report.block[axis] < launch.grid[axis]), "{report:?}");
            assert!(32 * report.warp < launch.block.iter().product(), "{report:?}");
            assert!(!report.message.is_empty() && report.message.len() < 1000, "{report}");
            assert!(report.to_string().ends_with(&report.message));
            // A report has lanes if and only if it has a line.
            assert_eq!(report.line == 0, report.lanes == 0, "{report:?}");
        }
    }
}

/// Returns whether an instruction with this report cannot have stored anything.
fn stores_nothing(kind: ReportKind) -> bool {
    use ReportKind::*;
    matches!(kind, Instructions | Cancelled | Barrier | NoProgress | Shuffle | Trap | Misaligned)
}

/// Asserts that a store wrote every byte that has changed, within the bounds of its buffer.
fn assert_only_stores(before: &[Vec<u8>], after: &[Vec<u8>], events: &[Event]) {
    let mut stored: Vec<Vec<bool>> = before.iter().map(|bytes| vec![false; bytes.len()]).collect();
    for event in events {
        let What::Store(store) = &event.what else { continue };
        if store.shared {
            continue;
        }
        let bytes = u64::from(store.bytes) * store.values.len() as u64;
        for lane in (0..32).filter(|lane| event.lanes >> lane & 1 == 1) {
            let address = store.addresses[lane];
            let (buffer, offset) = (address / FIRST, address % FIRST);
            // The contents of variables are not compared.
            if (VARIABLES..VARIABLES + 2).contains(&buffer) {
                continue;
            }
            let size = buffer.checked_sub(1).and_then(|buffer| SIZES.get(buffer as usize));
            let size = *size.unwrap_or_else(|| panic!("a store to {address:#x} is not reported"));
            assert!(offset + bytes <= size, "a store to {address:#x} is not reported");
            if let Some(stored) = stored.get_mut(buffer as usize - 1) {
                stored[offset as usize..(offset + bytes) as usize].fill(true);
            }
        }
    }
    for (number, (before, after)) in before.iter().zip(after).enumerate() {
        for (offset, (was, is)) in before.iter().zip(after).enumerate() {
            let name = NAMES[number];
            assert!(was == is || stored[number][offset], "nothing stores to {name} at {offset}");
        }
    }
}

/// Makes a memory with the buffers `NAMES` of `SIZES` bytes and an allocation that has been freed.
/// Addresses and contents are the same at every call.
fn memory() -> Memory {
    let memory = Memory::with_resident_limit(1 << 30, 1 << 20);
    for ((name, bytes), number) in NAMES.into_iter().zip(SIZES).zip(1..) {
        let address = memory.allocate(name, bytes).unwrap();
        assert_eq!(address, FIRST * number);
        if number < 4 {
            // The last quarter is never written.
            let values: Vec<u8> = (0..bytes * 3 / 4).map(|i| (i / 4 * number) as u8).collect();
            memory.write(address, &values).unwrap();
        }
    }
    let freed = memory.allocate("freed", 64).unwrap();
    memory.free(freed).unwrap();
    objects(&memory);
    memory
}

/// Makes textures and surfaces of most shapes over the buffers, and frees one of them.
fn objects(memory: &Memory) {
    let extents = [
        Extent::Linear { width: 1000 },
        Extent::Pitched { width: 9, height: 7, pitch: 96 },
        Extent::Array1d { width: 200 },
        Extent::Array2d { width: 13, height: 11 },
        Extent::Array3d { width: 5, height: 7, depth: 6 },
        Extent::Layered1d { width: 31, layers: 3 },
        Extent::Layered2d { width: 7, height: 5, layers: 6 },
    ];
    let image = |extent, element| Image { address: FIRST, extent, element, channels: 1 };
    for (number, extent) in extents.into_iter().enumerate() {
        let element = if number % 2 == 0 { Element::F32 } else { Element::S32 };
        let handle = memory.texture("t", image(extent, element), Sampler::default()).unwrap();
        assert_eq!(handle, OBJECTS + 16 * number as u64);
    }
    for extent in &extents[2..] {
        memory.surface("s", image(*extent, Element::U32)).unwrap();
    }
    memory.free(OBJECTS + 16 * 6).unwrap();
}

/// Returns the contents of the small buffers.
fn contents(memory: &Memory) -> Vec<Vec<u8>> {
    let read = |(bytes, number): (u64, u64)| {
        let mut values = vec![0; bytes as usize];
        memory.read(FIRST * number, &mut values).unwrap();
        values
    };
    SIZES[..3].iter().copied().zip(1..).map(read).collect()
}

/// Draws arguments: pointers that are valid, nearly valid, wild and null, and numbers of all sizes.
fn arguments(kernel: &Kernel, random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; kernel.param_bytes() as usize];
    for param in kernel.params() {
        let place = &mut bytes[param.offset as usize..(param.offset + param.bytes) as usize];
        for part in place.chunks_mut(8) {
            let value = if part.len() == 8 { address(random) } else { number(random) };
            part.copy_from_slice(&value.to_le_bytes()[..part.len()]);
        }
    }
    bytes
}

fn address(random: &mut Random) -> u64 {
    let buffer = FIRST * (1 + random.below(5) as u64);
    match random.below(12) {
        0 => 0,
        1 => random.draw(),
        2 => number(random),
        3 => buffer + random.below(2000) as u64,
        4 => buffer.wrapping_sub(random.below(64) as u64),
        6 => OBJECTS + 16 * random.below(14) as u64,
        5 => FIRST * 4 + (random.draw() % SIZES[3]) / 16 * 16,
        _ => FIRST * (1 + random.below(2) as u64) + 16 * random.below(16) as u64,
    }
}

fn number(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => random.draw(),
        1 => u64::MAX - random.below(64) as u64,
        2 => 1 << random.below(64),
        _ => random.below(100) as u64,
    }
}

fn pick<T: Copy>(from: &[T], random: &mut Random) -> T {
    from[random.below(from.len())]
}

/// The material of kernels.
pub struct Corpus {
    /// Whole sources, whose registers have values.
    sources: Vec<String>,
    /// Single instructions on the registers of [`HEAD`].
    instructions: Vec<String>,
}

/// The head of a kernel, with everything that the instructions of `every_form.ptx` name.
const HEAD: &str = ".version 8.3
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dyn[];
.shared .align 16 .b8 stat[256];
.global .align 16 .b8 glob[256] = {1, 2, 3, 4};
.const .align 16 .u64 cons[4] = {glob, 5, 6, 7};
.func (.param .b32 out) fun(.param .b32 n, .param .b64 at)
{ .reg .b32 %a<9>; .reg .b64 %ad<9>; .reg .pred %ap<3>; .local .align 8 .b8 own[16]; .param .b32 x; .param .b64 y; .param .b32 z;
ld.param.u32 %a1, [n];
ld.param.u64 %ad1, [at];
st.u32 [%ad1], %a1;
setp.lt.u32 %ap1, %a1, 2;
@%ap1 ret;
sub.u32 %a2, %a1, 1;
st.param.b32 [x], %a2;
mov.u64 %ad2, own;
cvta.local.u64 %ad2, %ad2;
st.param.b64 [y], %ad2;
call (z), fun, (x, y);
ld.local.u32 %a3, [own];
st.param.b32 [out], %a3;
ret;
}
.visible .entry kernel(.param .u64 p0, .param .u32 p1, .param .align 8 .b8 p2[32], .param .u8 p3)
{
.local .align 16 .b8 loc[64];
.reg .pred %p<6>;
.reg .b16 %rs<6>;
.reg .b32 %r<6>;
.reg .b64 %rd<6>;
.reg .f32 %f<6>;
.reg .f64 %fd<6>;
.reg .b32 %m<24>;
.reg .f32 %mf<8>;
.reg .f64 %md<24>;
";

/// Idioms of correct kernels, of a few instructions each.
const IDIOMS: [&str; 30] = [
    "bar.sync 0;",
    "mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd0, %r0, 4;\nld.param.u64 %rd1, [p0];\nadd.u64 %rd1, %rd1, %rd0;",
    "mov.u32 %r1, %laneid;\nmul.wide.u32 %rd2, %r1, 16;\nadd.u64 %rd1, %rd1, %rd2;",
    "mov.u64 %rd1, stat;\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd1, %rd1, %rd2;",
    "mov.u64 %rd1, dyn;",
    "mov.u64 %rd1, glob;",
    "call (%r1), fun, (%r0, %rd0);",
    "mov.u64 %rd1, glob;\nand.b32 %r1, %r0, 7;\ncall (%r2), fun, (%r1, %rd1);",
    "mov.u64 %rd1, fun;\n@%p1 call (%r1), %rd1, (%r0, %rd0);",
    "mov.u64 %rd1, cons;\nld.const.u32 %r0, [%rd1+4];",
    "atom.global.add.u32 %r1, [glob+8], %r0;",
    "mov.u64 %rd1, loc;\ncvta.local.u64 %rd0, %rd1;",
    "mov.u64 %rd1, stat;\ncvta.shared.u64 %rd0, %rd1;",
    "mov.u64 %rd1, 274877906944;",
    "mov.u64 %rd1, 274877906960;",
    "mov.u64 %rd2, 274877907072;",
    "mov.u64 %rd2, 274877907120;",
    "mov.u64 %rd1, 1099511627776;",
    "mov.u64 %rd1, 2199023255552;",
    "mov.u64 %rd1, 4398046511104;\nmov.u32 %r3, %ctaid.x;\nmul.wide.u32 %rd3, %r3, 65536;\nadd.u64 %rd1, %rd1, %rd3;",
    "mov.u32 %r1, 0xffffffff;\nmov.u32 %r2, %laneid;",
    "activemask.b32 %r1;",
    "setp.lt.u32 %p1, %r0, 13;",
    "setp.lt.u32 %p1, %r0, 13;\n@%p1 bra END;",
    "setp.gt.u32 %p2, %r1, 40;\n@%p2 bra BEGIN;",
    "@%p1 bra BEGIN;",
    "@!%p1 exit;",
    "bar.warp.sync 0xffffffff;",
    "st.shared.u32 [stat], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [stat];",
    "cp.async.ca.shared.global [stat+16], [%rd1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;",
];

/// Reads the material of inputs from the corpus.
pub fn corpus() -> Corpus {
    let all = sources();
    let mut instructions: Vec<String> = all
        .iter()
        .filter(|source| source.contains("_forms("))
        .flat_map(|source| source.lines())
        .map(str::trim)
        .filter(|line| line.ends_with(';') && !line.starts_with('.') && !line.contains("ret;"))
        .map(|line| line.replace("L1;", "END;"))
        .collect();
    instructions.sort();
    instructions.dedup();
    Corpus { sources: all.iter().map(|source| with_values(source)).collect(), instructions }
}

/// Adds instructions that give values to the declared registers: addresses and small numbers.
fn with_values(source: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let Some(last) = lines.iter().rposition(|line| is_declaration(line)) else {
        return source.to_string();
    };
    let mut values = String::new();
    for line in lines.iter().filter(|line| line.trim_start().starts_with(".reg")) {
        let words: Vec<&str> = line.split([' ', '\t', '<', '>', ';']).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let [_, ty, name, count, ..] = words[..] else { continue };
        for i in 1..count.parse().unwrap_or(1_u64).min(16) {
            let value = match ty {
                ".pred" => format!("setp.lt.u32 {name}{i}, {}, 2;", i % 4),
                ".b16" => format!("mov.u16 {name}{i}, {i};"),
                ".b32" if i % 3 == 0 => format!("mov.u32 {name}{i}, %tid.x;"),
                ".b32" => format!("mov.u32 {name}{i}, {};", 4 * i),
                ".f32" => format!("mov.f32 {name}{i}, 0f3F800000;"),
                ".f64" => format!("mov.f64 {name}{i}, 0d3FF0000000000000;"),
                ".b64" if i % 4 == 3 => format!("mov.u64 {name}{i}, {};", 16 * i),
                ".b64" => format!("mov.u64 {name}{i}, {};", FIRST * (1 + i % 2) + 16 * i),
                _ => continue,
            };
            values += &value;
            values.push('\n');
        }
    }
    let (head, tail) = lines.split_at(last + 1);
    format!("{}\n{values}{}\n", head.join("\n"), tail.join("\n"))
}

/// Draws a source: one of the corpus with mutated bytes, tokens and lines, or a kernel of
/// instructions in any order.
pub fn input(corpus: &Corpus, random: &mut Random) -> Vec<u8> {
    if random.below(3) == 0 {
        return mutate(&corpus.sources, random);
    }
    let mut source = with_values(HEAD);
    source += "BEGIN:\n";
    for _ in 0..1 + random.below(24) {
        if random.below(4) == 0 {
            source += IDIOMS[random.below(IDIOMS.len())];
        } else {
            if random.below(8) == 0 {
                source += pick(&["@%p1 ", "@!%p1 ", "@%p2 "], random);
            }
            let line = &corpus.instructions[random.below(corpus.instructions.len())];
            // An instruction with a guard gets no second one.
            if line.starts_with('@') {
                source.truncate(source.rfind('\n').map_or(0, |end| end + 1));
            }
            source += line;
        }
        source.push('\n');
    }
    source += "END:\nret;\n}\n.file 1 \"a.cu\"\n";
    match random.below(4) {
        0 => mutate(&[source], random),
        _ => source.into_bytes(),
    }
}
