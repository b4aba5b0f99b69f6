//! The variables of a module in device memory: what they hold at first, and where they lie in a
//! memory.
//!
//! They are placed when the first kernel of the module that uses one is prepared on the memory, or
//! when the host asks for them, and stay for as long as the module or one of its kernels does: what
//! a launch leaves in them the next one finds.

use std::sync::{Arc, Mutex, PoisonError};

use super::bounds::bytes_of;
use super::global_memory::{Contents, Memory, MemoryError, PAGE_WORDS, Word};
use super::ptx::Module;

/// A variable of a module, where it lies in a memory.
///
/// ```
/// use simt::{Launch, Memory, Module};
///
/// let module = Module::parse(
///     ".version 8.0 .target sm_80 .address_size 64
///     .visible .global .align 4 .u32 calls = 40;
///     .visible .entry count() {
///         .reg .b32 %r<2>;
///         atom.global.add.u32 %r1, [calls], 1;
///     }",
/// )?;
/// let memory = Memory::new(1 << 20);
/// let calls = memory.variable(&module, "calls")?.expect("it is there");
/// for _ in 0..2 {
///     let kernel = module.kernel("count").expect("it is there");
///     Launch::new(kernel, [1; 3], [1; 3], &[]).prepare(&memory)?.run(0..1)?;
/// }
/// let mut value = [0; 4];
/// memory.read(calls.address, &mut value)?;
/// assert_eq!(u32::from_le_bytes(value), 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// Where it begins: for [`Memory::read`] and [`Memory::write`], and for kernels to be given.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it lies in constant memory, which kernels only read.
    pub constant: bool,
}

/// A variable as a module declares it.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) name: Arc<str>,
    pub(crate) constant: bool,
    pub(crate) bytes: u32,
    /// What it holds at first, where that is not zero; in ascending order, apart from each other.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) addresses: Vec<Reference>,
}

/// Bytes that are given, from an offset on.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) offset: u32,
    pub(crate) bytes: Vec<u8>,
}

/// At an offset, the address of something, and so many bytes more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    pub(crate) offset: u32,
    /// The number of a variable of the module.
    pub(crate) to: u32,
    pub(crate) more: i64,
}

/// Which modules have been placed in a memory.
#[derive(Debug, Default)]
pub(crate) struct Placed(Mutex<Vec<Place>>);

#[derive(Debug)]
struct Place {
    /// Kept, so that no other module's are ever found at the same address.
    variables: Arc<[Declared]>,
    addresses: Arc<[u64]>,
}

/// The most bytes of the host that placing the variables touches.
pub(crate) fn host_bytes(variables: &[Declared]) -> u64 {
    let of = |variable: &Declared| {
        let pieces = variable.pieces.iter().map(|piece| (piece.offset, piece.bytes.len()));
        // Addresses may lie between the pieces: a page with both counts twice.
        pages(pieces) + pages(variable.addresses.iter().map(|one| (one.offset, 8)))
    };
    variables.iter().map(of).sum::<u64>().saturating_mul(bytes_of::<Word>(PAGE_WORDS as u64))
}

/// How many pages hold these bytes, which come in ascending order.
fn pages(parts: impl Iterator<Item = (u32, usize)>) -> u64 {
    let page = 4 * PAGE_WORDS as u64;
    let (mut pages, mut next) = (0, 0);
    for (offset, bytes) in parts {
        let first = (u64::from(offset) / page).max(next);
        next = (u64::from(offset) + bytes as u64).div_ceil(page).max(next);
        pages += next.saturating_sub(first);
    }
    pages
}

impl Memory {
    /// The variables of a module: placed here now, with what they hold at first, if they have not
    /// been before. Those that a kernel declares in its body are among them.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfMemory`].
    pub fn variables(&self, module: &Module) -> Result<Vec<Variable>, MemoryError> {
        let declared = module.variables();
        let addresses = self.place(declared)?;
        let variables = declared.iter().zip(addresses.iter());
        Ok(variables
            .map(|(declared, &address)| Variable {
                name: declared.name.clone(),
                address,
                bytes: declared.bytes.into(),
                constant: declared.constant,
            })
            .collect())
    }

    /// The variable of a module with that name, as [`Memory::variables`] has it.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfMemory`].
    pub fn variable(&self, module: &Module, name: &str) -> Result<Option<Variable>, MemoryError> {
        Ok(self.variables(module)?.into_iter().find(|variable| &*variable.name == name))
    }

    /// Where variables lie, if they have been placed.
    pub(crate) fn placed(&self, variables: &Arc<[Declared]>) -> Option<Arc<[u64]>> {
        let placed = self.modules.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = placed.iter().find(|place| Arc::ptr_eq(&place.variables, variables))?;
        Some(place.addresses.clone())
    }

    /// Places variables, if they have not been before.
    pub(crate) fn place(&self, variables: &Arc<[Declared]>) -> Result<Arc<[u64]>, MemoryError> {
        let mut placed = self.modules.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = placed.iter().find(|place| Arc::ptr_eq(&place.variables, variables)) {
            return Ok(place.addresses.clone());
        }
        // Those of modules that nobody has any more, nor one of their kernels.
        for gone in placed.extract_if(.., |place| Arc::strong_count(&place.variables) == 1) {
            gone.addresses.iter().try_for_each(|&address| self.free(address))?;
        }
        let mut addresses: Vec<u64> = Vec::new();
        let done = self.place_each(variables, &mut addresses);
        if let Err(error) = done {
            for address in addresses {
                self.free(address)?;
            }
            return Err(error);
        }
        let addresses: Arc<[u64]> = addresses.into();
        placed.push(Place { variables: variables.clone(), addresses: addresses.clone() });
        Ok(addresses)
    }

    fn place_each(
        &self,
        variables: &[Declared],
        addresses: &mut Vec<u64>,
    ) -> Result<(), MemoryError> {
        for Declared { name, bytes, constant, .. } in variables {
            let contents = if *constant { Contents::Constant } else { Contents::Zeros };
            addresses.push(self.allocate_with(name, u64::from(*bytes), contents)?);
        }
        for (variable, &address) in variables.iter().zip(addresses.iter()) {
            for Piece { offset, bytes } in &variable.pieces {
                self.write(address + u64::from(*offset), bytes)?;
            }
            for Reference { offset, to, more } in &variable.addresses {
                let to = addresses.get(*to as usize).copied().unwrap_or_default();
                let value = to.wrapping_add_signed(*more);
                self.write(address + u64::from(*offset), &value.to_le_bytes())?;
            }
        }
        Ok(())
    }
}
