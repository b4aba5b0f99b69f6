//! Checks that PTX may be shipped.

use std::path::Path;

use linrec::kernels::Ptx;
use linrec::simt::Module;

use super::list::List;
use crate::failure::Failure;

/// The most entries, without the entries for studies.
const MOST: usize = 195;
/// The most entries of the selective scan, which has a kernel for each type, size and exponential.
const MOST_OF_SCANS: usize = 80;

/// The failures of the PTX at `path`.
pub(super) fn failures(path: &Path, ptx: &Ptx) -> Vec<Failure> {
    let failure = |line, what| Failure::new(path, line, what);
    let module = match Module::parse(ptx.text()).and_then(Module::complete) {
        Ok(module) => module,
        Err(error) => {
            let what = format!("the emulator does not take it: {}", error.message);
            return vec![failure(Some(error.line as usize), what)];
        }
    };
    let unrounded = module.unrounded().iter().map(|(line, opcode)| {
        let what = format!("`{opcode}` says nothing about rounding, and a driver may fuse it");
        failure(Some(*line as usize), what)
    });
    let missing = ptx.entries().filter(|(_, symbol)| module.kernel(symbol).is_none());
    let missing =
        missing.map(|(entry, _)| failure(None, format!("the kernel {entry} is not in it")));
    unrounded.chain(missing).collect()
}

/// The limits that the list exceeds.
pub(super) fn sizes(list: &List) -> Vec<Failure> {
    let is_scan = |path: &str| path.starts_with("selective");
    let mut failures = Vec::new();
    for (scans, most, what) in [(false, MOST, ""), (true, MOST_OF_SCANS, " of the selective scan")]
    {
        let counted = list.kernels.iter().filter(|kernel| !kernel.is_study());
        let counted = counted.filter(|kernel| is_scan(&kernel.source) == scans);
        let entries: usize = counted.map(|kernel| kernel.entries.len()).sum();
        if entries > most {
            let what = format!("{entries} entries{what}, more than {most}");
            failures.push(Failure::new(Path::new("kernels/shipped.toml"), None, what));
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(body: &str) -> Vec<String> {
        let entries = [("a".to_owned(), "a".to_owned())];
        let ptx = Ptx::new(&[], "", &entries, body);
        failures(Path::new("kernels/ptx/a.ptx"), &ptx).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn too_many_entries_are_found_and_studies_do_not_count() {
        let found = |source: &str, entries: usize| {
            let entries = vec!["k<1>"; entries];
            let list = format!(
                "nvrtc = \"12.0\"\narchitecture = 80\n[[kernel]]\nname = \"k\"\n\
                 source = \"{source}\"\nentries = {entries:?}\n"
            );
            let failures = sizes(&List::parse(&list).unwrap());
            failures.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found("a.cu", 195), [""; 0]);
        assert_eq!(found("a.cu", 196), ["kernels/shipped.toml: 196 entries, more than 195"]);
        assert_eq!(found("selective_scan.cu", 80), [""; 0]);
        assert_eq!(
            found("selective_scan.cu", 81),
            ["kernels/shipped.toml: 81 entries of the selective scan, more than 80"]
        );
        assert_eq!(found("broken/a.cu", 101), [""; 0]);
        assert_eq!(found("exercises/a.cu", 101), [""; 0]);
        assert_eq!(found("ladder/a.cu", 101), [""; 0]);
    }

    #[test]
    fn unrounded_unknown_and_missing_instructions_are_found_with_their_line() {
        let kernel = |name: &str, instruction: &str| {
            format!(
                ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry {name}()\n{{\n\
                 .reg .f32 %f<2>;\n{instruction}\nret;\n}}\n"
            )
        };
        assert_eq!(
            found(&kernel("a", "mov.f32 %f1, 0f00000000; mul.rn.f32 %f1, %f1, %f1;")),
            [""; 0]
        );
        let unrounded = found(&kernel("a", "mov.f32 %f1, 0f00000000; mul.f32 %f1, %f1, %f1;"));
        // The head has two lines.
        assert_eq!(unrounded.len(), 1);
        assert!(unrounded[0].starts_with("kernels/ptx/a.ptx:9: `mul.f32`"), "{unrounded:?}");
        let unknown = found(&kernel("a", "frobnicate.f32 %f1, %f1;"));
        assert!(
            unknown[0].starts_with("kernels/ptx/a.ptx:9: the emulator does not take it"),
            "{unknown:?}"
        );
        assert_eq!(found(&kernel("b", "")), ["kernels/ptx/a.ptx: the kernel a is not in it"]);
    }
}
