//! The launches of the recurrence's kernels, with sizes that leave a remainder everywhere.

use linrec::contract::Domain;
use linrec::device::{Function, Launch, Launched};
use linrec::kernels::{ElementType, KernelChoice, Pass, SharedOut};
use linrec::reference::Rounding;
use linrec::{Direction, Error};

/// The launch of a kernel, and the rounding that bounds its errors.
pub struct Plan {
    pub num_seqs: usize,
    pub seq_len: usize,
    pub direction: Direction,
    pub blocks: u32,
    pub threads: u32,
    shared_bytes: u32,
    /// True if the direction is an argument.
    takes_direction: bool,
    /// The distribution of tiles over blocks, if blocks share sequences.
    shared_out: Option<SharedOut>,
    /// True if the kernel computes the recurrence; an early stage only has to write results.
    pub is_whole: bool,
    pub rounding: Rounding,
}

impl Plan {
    /// Plans one of the library's kernels, launched as in the library.
    pub fn of(
        choice: KernelChoice,
        element: ElementType,
        pass: Pass,
        direction: Direction,
    ) -> Plan {
        let (num_seqs, seq_len) = shape(choice, element);
        let geometry = choice.geometry(element, pass, num_seqs as u64, seq_len as u64);
        // Three blocks if any number is allowed, so that each has several tiles.
        let any_number = geometry.shared_out.is_some_and(|shared_out| !shared_out.one_tile);
        let blocks = if any_number { geometry.blocks.min(3) } else { geometry.blocks };
        // The early stages of a scan have no gradient.
        let is_whole = choice.passes() == Pass::ALL;
        let rounding = match choice.tile(element) {
            Some(_) => tree(seq_len),
            None => Rounding { levels: 0, exp_ulps: 0.0 },
        };
        Plan {
            num_seqs,
            seq_len,
            direction,
            blocks: blocks as u32,
            threads: geometry.threads,
            shared_bytes: geometry.shared_bytes,
            takes_direction: choice.takes_direction(),
            shared_out: geometry.shared_out,
            is_whole,
            rounding,
        }
    }

    pub fn with_shared(self, shared_bytes: u32) -> Plan {
        Plan { shared_bytes, ..self }
    }

    /// Plans for a kernel that runs forward and has no argument for the direction.
    pub fn forward_only(self) -> Plan {
        Plan { direction: Direction::Forward, takes_direction: false, ..self }
    }

    /// Plans for a kernel whose results are only checked for presence.
    pub fn without_judge(self) -> Plan {
        Plan { is_whole: false, ..self }
    }

    pub fn with_blocks(self, blocks: u32) -> Plan {
        Plan { blocks, ..self }
    }

    /// Plans one block per sequence: the third warp has elements for 11 lanes, the fourth none.
    pub fn block_scan(direction: Direction) -> Plan {
        let (num_seqs, seq_len) = (3, 300);
        Plan {
            num_seqs,
            seq_len,
            direction,
            blocks: num_seqs as u32,
            threads: 128,
            shared_bytes: 0,
            takes_direction: false,
            shared_out: None,
            is_whole: true,
            rounding: tree(seq_len),
        }
    }

    /// Adds the last arguments and launches the kernel.
    pub fn finish(&self, kernel: &Function, launch: Launch) -> Result<Launched, Error> {
        let mut workspace;
        let mut launch = launch.shared(self.shared_bytes);
        launch = launch.arg(self.num_seqs as i64).arg(self.seq_len as i64);
        if self.takes_direction {
            launch = launch.arg(i32::from(self.direction == Direction::Reverse));
        }
        if let Some(shared_out) = self.shared_out {
            let words = shared_out.workspace_bytes as usize / 4;
            workspace = kernel.device().allocate_named::<u32>("workspace", words)?;
            workspace.zero()?;
            launch = launch.arg(shared_out.tile_vectors).arg(&mut workspace);
            // Each block takes the next tile, or all blocks run at once.
            launch = match shared_out.one_tile {
                true => launch.arg(1_u32),
                false => launch.without_mail().cooperative(),
            };
        }
        let launched = launch.run(&kernel.device().stream())?;
        kernel.device().synchronize()?;
        Ok(launched)
    }
}

/// Returns rows of an odd length, so that they begin anywhere in a sector, unless they must consist
/// of whole vectors.
fn shape(choice: KernelChoice, element: ElementType) -> (usize, usize) {
    let fitting = |len: u64| match choice.multiple_of(element) {
        1 => (len | 1) as usize,
        multiple => (len - len % multiple) as usize,
    };
    match choice {
        // Three blocks, the last warp with 22 sequences.
        KernelChoice::Ref(_) => (150, 67),
        // A tail of threads with fewer elements.
        KernelChoice::Tile(_) => (3, 301),
        // Three blocks, the last with one row, and lanes with less of their row than others.
        KernelChoice::Rows(config) => {
            let rows_per_block = (config.threads / config.lanes) as usize;
            (2 * rows_per_block + 1, fitting(config.max_len(element) * 4 / 5))
        }
        // Two tiles, and a third for some of the warps.
        KernelChoice::Wide(config) => {
            let tile = config.tile(element);
            let len = fitting(2 * tile + tile / 5);
            // An H200 counts copies within a sector by groups of lanes, not by warps.
            let sector = 2 * choice.multiple_of(element) as usize;
            (3, if config.ahead > 0 { len - len % sector } else { len })
        }
        // Three tiles, or more.
        _ => (3, 1203),
    }
}

pub fn tree(seq_len: usize) -> Rounding {
    Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 }
}
