//! Reads a file as a module, and finds one of its kernels.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use nvrtc::Ptx;
use simt::{Kernel, Module};

use crate::name::{is_meant, short};
use crate::options::Source;

impl Source {
    /// Returns the PTX of the file. CUDA C++ is compiled to these instances of its templates.
    pub fn ptx(&self, kernels: &[String]) -> Result<Ptx, String> {
        match self.file.extension() {
            Some(extension) if extension == "cu" => self.compiled(kernels),
            _ => self.text().map(Ptx::from_text),
        }
    }

    /// Returns the PTX that NVRTC compiles the file to, whatever its extension.
    pub fn compiled(&self, kernels: &[String]) -> Result<Ptx, String> {
        compile(self, self.text()?, kernels)
    }

    fn text(&self) -> Result<String, String> {
        let file = self.file.display();
        let text = fs::read(&self.file).map_err(|error| format!("cannot read {file}: {error}"))?;
        String::from_utf8(text).map_err(|_| format!("{file} is not text, so it is not PTX"))
    }
}

/// Parses PTX. An error names the file.
pub fn parse(ptx: &str, file: &Path) -> Result<Module, String> {
    Module::parse(ptx).map_err(|error| format!("{}: {error}", file.display()))
}

/// Returns the kernel of this name, or the only kernel if no name is given.
pub fn find(module: &Module, name: Option<&str>) -> Result<Arc<Kernel>, String> {
    let emulated = || module.kernels().map(|kernel| kernel.name());
    let shown = || {
        let names = emulated().chain(module.refusals().map(|(name, _)| name));
        let names: Vec<_> = names.map(|name| format!("`{}`", short(name))).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let refused = |(name, error): (&str, &simt::ParseError)| {
        format!("the kernel `{}` is not emulated: {error}", short(name))
    };
    let Some(wanted) = name else {
        let mut kernels = module.kernels();
        return match (kernels.next(), kernels.next(), module.refusals().next()) {
            (Some(kernel), None, None) => Ok(kernel.clone()),
            (None, None, Some(only)) if module.refusals().count() == 1 => Err(refused(only)),
            _ => Err(format!("name the kernel with --kernel; kernels are {}", shown())),
        };
    };
    // An exact name comes before names that only resemble it.
    if let Some(kernel) = module.kernel(wanted) {
        return Ok(kernel.clone());
    }
    let meant: Vec<_> = module.kernels().filter(|kernel| is_meant(kernel.name(), wanted)).collect();
    match &meant[..] {
        [kernel] => Ok((*kernel).clone()),
        [] => match module.refusals().find(|(name, _)| is_meant(name, wanted)) {
            Some(found) => Err(refused(found)),
            None => Err(format!("there is no kernel `{wanted}`; kernels are {}", shown())),
        },
        several => {
            let names = several.iter().map(|kernel| format!("`{}`", kernel.name()));
            let names = names.collect::<Vec<_>>().join(" or ");
            Err(format!("the name `{wanted}` is ambiguous: give one of {names}"))
        }
    }
}

/// The compute capability that is compiled for, as in `compute_80`.
#[cfg(feature = "nvrtc")]
const ARCHITECTURE: u32 = 80;

#[cfg(feature = "nvrtc")]
fn compile(source: &Source, text: String, kernels: &[String]) -> Result<Ptx, String> {
    use nvrtc::{Header, Program};

    let file = &source.file;
    let mut program = Program::new(file.display().to_string(), text).with_entries(kernels);
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let include = format!("--include-path={}", folder.unwrap_or(Path::new(".")).display());
    program.options = vec!["-lineinfo".to_owned(), "--std=c++17".to_owned(), include];
    program.options.extend_from_slice(&source.compile);
    for (name, file) in &source.headers {
        let text =
            fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
        let (name, file) = (name.clone(), name.clone());
        program.headers.push(Header { name, file, text: text.into() });
    }
    let compiled = nvrtc::compile(&program, ARCHITECTURE).map_err(|error| error.to_string())?;
    Ok(compiled.ptx)
}

#[cfg(not(feature = "nvrtc"))]
fn compile(source: &Source, _: String, _: &[String]) -> Result<Ptx, String> {
    let file = source.file.display();
    Err(format!(
        "{file} is CUDA C++, and this program was built without its feature `nvrtc`; compile it \
         with `nvcc --ptx`"
    ))
}
