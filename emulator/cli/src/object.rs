//! Textures and surfaces as the command line gives them: `tex2d(u8x4, 64x32, clamp, normalized)`.

use simt::{AddressMode, Element, Extent, Filter, Image, Memory, Sampler};

use crate::number::Type;

/// The numbers that texels may have, here and in `simt`.
const ELEMENTS: [(Type, Element); 8] = [
    (Type::Unsigned(1), Element::U8),
    (Type::Signed(1), Element::S8),
    (Type::Unsigned(2), Element::U16),
    (Type::Signed(2), Element::S16),
    (Type::Unsigned(4), Element::U32),
    (Type::Signed(4), Element::S32),
    (Type::F16, Element::F16),
    (Type::F32, Element::F32),
];

/// A texture, or a surface, which has no sampler. Its texels are in a buffer that only it uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Object {
    extent: Extent,
    element: Element,
    channels: u32,
    sampler: Option<Sampler>,
}

impl Object {
    /// Reads a texture or surface; `None` if the text describes something else.
    pub fn parse(text: &str) -> Result<Option<Object>, String> {
        let Some((shape, rest)) = text.split_once('(') else { return Ok(None) };
        let (is_texture, shape) = match (shape.strip_prefix("tex"), shape.strip_prefix("surf")) {
            (Some(shape), _) => (true, shape),
            (_, Some(shape)) => (false, shape),
            _ => return Ok(None),
        };
        let inside = rest.strip_suffix(')').ok_or("the parenthesis is not closed")?;
        let mut parts = inside.split(',').map(str::trim);
        let texel = parts.next().filter(|texel| !texel.is_empty());
        let texel =
            texel.ok_or("the texel and the extent are missing, as in `tex2d(f32, 64x32)`")?;
        let (element, channels) = texel_of(texel)?;
        let extent = extent_of(shape, parts.next().unwrap_or_default())?;
        let mut sampler = Sampler { address_modes: [AddressMode::Clamp; 3], ..Sampler::default() };
        for option in parts {
            match option {
                _ if !is_texture => return Err(format!("a surface has no option `{option}`")),
                "wrap" => sampler.address_modes = [AddressMode::Wrap; 3],
                "clamp" => sampler.address_modes = [AddressMode::Clamp; 3],
                "mirror" => sampler.address_modes = [AddressMode::Mirror; 3],
                "border" => sampler.address_modes = [AddressMode::Border; 3],
                "linear" => sampler.filter = Filter::Linear,
                "normalized" => sampler.normalized_coordinates = true,
                "floats" => sampler.normalized_values = true,
                _ => {
                    return Err(format!(
                        "`{option}` is not one of wrap, clamp, mirror, border, normalized, floats"
                    ));
                }
            }
        }
        Ok(Some(Object { extent, element, channels, sampler: is_texture.then_some(sampler) }))
    }

    /// Returns the type of the numbers of its texels.
    pub fn ty(&self) -> Type {
        let same = ELEMENTS.iter().find(|(_, element)| *element == self.element);
        same.map_or(Type::F32, |(ty, _)| *ty)
    }

    /// Returns the number of numbers of all texels.
    pub fn count(&self) -> usize {
        let texels = self.extent.texels();
        texels.into_iter().fold(self.channels as usize, |all, n| all.saturating_mul(n as usize))
    }

    /// Makes it over the texels at an address, and returns its handle.
    pub fn make(&self, memory: &Memory, name: &str, address: u64) -> Result<u64, String> {
        let Object { extent, element, channels, sampler } = *self;
        let image = Image { address, extent, element, channels };
        let made = match sampler {
            Some(sampler) => memory.texture(name, image, sampler),
            None => memory.surface(name, image),
        };
        made.map_err(|error| error.to_string())
    }
}

/// `f32`, `u8x4`
fn texel_of(text: &str) -> Result<(Element, u32), String> {
    let (ty, channels) = text.split_once('x').unwrap_or((text, "1"));
    let named = Type::named(ty)?;
    let found = ELEMENTS.iter().find(|(ty, _)| *ty == named);
    let wrong = || format!("texels cannot be `{ty}`, only integers of 8 to 32 bits, f16 or f32");
    let (_, element) = found.ok_or_else(wrong)?;
    let wrong = |_| format!("`{text}` is not a texel such as `f32` or `u8x4`");
    Ok((*element, channels.parse().map_err(wrong)?))
}

/// `64`, `64x32` or `64x32x8`, as the shape needs.
fn extent_of(shape: &str, text: &str) -> Result<Extent, String> {
    let numbers: Option<Vec<u32>> = text.split('x').map(|n| n.trim().parse().ok()).collect();
    let numbers = numbers.ok_or_else(|| format!("`{text}` is not an extent such as `64x32`"))?;
    Ok(match (shape, &numbers[..]) {
        ("linear", &[width]) => Extent::Linear { width },
        ("1d", &[width]) => Extent::Array1d { width },
        ("2d", &[width, height]) => Extent::Array2d { width, height },
        ("3d", &[width, height, depth]) => Extent::Array3d { width, height, depth },
        ("a1d", &[width, layers]) => Extent::Layered1d { width, layers },
        ("a2d", &[width, height, layers]) => Extent::Layered2d { width, height, layers },
        ("linear" | "1d" | "2d" | "3d" | "a1d" | "a2d", _) => {
            let count = numbers.len();
            return Err(format!(
                "the extent `{text}` has {count} numbers, unlike the shape `{shape}`"
            ));
        }
        _ => {
            return Err(format!(
                "the shape `{shape}` is not one of linear (for textures), 1d, 2d, 3d, a1d and a2d"
            ));
        }
    })
}
