//! The variables of a module in device memory: what they hold at first, and where they lie in a
//! memory.
//!
//! They are placed when the first kernel of the module that uses one is prepared on the memory, or
//! when the host asks for them, and stay for as long as the module or one of its kernels does: what
//! a launch leaves in them the next one finds.

use std::sync::{Arc, PoisonError};

use super::buffer::{Contents, PAGE_WORDS};
use super::buffers::Memory;
use super::error::MemoryError;
use super::saved::Place;
use super::word::Word;
use crate::isa::{Declared, Piece, Reference};
use crate::report::bytes_of;

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
