//! Descriptions of textures and surfaces, and the check of which of them can exist.
//!
//! The types are public: with them, a caller describes texels in a buffer. `check` refuses what
//! CUDA refuses on an H100, with the reason. It also refuses linear filters, since their bits on a
//! GPU are not known. The address of a texel in its buffer is computed here; the texel that
//! coordinates name is computed in `coordinate`. Tested by `suite/objects.rs` and
//! `suite/object_mistakes.rs`.

use std::fmt;

use crate::isa::Geometry;

/// The texels of a texture or surface: their place and format.
///
/// A CUDA array is stored as rows without gaps, one after the other, since the layout of a GPU is
/// not published. Three-dimensional arrays and layers are planes, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// The address of the first texel, in a buffer that holds all texels.
    pub address: u64,
    /// The number of texels and their arrangement.
    pub extent: Extent,
    /// The type of each channel of a texel.
    pub element: Element,
    /// The number of channels of a texel: 1, 2 or 4.
    pub channels: u32,
}

/// The arrangement of texels. Sizes are in texels, the pitch is in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// Linear memory, for `tex1Dfetch` (`cudaResourceTypeLinear`).
    Linear {
        /// The number of texels.
        width: u32,
    },
    /// Rows that begin `pitch` bytes apart (`cudaResourceTypePitch2D`).
    Pitched {
        /// The number of texels of a row.
        width: u32,
        /// The number of rows.
        height: u32,
        /// The number of bytes from the beginning of a row to the beginning of the next.
        pitch: u32,
    },
    /// An array of one dimension.
    Array1d {
        /// The number of texels.
        width: u32,
    },
    /// An array of two dimensions.
    Array2d {
        /// The number of texels of a row.
        width: u32,
        /// The number of rows.
        height: u32,
    },
    /// An array of three dimensions.
    Array3d {
        /// The number of texels of a row.
        width: u32,
        /// The number of rows of a plane.
        height: u32,
        /// The number of planes.
        depth: u32,
    },
    /// Layers of one dimension (`cudaArrayLayered`).
    Layered1d {
        /// The number of texels of a layer.
        width: u32,
        /// The number of layers.
        layers: u32,
    },
    /// Layers of two dimensions.
    Layered2d {
        /// The number of texels of a row.
        width: u32,
        /// The number of rows of a layer.
        height: u32,
        /// The number of layers.
        layers: u32,
    },
}

/// The type of a channel of a texel.
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

/// The way a texture is read: `cudaTextureDesc`, whose zeros are the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sampler {
    /// The address modes along x, y and z. If coordinates are not normalized, all modes but the
    /// border mean [`AddressMode::Clamp`], as in CUDA.
    pub address_modes: [AddressMode; 3],
    /// The filter between texels.
    pub filter: Filter,
    /// True if coordinates go from 0 to 1 rather than to the extents (`normalizedCoords`).
    pub normalized_coordinates: bool,
    /// True if integers of 8 and 16 bits become floats in [0, 1] or [−1, 1]
    /// (`cudaReadModeNormalizedFloat`).
    pub normalized_values: bool,
}

/// The result of a fetch outside of a texture.
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

/// The result of a fetch between texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// The texel that contains the coordinates (`cudaFilterModePoint`).
    #[default]
    Point,
    /// An interpolation between texels (`cudaFilterModeLinear`), which is refused.
    Linear,
}

