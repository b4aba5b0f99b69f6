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
            failures.push(Failure::new("kernels/shipped.toml", None, what));
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
        let scans = "selective_scan.cu";
        let studies = ["broken/a.cu", "exercises/a.cu", "ladder/a.cu"].map(|study| (study, 101));
        for (source, entries) in [("a.cu", 195), (scans, 80)].into_iter().chain(studies) {
            assert_eq!(found(source, entries), [""; 0]);
        }
        for (source, entries, expected) in [
            ("a.cu", 196, "196 entries, more than 195"),
            (scans, 81, "81 entries of the selective scan, more than 80"),
        ] {
            assert_eq!(found(source, entries), [format!("kernels/shipped.toml: {expected}")]);
        }
    }

    #[test]
    fn unrounded_unknown_and_missing_instructions_are_found_with_their_line() {
        let kernel = |name: &str, instruction: &str| {
            format!(
                ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry {name}()\n{{\n\
                 .reg .f32 %f<2>;\n{instruction}\nret;\n}}\n"
            )
        };
        let zero = "mov.f32 %f1, 0f00000000;";
        let rounded = kernel("a", &format!("{zero} mul.rn.f32 %f1, %f1, %f1;"));
        assert_eq!(found(&rounded), [""; 0]);
        // The head has two lines.
        let unrounded = kernel("a", &format!("{zero} mul.f32 %f1, %f1, %f1;"));
        let unknown = kernel("a", "frobnicate.f32 %f1, %f1;");
        for (ptx, expected) in
            [(unrounded, "`mul.f32`"), (unknown, "the emulator does not take it")]
        {
            let found = found(&ptx);
            let expected = format!("kernels/ptx/a.ptx:9: {expected}");
            assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
        }
        assert_eq!(found(&kernel("b", "")), ["kernels/ptx/a.ptx: the kernel a is not in it"]);
    }
}
