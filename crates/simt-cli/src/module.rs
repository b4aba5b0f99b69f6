//! From a file to a module and one of its kernels.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use simt::{Kernel, Module};

use crate::name::{is_meant, short};
use crate::options::Source;

impl Source {
    /// The PTX of the file. `kernels` are instances of templates that CUDA C++ is to be compiled to.
    pub fn ptx(&self, kernels: &[String]) -> Result<String, String> {
        let file = self.file.display();
        let text = fs::read(&self.file).map_err(|error| format!("cannot read {file}: {error}"))?;
        let text =
            String::from_utf8(text).map_err(|_| format!("{file} is no text, and so no PTX"))?;
        if self.file.extension().is_some_and(|extension| extension == "cu") {
            return compile(&self.file, text, kernels, &self.compile);
        }
        Ok(text)
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

#[cfg(feature = "cuda")]
fn compile(
    file: &Path,
    text: String,
    kernels: &[String],
    options: &[String],
) -> Result<String, String> {
    use linrec::device::nvrtc;
    use linrec::kernels::Program;

    let mut program = Program::new(file.display().to_string(), text).with_entries(kernels);
    program.options = vec!["-lineinfo".to_owned(), "--std=c++17".to_owned()];
    let folder =
        file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    program.options.push(format!("--include-path={}", folder.display()));
    program.options.extend_from_slice(options);
    let compiled = nvrtc::compile(&program, nvrtc::SHIPPED_ARCHITECTURE);
    compiled.map(|compiled| compiled.ptx.text().to_owned()).map_err(|error| error.to_string())
}

#[cfg(not(feature = "cuda"))]
fn compile(file: &Path, _: String, _: &[String], _: &[String]) -> Result<String, String> {
    let file = file.display();
    Err(format!(
        "{file} is CUDA C++: this program was built without its feature `cuda`; compile it with `nvcc --ptx`"
    ))
}