impl Extent {
    /// Returns the number of texels along x, y, and z or the layers; 1 where it has no such axis.
    pub fn texels(self) -> [u32; 3] {
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

    /// Returns the geometry that instructions name for this extent.
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
    /// Returns the bytes of a channel.
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

    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

impl Image {
    /// Returns the bytes of a texel.
    pub(crate) fn texel_bytes(&self) -> u32 {
        self.element.bytes() * self.channels
    }

    /// Returns the bytes of the texels of a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        u64::from(self.extent.texels()[0]) * u64::from(self.texel_bytes())
    }

    /// Returns the address of a byte of an existing row.
    pub(crate) fn place(&self, byte: u64, [y, z]: [u32; 2]) -> u64 {
        let pitch = match self.extent {
            Extent::Pitched { pitch, .. } => pitch.into(),
            _ => self.row_bytes(),
        };
        let height = u64::from(self.extent.texels()[1]);
        self.address + (u64::from(z) * height + u64::from(y)) * pitch + byte
    }
}

/// The alignment of linear and pitched memory in bytes (`textureAlignment`), and the alignment of a
/// pitch (`texturePitchAlignment`).
const ALIGNMENT: u64 = 512;
const PITCH_ALIGNMENT: u32 = 32;

/// Returns the reason if no such texture, or without a sampler no such surface, can exist.
pub(crate) fn check(image: &Image, sampler: Option<&Sampler>) -> Result<(), String> {
    let Image { address, extent, element, channels } = *image;
    if !matches!(channels, 1 | 2 | 4) {
        return Err(format!("a texel has 1, 2 or 4 channels, not {channels}"));
    }
    let (texels, most) = (extent.texels(), most(extent));
    if texels.into_iter().zip(most).any(|(texels, most)| texels == 0 || texels > most) {
        let [x, y, z] = most;
        return Err(format!("{extent} texels: from 1 to {x} along x, {y} along y, {z} along z"));
    }
    let bytes = u64::from(image.texel_bytes());
    match extent {
        Extent::Linear { .. } | Extent::Pitched { .. } if sampler.is_none() => {
            return Err("a surface lies in a CUDA array, and not in linear memory".to_string());
        }
        Extent::Linear { .. } | Extent::Pitched { .. } if address % ALIGNMENT != 0 => {
            return Err(format!(
                "linear memory for a texture begins at a multiple of {ALIGNMENT} bytes (`textureAlignment`), not at \
                 {address:#x}"
            ));
        }
        Extent::Pitched { pitch, .. }
            if pitch % PITCH_ALIGNMENT != 0 || u64::from(pitch) < image.row_bytes() =>
        {
            return Err(format!(
                "its pitch is a multiple of {PITCH_ALIGNMENT} bytes (`texturePitchAlignment`) and no less than the {} of \
                 a row, not {pitch}",
                image.row_bytes()
            ));
        }
        _ if address % bytes != 0 => {
            return Err(format!("its address is a multiple of {bytes} bytes, as a texel has"));
        }
        _ => {}
    }
    let Some(sampler) = sampler else { return Ok(()) };
    if sampler.filter == Filter::Linear {
        return Err(String::from(
            "linear filtering (`cudaFilterModeLinear`) is not emulated, since the bits of a GPU's weights are not known: fetch \
             points (`cudaFilterModePoint`) and weight them in the kernel",
        ));
    }
    let narrow = !element.is_float() && element.bytes() < 4;
    if sampler.normalized_values && !narrow {
        return Err(format!(
            "only integers of 8 and 16 bits are read as normalized floats (`cudaReadModeNormalizedFloat`), not {}",
            Element::name(element)
        ));
    }
    if sampler.normalized_coordinates && matches!(extent, Extent::Linear { .. }) {
        return Err("linear memory is read by integers, which are not normalized".to_string());
    }
    Ok(())
}

/// Returns the most texels along x, y and z (CUDA programming guide, compute capability 9.0).
fn most(extent: Extent) -> [u32; 3] {
    match extent {
        Extent::Linear { .. } => [1 << 28, 1, 1],
        Extent::Pitched { .. } => [131_072, 65_000, 1],
        Extent::Array1d { .. } => [131_072, 1, 1],
        Extent::Array2d { .. } => [131_072, 65_536, 1],
        Extent::Array3d { .. } => [16_384; 3],
        Extent::Layered1d { .. } => [32_768, 1, 2048],
        Extent::Layered2d { .. } => [32_768, 32_768, 2048],
    }
}
