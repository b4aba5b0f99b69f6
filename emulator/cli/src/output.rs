//! What is shown, written and compared when a kernel has run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use simt::{Accessed, Class, Counters, Event, Kernel, Trace, What};

use crate::emulate::Placed;
use crate::fill::Fill;
use crate::number::Type;
use crate::plan::{Hole, Plan};
use crate::say::println;

/// Numbers shown of each buffer where nobody says how many.
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

    /// `x: f32[1000]`, and its first numbers, in rows.
    fn show(&self, placed: &Placed, most: Option<usize>) -> Result<String, String> {
        let (count, most) = (self.count(), most.unwrap_or(usize::MAX).min(self.count()));
        let bytes = placed.read(self.address, most * self.ty.bytes())?;
        let mut text = format!("{}: {}[{count}]", self.name, self.ty.name());
        let numbers: Vec<_> =
            bytes.chunks(self.ty.bytes()).map(|bytes| self.ty.show(bytes)).collect();
        for (row, numbers) in numbers.chunks(SHOWN).enumerate() {
            let place = if numbers.len() < most {
                format!("\n  {:>8}:", row * SHOWN)
            } else {
                String::new()
            };
            let _ = write!(text, "{place} {}", numbers.join(" "));
        }
        if most < count {
            text.push_str(" …");
        }
        Ok(text)
    }
}

/// The one of that name.
pub fn view<'v>(views: &'v [View], name: &str) -> Result<&'v View, String> {
    views.iter().find(|view| view.name == name).ok_or_else(|| {
        let names: Vec<_> = views.iter().map(|view| view.name.as_str()).collect();
        format!("there is no buffer or variable `{name}`; there are {}", names.join(", "))
    })
}

/// Prints what is asked for, or the beginning of everything.
pub fn print(views: &[View], placed: &Placed, asked: &[String]) -> Result<(), String> {
    if asked.is_empty() {
        for view in views {
            println!("{}", view.show(placed, Some(SHOWN))?);
        }
    }
    for text in asked {
        let (name, most) = match text.rsplit_once(':') {
            Some((name, most)) => {
                let wrong = |_| format!("`--print {text}`: `{most}` is no number of elements");
                (name, Some(most.parse().map_err(wrong)?))
            }
            None => (text.as_str(), None),
        };
        println!("{}", view(views, name)?.show(placed, most)?);
    }
    Ok(())
}

/// Writes buffers to files.
pub fn write(views: &[View], placed: &Placed, asked: &[String]) -> Result<(), String> {
    for text in asked {
        let (name, file) =
            text.split_once('=').ok_or(format!("`--write {text}` is not NAME=FILE"))?;
        let view = view(views, name)?;
        let bytes = placed.read(view.address, view.bytes)?;
        keep(Path::new(file), &bytes)?;
    }
    Ok(())
}

/// Writes all buffers and variables into a folder, each as a file of its name.
pub fn save(views: &[View], placed: &Placed, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    views.iter().try_for_each(|view| {
        let bytes = placed.read(view.address, view.bytes)?;
        keep(&folder.join(&view.name), &bytes)
    })
}

