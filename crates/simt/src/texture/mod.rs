//! Textures and surfaces: what a kernel reads by coordinates rather than by addresses.
//!
//! Their texels lie in buffers like all other bytes. What is behind a handle is an [`Object`]: a kernel that is launched
//! takes those that the memory has then.

mod check;
pub(crate) mod coordinate;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::global_memory::{Memory, MemoryError};

/// Where handles begin: above the addresses of functions, and below those of global memory, so that a handle is no address
/// of anything.
pub(crate) const HANDLES: u64 = 1 << 38;
/// How far apart they are.
const STEP: u64 = 16;
/// The most of them at a time.
const MOST: usize = 1 << 20;

/// What texels there are, and where.
///
/// Those of a CUDA array are the same numbers in rows one after the other, without gaps: how a GPU lays them out is its
/// secret. Three-dimensional arrays and layers are planes one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Where the first texel is: in a buffer that holds all of them.
    pub address: u64,
    /// How many there are, and how they are arranged.
    pub extent: Extent,
    /// What each channel of a texel is.
    pub element: Element,
    /// How many channels a texel has: 1, 2 or 4.
    pub channels: u32,
}

/// How texels are arranged; in texels, but for the pitch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// Linear memory, for `tex1Dfetch` (`cudaResourceTypeLinear`).
    Linear {
        /// Texels.
        width: u32,
    },
    /// Rows that begin so many bytes apart (`cudaResourceTypePitch2D`).
    Pitched {
        /// Texels of a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes from the beginning of a row to that of the next.
        pitch: u32,
    },
    /// An array of one dimension.
    Array1d {
        /// Texels.
        width: u32,
    },
    /// An array of two dimensions.
    Array2d {
        /// Texels of a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// An array of three dimensions.
    Array3d {
        /// Texels of a row.
        width: u32,
        /// Rows of a plane.
        height: u32,
        /// Planes.
        depth: u32,
    },
    /// Layers of one dimension (`cudaArrayLayered`).
    Layered1d {
        /// Texels of a layer.
        width: u32,
        /// Layers.
        layers: u32,
    },
    /// Layers of two dimensions.
    Layered2d {
        /// Texels of a row.
        width: u32,
        /// Rows of a layer.
        height: u32,
        /// Layers.
        layers: u32,
    },
}

/// What a channel of a texel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Element {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    F16,
    F32,
}

/// How a texture is read: `cudaTextureDesc`, whose zeros are the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sampler {
    /// What lies outside, along x, y and z. Of coordinates that are not normalized, as CUDA has it, all but the border
    /// mean [`AddressMode::Clamp`].
    pub address_modes: [AddressMode; 3],
    /// What is between the texels.
    pub filter: Filter,
    /// Coordinates go from 0 to 1, rather than to the extents (`normalizedCoords`).
    pub normalized_coordinates: bool,
    /// Integers of 8 and 16 bits become floats from 0, or −1, to 1 (`cudaReadModeNormalizedFloat`).
    pub normalized_values: bool,
}

/// What is fetched outside of a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressMode {
    /// The texture again (`cudaAddressModeWrap`).
    #[default]
    Wrap,
    /// The nearest texel (`cudaAddressModeClamp`).
    Clamp,
    /// The texture again, every other time reversed (`cudaAddressModeMirror`).
    Mirror,
    /// Zeros (`cudaAddressModeBorder`, with a border colour of zeros).
    Border,
}

/// What is fetched between texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// The texel that the coordinates lie in (`cudaFilterModePoint`).
    #[default]
    Point,
    /// What lies between texels (`cudaFilterModeLinear`), which is refused.
    Linear,
}

impl Extent {
    /// Texels along x, y, and z or the layers.
    pub(crate) fn texels(self) -> [u32; 3] {
        match self {
            Extent::Linear { width } | Extent::Array1d { width } => [width, 1, 1],
            Extent::Pitched { width, height, .. } | Extent::Array2d { width, height } => {
                [width, height, 1]
            }
            Extent::Array3d { width, height, depth } => [width, height, depth],
            Extent::Layered1d { width, layers } => [width, 1, layers],
            Extent::Layered2d { width, height, layers } => [width, height, layers],
        }
    }

