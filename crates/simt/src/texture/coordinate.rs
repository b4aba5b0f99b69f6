//! From coordinates to texels, and from texels to what a fetch returns, as CUDA defines them ("Texture Fetching" in its
//! programming guide): without a filter, the texel is that whose number is the coordinate, rounded down.

use super::{AddressMode, Element, Sampler};

/// The number of the texel along an axis of so many that a coordinate lies in; `None` beyond the border.
///
/// Computed in `f64`: products of a coordinate with an extent of at most 2^17 are exact, and so are fractions of
/// coordinates, but for those of tiny negative ones, which are rounded to 1 and are limited to the last texel, where they lie.
pub(crate) fn texel(coordinate: f32, texels: u32, sampler: &Sampler, axis: usize) -> Option<u32> {
    let mut x = f64::from(coordinate);
    // Also what remains of infinity.
    let number = |x: f64| if x.is_nan() { 0.0 } else { x };
    let mut mode = sampler.address_modes[axis];
    if sampler.normalized_coordinates {
        x = match mode {
            AddressMode::Clamp | AddressMode::Border => x,
            AddressMode::Wrap => number(x - x.floor()),
            AddressMode::Mirror if x.floor() % 2.0 == 0.0 => x - x.floor(),
            AddressMode::Mirror => number(1.0 - (x - x.floor())),
        };
        x *= f64::from(texels);
    } else if mode != AddressMode::Border {
        mode = AddressMode::Clamp;
    }
    let x = number(x);
    if mode == AddressMode::Border && !(x >= 0.0 && x < f64::from(texels)) {
        return None;
    }
    // Negative numbers become 0.
    Some((x as u32).min(texels - 1))
}

/// Channel number `channel` of a texel, as 32 bits of what the fetch returns.
pub(crate) fn channel(texel: &[u32; 4], element: Element, channel: u32, normalized: bool) -> u32 {
    let first = element.bytes() * channel;
    let bits = texel[(first / 4) as usize % 4] >> (8 * (first % 4));
    let (value, most) = match element {
        Element::U8 => (i32::from(bits as u8), 255.0),
        Element::S8 => (i32::from(bits as i8), 127.0),
        Element::U16 => (i32::from(bits as u16), 65535.0),
        Element::S16 => (i32::from(bits as i16), 32767.0),
        Element::F16 => return half(bits as u16).to_bits(),
        Element::U32 | Element::S32 | Element::F32 => return bits,
    };
    match normalized {
        // The most negative number is −1, like the one above it.
        true => (value as f32 / most).max(-1.0).to_bits(),
        false => value as u32,
    }
}

fn half(bits: u16) -> f32 {
    crate::machine::half_as_f32(bits)
}
