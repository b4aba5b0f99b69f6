//! From a file of a clone to the PTX of one of its kernels.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use linrec::device::nvrtc::{self, Nvrtc};
use linrec::kernels::{Header, Program};

use super::extract::Cut;

const PRELUDE: &str = include_str!("../../foreign/prelude.cuh");

const UTILITY: &str = "#pragma once
namespace std {
template <typename T> struct simt_value { typedef T type; };
template <typename T> struct simt_value<T &> { typedef T type; };
template <typename T> struct simt_value<T &&> { typedef T type; };
template <typename T> constexpr typename simt_value<T>::type &&move(T &&value) {
    return static_cast<typename simt_value<T>::type &&>(value);
}
}
";

/// A file with all that it includes, as far as that is device code.
#[derive(Debug, Clone)]
pub struct Unit {
    /// The file itself is the first; the others by the names by which they are included.
    files: Vec<(String, Cut)>,
    options: Vec<String>,
    /// The folder of NVIDIA's headers, as PTX names it.
    nvidia: Option<String>,
}

impl Unit {
    /// Reads a file of a clone. Headers are looked for beside it and below the clone, then in `include`, where
    /// NVIDIA's are. `options` are for the compiler, beside those that all are compiled with.
    pub fn read(
        clone: &Path,
        path: &str,
        include: Option<&Path>,
        options: &[String],
    ) -> Result<Unit, String> {
        let mut unit = Unit {
            files: Vec::new(),
            options: ["-lineinfo", "--std=c++17", "-default-device"].map(str::to_owned).to_vec(),
            nvidia: include.map(|include| format!("{}/", include.display())),
        };
        unit.options.extend_from_slice(options);
        if let Some(include) = include {
            unit.options.push(format!("--include-path={}", include.display()));
        }
        let mut unread = vec![(path.to_owned(), clone.join(path))];
        while let Some((name, file)) = unread.pop() {
            if unit.files.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let bytes = fs::read(&file)
                .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            let source = String::from_utf8_lossy(&bytes).into_owned();
            let found = |name: &str| local(clone, &file, name);
            let nvidia = |name: &str| {
                include.is_some_and(|include| is_for_devices(name) && include.join(name).is_file())
            };
            let cut = Cut::new(&source, |name| nvidia(name) || found(name).is_some());
            for name in included(&source) {
                if !nvidia(&name)
                    && let Some(file) = found(&name)
                {
                    unread.push((name, file));
                }
            }
            unit.files.push((name, cut));
        }
        Ok(unit)
    }

    /// The kernels of the file, without those of its headers.
    pub fn kernels(&self) -> Vec<String> {
        self.files
            .first()
            .map(|(_, cut)| cut.kernels().map(str::to_owned).collect())
            .unwrap_or_default()
    }

    /// The PTX of one kernel. What the compiler refuses is dropped item by item, until it refuses nothing or the kernel.
    pub fn ptx(&mut self, instance: &str) -> Result<String, String> {
        const ROUNDS: usize = 24;
        let kernel =
            instance.split('<').next().unwrap_or(instance).rsplit("::").next().unwrap_or(instance);
        let mut said = String::new();
        for _ in 0..ROUNDS {
            let result = self.compile(instance, kernel);
            match result {
                Ok(ptx) if has(&ptx, kernel) => return Ok(ptx),
                // It was dropped in a round before.
                Ok(_) => break,
                Err(log) => {
                    if said.is_empty() {
                        said = first_error(&log);
                    }
                    let mut dropped = false;
                    for (number, (name, line)) in places(&log).into_iter().enumerate() {
                        if let Some((_, cut)) =
                            self.files.iter_mut().find(|(file, _)| *file == name)
                        {
                            // What is said of a kernel after another error may be that error's making.
                            dropped |= cut.drop_line(line, number == 0);
                        }
                    }
                    if !dropped {
                        break;
                    }
                }
            }
        }
        Err(said)
    }