    pub(crate) fn layers(self) -> Option<u32> {
        match self {
            Extent::Layered1d { layers, .. } | Extent::Layered2d { layers, .. } => Some(layers),
            _ => None,
        }
    }

    /// The geometry by which instructions call it.
    pub(crate) fn geometry(self) -> Geometry {
        match self {
            Extent::Linear { .. } | Extent::Array1d { .. } => Geometry::One,
            Extent::Pitched { .. } | Extent::Array2d { .. } => Geometry::Two,
            Extent::Array3d { .. } => Geometry::Three,
            Extent::Layered1d { .. } => Geometry::Layers1,
            Extent::Layered2d { .. } => Geometry::Layers2,
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.texels();
        match self {
            Extent::Linear { .. } => write!(f, "linear memory of {x}"),
            Extent::Pitched { pitch, .. } => write!(f, "rows of {x} x {y}, {pitch} bytes apart"),
            Extent::Array1d { .. } => write!(f, "a 1-D array of {x}"),
            Extent::Array2d { .. } => write!(f, "a 2-D array of {x} x {y}"),
            Extent::Array3d { .. } => write!(f, "a 3-D array of {x} x {y} x {z}"),
            Extent::Layered1d { .. } => write!(f, "a layered 1-D array of {x}, {z} times"),
            Extent::Layered2d { .. } => write!(f, "a layered 2-D array of {x} x {y}, {z} times"),
        }
    }
}

impl Element {
    /// Bytes of a channel.
    pub fn bytes(self) -> u32 {
        match self {
            Element::U8 | Element::S8 => 1,
            Element::U16 | Element::S16 | Element::F16 => 2,
            Element::U32 | Element::S32 | Element::F32 => 4,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::F32)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Element::U8 => "u8",
            Element::S8 => "s8",
            Element::U16 => "u16",
            Element::S16 => "s16",
            Element::U32 => "u32",
            Element::S32 => "s32",
            Element::F16 => "f16",
            Element::F32 => "f32",
        }
    }
}

impl Image {
    /// Bytes of a texel.
    pub(crate) fn texel_bytes(&self) -> u32 {
        self.element.bytes() * self.channels
    }

    /// Bytes of the texels of a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        u64::from(self.extent.texels()[0]) * u64::from(self.texel_bytes())
    }

    /// The address of a byte of a row that is there.
    pub(crate) fn place(&self, byte: u64, [y, z]: [u32; 2]) -> u64 {
        let pitch = match self.extent {
            Extent::Pitched { pitch, .. } => pitch.into(),
            _ => self.row_bytes(),
        };
        let height = u64::from(self.extent.texels()[1]);
        self.address + (u64::from(z) * height + u64::from(y)) * pitch + byte
    }
}

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
    /// A texture object over texels that lie in this memory: its handle, which a kernel takes as `cudaTextureObject_t`.
    /// Reports call it by `name`. [`Memory::free`] gives it back; the buffer stays.
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
    /// [`MemoryError::BadImage`] if CUDA or the emulator has no such texture: extents beyond those of an H100, texels that do
    /// not lie in one buffer or are not aligned, [`Filter::Linear`], normalized values of other elements than
    /// integers of 8 and 16 bits.
    pub fn texture(&self, name: &str, image: Image, sampler: Sampler) -> Result<u64, MemoryError> {
        self.object(name, image, Some(sampler))
    }

    /// A surface object over texels that lie in this memory, which kernels read and write: its handle, which a kernel
    /// takes as `cudaSurfaceObject_t`. Reports call it by `name`. [`Memory::free`] gives it back; the buffer stays.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadImage`], as of [`Memory::texture`]; also for linear and pitched memory, of which CUDA has no
    /// surfaces.
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
