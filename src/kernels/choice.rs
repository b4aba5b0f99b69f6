//! The program of a kernel, and the kernels of the shipped programs.

use std::sync::OnceLock;

use nvrtc::Program;

use super::{ElementType, KernelChoice, Pass, program, shipped, shipped_as};
use crate::Direction;

impl KernelChoice {
    /// Returns the kernels that are shipped for an element type, in order, the reference kernel
    /// first. The early stages of a scan are not among them, since they do not compute the
    /// recurrence.
    ///
    /// A kernel is shipped if its entries are in the shipped PTX.
    ///
    /// ```
    /// use linrec::kernels::{ElementType, KernelChoice};
    ///
    /// let names: Vec<_> = KernelChoice::shipped(ElementType::F64).map(|choice| choice.to_string()).collect();
    /// assert_eq!(names, ["ref:64", "tile:4x256:0", "pipe:8x64:0", "wide:2x128", "waves:4x288"]);
    /// ```
    pub fn shipped(element: ElementType) -> impl Iterator<Item = KernelChoice> {
        static SHIPPED: OnceLock<Vec<(KernelChoice, ElementType)>> = OnceLock::new();
        let all = SHIPPED.get_or_init(|| {
            let mut all = Vec::new();
            for (_, ptx) in shipped() {
                let entries = ptx.entries().filter_map(|(entry, _)| KernelChoice::of_entry(entry));
                all.extend(entries.map(|(choice, element, _)| (choice, element)));
            }
            all.sort();
            all.dedup();
            // A planted mistake has the entries of a kernel, but a different source.
            all.retain(|(choice, element)| {
                choice.passes() == Pass::ALL && shipped_as(&choice.program(*element)).is_some()
            });
            all
        });
        all.iter().filter(move |(_, of)| *of == element).map(|(choice, _)| *choice)
    }

    /// Returns the program to compile: one module with an entry for each pass and, unless it is an
    /// argument, for each direction. The early stages of a scan have no backward pass.
    pub fn program(&self, element: ElementType) -> Program {
        let mut entries: Vec<_> = self
            .passes()
            .iter()
            .flat_map(|&pass| {
                [Direction::Forward, Direction::Reverse]
                    .map(|direction| self.entry(element, pass, direction))
            })
            .collect();
        entries.dedup();
        let file = format!("linrec_{}.cu", self.name());
        let program = program(&file).expect("every family's source is in the table of sources");
        program.with_entries(entries)
    }

    /// Returns the entry of [`KernelChoice::program`] that computes `pass` in `direction`, as C++
    /// writes it.
    ///
    /// `direction` is the direction of the recurrence, in the backward pass as well.
    pub fn entry(&self, element: ElementType, pass: Pass, direction: Direction) -> String {
        let short = match pass {
            Pass::Forward => "fwd",
            Pass::Backward => "bwd",
        };
        let arguments = self.arguments(pass, direction).join(", ");
        format!("linrec_{}_{short}<{}, {arguments}>", self.name(), element.cuda_name())
    }

    /// Returns the kernel of an entry, the type of its elements, and its pass; `None` if the entry
    /// is not in the catalogue.
    ///
    /// Properties of the launch that the entry does not have get their defaults.
    ///
    /// ```
    /// use linrec::kernels::{ElementType, KernelChoice, Pass};
    ///
    /// let of = KernelChoice::of_entry("linrec_ref_fwd<float, true>");
    /// assert_eq!(of, Some((KernelChoice::default(), ElementType::F32, Pass::Forward)));
    /// assert_eq!(KernelChoice::of_entry("look_back"), None);
    /// ```
    pub fn of_entry(entry: &str) -> Option<(KernelChoice, ElementType, Pass)> {
        let (name, arguments) = entry.strip_suffix('>')?.split_once('<')?;
        let name = name.strip_prefix("linrec_")?;
        let forward = name.strip_suffix("_fwd").map(|family| (family, Pass::Forward));
        let backward = || name.strip_suffix("_bwd").map(|family| (family, Pass::Backward));
        let (family, pass) = forward.or_else(backward)?;
        let arguments: Vec<&str> = arguments.split(", ").collect();
        let (element, arguments) = arguments.split_first()?;
        let element = ElementType::ALL.into_iter().find(|other| other.cuda_name() == *element)?;
        Some((KernelChoice::of_arguments(family, pass, arguments)?, element, pass))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_share_an_entry_where_they_are_an_argument() {
        for choice in KernelChoice::shipped(ElementType::F32) {
            let entries = choice.program(ElementType::Bf16).entries;
            assert_eq!(entries.len(), if choice.takes_direction() { 2 } else { 4 }, "{choice}");
        }
        let choice: KernelChoice = "tile:8x64".parse().unwrap();
        assert_eq!(
            choice.program(ElementType::Bf16).entries,
            ["linrec_tile_fwd<bf16, 8, 64, 0, 3>", "linrec_tile_bwd<bf16, 8, 64, 0, 3>"]
        );
    }

    #[test]
    fn an_entry_has_its_kernel() {
        for element in ElementType::ALL {
            for family in KernelChoice::families() {
                for choice in KernelChoice::candidates(family, element) {
                    let directions = [Direction::Forward, Direction::Reverse];
                    for (pass, direction) in
                        Pass::ALL.into_iter().flat_map(|pass| directions.map(|way| (pass, way)))
                    {
                        let entry = choice.entry(element, pass, direction);
                        let (known, of, of_pass) = KernelChoice::of_entry(&entry).unwrap();
                        assert_eq!((of, of_pass), (element, pass));
                        for way in directions {
                            let entry = choice.entry(element, pass, way);
                            assert_eq!(known.entry(element, pass, way), entry, "{choice}");
                        }
                    }
                }
            }
        }
        for entry in [
            "linrec_pipe_up<float, 8, 64, 0, 3>",
            "linrec_pipe_fwd<float, 8, 64, 3, 3>",
            "linrec_pipe_fwd<float, 8, 64, 0>",
            "linrec_pipe_fwd<half, 8, 64, 0, 3>",
            "linrec_flat_fwd<float, 8>",
            "block_scan<false>",
            "look_back",
        ] {
            assert_eq!(KernelChoice::of_entry(entry), None, "{entry}");
        }
    }

    #[test]
    fn shipped_kernels_have_the_names_of_their_files() {
        for element in ElementType::ALL {
            assert!(KernelChoice::shipped(element).count() > 0, "nothing is shipped for {element}");
            for choice in KernelChoice::shipped(element) {
                let ptx = shipped_as(&choice.program(element));
                let name = shipped().find_map(|(name, other)| (Some(other) == ptx).then_some(name));
                assert_eq!(name, Some(&*choice.file_name(element)));
            }
        }
    }
}
