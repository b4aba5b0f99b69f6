//! The output of a launch: prints, writes and compares buffers, and prints counters and traces.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use simt::{Accessed, Counters, Event, Trace, What};

use crate::emulate::Placed;
use crate::fill;
use crate::number::Type;
use crate::options::Named;
use crate::say::println;

/// The count of numbers in a row, and of a buffer that is printed without being asked for.
const SHOWN: usize = 8;

/// A buffer or a variable, as it is shown.
#[derive(Debug, Clone)]
pub struct View {
    pub name: String,
    pub ty: Type,
    pub address: u64,
    pub bytes: usize,
    /// A variable's name in the PTX.
    pub symbol: Option<String>,
}

impl View {
    fn count(&self) -> usize {
        self.bytes / self.ty.bytes()
    }

    fn read(&self, placed: &Placed) -> Result<Vec<u8>, String> {
        placed.read(self.address, self.bytes)
    }

    /// Returns `x: f32[1000]` and its first numbers, in rows.
    fn show(&self, placed: &Placed, most: Option<usize>) -> Result<String, String> {
        let (count, each) = (self.count(), self.ty.bytes());
        let most = most.unwrap_or(count).min(count);
        let bytes = placed.read(self.address, most * each)?;
        let mut text = format!("{}: {}[{count}]", self.name, self.ty.name());
        let numbers: Vec<_> = bytes.chunks(each).map(|bytes| self.ty.show(bytes)).collect();
        for (row, numbers) in numbers.chunks(SHOWN).enumerate() {
            if numbers.len() < most {
                let _ = write!(text, "\n  {:>8}:", row * SHOWN);
            }
            let _ = write!(text, " {}", numbers.join(" "));
        }
        if most < count {
            text.push_str(" …");
        }
        Ok(text)
    }
}

/// Returns the buffer or variable of this name.
fn view<'v>(views: &'v [View], name: &str) -> Result<&'v View, String> {
    views.iter().find(|view| view.name == name).ok_or_else(|| {
        let names: Vec<_> = views.iter().map(|view| view.name.as_str()).collect();
        format!("there is no buffer or variable `{name}`; there are {}", names.join(", "))
    })
}

/// Prints the requested buffers and variables, or the beginning of all of them.
pub fn print(
    views: &[View],
    placed: &Placed,
    asked: &[(String, Option<usize>)],
) -> Result<(), String> {
    if asked.is_empty() {
        for view in views {
            println!("{}", view.show(placed, Some(SHOWN))?);
        }
    }
    for (name, count) in asked {
        println!("{}", view(views, name)?.show(placed, *count)?);
    }
    Ok(())
}

/// Writes buffers and variables to files.
pub fn write(views: &[View], placed: &Placed, asked: &[Named]) -> Result<(), String> {
    asked
        .iter()
        .try_for_each(|(name, file)| write_file(Path::new(file), &view(views, name)?.read(placed)?))
}

/// Writes all buffers and variables into a folder, each to a file of its name.
pub fn save(views: &[View], placed: &Placed, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    views.iter().try_for_each(|view| write_file(&folder.join(&view.name), &view.read(placed)?))
}