    fn compile(&self, instance: &str, kernel: &str) -> Result<String, String> {
        let Some(((file, cut), headers)) = self.files.split_first() else {
            return Err("no file".to_owned());
        };
        let source =
            format!("#include \"simt-foreign-prelude\"\n#line 1\n{}", cut.text(Some(kernel)));
        let mut program = Program::new(file.clone(), source);
        let entry = [instance.to_owned()];
        // Only a template has to be named to be there.
        program.entries = if instance.contains('<') { entry.to_vec() } else { Vec::new() };
        program.options = self.options.clone();
        let header = |name: &str, text: String| Header {
            name: name.to_owned(),
            file: name.to_owned(),
            text: text.into(),
        };
        program.headers.push(header("simt-foreign-prelude", PRELUDE.to_owned()));
        // Included by NVIDIA's own headers; NVRTC has none of the standard library's.
        program.headers.push(header("utility", UTILITY.to_owned()));
        program
            .headers
            .extend(headers.iter().map(|(name, cut)| header(name, cut.text(Some(kernel)))));
        let nvrtc = Nvrtc::find().map_err(|error| error.to_string())?;
        let compiled = nvrtc.compile(&program, nvrtc::SHIPPED_ARCHITECTURE);
        let ptx = compiled.map_err(|error| error.to_string())?.ptx.text().to_owned();
        // Wherever the headers are, the list says the same.
        Ok(self.nvidia.as_ref().map_or(ptx.clone(), |folder| ptx.replace(folder.as_str(), "")))
    }
}

/// Units by their paths, with what was dropped of each: kernels of a file mostly share it.
#[derive(Default)]
pub struct Units(HashMap<PathBuf, Unit>);

impl Units {
    pub fn get(
        &mut self,
        clone: &Path,
        path: &str,
        include: Option<&Path>,
        options: &[String],
    ) -> Result<&mut Unit, String> {
        let key = clone.join(path);
        if !self.0.contains_key(&key) {
            self.0.insert(key.clone(), Unit::read(clone, path, include, options)?);
        }
        self.0.get_mut(&key).ok_or_else(|| "no unit".to_owned())
    }
}

/// Headers of NVIDIA that hold device code; of all others the compiler has what device code needs.
fn is_for_devices(name: &str) -> bool {
    let stems = [
        "cooperative_groups",
        "cuda_fp16",
        "cuda_bf16",
        "cuda_pipeline",
        "cuda_awbarrier",
        "cuComplex",
        "curand_kernel",
        "mma.h",
        "math_constants",
        "cub/",
        "cuda/",
        "sm_",
        "vector_functions",
        "cuda_texture_types",
    ];
    stems.iter().any(|stem| name.starts_with(stem))
}

/// A header of the clone: beside the file that includes it, or where its name ends in `/Common`, `/include` or `/inc` of
/// a folder above.
fn local(clone: &Path, file: &Path, name: &str) -> Option<PathBuf> {
    let beside = file.parent()?;
    let mut candidates = vec![beside.join(name)];
    for above in beside.ancestors().take_while(|above| above.starts_with(clone)) {
        candidates.extend(
            ["Common", "include", "inc", "src", ""].map(|folder| above.join(folder).join(name)),
        );
    }
    candidates.into_iter().find(|file| file.is_file())
}

/// What a text includes.
fn included(source: &str) -> Vec<String> {
    let names = source.lines().filter_map(|line| {
        let rest =
            line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
        let close = match rest.chars().next()? {
            '"' => '"',
            '<' => '>',
            _ => return None,
        };
        rest[1..].split(close).next().map(str::to_owned)
    });
    names.collect()
}

/// Files and lines that a compiler finds errors in: `a.cu(12): error: …`.
fn places(log: &str) -> Vec<(String, usize)> {
    let places = log.lines().filter_map(|line| {
        let (place, _) =
            line.split_once("): error").or_else(|| line.split_once("): catastrophic error"))?;
        let (file, line) = place.rsplit_once('(')?;
        Some((file.to_owned(), line.parse().ok()?))
    });
    places.collect()
}

/// Whether there is a kernel of that name, as the compiler of C++ may have written it.
fn has(ptx: &str, kernel: &str) -> bool {
    let mut entries =
        ptx.lines().filter_map(|line| line.split_once(".entry ").map(|(_, name)| name));
    entries.any(|name| name.contains(kernel))
}

fn first_error(log: &str) -> String {
    let line =
        log.lines().find(|line| line.contains("error")).or(log.lines().next()).unwrap_or_default();
    line.split_once("error: ").map_or(line, |(_, words)| words).trim().to_owned()
}
