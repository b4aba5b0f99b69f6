//! `simt list` and `simt compile`: what is in a file.

use simt::{Declarations, Memory};

use crate::Outcome;
use crate::module::parse;
use crate::name::readable;
use crate::options::{Compile, List};
use crate::plan::shown;
use crate::say::{print, println};

/// Prints what NVRTC makes of a file.
pub fn compile(options: &Compile) -> Result<Outcome, String> {
    print!("{}", options.source.compiled(&options.kernel)?);
    Ok(Outcome::Done)
}

/// Prints the kernels of a file, with all that a launch has to give them.
pub fn list(options: &List) -> Result<Outcome, String> {
    let ptx = options.source.ptx(&options.kernel)?;
    let module = parse(&ptx, &options.source.file)?;
    // Of refused kernels the declaration alone is known.
    let declared = Declarations::parse(&ptx).map_err(|error| error.to_string())?;
    for entry in declared.entries() {
        println!("{}", readable(entry.name()));
        if readable(entry.name()) != entry.name() {
            println!("    named       {}", entry.name());
        }
        println!("    takes       {}", shown(entry.params()));
        if let Some(kernel) = module.kernel(entry.name()) {
            println!("    shared      {} bytes, beside what a launch adds", kernel.shared_bytes());
            if kernel.local_bytes() > 0 {
                println!("    local       {} bytes of each thread", kernel.local_bytes());
            }
            println!("    block       at most {} threads", kernel.max_threads_per_block());
            if kernel.communicates() {
                println!("    blocks      may wait for each other: they run together");
            }
        }
        if let Some(refusal) = module.refusal(entry.name()) {
            println!("    not emulated: {refusal}");
        }
    }
    if declared.entries().is_empty() {
        println!("no kernels");
    }
    let memory = Memory::new(1 << 40);
    let variables = memory.variables(&module).map_err(|error| error.to_string())?;
    // What the compiler has made of literals has a dollar in its name.
    for variable in variables.iter().filter(|variable| !variable.name.starts_with('$')) {
        let kind = if variable.constant { "constant" } else { "device" };
        println!(
            "{kind} variable {} ({}): {} bytes",
            variable.name,
            readable(&variable.name),
            variable.bytes
        );
    }
    Ok(Outcome::Done)
}
