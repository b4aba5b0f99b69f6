//! The steps of the ladder: the kernels of `kernels/ladder`, with their sizes.

use linrec::kernels::{self, Program};

/// What a step is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idea {
    /// A 16-byte vector for each thread, straight into registers.
    Vectors,
    /// Several vectors for each thread, blocked: one after the other.
    Blocked,
    /// Several vectors for each thread, warp-striped: each in another piece of the warp's.
    Pieces,
    /// The next tile in flight, into registers.
    Early,
    /// The next tiles in flight, into shared memory.
    Ring {
        /// How many tiles.
        ahead: u32,
    },
    /// As many blocks as there is room for, and each takes one row after the other.
    Persistent,
    /// Accesses that tell the caches that nobody will need the data again.
    Hints {
        /// Loads do.
        loads: bool,
        /// Stores do.
        stores: bool,
    },
    /// No recurrence: an addition whose blocks walk along rows.
    Walk,
}

impl Idea {
    /// One of each, in the order of the page.
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

    /// Its name: that of its file.
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
    /// What it is about.
    pub idea: Idea,
    /// 16-byte vectors for each thread in a tile.
    pub vectors: u32,
    /// Threads in a block.
    pub threads: u32,
}

impl Rung {
    /// The size that is shipped: tiles of 1024.
    pub fn shipped(idea: Idea) -> Rung {
        let vectors = if idea == Idea::Vectors { 1 } else { 2 };
        Rung { idea, vectors, threads: 256 / vectors }
    }

    /// Its name in records: `pieces:2x128`, `ring:2x128:a2`, `hints:2x128:ls`.
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

    /// Elements of a tile.
    pub fn tile(&self) -> u32 {
        4 * self.vectors * self.threads
    }

    /// The kernel's name, as C++ writes it.
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

    /// Bytes of dynamic shared memory of a block.
    pub fn shared_bytes(&self) -> u32 {
        match self.idea {
            // Two arrays.
            Idea::Ring { ahead } => 2 * ahead * 4 * self.tile(),
            _ => 0,
        }
    }

    /// Its source, with this instance to compile; `None` if the catalogue lacks it.
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
    fn names_say_everything() {
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
