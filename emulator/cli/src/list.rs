//! `simt list` and `simt compile`: the contents of a file.

use std::process::ExitCode;

use simt::{Declarations, Memory};

use crate::module::parse;
use crate::name::readable;
use crate::options::Listed;
use crate::plan::shown;
use crate::say::{print, println};

/// Prints the PTX that NVRTC compiles a file to.
pub fn compile(options: &Listed) -> Result<ExitCode, String> {
    print!("{}", options.source.compiled(&options.kernel)?.text());
    Ok(ExitCode::SUCCESS)
}

/// Prints the kernels of a file with everything that a launch must give them, and the variables of
/// its module.
pub fn list(options: &Listed) -> Result<ExitCode, String> {
    let ptx = options.source.ptx(&options.kernel)?;
    let module = parse(ptx.text(), &options.source.file)?;
    // A refused kernel has only its declaration.
    let declared = Declarations::parse(ptx.text()).map_err(|error| error.to_string())?;
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
    // The names of variables that the compiler makes of literals begin with a dollar sign.
    let variables = memory.variables(&module).map_err(|error| error.to_string())?;
    for variable in variables.iter().filter(|variable| !variable.name.starts_with('$')) {
        let kind = if variable.constant { "constant" } else { "device" };
        let (name, bytes) = (&variable.name, variable.bytes);
        println!("{kind} variable {name} ({}): {bytes} bytes", readable(name));
    }
    Ok(ExitCode::SUCCESS)
}
