//! A launch that has been checked. The ways to run its blocks are in `run`.

use std::sync::{Arc, Mutex};

use crate::isa::{Kernel, Op, Space};
use crate::machine::state::{Launch, product};
use crate::memory::global::{Memory, PAGE_WORDS, Slot, Word, Workspace, variables};
use crate::memory::texture::Table;
use crate::report::{Bounds, Report, bytes_of};

/// The most shared memory of a block, in bytes, as on an H100 or H200.
const MAX_SHARED: u32 = 227 << 10;

/// A launch that has been checked, on a memory. Ranges of its blocks may run on several cores at
/// once.
#[derive(Debug)]
pub struct Prepared<'a> {
    pub(crate) launch: Launch<'a>,
    pub(crate) memory: &'a Memory,
    pub(crate) bounds: Bounds<'a>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) globals: Arc<[u64]>,
    pub(crate) objects: Table,
    pub(crate) workspace: Option<Workspace>,
    pub(crate) first_tag: u32,
    pub(crate) wide: Mutex<()>,
    pub(crate) grain: u32,
    pub(crate) mbarriers: bool,
    pub(crate) arrivals: u16,
}

impl<'a> Launch<'a> {
    /// Checks the launch and begins it. The variables of its module are placed in the memory,
    /// unless an earlier launch has done so. From here on no buffer may be allocated or freed until
    /// the blocks have run.
    ///
    /// # Errors
    ///
    /// Returns a [`Report`] of kind [`ReportKind::Launch`](crate::ReportKind) that names what
    /// cannot be launched, or a report that the memory's list of buffers alone passes
    /// [`Launch::host_bytes`].
    pub fn prepare(self, memory: &'a Memory) -> Result<Prepared<'a>, Report> {
        let kernel = self.kernel;
        let refuse = |message: String| Err(Report::launch(kernel, message));
        let ([x, y, z], threads) = (self.block, product(self.block));
        let most = kernel.max_threads_per_block() as u64;
        if threads == 0 || z > 64 || threads > most {
            return refuse(format!(
                "cannot run blocks of {x} x {y} x {z} threads: 1 to {most} in all, at most 64 along z"
            ));
        }
        if let Some(required) = kernel.required_threads
            && required != self.block
        {
            let [a, b, c] = required;
            return refuse(format!("needs blocks of {a} x {b} x {c} threads, not {x} x {y} x {z}"));
        }
        let [gx, gy, gz] = self.grid;
        let too_large = gx > i32::MAX as u32 || gy > 65_535 || gz > 65_535;
        if self.blocks() == 0 || too_large || self.blocks() >= u64::from(u32::MAX) {
            return refuse(format!(
                "cannot run a grid of {gx} x {gy} x {gz} blocks: at least 1, at most {} along x, 65535 along y and z, \
                 {} in all",
                i32::MAX,
                u32::MAX - 1
            ));
        }
        let shared = kernel.dynamic_shared.checked_add(self.dynamic_shared);
        if shared.is_none_or(|bytes| bytes > MAX_SHARED) {
            let (has, asked) = (kernel.static_shared, self.dynamic_shared);
            return refuse(format!(
                "has {has} bytes of shared memory and is given {asked} more: {MAX_SHARED} at most"
            ));
        }
        let (given, needed) = (self.arguments.len(), kernel.param_bytes);
        if given != needed as usize {
            return refuse(format!("takes {needed} bytes of arguments, not {given}"));
        }
        let bounds = Bounds::new(self.instructions, self.host_bytes, self.cancel);
        if kernel.uses_globals() && memory.placed(&kernel.globals).is_none() {
            // The variables stay when the launch is over, and their bytes count until then.
            let bytes = variables::host_bytes(&kernel.globals);
            let taken = bounds.take(bytes, "the variables of the module");
            taken.map_err(|fault| fault.before(kernel, [0; 3]))?;
            if let Err(error) = memory.place(&kernel.globals) {
                return refuse(format!("has no room for the variables of its module: {error}"));
            }
        }
        let listed = bounds.take(bytes_of::<Slot>(memory.slots() as u64), "the list of buffers");
        listed.map_err(|fault| fault.before(kernel, [0; 3]))?;
        let first_tag = memory.reserve_tags(self.blocks());
        let mut workspace = None;
        if kernel.uses_workspace() {
            let bytes = bytes_of::<Word>(PAGE_WORDS as u64);
            let taken = bounds.take(bytes, "the workspace of the grid");
            taken.map_err(|fault| fault.before(kernel, [0; 3]))?;
            match memory.workspace() {
                Ok(made) => workspace = Some(made),
                Err(error) => {
                    return refuse(format!("has no room for the workspace of its grid: {error}"));
                }
            }
        }
        Ok(self.resume(memory, bounds, first_tag, workspace))
    }

    /// Resumes a launch that has been checked and begun before, on the same memory.
    pub(crate) fn resume(
        self,
        memory: &'a Memory,
        bounds: Bounds<'a>,
        first_tag: u32,
        workspace: Option<Workspace>,
    ) -> Prepared<'a> {
        let (slots, grain) = (memory.snapshot(), grain(self.kernel));
        let globals = memory.placed(&self.kernel.globals).unwrap_or_default();
        let uses_objects = self.kernel.code.iter().any(|code| code.op.is_of_objects());
        let objects = if uses_objects { memory.objects.snapshot() } else { Table::new() };
        let (wide, mbarriers) = (Mutex::new(()), self.has_parts());
        let arrivals = self.kernel.arrivals();
        Prepared {
            launch: self,
            memory,
            bounds,
            slots,
            globals,
            objects,
            workspace,
            first_tag,
            wide,
            grain,
            mbarriers,
            arrivals,
        }
    }
}

/// Returns the logarithm of the bytes of the smallest access to shared memory, at most a word.
fn grain(kernel: &Kernel) -> u32 {
    let widths = kernel.code.iter().filter_map(|instruction| match instruction.op {
        Op::Load { space: Space::Shared | Space::Generic, ty, count, .. }
        | Op::Store { space: Space::Shared | Space::Generic, ty, count, .. } => {
            Some(ty.bytes() * u32::from(count))
        }
        Op::Atomic { space: Space::Shared | Space::Generic, ty, .. } => Some(ty.bytes()),
        Op::MatrixLoad { space: Space::Shared | Space::Generic, fragment, .. }
        | Op::MatrixStore { space: Space::Shared | Space::Generic, fragment, .. } => {
            Some(fragment.least_bytes())
        }
        Op::RowsStore { transposed: true, .. } => Some(2),
        _ => None,
    });
    widths.min().unwrap_or(4).min(4).ilog2()
}
