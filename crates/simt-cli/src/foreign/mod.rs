//! `simt foreign`: kernels of public repositories, run as a list says, and what came of it beside what is recorded.
//!
//! Neither their sources nor their PTX are kept here. A clone of each repository is, with the commit that the list names.

mod compare;
mod compile;
mod extract;
mod row;
mod summary;

use std::collections::BTreeMap;
use std::fs;
use std::panic;
use std::path::Path;

use sha2::{Digest, Sha256};
use simt::{Launch, Module, ReportKind};

use crate::Outcome;
use crate::emulate::{self, Placed};
use crate::module::find;
use crate::name::short;
use crate::options::{Foreign, extent};
use crate::plan::Plan;
use crate::run::{packed, variables};
use crate::say::{print, println};
use compile::Units;
use row::Row;

/// Instructions of a launch: most foreign kernels are given little to do.
const INSTRUCTIONS: u64 = 1 << 27;
/// Of one that is judged to be too long for that.
const FEW_INSTRUCTIONS: u64 = 1 << 20;

/// What came of a kernel.
enum Came {
    NotCompiled(String),
    Refused(String),
    Reported(String),
    /// With what is in each buffer, and its name.
    Ran(Vec<(String, Vec<u8>)>),
}

impl Came {
    fn words(&self) -> (&'static str, &str) {
        match self {
            Came::NotCompiled(words) => ("not compiled", words),
            Came::Refused(words) => ("refused", words),
            Came::Reported(words) => ("reported", words),
            Came::Ran(_) => ("ran", ""),
        }
    }
}

/// Runs the kernels of a list, from clones or from what was packed before.
pub fn foreign(options: &Foreign) -> Result<Outcome, String> {
    if let Some(file) = &options.kernels {
        return kernels(options, file);
    }
    let text = match (&options.packed, &options.list) {
        (Some(folder), _) => read(&folder.join("kernels.csv"))?,
        (None, Some(list)) => read(list)?,
        (None, None) => include_str!("../../foreign/kernels.csv").to_owned(),
    };
    let mut rows = Row::read(&text)?;
    if options.summary {
        let unequal = include_str!("../../foreign/h200.csv");
        print!("{}", summary::table(&rows, unequal)?);
        return Ok(Outcome::Done);
    }
    let (mut units, mut counts, mut changed) = (Units::default(), BTreeMap::new(), 0);
    let (mut compared, mut differ) = (0, 0);
    for (number, row) in rows.iter_mut().enumerate() {
        if options.only.as_ref().is_some_and(|only| {
            !row.path.contains(only.as_str()) && !row.kernel.contains(only.as_str())
        }) {
            continue;
        }
        let ptx = match &options.packed {
            Some(folder) => fs::read_to_string(folder.join(format!("{number}.ptx")))
                .map_err(|error| error.to_string()),
            None => source(options, row, &mut units)?,
        };
        let came = match &ptx {
            Ok(ptx) => {
                panic::catch_unwind(|| run(row, ptx)).unwrap_or_else(|_| Err("PANIC".to_owned()))
            }
            Err(error) => Ok(Came::NotCompiled(error.clone())),
        };
        // A launch that is impossible is a mistake of the list.
        let came = came.unwrap_or_else(|why| Came::Reported(format!("cannot be launched: {why}")));
        if let (Some(folder), Ok(ptx)) = (&options.pack, &ptx) {
            fs::create_dir_all(folder)
                .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
            save(&folder.join(format!("{number}.ptx")), ptx)?;
        }
        let (outcome, words) = came.words();
        *counts.entry(outcome).or_insert(0_u32) += 1;
        if (&*row.outcome, &*row.words) != (outcome, words) {
            changed += 1;
            println!(
                "{} {}: {} {} -> {outcome} {words}",
                row.path, row.kernel, row.outcome, row.words
            );
            (row.outcome, row.words) = (outcome.to_owned(), words.to_owned());
        }
        if let (true, Came::Ran(buffers), Ok(ptx)) = (options.gpu, &came, &ptx) {
            match compare::on_gpu(row, ptx, buffers) {
                Ok(None) => compared += 1,
                Ok(Some(difference)) => {
                    (compared, differ) = (compared + 1, differ + 1);
                    println!("{} {}: {difference}", row.path, row.kernel);
                }
                Err(why) => println!("{} {}: not compared: {why}", row.path, row.kernel),
            }
        }
    }
    let counts: Vec<_> =
        counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    println!("{} kernels: {}; {changed} not as recorded", rows.len(), counts.join(", "));
    if options.gpu {
        println!("{compared} compared with a GPU, {differ} differ");
    }
    let list = Row::write(&rows)?;
    if let Some(folder) = &options.pack {
        save(&folder.join("kernels.csv"), &list)?;
    }
    if let (true, Some(file)) = (options.update, &options.list) {
        save(file, &list)?;
    }
    Ok(if changed > 0 || differ > 0 { Outcome::Wrong } else { Outcome::Done })
}

