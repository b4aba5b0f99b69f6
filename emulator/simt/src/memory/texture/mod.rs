//! Textures and surfaces, which a kernel reads by coordinates rather than by addresses.
//!
//! Their texels are in ordinary buffers. A handle names an [`Object`]. A launch uses the objects
//! that the memory has when the launch is prepared.

pub(crate) mod coordinate;
mod image;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) use image::check;
pub use image::{AddressMode, Element, Extent, Filter, Image, Sampler};

/// The first handle. Handles are above the addresses of functions and below the addresses of global
/// memory, so that a handle is never an address.
pub(crate) const HANDLES: u64 = 1 << 38;
/// The distance between handles.
const STEP: u64 = 16;
/// The largest number of objects at a time.
pub(crate) const MOST: usize = 1 << 20;

/// The object that a handle names.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) name: Arc<str>,
    pub(crate) image: Image,
    /// The sampler of a texture; `None` for a surface.
    pub(crate) sampler: Option<Sampler>,
}

/// Writes a noun: `texture `t` (a 2-D array of 3 x 5)`.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.sampler.is_some() { "texture" } else { "surface" };
        write!(f, "{kind} `{}` ({})", self.name, self.image.extent)
    }
}

/// Objects by their number; freed objects are `None`.
pub(crate) type Table = Vec<Option<Arc<Object>>>;

/// The textures and surfaces of a memory.
#[derive(Debug, Default)]
pub(crate) struct Objects(RwLock<Table>);

impl Objects {
    /// Returns a copy of the table, so that a launch needs no lock.
    pub(crate) fn snapshot(&self) -> Table {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Frees the object of a handle. Returns true if there was one.
    pub(crate) fn free(&self, handle: u64) -> bool {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let slot = number(handle).and_then(|number| table.get_mut(number));
        slot.is_some_and(|slot| slot.take().is_some())
    }

    pub(crate) fn add(&self, object: Object) -> Option<u64> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let number = match table.len() {
            MOST => table.iter().position(Option::is_none)?,
            length => {
                table.push(None);
                length
            }
        };
        table[number] = Some(Arc::new(object));
        Some(HANDLES + STEP * number as u64)
    }
}

/// Returns the number of the object that a handle names.
fn number(handle: u64) -> Option<usize> {
    let offset = handle.checked_sub(HANDLES).filter(|offset| offset.is_multiple_of(STEP))?;
    usize::try_from(offset / STEP).ok().filter(|&number| number < MOST)
}

/// Returns the object of a handle. The error describes the handle if it names none.
pub(crate) fn find(table: &Table, handle: u64) -> Result<&Object, String> {
    match number(handle).and_then(|number| table.get(number)) {
        Some(Some(object)) => Ok(object),
        Some(None) => Err(format!("{handle:#x}, the handle of one that has been given back")),
        None => Err(format!("{handle:#x}, which is no handle of a texture or surface")),
    }
}
