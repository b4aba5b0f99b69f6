//! `simt run`: one launch.

use simt::{Kernel, Launch, Memory, Module, ReportKind, Trace};

use crate::Outcome;
use crate::argument::Value;
use crate::emulate::{self, Placed};
use crate::module::{entries, find, parse};
use crate::name::{is_meant, short};
use crate::options::Run;
use crate::output::{self, View};
use crate::plan::Plan;
use crate::say::{print, println};

/// Runs a kernel as the command line says.
pub fn run(options: &Run) -> Result<Outcome, String> {
    // A template is compiled for an instance that is named; what is none need not be named.
    let instances = options.kernel.iter().filter(|name| name.contains('<')).cloned();
    let ptx = options.source.ptx(&instances.collect::<Vec<_>>())?;
    let module = parse(&ptx, &options.source.file)?;
    let wanted = options.kernel.as_deref();
    // What the head of compiled PTX calls by a name of C++.
    let named = entries(&ptx).find(|(entry, _)| Some(*entry) == wanted).map(|(_, symbol)| symbol);
    let kernel = find(&module, named.or(wanted))?;
    let mut plan = Plan::default();
    plan.add(&options.buffers)?;
    plan.arguments(&options.arguments, kernel.params())?;
    let placed = Placed::new(&plan)?;
    let mut views = views(&plan, &placed);
    views.extend(variables(&module, &placed.memory, &options.variables)?);

    let arguments = packed(&plan, &placed, &kernel);
    let mut launch = Launch::new(&kernel, options.grid, options.block, &arguments);
    launch.dynamic_shared = options.shared;
    launch.instructions = options.instructions;
    let all = launch.blocks();
    let blocks = options.blocks.map_or(0..all, |(first, end)| first..end);
    if blocks.start > blocks.end || blocks.end > all {
        return Err(format!("blocks {blocks:?} are not in the grid's 0..{all}"));
    }
    if let Some(folder) = &options.save {
        output::save(&views, &placed, &folder.join("before"))?;
        let launch = output::launch(&plan, &views, &kernel);
        output::keep(&folder.join("launch.txt"), launch.as_bytes())?;
    }
    let together = options.together || kernel.communicates();
    let mut trace = options.trace.map(Trace::new);
    let counted = launch
        .prepare(&placed.memory)
        .and_then(|launch| emulate::run(&launch, blocks, together, trace.as_mut()));
    if let Some(trace) = &trace {
        output::trace(trace);
    }
    let counters = match counted {
        Ok(counters) => counters,
        Err(mut report) => {
            report.kernel = short(&report.kernel);
            if report.kind == ReportKind::Launch {
                return Err(report.to_string());
            }
            println!("{report}");
            return Ok(Outcome::Wrong);
        }
    };
    for printed in &counters.printed {
        print!("{}", printed.text);
    }
    output::summary(&counters);
    if options.counters {
        output::counters(&counters);
    }
    if let Some(folder) = &options.save {
        output::save(&views, &placed, &folder.join("after"))?;
    }
    let elsewhere =
        options.save.is_some() || !options.write.is_empty() || !options.expect.is_empty();
    let silent = options.print.is_empty() && elsewhere;
    if !silent {
        output::print(&views, &placed, &options.print)?;
    }
    output::write(&views, &placed, &options.write)?;
    let as_expected = output::expect(&views, &placed, &options.expect, options.tolerance)?;
    Ok(if as_expected { Outcome::Done } else { Outcome::Wrong })
}

/// The arguments' bytes, where the kernel's parameters lie.
fn packed(plan: &Plan, placed: &Placed, kernel: &Kernel) -> Vec<u8> {
    let mut bytes = vec![0; kernel.param_bytes() as usize];
    for (param, piece) in kernel.params().iter().zip(&plan.arguments) {
        let piece = piece.clone().filled(placed);
        let start = param.offset as usize;
        bytes[start..start + piece.len()].copy_from_slice(&piece);
    }
    bytes
}

fn views(plan: &Plan, placed: &Placed) -> Vec<View> {
    let buffers = plan.buffers.iter().zip(&placed.addresses);
    buffers
        .map(|(buffer, &address)| View {
            name: buffer.name.clone(),
            ty: buffer.ty,
            address,
            bytes: buffer.bytes,
            symbol: None,
        })
        .collect()
}

/// The variables that are named, with what they are to hold written to them.
fn variables(module: &Module, memory: &Memory, asked: &[String]) -> Result<Vec<View>, String> {
    let mut views = Vec::new();
    for text in asked {
        let wrong = |why: String| format!("`--variable {text}`: {why}");
        let there = memory.variables(module).map_err(|error| wrong(error.to_string()))?;
        let (name, rest) = text
            .split_once(':')
            .ok_or_else(|| wrong("it is not NAME:TYPE[COUNT]=FILL".to_owned()))?;
        let variable = there.iter().find(|variable| is_meant(&variable.name, name));
        let variable = variable.ok_or_else(|| {
            let names: Vec<_> = there.iter().map(|variable| variable.name.to_string()).collect();
            wrong(format!("the module has no variable `{name}`; it has {}", names.join(", ")))
        })?;
        // One number is meant like an array of one.
        let typed = rest.split('=').next().unwrap_or_default();
        let array = match (typed.contains('['), rest.split_once('=')) {
            (true, _) => rest.to_owned(),
            (false, Some((ty, fill))) => format!("{ty}[1]={fill}"),
            (false, None) => format!("{rest}[1]"),
        };
        let Value::Buffer { ty, count, fill, .. } = Value::parse(&array).map_err(wrong)? else {
            return Err(wrong("it is not NAME:TYPE[COUNT]=FILL".to_owned()));
        };
        let bytes = ty.bytes().saturating_mul(count);
        if bytes as u64 > variable.bytes {
            return Err(wrong(format!("{bytes} bytes, and the variable has {}", variable.bytes)));
        }
        if let Some(contents) = fill.bytes(ty, count, 0).map_err(wrong)? {
            memory.write(variable.address, &contents).map_err(|error| wrong(error.to_string()))?;
        }
        let symbol = Some(variable.name.to_string());
        views.push(View { name: name.to_owned(), ty, address: variable.address, bytes, symbol });
    }
    Ok(views)
}
