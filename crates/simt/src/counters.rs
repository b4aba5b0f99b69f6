//! What a launch did, counted.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use super::bounds::bytes_of;
use super::program::{Kernel, Op, Place, Space, Unary};

/// What the warps of a launch executed. Counters of ranges of blocks add up (`+=`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions, counted once for a warp (a divergent warp executes one once per path).
    pub instructions: u64,
    /// Instructions, counted once for every lane that executed them.
    pub thread_instructions: u64,
    /// Instructions of warps by what they do.
    pub classes: BTreeMap<Class, u64>,
    /// What every instruction that accesses memory did, in the order of the PTX.
    pub sites: Vec<Site>,
    /// Branches after which lanes of one warp went different ways.
    pub divergent_branches: u64,
    /// Barriers of whole blocks.
    pub barriers: u64,
    /// Blocks that ran.
    pub blocks: u64,
    /// What `printf` printed, in the order of the blocks, and of each in the order in which it was printed.
    pub printed: Vec<Printed>,
}

/// What a thread printed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The block's number in the grid.
    pub block: u64,
    /// The warp's number in the block.
    pub warp: u32,
    /// The lane.
    pub lane: u32,
    /// The text.
    pub text: String,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Arithmetic of `f32` and `f64`, narrow conversions included.
    Float,
    /// Arithmetic, logic and comparison of integers, moves, conversions of integers and addresses.
    Integer,
    /// Approximate functions: `ex2`, `lg2`, `rcp` and their like.
    Special,
    /// Products of matrices: `mma` and `wmma.mma`.
    Matrix,
    /// Branches, calls, returns and exits.
    Control,
    /// `bar.sync`, `bar.warp.sync` and `mbarrier`.
    Barrier,
    /// Shuffles, votes and reductions across a warp.
    Shuffle,
    /// Loads of parameters, which lie in constant memory, and of variables there.
    Parameter,
    /// Loads and stores of global memory, `cp.async` included.
    Global,
    /// Loads and stores of shared memory.
    Shared,
    /// Loads and stores of local memory: arrays and registers that did not fit.
    Local,
    /// Fetches from textures, loads and stores of surfaces.
    Texture,
    /// Atomic operations and fences.
    Atomic,
    /// What has no effect here.
    Nothing,
}

/// What a memory instruction did in all its executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The line of the PTX, from 1.
    pub line: u32,
    /// The file and line that it was compiled from.
    pub source: Option<(Arc<str>, u32)>,
    /// The instruction as the PTX has it: `ld.global.v4.f32`.
    pub opcode: Arc<str>,
    /// Which memory, and in which direction.
    pub access: Access,
    /// How often a warp executed it with at least one lane.
    pub requests: u64,
    /// Global memory: how many 32-byte sectors those requests touched, counted per request.
    pub sectors: u64,
    /// Shared memory: how many passes over its 32 banks they took, and how many of them were due to conflicts.
    pub wavefronts: u64,
    /// Those of `wavefronts` that conflicts cost.
    pub conflicts: u64,
    /// Bytes that the lanes asked for.
    pub bytes: u64,
}

/// Which memory an instruction accesses, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Access {
    /// A load from global memory.
    GlobalLoad,
    /// A store to global memory.
    GlobalStore,
    /// An atomic operation on global memory.
    GlobalAtomic,
    /// A load from shared memory.
    SharedLoad,
    /// A store to shared memory.
    SharedStore,
    /// An atomic operation on shared memory.
    SharedAtomic,
    /// A copy from global to shared memory, `cp.async`.
    CopyAsync,
    /// A load from local memory.
    LocalLoad,
    /// A store to local memory.
    LocalStore,
    /// A fetch from a texture. Sectors are not counted, here and of surfaces: how a GPU lays arrays out is not known.
    TextureFetch,
    /// A load from a surface.
    SurfaceLoad,
    /// A store to a surface.
    SurfaceStore,
    /// An access through a generic address, which may go to any of them.
    Generic,
}