/// Writes a file.
pub fn keep(file: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(file, bytes).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// What a kernel is given, line by line: its name, its arguments' places and bytes, and buffers and
/// variables with type and size. `8&x+4` behind an argument or a buffer: its byte 8 begins the
/// address of byte 4 of `x`; `8@x`: the handle of what has the texels `x`.
pub fn launch(plan: &Plan, views: &[View], kernel: &Kernel) -> String {
    let mut text = format!("kernel {}\n", kernel.name());
    let end = |text: &mut String, holes: &[Hole]| {
        for hole in holes {
            let (at, name) = (hole.at, &plan.buffers[hole.buffer].name);
            let _ = match hole.handle {
                true => write!(text, " {at}@{name}"),
                false => write!(text, " {at}&{name}+{}", hole.offset),
            };
        }
        text.push('\n');
    };
    for (param, piece) in kernel.params().iter().zip(&plan.arguments) {
        let _ = write!(text, "argument {} ", param.offset);
        for byte in &piece.bytes {
            let _ = write!(text, "{byte:02x}");
        }
        end(&mut text, &piece.holes);
    }
    for buffer in &plan.buffers {
        let _ = write!(text, "buffer {} {} {}", buffer.name, buffer.ty.name(), buffer.bytes);
        end(&mut text, &buffer.holes);
    }
    for view in views {
        if let Some(symbol) = &view.symbol {
            let (name, ty, bytes) = (&view.name, view.ty.name(), view.bytes);
            let _ = writeln!(text, "variable {name} {ty} {bytes} {symbol}");
        }
    }
    text
}

/// Compares buffers with what is expected of them, and says where they differ; whether all are as
/// expected.
pub fn expect(
    views: &[View],
    placed: &Placed,
    asked: &[String],
    tolerance: f64,
) -> Result<bool, String> {
    let mut all = true;
    for text in asked {
        let (name, fill) =
            text.split_once('=').ok_or(format!("`--expect {text}` is not NAME=FILL"))?;
        let view = view(views, name)?;
        let wrong = |why| format!("`--expect {text}`: {why}");
        let fill = Fill::parse(fill, view.ty).map_err(wrong)?;
        let expected = fill.bytes(view.ty, view.count(), 0).map_err(wrong)?;
        let expected = expected.ok_or_else(|| wrong("nothing to compare with".to_owned()))?;
        let found = placed.read(view.address, view.bytes)?;
        match difference(view.ty, &found, &expected, tolerance) {
            None => println!("{name}: {} numbers as expected", view.count()),
            Some(difference) => {
                println!("{name}: {difference}");
                all = false;
            }
        }
    }
    Ok(all)
}

/// How many numbers differ by more than the tolerance, and the first of them, in words.
pub fn difference(ty: Type, found: &[u8], expected: &[u8], tolerance: f64) -> Option<String> {
    let pairs = || found.chunks(ty.bytes()).zip(expected.chunks(ty.bytes()));
    let same = |(found, expected): &(&[u8], &[u8])| {
        let (a, b) = (ty.value(found), ty.value(expected));
        found == expected
            || ty.is_float() && a.is_nan() && b.is_nan()
            || tolerance > 0.0 && (a - b).abs() <= tolerance * b.abs().max(1.0)
    };
    let differ = pairs().filter(|pair| !same(pair)).count();
    let (at, (found, expected)) = pairs().enumerate().find(|(_, pair)| !same(pair))?;
    let all = pairs().count();
    let (found, expected) = (ty.show(found), ty.show(expected));
    Some(format!(
        "{differ} of {all} numbers are not as expected; the first is number {at}: {found} where {expected} was expected"
    ))
}

/// Prints what the launch cost, in a few lines.
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

/// Prints every instruction that accesses memory, and instructions by what they do.
pub fn counters(counters: &Counters) {
    let classes: Vec<_> = counters.classes.iter().filter(|(_, count)| **count > 0).collect();
    for (class, count) in classes {
        println!("  {:<10} {count:>12}", class_name(*class));
    }
    println!(
        "  {:<28} {:<24} {:>10} {:>12} {:>12} {:>12}",
        "place", "instruction", "requests", "sectors", "wavefronts", "conflicts"
    );
    for site in counters.sites.iter().filter(|site| site.requests > 0) {
        let place = match &site.source {
            Some((file, line)) => format!("{file}:{line}"),
            None => format!("PTX line {}", site.line),
        };
        println!(
            "  {place:<28} {:<24} {:>10} {:>12} {:>12} {:>12}",
            site.opcode, site.requests, site.sectors, site.wavefronts, site.conflicts
        );
    }
}

fn class_name(class: Class) -> String {
    format!("{class:?}").to_lowercase()
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
    let place = match &event.source {
        Some((file, line)) => format!("{file}:{line}"),
        None => format!("PTX line {}", event.line),
    };
    let lanes: Vec<usize> = (0..32).filter(|lane| event.lanes >> lane & 1 == 1).collect();
    let what = match &event.what {
        What::Barrier => "barrier".to_owned(),
        What::Shuffle { mode, before, after, .. } => {
            let lanes = lanes
                .iter()
                .map(|&lane| format!("{lane}: {:#x} -> {:#x}", before[lane], after[lane]));
            format!("shuffle {mode} {}", lanes.collect::<Vec<_>>().join(", "))
        }
        What::Load(accessed) => format!("load {}", access(accessed, &lanes)),
        What::Store(accessed) => format!("store {}", access(accessed, &lanes)),
        What::Copy(copied) => {
            let lanes = lanes
                .iter()
                .map(|&lane| format!("{lane}: {:#x} -> {:#x}", copied.from[lane], copied.to[lane]));
            format!("copy {} bytes {}", copied.bytes, lanes.collect::<Vec<_>>().join(", "))
        }
    };
    format!("block {} warp {} {place}: {what}", event.block, event.warp)
}

fn access(accessed: &Accessed, lanes: &[usize]) -> String {
    let space = if accessed.shared { "shared" } else { "global" };
    let lanes = lanes.iter().map(|&lane| {
        let values: Vec<_> =
            accessed.values.iter().map(|values| format!("{:#x}", values[lane])).collect();
        format!("{lane}: [{:#x}] {}", accessed.addresses[lane], values.join(" "))
    });
    format!("{space} {} bytes {}", accessed.bytes, lanes.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_counted() {
        let bytes = |values: &[f32]| {
            values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()
        };
        let (a, b) = (bytes(&[1.0, f32::NAN, 3.0, 4.0]), bytes(&[1.0, -f32::NAN, 3.5, 8.0]));
        assert_eq!(difference(Type::F32, &a, &a, 0.0), None);
        let said = difference(Type::F32, &a, &b, 0.0).unwrap();
        assert_eq!(
            said,
            "2 of 4 numbers are not as expected; the first is number 2: 3.0 where 3.5 was expected"
        );
        let said = difference(Type::F32, &a, &b, 0.15).unwrap();
        assert_eq!(
            said,
            "1 of 4 numbers are not as expected; the first is number 3: 4.0 where 8.0 was expected"
        );
    }
}
