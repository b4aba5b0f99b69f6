//! From a kernel to what is compiled for it, and back from what is shipped to the kernels.

use std::sync::OnceLock;

use super::{ElementType, KernelChoice, Pass, Program, program, shipped, shipped_as};
use crate::Direction;

/// How many threads a launch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks in the grid, along its first axis.
    pub blocks: u64,
    /// Threads in a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// What the kernel is given beside, if blocks share sequences; `None` if each sequence is one
    /// block's.
    pub shared_out: Option<SharedOut>,
}

/// How sequences are shared out among the blocks of a grid: tile by tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedOut {
    /// 16-byte vectors in a tile. It depends on the shape alone, so that results do not depend on
    /// the device.
    pub tile_vectors: u32,
    /// Bytes in which blocks tell each other what their tiles do; zero before the first launch, and
    /// left by each launch as the next one needs it.
    pub workspace_bytes: u64,
    /// Whether there is a block for each tile, which it can take as it comes; or else any number of
    /// blocks, all of which have to be on the device at once, and no more than
    /// [`Geometry::blocks`].
    pub one_tile: bool,
}

impl KernelChoice {
    /// The kernels that are shipped for an element type, in their order, the reference kernel
    /// first; without the early stages of a scan, which do not compute the recurrence.
    ///
    /// They are those whose entries are in the shipped PTX.
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
            // A planted mistake has the entries of a kernel, but another source.
            all.retain(|(choice, element)| {
                choice.passes() == Pass::ALL && shipped_as(&choice.program(*element)).is_some()
            });
            all
        });
        all.iter().filter(move |(_, of)| *of == element).map(|(choice, _)| *choice)
    }

    /// What to compile: one module with an entry for each pass and, where that is not an argument,
    /// for each direction. The early stages of a scan have no backward pass.
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

    /// The entry of [`KernelChoice::program`] that computes `pass` in `direction`, as C++ writes
    /// it.
    ///
    /// `direction` is that of the recurrence, in the backward pass as well.
    pub fn entry(&self, element: ElementType, pass: Pass, direction: Direction) -> String {
        let short = match pass {
            Pass::Forward => "fwd",
            Pass::Backward => "bwd",
        };
        let arguments = self.arguments(pass, direction).join(", ");
        format!("linrec_{}_{short}<{}, {arguments}>", self.name(), element.cuda_name())
    }

    /// The kernel that has an entry, of which elements, and for which pass; `None` if it is none of
    /// the catalogue's.
    ///
    /// How it is launched, as far as that does not show, is as usual.
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
    fn a_kernel_is_known_by_its_entry() {
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
    fn what_is_shipped_has_the_name_of_its_file() {
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