impl Site {
    /// 32-byte sectors per request: 4 for a coalesced `f32` of every lane, 32 if all lie apart.
    pub fn sectors_per_request(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.sectors as f64 / self.requests as f64 }
    }
}

impl Counters {
    /// The sum of `sectors` over the sites of a kind.
    pub fn sectors(&self, access: Access) -> u64 {
        self.sites.iter().filter(|site| site.access == access).map(|site| site.sectors).sum()
    }

    /// The sum of `requests` over the sites of a kind.
    pub fn requests(&self, access: Access) -> u64 {
        self.sites.iter().filter(|site| site.access == access).map(|site| site.requests).sum()
    }

    /// Instructions of a class.
    pub fn class(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or(0)
    }
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Counters) {
        self.instructions += other.instructions;
        self.thread_instructions += other.thread_instructions;
        self.divergent_branches += other.divergent_branches;
        self.barriers += other.barriers;
        self.blocks += other.blocks;
        if !other.printed.is_empty() {
            self.printed.extend_from_slice(&other.printed);
            self.printed.sort_by_key(|printed| printed.block);
        }
        for (&class, count) in &other.classes {
            *self.classes.entry(class).or_default() += count;
        }
        if self.sites.is_empty() {
            self.sites.clone_from(&other.sites);
            return;
        }
        for (number, site) in other.sites.iter().enumerate() {
            let same = |mine: &Site| mine.line == site.line && mine.opcode == site.opcode;
            // Of one kernel, the sites are the same ones in the same order.
            let there = match self.sites.get(number) {
                Some(mine) if same(mine) => Some(number),
                _ => self.sites.iter().position(same),
            };
            match there.map(|number| &mut self.sites[number]) {
                Some(mine) => {
                    mine.requests += site.requests;
                    mine.sectors += site.sectors;
                    mine.wavefronts += site.wavefronts;
                    mine.conflicts += site.conflicts;
                    mine.bytes += site.bytes;
                }
                None => self.sites.push(site.clone()),
            }
        }
    }
}

/// The counters while a range of blocks runs: by instruction.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) executed: Vec<Executed>,
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) divergent_branches: u64,
    pub(crate) barriers: u64,
    pub(crate) blocks: u64,
    pub(crate) printed: Vec<Printed>,
}

/// How often, and by how many lanes in all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Executed {
    pub(crate) times: u64,
    pub(crate) lanes: u64,
}

impl Executed {
    /// Once more, by those of a mask.
    #[inline(always)]
    pub(crate) fn by(&mut self, mask: u32) {
        self.times += 1;
        // Most of the time all: counting bits is a dozen operations where the processor's own is not compiled in.
        self.lanes += u64::from(if mask == u32::MAX { 32 } else { mask.count_ones() });
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) requests: u64,
    pub(crate) sectors: u64,
    pub(crate) wavefronts: u64,
    pub(crate) conflicts: u64,
    pub(crate) bytes: u64,
}

impl Tally {
    /// What those of a kernel take of the host, the public form included.
    pub(crate) fn bytes(kernel: &Kernel) -> u64 {
        let each = bytes_of::<(Executed, Traffic)>(1) + bytes_of::<Site>(1);
        (kernel.code.len() as u64).saturating_mul(each)
    }

    pub(crate) fn new(kernel: &Kernel) -> Tally {
        let length = kernel.code.len();
        Tally {
            executed: vec![Executed::default(); length],
            traffic: vec![Traffic::default(); length],
            divergent_branches: 0,
            barriers: 0,
            blocks: 0,
            printed: Vec::new(),
        }
    }

    /// What was printed, in the order of the blocks, which may have run together.
    fn printed(&self) -> Vec<Printed> {
        let mut printed = self.printed.clone();
        printed.sort_by_key(|printed| printed.block);
        printed
    }

