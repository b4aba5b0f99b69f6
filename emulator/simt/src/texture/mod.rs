//! Textures and surfaces: what a kernel reads by coordinates rather than by addresses.
//!
//! Their texels lie in buffers like all other bytes. What is behind a handle is an [`Object`]: a
//! kernel that is launched takes those that the memory has then.

mod check;
pub(crate) mod coordinate;
mod image;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::global_memory::{Memory, MemoryError};

pub use image::{AddressMode, Element, Extent, Filter, Image, Sampler};

/// Where handles begin: above the addresses of functions, and below those of global memory, so that
/// a handle is no address of anything.
pub(crate) const HANDLES: u64 = 1 << 38;
/// How far apart they are.
const STEP: u64 = 16;
/// The most of them at a time.
const MOST: usize = 1 << 20;

/// The geometries of instructions: how many coordinates they have, behind the number of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Geometry {
    One,
    Two,
    Three,
    Layers1,
    Layers2,
}

impl Geometry {
    /// As PTX writes it.
    pub(crate) fn of(name: &str) -> Option<Geometry> {
        let all = [Self::One, Self::Two, Self::Three, Self::Layers1, Self::Layers2];
        all.into_iter().find(|geometry| geometry.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Geometry::One => "1d",
            Geometry::Two => "2d",
            Geometry::Three => "3d",
            Geometry::Layers1 => "a1d",
            Geometry::Layers2 => "a2d",
        }
    }

    pub(crate) fn is_layered(self) -> bool {
        matches!(self, Geometry::Layers1 | Geometry::Layers2)
    }

    /// How many numbers say where: the layer's and the coordinates.
    pub(crate) fn numbers(self) -> usize {
        match self {
            Geometry::One => 1,
            Geometry::Two | Geometry::Layers1 => 2,
            Geometry::Three | Geometry::Layers2 => 3,
        }
    }
}

/// What surfaces do outside of their bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Outside {
    /// That is a mistake.
    Trap,
    /// The nearest place is meant.
    Clamp,
    /// Zeros are read, and nothing is written.
    Zero,
}

/// What `txq` and `suq` ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    Width,
    Height,
    Depth,
    Layers,
    /// Whether coordinates are normalized.
    Normalized,
}

/// What is behind a handle.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) name: Arc<str>,
    pub(crate) image: Image,
    /// Of a texture; a surface has none.
    pub(crate) sampler: Option<Sampler>,
}

/// As a noun: `texture `t` (a 2-D array of 3 x 5)`.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.sampler.is_some() { "texture" } else { "surface" };
        write!(f, "{kind} `{}` ({})", self.name, self.image.extent)
    }
}

/// By their numbers; those given back are `None`.
pub(crate) type Table = Vec<Option<Arc<Object>>>;

/// The textures and surfaces of a memory.
#[derive(Debug, Default)]
pub(crate) struct Objects(RwLock<Table>);

impl Objects {
    /// As they are, for a launch that then needs no lock.
    pub(crate) fn snapshot(&self) -> Table {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives one back, if `handle` is one's.
    pub(crate) fn free(&self, handle: u64) -> bool {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let slot = number(handle).and_then(|number| table.get_mut(number));
        slot.is_some_and(|slot| slot.take().is_some())
    }

    fn add(&self, object: Object) -> Option<u64> {
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

/// The number of the object that a handle means.
fn number(handle: u64) -> Option<usize> {
    let offset = handle.checked_sub(HANDLES).filter(|offset| offset.is_multiple_of(STEP))?;
    usize::try_from(offset / STEP).ok().filter(|&number| number < MOST)
}

/// What a handle means; if nothing, what it is instead.
pub(crate) fn find(table: &Table, handle: u64) -> Result<&Object, String> {
    match number(handle).and_then(|number| table.get(number)) {
        Some(Some(object)) => Ok(object),
        Some(None) => Err(format!("{handle:#x}, the handle of one that has been given back")),
        None => Err(format!("{handle:#x}, which is no handle of a texture or surface")),
    }
}

impl Memory {
    /// A texture object over texels that lie in this memory: its handle, which a kernel takes as
    /// `cudaTextureObject_t`. Reports call it by `name`. [`Memory::free`] gives it back; the buffer
    /// stays.
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
    /// let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect();
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
    /// let row: Vec<f32> = result.chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
    /// assert_eq!(row, [4.0, 4.0, 5.0, 6.0, 6.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadImage`] if CUDA or the emulator has no such texture: extents beyond those
    /// of an H100, texels that do not lie in one buffer or are not aligned, [`Filter::Linear`],
    /// normalized values of other elements than integers of 8 and 16 bits.
    pub fn texture(&self, name: &str, image: Image, sampler: Sampler) -> Result<u64, MemoryError> {
        self.object(name, image, Some(sampler))
    }

    /// A surface object over texels that lie in this memory, which kernels read and write: its
    /// handle, which a kernel takes as `cudaSurfaceObject_t`. Reports call it by `name`.
    /// [`Memory::free`] gives it back; the buffer stays.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadImage`], as of [`Memory::texture`]; also for linear and pitched memory, of
    /// which CUDA has no surfaces.
    pub fn surface(&self, name: &str, image: Image) -> Result<u64, MemoryError> {
        self.object(name, image, None)
    }

    fn object(
        &self,
        name: &str,
        image: Image,
        sampler: Option<Sampler>,
    ) -> Result<u64, MemoryError> {
        let wrong = |why| MemoryError::BadImage { name: name.to_string(), why };
        check::check(&image, sampler.as_ref()).map_err(wrong)?;
        let [_, height, depth] = image.extent.texels();
        let last = image.place(image.row_bytes(), [height - 1, depth - 1]);
        self.holds(image.address, last - image.address).map_err(wrong)?;
        let object = Object { name: name.into(), image, sampler };
        let made = self.objects.add(object);
        made.ok_or_else(|| wrong(format!("there are {MOST} textures and surfaces already")))
    }
}
