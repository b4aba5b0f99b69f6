//! The buffers of a memory that the host does not allocate itself: variables of modules, texels of
//! textures and surfaces, and workspaces of cooperative launches.
//!
//! Variables are placed when the first kernel of the module that uses one is prepared on the
//! memory, or when the host asks for them. They stay as long as the module or one of its kernels
//! exists, so a launch finds the values that the launch before left in them.
//!
//! A workspace is two words of device memory. The driver passes the address of such words to
//! `cooperative_groups` for a barrier of the grid: `grid.sync()` finds it in `%envreg1` and
//! `%envreg2`, and traps if it is null. The second word is the barrier. One thread of each block
//! adds 1 to it; the thread of block 0 adds as much as brings the sum of all to 2^31. All wait
//! until the upper bit changes. The first word is the size, which nothing reads.

use std::sync::{Arc, PoisonError};

use super::buffer::{Contents, MemoryError, PAGE_WORDS};
use super::buffers::Memory;
use super::saved::{Place, Workspace};
use super::word::Word;
use crate::isa::{Declared, Piece, Reference};
use crate::memory::texture::{Image, MOST, Object, Sampler, check};
use crate::report::bytes_of;

/// Returns the largest number of bytes of the host that placing the variables touches.
pub(crate) fn host_bytes(variables: &[Declared]) -> u64 {
    let of = |variable: &Declared| {
        let pieces = variable.pieces.iter().map(|piece| (piece.offset, piece.bytes.len()));
        // Addresses may be between the pieces: a page with both counts twice.
        pages(pieces) + pages(variable.addresses.iter().map(|one| (one.offset, 8)))
    };
    variables.iter().map(of).sum::<u64>().saturating_mul(bytes_of::<Word>(PAGE_WORDS as u64))
}

