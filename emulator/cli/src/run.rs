//! `simt run`: one launch.

use std::process::ExitCode;

use simt::{Kernel, Launch, Memory, Module, ReportKind, Trace};

use crate::emulate::{self, Placed};
use crate::fill;
use crate::module::{find, parse};
use crate::name::{is_meant, short};
use crate::options::{Run, Variable};
use crate::output::{self, View};
use crate::plan::Plan;
use crate::say::{print, println};

/// Runs a kernel as the options describe.
pub fn run(options: &Run) -> Result<ExitCode, String> {
    // Only an instance of a template has to be named for it to be compiled.
    let instances = options.kernel.iter().filter(|name| name.contains('<')).cloned();
    let ptx = options.source.ptx(&instances.collect::<Vec<_>>())?;
    let module = parse(ptx.text(), &options.source.file)?;
    let wanted = options.kernel.as_deref();
    // The head of compiled PTX may have the name in C++.
    let kernel = find(&module, wanted.and_then(|entry| ptx.symbol(entry)).or(wanted))?;
    let mut plan = Plan::default();
    plan.add(&options.buffers)?;
    plan.arguments(&options.arguments, kernel.params())?;
    let placed = Placed::new(&plan)?;
    let mut views = views(&plan, &placed);
    for asked in &options.variables {
        let view = variable(&module, &placed.memory, asked);
        views.push(view.map_err(|why| format!("the variable `{}`: {why}", asked.name))?);
    }

    let arguments = packed(&plan, &placed, &kernel);
    let mut launch = Launch::new(&kernel, options.grid, options.block, &arguments);
    launch.dynamic_shared = options.shared;
    launch.instructions = options.instructions;
    let all = launch.blocks();
    let blocks = options.blocks.clone().unwrap_or(0..all);
    if blocks.start > blocks.end || blocks.end > all {
        return Err(format!("blocks {blocks:?} are not in the grid's 0..{all}"));
    }
    if let Some(folder) = &options.save {
        output::save(&views, &placed, &folder.join("before"))?;
        let launch = plan.lines(&kernel) + &output::variable_lines(&views);
        output::write_file(&folder.join("launch.txt"), launch.as_bytes())?;
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
            return Ok(ExitCode::from(1));
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
    // Results that go elsewhere are printed only on request.
    if options.save.is_none() && options.write.is_empty() && options.expect.is_empty()
        || !options.print.is_empty()
    {
        output::print(&views, &placed, &options.print)?;
    }
    output::write(&views, &placed, &options.write)?;
    let as_expected = output::expect(&views, &placed, &options.expect, options.tolerance)?;
    Ok(ExitCode::from(u8::from(!as_expected)))
}

/// Returns the bytes of all arguments, at the offsets of the kernel's parameters.
fn packed(plan: &Plan, placed: &Placed, kernel: &Kernel) -> Vec<u8> {
    let mut bytes = vec![0; kernel.param_bytes() as usize];
    for (param, piece) in kernel.params().iter().zip(&plan.arguments) {
        let start = param.offset as usize;
        let piece = placed.filled(&piece.bytes, &piece.holes);
        bytes[start..start + piece.len()].copy_from_slice(&piece);
    }
    bytes
}

fn views(plan: &Plan, placed: &Placed) -> Vec<View> {
    let buffers = plan.buffers.iter().zip(&placed.addresses);
    let view = |(buffer, &address): (&crate::plan::Buffer, &u64)| {
        let (name, ty, bytes) = (buffer.name.clone(), buffer.ty, buffer.bytes);
        View { name, ty, address, bytes, symbol: None }
    };
    buffers.map(view).collect()
}

/// Finds a variable of the module, and writes its new contents to it.
fn variable(module: &Module, memory: &Memory, asked: &Variable) -> Result<View, String> {
    let Variable { name, ty, count, fill } = asked;
    let variables = memory.variables(module).map_err(|error| error.to_string())?;
    let found = variables.iter().find(|variable| is_meant(&variable.name, name));
    let variable = found.ok_or_else(|| {
        let names: Vec<_> = variables.iter().map(|variable| variable.name.to_string()).collect();
        format!("the module does not have it; it has {}", names.join(", "))
    })?;
    let bytes = ty.bytes().saturating_mul(*count);
    if bytes as u64 > variable.bytes {
        return Err(format!("{bytes} bytes are given, and it has {}", variable.bytes));
    }
    if let Some(contents) = fill::bytes(fill, *ty, *count, 0)? {
        memory.write(variable.address, &contents).map_err(|error| error.to_string())?;
    }
    let symbol = Some(variable.name.to_string());
    Ok(View { name: name.clone(), ty: *ty, address: variable.address, bytes, symbol })
}
