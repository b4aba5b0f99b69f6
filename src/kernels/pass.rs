//! The two computations of a recurrence, and the size of their launches.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// One of the two computations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The outputs.
    Forward,
    /// The gradients.
    Backward,
}

impl Pass {
    /// Both passes.
    pub const ALL: [Pass; 2] = [Pass::Forward, Pass::Backward];

    /// Returns `forward` or `backward`.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Forward => "forward",
            Pass::Backward => "backward",
        }
    }

    /// Returns the number of arrays that the pass reads and writes: 3 forward, 5 backward.
    pub fn arrays(self) -> usize {
        match self {
            Pass::Forward => 3,
            Pass::Backward => 5,
        }
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Pass {
    type Err = Error;

    fn from_str(name: &str) -> Result<Pass, Error> {
        Pass::ALL.into_iter().find(|pass| pass.name() == name).ok_or_else(|| Error::Unsupported {
            engine: String::from("the recurrence"),
            what: format!("the pass `{name}`; write forward or backward"),
        })
    }
}

/// The size of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The number of blocks in the grid, along its first axis.
    pub blocks: u64,
    /// The number of threads in a block.
    pub threads: u32,
    /// The dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Further arguments, if blocks share sequences; `None` if each sequence has one block.
    pub shared_out: Option<SharedOut>,
}

/// Sequences that the blocks of a grid share, tile by tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedOut {
    /// The number of 16-byte vectors in a tile. It depends on the shape alone, so that results do
    /// not depend on the device.
    pub tile_vectors: u32,
    /// The bytes in which blocks publish the transitions of their tiles. They are zero before the
    /// first launch, and each launch leaves them ready for the next.
    pub workspace_bytes: u64,
    /// True if there is a block for each tile, and blocks may take tiles in the order in which they
    /// start. Otherwise there is any number of blocks up to [`Geometry::blocks`], and the device
    /// must hold all of them at once.
    pub one_tile: bool,
}

#[cfg(test)]
mod tests {
    use super::Pass;

    #[test]
    fn passes_are_read_by_name() {
        for pass in Pass::ALL {
            assert_eq!(pass.to_string().parse(), Ok(pass));
        }
        assert!("up".parse::<Pass>().unwrap_err().to_string().contains("`up`"));
    }
}