/// Returns the number of pages that hold these bytes, which are in ascending order.
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
    /// Returns the addresses of variables, if they have been placed.
    pub(crate) fn placed(&self, variables: &Arc<[Declared]>) -> Option<Arc<[u64]>> {
        let placed = self.modules.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = placed.iter().find(|place| Arc::ptr_eq(&place.variables, variables))?;
        Some(place.addresses.clone())
    }

    /// Places variables unless they have been placed before, and returns their addresses.
    pub(crate) fn place(&self, variables: &Arc<[Declared]>) -> Result<Arc<[u64]>, MemoryError> {
        let mut placed = self.modules.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = placed.iter().find(|place| Arc::ptr_eq(&place.variables, variables)) {
            return Ok(place.addresses.clone());
        }
        // Free the variables of modules that no longer exist and have no kernel left.
        for gone in placed.extract_if(.., |place| Arc::strong_count(&place.variables) == 1) {
            gone.addresses.iter().try_for_each(|&address| self.free(address))?;
        }
        let mut addresses: Vec<u64> = Vec::new();
        let done = self.place_all(variables, &mut addresses);
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

    fn place_all(
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

impl Memory {
    /// Makes a texture object over texels in this memory. Returns its handle, which a kernel takes
    /// as `cudaTextureObject_t`. Reports use `name`. [`Memory::free`] frees the object but not the
    /// buffer.
    ///
    /// ```
    /// use simt::{AddressMode, Element, Extent, Image, Launch, Memory, Module, Sampler};
    ///
    /// // float x = tex2D<float>(texels, threadIdx.x - 1.0f, 1.0f);
    /// let module = Module::parse(
    ///     ".version 8.0 .target sm_80 .address_size 64
    ///     .visible .entry row(.param .u64 texels, .param .u64 out) {
    ///         .reg .b32 %r<2>; .reg .f32 %f<7>; .reg .b64 %rd<4>;
    ///         ld.param.u64 %rd1, [texels]; ld.param.u64 %rd2, [out];
    ///         mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd2, %rd2, %rd3;
    ///         cvt.rn.f32.u32 %f1, %r1; add.rn.f32 %f1, %f1, 0fBF800000; mov.f32 %f2, 0f3F800000;
    ///         tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
    ///         st.global.f32 [%rd2], %f3;
    ///     }",
    /// )?;
    /// let memory = Memory::new(1 << 20);
    /// let address = memory.allocate("texels", 4 * 3 * 2)?;
    /// let texels = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    /// let bytes: Vec<u8> = texels.iter().flat_map(|x| x.to_le_bytes()).collect();
    /// memory.write(address, &bytes)?;
    /// let extent = Extent::Array2d { width: 3, height: 2 };
    /// let image = Image { address, extent, element: Element::F32, channels: 1 };
    /// let sampler = Sampler { address_modes: [AddressMode::Clamp; 3], ..Sampler::default() };
    /// let texture = memory.texture("t", image, sampler)?;
    ///
    /// let out = memory.allocate("out", 4 * 5)?;
    /// let arguments = [texture.to_le_bytes(), out.to_le_bytes()].concat();
    /// let kernel = module.kernel("row").expect("it is there");
    /// Launch::new(kernel, [1; 3], [5, 1, 1], &arguments).prepare(&memory)?.run(0..1)?;
    /// let mut result = [0; 20];
    /// memory.read(out, &mut result)?;
    /// let row = result.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x));
    /// let row: Vec<f32> = row.collect();
    /// assert_eq!(row, [4.0, 4.0, 5.0, 6.0, 6.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadImage`] if CUDA or the emulator has no such texture. It refuses extents
    /// beyond the limits of an H100, texels outside of one buffer or unaligned,
    /// [`Filter::Linear`](crate::Filter::Linear), and normalized values of elements other than
    /// integers of 8 and 16 bits.
    pub fn texture(&self, name: &str, image: Image, sampler: Sampler) -> Result<u64, MemoryError> {
        self.make(name, image, Some(sampler))
    }

    /// Makes a surface object over texels in this memory, which kernels read and write. Returns its
    /// handle, which a kernel takes as `cudaSurfaceObject_t`. Reports use `name`. [`Memory::free`]
    /// frees the object but not the buffer.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadImage`] as for [`Memory::texture`], and for linear and pitched memory, for
    /// which CUDA has no surfaces.
    pub fn surface(&self, name: &str, image: Image) -> Result<u64, MemoryError> {
        self.make(name, image, None)
    }

    fn make(&self, name: &str, image: Image, sampler: Option<Sampler>) -> Result<u64, MemoryError> {
        let wrong = |why| MemoryError::BadImage { name: name.to_string(), why };
        check(&image, sampler.as_ref()).map_err(wrong)?;
        let [_, height, depth] = image.extent.texels();
        let last = image.place(image.row_bytes(), [height - 1, depth - 1]);
        self.holds(image.address, last - image.address).map_err(wrong)?;
        let object = Object { name: name.into(), image, sampler };
        let made = self.objects.add(object);
        made.ok_or_else(|| wrong(format!("there are {MOST} textures and surfaces already")))
    }
}

const BYTES: u64 = 8;
/// The offset of the barrier's word.
const BARRIER: u64 = 4;

/// The report of a kernel that traps because it has no workspace.
pub(crate) const MISSING: &str = "executes trap: it is not launched together, and a barrier of the grid (`grid.sync()`) is for cooperative launches \
     (`cudaLaunchCooperativeKernel`), which `Prepared::run_together` is here";

impl Memory {
    /// Returns a workspace that no other launch uses, reset so that no block has arrived.
    pub(crate) fn workspace(&self) -> Result<Workspace, MemoryError> {
        let mut all = self.workspaces.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = all.iter().find(|workspace| Arc::strong_count(&workspace.0) == 1);
        let workspace = match unused {
            Some(workspace) => workspace.clone(),
            None => {
                let name = "workspace of the grid";
                let made = self.allocate_with(name, BYTES, Contents::Zeros)?;
                all.push(Workspace(Arc::new(made)));
                all[all.len() - 1].clone()
            }
        };
        self.write(workspace.address(), &BYTES.to_le_bytes())?;
        Ok(workspace)
    }
}

/// Returns the number of blocks at a workspace's barrier, as a clause, if some are missing.
pub(crate) fn arrived(memory: &Memory, workspace: u64, blocks: u64) -> Option<String> {
    let mut word = [0; 4];
    memory.read(workspace.checked_add(BARRIER)?, &mut word).ok()?;
    let count = u64::from(u32::from_le_bytes(word) & 0x7fff_ffff);
    // With block 0, the sum is less than 2^31 by the number of blocks that are missing.
    let lack = (1 << 31) - count;
    let come = if lack < blocks { blocks - lack } else { count };
    (workspace != 0 && come > 0 && come < blocks).then(|| {
        format!("; at the barrier of the grid (`grid.sync()`) are {come} of its {blocks} blocks")
    })
}