    /// The public form.
    pub(crate) fn counters(&self, kernel: &Kernel) -> Counters {
        // What is but a part of the instruction behind it does not count, nor what goes on with a branch by an index.
        let is_switch = |pc: usize| kernel.opcodes[pc].starts_with("brx");
        let goes_on = |pc: usize| {
            let before = pc.checked_sub(1).filter(|&before| is_switch(before) && is_switch(pc));
            before.is_some_and(|before| kernel.places[before] == kernel.places[pc])
        };
        let is_part = |pc: usize| {
            matches!(kernel.code[pc].op, Op::Factors { .. } | Op::BulkTarget { .. }) || goes_on(pc)
        };
        let all = || self.executed.iter().enumerate();
        let counted = || all().filter(|(pc, _)| !is_part(*pc)).map(|(_, executed)| executed);
        let mut counters = Counters {
            instructions: counted().map(|executed| executed.times).sum(),
            thread_instructions: counted().map(|executed| executed.lanes).sum(),
            divergent_branches: self.divergent_branches,
            barriers: self.barriers,
            blocks: self.blocks,
            printed: self.printed(),
            ..Counters::default()
        };
        for (pc, instruction) in kernel.code.iter().enumerate() {
            let Executed { times, .. } = self.executed[pc];
            if times > 0 && !is_part(pc) {
                let class = if is_switch(pc) { Class::Control } else { class(&instruction.op) };
                *counters.classes.entry(class).or_default() += times;
            }
            let Some(access) = access(&instruction.op) else { continue };
            let Place { line, .. } = kernel.places[pc];
            let Traffic { requests, sectors, wavefronts, conflicts, bytes } = self.traffic[pc];
            counters.sites.push(Site {
                line,
                source: kernel.source_of(pc),
                opcode: kernel.opcodes[pc].clone(),
                access,
                requests,
                sectors,
                wavefronts,
                conflicts,
                bytes,
            });
        }
        counters
    }
}

fn class(op: &Op) -> Class {
    match op {
        Op::Unary { op: Unary::Approximate { .. }, .. } => Class::Special,
        Op::Unary { op: Unary::Move, .. } => Class::Integer,
        Op::Arithmetic { .. } | Op::Fma { .. } | Op::ConvertPair { .. } => Class::Float,
        Op::Unary { ty, .. } | Op::Binary { ty, .. } if ty.is_float() => Class::Float,
        Op::Convert { to, from, .. } if to.is_float() || from.is_float() => Class::Float,
        Op::SetPredicate { ty, .. } if ty.is_float() => Class::Float,
        Op::Test { .. } => Class::Float,
        Op::Branch { .. } | Op::Call { .. } | Op::Return { .. } | Op::Exit | Op::Trap => {
            Class::Control
        }
        Op::Barrier { .. }
        | Op::BarrierArrive { .. }
        | Op::BarrierReduce { .. }
        | Op::WarpBarrier { .. }
        | Op::MbarrierInit { .. }
        | Op::MbarrierInvalidate { .. }
        | Op::MbarrierArrive { .. }
        | Op::MbarrierExpect { .. }
        | Op::MbarrierTest { .. } => Class::Barrier,
        Op::Multiply { .. } => Class::Matrix,
        Op::MatrixLoad { space, .. } | Op::MatrixStore { space, .. } => match space {
            Space::Shared => Class::Shared,
            _ => Class::Global,
        },
        Op::RowsLoad { .. } | Op::RowsStore { .. } => Class::Shared,
        Op::RowsTranspose { .. } => Class::Shuffle,
        Op::Shuffle { .. }
        | Op::Vote { .. }
        | Op::Ballot { .. }
        | Op::Elect { .. }
        | Op::Reduce { .. }
        | Op::Match { .. } => Class::Shuffle,
        Op::LoadParam { .. } => Class::Parameter,
        Op::Load { space, .. } | Op::Store { space, .. } => match space {
            Space::Global | Space::Generic => Class::Global,
            Space::Shared => Class::Shared,
            Space::Local => Class::Local,
            Space::Constant | Space::Parameter => Class::Parameter,
        },
        Op::CopyAsync { .. } | Op::BulkIn { .. } | Op::BulkOut { .. } => Class::Global,
        Op::Fetch { .. } | Op::SurfaceLoad { .. } | Op::SurfaceStore { .. } => Class::Texture,
        Op::Atomic { .. } | Op::Fence { .. } => Class::Atomic,
        Op::Nothing | Op::CommitGroup | Op::WaitGroup { .. } => Class::Nothing,
        _ => Class::Integer,
    }
}

