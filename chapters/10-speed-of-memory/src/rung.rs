//! The steps of the ladder: the kernels of `kernels/ladder`, with their sizes.

use linrec::kernels::{self, Program};

/// The idea of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idea {
    /// A 16-byte vector for each thread, loaded directly into registers.
    Vectors,
    /// Several consecutive vectors for each thread (blocked).
    Blocked,
    /// Several vectors for each thread, each in another piece of the warp's data (warp-striped).
    Pieces,
    /// The next tile is in flight, into registers.
    Early,
    /// The next tiles are in flight, into shared memory.
    Ring {
        /// The number of tiles in flight.
        ahead: u32,
    },
    /// As many blocks as fit on the device, each of which computes row after row.
    Persistent,
    /// Accesses with the hint that nobody will need the data again.
    Hints {
        /// True if loads have the hint.
        loads: bool,
        /// True if stores have the hint.
        stores: bool,
    },
    /// An addition whose blocks walk along rows, for comparison.
    Walk,
}

impl Idea {
    /// One step of each idea, in the order of the page.
    pub const ALL: [Idea; 8] = [
        Idea::Vectors,
        Idea::Blocked,
        Idea::Pieces,
        Idea::Early,
        Idea::Ring { ahead: 2 },
        Idea::Persistent,
        Idea::Hints { loads: true, stores: true },
        Idea::Walk,
    ];

    /// Returns the name, which is also the name of the kernel's file.
    pub fn name(self) -> &'static str {
        match self {
            Idea::Vectors => "vectors",
            Idea::Blocked => "blocked",
            Idea::Pieces => "pieces",
            Idea::Early => "early",
            Idea::Ring { .. } => "ring",
            Idea::Persistent => "persistent",
            Idea::Hints { .. } => "hints",
            Idea::Walk => "walk",
        }
    }
}

/// A step with its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung {
    /// The idea of the step.
    pub idea: Idea,
    /// The number of 16-byte vectors per thread in a tile.
    pub vectors: u32,
    /// The number of threads per block.
    pub threads: u32,
}

impl Rung {
    /// Returns the shipped size: tiles of 1024 elements.
    pub fn shipped(idea: Idea) -> Rung {
        let vectors = if idea == Idea::Vectors { 1 } else { 2 };
        Rung { idea, vectors, threads: 256 / vectors }
    }

    /// Returns the name in records: `pieces:2x128`, `ring:2x128:a2`, `hints:2x128:ls`.
    pub fn name(&self) -> String {
        let Rung { idea, vectors, threads } = *self;
        let name = format!("{}:{vectors}x{threads}", idea.name());
        match idea {
            Idea::Ring { ahead } => format!("{name}:a{ahead}"),
            Idea::Hints { loads, stores } => {
                let letter = |wanted, letter| if wanted { letter } else { "" };
                format!("{name}:{}{}", letter(loads, "l"), letter(stores, "s"))
            }
            _ => name,
        }
    }

    /// Returns the number of elements of a tile.
    pub fn tile(&self) -> u32 {
        4 * self.vectors * self.threads
    }

    /// Returns the kernel's name in C++.
    pub fn entry(&self) -> String {
        let Rung { idea, vectors, threads } = *self;
        let name = idea.name();
        match idea {
            Idea::Vectors => format!("ladder_{name}<{threads}>"),
            Idea::Ring { ahead } => format!("ladder_{name}<{vectors}, {threads}, {ahead}>"),
            Idea::Hints { loads, stores } => {
                format!("ladder_{name}<{loads}, {stores}, {vectors}, {threads}>")
            }
            _ => format!("ladder_{name}<{vectors}, {threads}>"),
        }
    }

    /// Returns the dynamic shared memory of a block in bytes.
    pub fn shared_bytes(&self) -> u32 {
        match self.idea {
            // Two arrays.
            Idea::Ring { ahead } => 2 * ahead * 4 * self.tile(),
            _ => 0,
        }
    }

    /// Returns the source with this instance to compile, or `None` if the catalogue lacks it.
    pub fn program(&self) -> Option<Program> {
        let program = kernels::program(&format!("ladder/{}.cu", self.idea.name()))?;
        Some(program.with_entries([self.entry()]))
    }
}

#[cfg(test)]
mod tests {
    use linrec::kernels::shipped_as;

    use super::{Idea, Rung};

    #[test]
    fn every_idea_is_shipped_in_one_size() {
        for idea in Idea::ALL {
            let rung = Rung::shipped(idea);
            assert_eq!(rung.tile(), 1024);
            assert!(shipped_as(&rung.program().unwrap()).is_some(), "{}", rung.name());
        }
    }

    #[test]
    fn names_contain_the_idea_and_the_size() {
        let names = Idea::ALL.map(|idea| Rung::shipped(idea).name());
        let expected = [
            "vectors:1x256",
            "blocked:2x128",
            "pieces:2x128",
            "early:2x128",
            "ring:2x128:a2",
            "persistent:2x128",
            "hints:2x128:ls",
            "walk:2x128",
        ];
        assert_eq!(names, expected);
    }
}