/// Writes a file.
pub fn write_file(file: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(file, bytes).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Returns the lines of `launch.txt` for variables: name, type, size, and name in the PTX.
pub fn variable_lines(views: &[View]) -> String {
    let line = |View { name, ty, bytes, symbol, .. }: &View| {
        Some(format!("variable {name} {} {bytes} {}\n", ty.name(), symbol.as_ref()?))
    };
    views.iter().filter_map(line).collect()
}

/// Compares buffers and variables with what is expected, prints where they differ, and returns
/// whether all are as expected.
pub fn expect(
    views: &[View],
    placed: &Placed,
    asked: &[Named],
    tolerance: f64,
) -> Result<bool, String> {
    let mut all = true;
    for (name, value) in asked {
        let view = view(views, name)?;
        let wrong = |why: String| format!("`--expect {name}={value}`: {why}");
        let expected = fill::bytes(value, view.ty, view.count(), 0).map_err(wrong)?;
        let expected = expected.ok_or_else(|| wrong("nothing to compare with".to_owned()))?;
        match difference(view.ty, &view.read(placed)?, &expected, tolerance) {
            None => println!("{name}: {} numbers as expected", view.count()),
            Some(difference) => {
                println!("{name}: {difference}");
                all = false;
            }
        }
    }
    Ok(all)
}

/// Returns as a sentence how many numbers differ by more than the tolerance, and the first of them.
fn difference(ty: Type, found: &[u8], expected: &[u8], tolerance: f64) -> Option<String> {
    let pairs = || found.chunks(ty.bytes()).zip(expected.chunks(ty.bytes())).enumerate();
    let differs = |(_, (found, expected)): &(usize, (&[u8], &[u8]))| {
        let (a, b) = (ty.value(found), ty.value(expected));
        let is_near = tolerance > 0.0 && (a - b).abs() <= tolerance * b.abs().max(1.0);
        found != expected && !(ty.is_float() && a.is_nan() && b.is_nan()) && !is_near
    };
    let (at, (first, other)) = pairs().find(differs)?;
    let (differ, all) = (pairs().filter(differs).count(), pairs().count());
    let (first, other) = (ty.show(first), ty.show(other));
    Some(format!(
        "{differ} of {all} numbers are not as expected; the first is number {at}: {first} where \
         {other} was expected"
    ))
}

/// Prints what the launch cost, in one line.
pub fn summary(counters: &Counters) {
    println!(
        "{} blocks, {} instructions of warps ({} of threads), {} barriers, {} divergent branches",
        counters.blocks,
        counters.instructions,
        counters.thread_instructions,
        counters.barriers,
        counters.divergent_branches
    );
}

/// Prints the instructions of each class, and every instruction that accesses memory.
pub fn counters(counters: &Counters) {
    for (class, count) in counters.classes.iter().filter(|(_, count)| **count > 0) {
        println!("  {:<10} {count:>12}", format!("{class:?}").to_lowercase());
    }
    println!(
        "  {:<28} {:<24} {:>10} {:>12} {:>12} {:>12}",
        "place", "instruction", "requests", "sectors", "wavefronts", "conflicts"
    );
    for site in counters.sites.iter().filter(|site| site.requests > 0) {
        println!(
            "  {:<28} {:<24} {:>10} {:>12} {:>12} {:>12}",
            place(&site.source, site.line),
            site.opcode,
            site.requests,
            site.sectors,
            site.wavefronts,
            site.conflicts
        );
    }
}

fn place(source: &Option<(Arc<str>, u32)>, line: u32) -> String {
    match source {
        Some((file, line)) => format!("{file}:{line}"),
        None => format!("PTX line {line}"),
    }
}

/// Prints a trace.
pub fn trace(trace: &Trace) {
    for event in &trace.events {
        println!("{}", event_line(event));
    }
    if trace.left_out > 0 {
        println!("… and {} events more", trace.left_out);
    }
}

fn event_line(event: &Event) -> String {
    let lanes = |show: &dyn Fn(usize) -> String| {
        let lanes = (0..32).filter(|lane| event.lanes >> lane & 1 == 1);
        lanes.map(|lane| format!("{lane}: {}", show(lane))).collect::<Vec<_>>().join(", ")
    };
    let access = |kind: &str, Accessed { shared, bytes, addresses, values, .. }: &Accessed| {
        let space = if *shared { "shared" } else { "global" };
        let lanes = lanes(&|lane| {
            let values: Vec<_> = values.iter().map(|of| format!("{:#x}", of[lane])).collect();
            format!("[{:#x}] {}", addresses[lane], values.join(" "))
        });
        format!("{kind} {space} {bytes} bytes {lanes}")
    };
    let what = match &event.what {
        What::Barrier => "barrier".to_owned(),
        What::Shuffle { mode, before, after, .. } => {
            let lanes = lanes(&|lane| format!("{:#x} -> {:#x}", before[lane], after[lane]));
            format!("shuffle {mode} {lanes}")
        }
        What::Load(accessed) => access("load", accessed),
        What::Store(accessed) => access("store", accessed),
        What::Copy(copied) => {
            let lanes =
                lanes(&|lane| format!("{:#x} -> {:#x}", copied.from[lane], copied.to[lane]));
            format!("copy {} bytes {lanes}", copied.bytes)
        }
    };
    let place = place(&event.source, event.line);
    format!("block {} warp {} {place}: {what}", event.block, event.warp)
}