fn access(op: &Op) -> Option<Access> {
    Some(match op {
        Op::Load { space: Space::Global, .. } => Access::GlobalLoad,
        Op::Load { space: Space::Shared, .. } => Access::SharedLoad,
        Op::Load { space: Space::Local, .. } => Access::LocalLoad,
        Op::Store { space: Space::Global, .. } => Access::GlobalStore,
        Op::Store { space: Space::Shared, .. } => Access::SharedStore,
        Op::Store { space: Space::Local, .. } => Access::LocalStore,
        Op::Atomic { space: Space::Global, .. } => Access::GlobalAtomic,
        Op::Atomic { space: Space::Shared, .. } => Access::SharedAtomic,
        Op::MatrixLoad { space: Space::Global, .. } => Access::GlobalLoad,
        Op::MatrixLoad { space: Space::Shared, .. } | Op::RowsLoad { .. } => Access::SharedLoad,
        Op::MatrixStore { space: Space::Global, .. } => Access::GlobalStore,
        Op::MatrixStore { space: Space::Shared, .. } | Op::RowsStore { .. } => Access::SharedStore,
        Op::MatrixLoad { .. } | Op::MatrixStore { .. } => Access::Generic,
        Op::CopyAsync { .. } | Op::BulkIn { .. } => Access::CopyAsync,
        Op::BulkOut { .. } => Access::GlobalStore,
        Op::Fetch { .. } => Access::TextureFetch,
        Op::SurfaceLoad { .. } => Access::SurfaceLoad,
        Op::SurfaceStore { .. } => Access::SurfaceStore,
        Op::Load { space: Space::Constant | Space::Parameter, .. } => return None,
        Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => Access::Generic,
        _ => return None,
    })
}

/// By how many bytes each lane's address lies behind that of the lane before, if all lanes of a full warp are equally far
/// apart, and in order. Of such a request a few things are known without looking at every lane again.
pub(crate) fn stride(addresses: &[u64; 32], mask: u32) -> Option<u64> {
    let stride = addresses[1].wrapping_sub(addresses[0]);
    let mut expected =
        [0, 1, 2, 3].map(|lane: u64| addresses[0].wrapping_add(lane.wrapping_mul(stride)));
    let mut differ = [0; 4];
    for four in addresses.chunks_exact(4) {
        for k in 0..4 {
            differ[k] |= four[k] ^ expected[k];
            expected[k] = expected[k].wrapping_add(stride.wrapping_mul(4));
        }
    }
    let holds = differ == [0; 4] && addresses[0] <= addresses[31] && stride < 1 << 40;
    (mask == u32::MAX && holds).then_some(stride)
}

/// [`sectors`] of lanes that are known to lie so far apart.
pub(crate) fn sectors_apart(addresses: &[u64; 32], stride: u64) -> u64 {
    if stride < 32 { (addresses[31] >> 5) - (addresses[0] >> 5) + 1 } else { 32 }
}