/// Prints the kernels of a file of a clone with what they take, for rows to be written.
fn kernels(options: &Foreign, file: &str) -> Result<Outcome, String> {
    let clones = options.clones.as_deref().ok_or("say where the clones are, with --clones")?;
    let (clone, path) =
        file.split_once('/').ok_or_else(|| format!("`{file}` is not CLONE/PATH"))?;
    let (clone, include) = (clones.join(clone), options.include.as_deref());
    let unit = Units::default().get(&clone, path, include, &options.compile)?.clone();
    for kernel in unit.kernels() {
        println!("{kernel}");
    }
    Ok(Outcome::Done)
}

/// The PTX of a row's kernel, or why it has none.
fn source(
    options: &Foreign,
    row: &mut Row,
    units: &mut Units,
) -> Result<Result<String, String>, String> {
    let clones = options
        .clones
        .as_deref()
        .ok_or("say where the clones are, with --clones, or what is packed, with --packed")?;
    let clone = clones.join(row.folder());
    let file = clone.join(&row.path);
    let bytes =
        fs::read(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if row.sha256.is_empty() {
        row.sha256.clone_from(&sha256);
    }
    if row.sha256 != sha256 {
        return Err(format!(
            "{} is not the file of commit {}: its hash is {sha256}",
            file.display(),
            row.commit
        ));
    }
    let include = options.include.as_deref();
    let unit = units.get(&clone, &row.path, include, &options.compile)?;
    Ok(unit.ptx(&row.kernel))
}

/// Runs a kernel on the emulator.
fn run(row: &Row, ptx: &str) -> Result<Came, String> {
    let module = match Module::parse(ptx) {
        Ok(module) => module,
        Err(error) => return Ok(Came::Refused(error.message)),
    };
    if let Some((_, error)) = module.refusals().find(|(name, _)| is_of(row, ptx, name)) {
        return Ok(Came::Refused(error.message.clone()));
    }
    let names: Vec<_> = module
        .kernels()
        .map(|kernel| kernel.name().to_owned())
        .filter(|name| is_of(row, ptx, name))
        .collect();
    let kernel = find(&module, names.first().map(String::as_str))?;
    let mut plan = Plan::default();
    plan.arguments(&row.arguments(), kernel.params())?;
    let placed = Placed::new(&plan)?;
    let views = variables(&module, &placed.memory, &row.variables())?;
    let arguments = packed(&plan, &placed, &kernel);
    let mut launch = Launch::new(&kernel, extent(&row.grid)?, extent(&row.block)?, &arguments);
    let is_long = row.judgement.starts_with("too long");
    launch.instructions = if is_long { FEW_INSTRUCTIONS } else { INSTRUCTIONS };
    launch.dynamic_shared = if row.shared.is_empty() {
        0
    } else {
        row.shared.parse().map_err(|_| format!("`{}` is no number of bytes", row.shared))?
    };
    let (blocks, together) = (0..launch.blocks(), kernel.communicates());
    let ran = launch
        .prepare(&placed.memory)
        .and_then(|launch| emulate::run(&launch, blocks, together, None));
    if let Err(mut report) = ran {
        if report.kind == ReportKind::Launch {
            return Err(report.message);
        }
        report.kernel = short(&report.kernel);
        // Blocks on all cores use up the bound together, so that the place is another one in every run.
        if report.kind == ReportKind::Instructions {
            return Ok(Came::Reported(format!("{} {}", report.kernel, report.message)));
        }
        // Where the PTX has it depends on the compiler.
        let text = report.to_string();
        return Ok(Came::Reported(match text.split_once(" (PTX line ") {
            Some((before, after)) => {
                format!("{before}{}", after.split_once(')').map_or("", |(_, after)| after))
            }
            None => text,
        }));
    }
    let mut buffers = Vec::new();
    for (buffer, &address) in plan.buffers.iter().zip(&placed.addresses) {
        buffers.push((buffer.name.clone(), placed.read(address, buffer.bytes)?));
    }
    for view in views {
        buffers.push((view.name.clone(), placed.read(view.address, view.bytes)?));
    }
    Ok(Came::Ran(buffers))
}

/// Whether a name of the PTX is that of the row's kernel.
fn is_of(row: &Row, ptx: &str, name: &str) -> bool {
    let named =
        crate::module::entries(ptx).any(|(entry, symbol)| entry == row.kernel && symbol == name);
    let bare = |name: &str| {
        name.split('<')
            .next()
            .unwrap_or_default()
            .rsplit("::")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    named || bare(&short(name)) == bare(&row.kernel)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

fn save(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}
