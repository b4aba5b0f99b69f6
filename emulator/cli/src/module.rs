//! From a file to a module and one of its kernels.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use simt::{Kernel, Module};

use crate::name::{is_meant, short};
use crate::options::Source;

impl Source {
    /// The PTX of the file. `kernels` are instances of templates that CUDA C++ is to be compiled
    /// to.
    pub fn ptx(&self, kernels: &[String]) -> Result<String, String> {
        match self.file.extension() {
            Some(extension) if extension == "cu" => self.compiled(kernels),
            _ => self.text(),
        }
    }

    /// The PTX that NVRTC makes of the file, whatever its ending is.
    pub fn compiled(&self, kernels: &[String]) -> Result<String, String> {
        compile(self, self.text()?, kernels)
    }

    fn text(&self) -> Result<String, String> {
        let file = self.file.display();
        let text = fs::read(&self.file).map_err(|error| format!("cannot read {file}: {error}"))?;
        String::from_utf8(text).map_err(|_| format!("{file} is no text, and so no PTX"))
    }
}

/// The names in C++ and in the PTX of the kernels that the head of a PTX text names.
pub fn entries(ptx: &str) -> impl Iterator<Item = (&str, &str)> {
    let head = ptx.lines().map_while(|line| line.strip_prefix("// "));
    head.filter_map(|line| line.strip_prefix("entry ")?.split_once(" = "))
}

/// The kernels of a PTX source; why it has none is told with the file.
pub fn parse(ptx: &str, file: &Path) -> Result<Module, String> {
    Module::parse(ptx).map_err(|error| format!("{}: {error}", file.display()))
}

/// The kernel that is meant by a name; without one the only kernel that there is.
pub fn find(module: &Module, name: Option<&str>) -> Result<Arc<Kernel>, String> {
    let shown = || {
        let names = module
            .kernels()
            .map(|kernel| kernel.name())
            .chain(module.refusals().map(|(name, _)| name));
        let names: Vec<_> = names.map(|name| format!("`{}`", short(name))).collect();
        if names.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        }
    };
    let refused = |(name, error): (&str, &simt::ParseError)| {
        format!("the kernel `{}` is not emulated: {error}", short(name))
    };
    let Some(wanted) = name else {
        let mut kernels = module.kernels();
        return match (kernels.next(), kernels.next(), module.refusals().next()) {
            (Some(kernel), None, None) => Ok(kernel.clone()),
            (None, None, Some(only)) if module.refusals().count() == 1 => Err(refused(only)),
            _ => Err(format!("say which kernel, with --kernel; {}", shown())),
        };
    };
    // The name itself goes before names that only resemble it.
    let exact = module.kernel(wanted).cloned();
    let meant: Vec<_> = module.kernels().filter(|kernel| is_meant(kernel.name(), wanted)).collect();
    match (exact, &meant[..]) {
        (Some(kernel), _) => Ok(kernel),
        (None, [kernel]) => Ok((*kernel).clone()),
        (None, []) => match module.refusals().find(|(name, _)| is_meant(name, wanted)) {
            Some(found) => Err(refused(found)),
            None => Err(format!("there is no kernel `{wanted}`; {}", shown())),
        },
        (None, several) => {
            let names: Vec<_> =
                several.iter().map(|kernel| format!("`{}`", kernel.name())).collect();
            Err(format!("`{wanted}` may be {}: give one of these names", names.join(" or ")))
        }
    }
}

/// The compute capability that is compiled for, as in `compute_80`.
#[cfg(feature = "nvrtc")]
const ARCHITECTURE: u32 = 80;

#[cfg(feature = "nvrtc")]
fn compile(source: &Source, text: String, kernels: &[String]) -> Result<String, String> {
    use nvrtc::{Header, Program};

    let file = &source.file;
    let mut program = Program::new(file.display().to_string(), text).with_entries(kernels);
    program.options = vec!["-lineinfo".to_owned(), "--std=c++17".to_owned()];
    let folder =
        file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    program.options.push(format!("--include-path={}", folder.display()));
    program.options.extend_from_slice(&source.compile);
    for header in &source.headers {
        let (name, file) =
            header.split_once('=').ok_or(format!("`--header {header}` is not NAME=FILE"))?;
        let text =
            fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
        let name = name.to_owned();
        program.headers.push(Header { file: name.clone(), name, text: text.into() });
    }
    let compiled = nvrtc::compile(&program, ARCHITECTURE);
    compiled.map(|compiled| compiled.ptx.text().to_owned()).map_err(|error| error.to_string())
}

#[cfg(not(feature = "nvrtc"))]
fn compile(source: &Source, _: String, _: &[String]) -> Result<String, String> {
    let file = source.file.display();
    Err(format!(
        "{file} is CUDA C++: this program was built without its feature `nvrtc`; compile it with `nvcc --ptx`"
    ))
}