/// How many 32-byte sectors the lanes of `mask` touch, each with one aligned access of at most 16
/// bytes; 1 if the mask is empty.
pub fn sectors(addresses: &[u64; 32], mask: u32) -> u64 {
    let far = addresses.iter().fold(0, |far, address| far | (address ^ addresses[0]));
    if mask == u32::MAX && far >> 36 == 0 {
        // All lanes, not far from each other and mostly in order: a loop for the processor's vectors.
        let sector: [i32; 32] = addresses.map(|address| (address >> 5) as i32 & i32::MAX);
        let (mut changes, mut falls) = (0, 0);
        for i in 1..32 {
            changes += u32::from(sector[i] != sector[i - 1]);
            falls += u32::from(sector[i] < sector[i - 1]);
        }
        if falls == 0 {
            return u64::from(1 + changes);
        }
    }
    let mut all = [0; 32];
    let mut used = 0;
    for lane in lanes(mask) {
        let sector = addresses[lane] >> 5;
        // Neighbours mostly share a sector, or come in order.
        if used == 0 || all[used - 1] != sector {
            all[used] = sector;
            used += 1;
        }
    }
    let all = &mut all[..used];
    all.sort_unstable();
    1 + all.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

/// How many passes over the 32 banks of shared memory an access takes, and how many of them are due to
/// conflicts. Accesses of 8 bytes go half a warp at a time, those of 16 a quarter. Lanes that read the same
/// word share it.
pub fn wavefronts(addresses: &[u64; 32], mask: u32, bytes: u32) -> (u64, u64) {
    let words = (bytes / 4).max(1) as u64;
    // Nearly always: side by side, all the same, or one lane alone. Then there are no conflicts.
    if let Some(stride) = stride(addresses, mask)
        && (stride == 0 || stride == u64::from(bytes.max(4)))
    {
        return (words, 0);
    }
    if mask.is_power_of_two() {
        return (1, 0);
    }
    let group = 32 / words as usize;
    let (mut total, mut least) = (0, 0);
    for start in (0..32).step_by(group) {
        let members = mask & ((u64::MAX >> (64 - group)) << start) as u32;
        if members == 0 {
            continue;
        }
        let mut seen = [0_u64; 32];
        let mut used = 0;
        for lane in lanes(members) {
            let first = addresses[lane] >> 2;
            for word in first..first + words {
                seen[used] = word;
                used += 1;
            }
        }
        let seen = &mut seen[..used];
        if !seen.is_sorted() {
            seen.sort_unstable();
        }
        let mut per_bank = [0_u64; 32];
        for (i, word) in seen.iter().enumerate() {
            per_bank[(word % 32) as usize] += u64::from(i == 0 || seen[i - 1] != *word);
        }
        total += per_bank.iter().max().copied().unwrap_or(0);
        least += 1;
    }
    (total, total - least)
}

/// The lanes of a mask, in order.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            lane
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{sectors, wavefronts};

    fn strided(stride: u64) -> [u64; 32] {
        std::array::from_fn(|lane| 4096 + lane as u64 * stride)
    }

    #[test]
    fn sectors_of_strided_accesses() {
        assert_eq!(sectors(&strided(4), u32::MAX), 4);
        assert_eq!(sectors(&strided(16), u32::MAX), 16);
        assert_eq!(sectors(&strided(400), u32::MAX), 32);
        assert_eq!(sectors(&strided(0), u32::MAX), 1);
        let mut backward = strided(4);
        backward.reverse();
        assert_eq!(sectors(&backward, u32::MAX), 4);
        assert_eq!(sectors(&strided(4), 0b1_0000_0001), 2);
    }

    #[test]
    fn wavefronts_of_strided_accesses() {
        assert_eq!(wavefronts(&strided(4), u32::MAX, 4), (1, 0));
        assert_eq!(wavefronts(&strided(8), u32::MAX, 4), (2, 1));
        assert_eq!(wavefronts(&strided(128), u32::MAX, 4), (32, 31));
        assert_eq!(wavefronts(&strided(132), u32::MAX, 4), (1, 0));
        assert_eq!(wavefronts(&strided(0), u32::MAX, 4), (1, 0));
        assert_eq!(wavefronts(&strided(8), u32::MAX, 8), (2, 0));
        assert_eq!(wavefronts(&strided(16), u32::MAX, 16), (4, 0));
        assert_eq!(wavefronts(&strided(32), u32::MAX, 16), (8, 4));
    }

    /// Whether they lie inside is found out later.
    #[test]
    fn addresses_at_the_ends_of_numbers() {
        for addresses in [[u64::MAX - 3; 32], strided(u64::MAX / 31 - 4096)] {
            for bytes in [1, 2, 4, 8, 16] {
                let addresses = addresses.map(|address| address / bytes * bytes);
                let (passes, conflicts) = wavefronts(&addresses, u32::MAX, bytes as u32);
                assert!(passes > conflicts);
                assert!((1..=32).contains(&sectors(&addresses, u32::MAX)));
            }
        }
    }
}
