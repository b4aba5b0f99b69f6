//! Coordinates to texels, and texels to the values that a fetch returns, as an H100 does it. CUDA's
//! programming guide ("Texture Fetching") states that without a filter, the texel's number is the
//! coordinate rounded down. It leaves open how a normalized coordinate is scaled.

use super::image::{AddressMode, Element, Extent, Sampler};

/// Returns the number of the texel along an axis for a coordinate; `None` beyond the border.
///
/// Subnormal coordinates are zero. Normalized coordinates are rounded down to one of the [`parts`]
/// of the extent before they become texels. Mirroring applies to the texels.
///
/// Computed in `f64`, where all of this is exact: the product of a part's number and an extent of
/// at most 2^17 has at most 41 bits.
pub(crate) fn texel(given: f32, extent: Extent, sampler: &Sampler, axis: usize) -> Option<u32> {
    let texels = extent.texels()[axis];
    let is_zero = given.is_nan() || given.abs() < f32::MIN_POSITIVE;
    let x = if is_zero { 0.0 } else { f64::from(given) };
    let (n, mode) = (f64::from(texels), sampler.address_modes[axis]);
    let whole = x.floor();
    let number = if sampler.normalized_coordinates {
        let parts = parts(extent, axis);
        let part = (x * parts).floor();
        let lies_in = |part: f64| (part * n / parts).floor();
        match mode {
            AddressMode::Clamp | AddressMode::Border => lies_in(part),
            AddressMode::Mirror if (whole % 2.0).abs() == 1.0 => {
                n - 1.0 - lies_in(part - whole * parts)
            }
            // Infinity leaves a NaN, which becomes 0 below.
            AddressMode::Wrap | AddressMode::Mirror => lies_in(part - whole * parts),
        }
    } else {
        whole
    };
    if mode == AddressMode::Border && !(0.0..n).contains(&number) {
        return None;
    }
    // Negative numbers become 0.
    Some((number as u32).min(texels - 1))
}

/// Returns the number of parts into which each unit of a normalized coordinate is divided along an
/// axis. It depends on the whole extent.
///
/// Measured on an H100 with arrays, layers and pitched memory of one to three dimensions. For the
/// depth of an array, the number changes at an unknown depth between 2049 and 4095.
fn parts(extent: Extent, axis: usize) -> f64 {
    let [width, height, depth] = extent.texels();
    let most = width.max(height);
    let finer = match extent {
        Extent::Array3d { .. } => u32::from(depth > 2049 || axis < 2 && most > 8192),
        Extent::Layered1d { .. } | Extent::Layered2d { .. } => {
            u32::from(most > 8192) + u32::from(most > 16_384)
        }
        _ => u32::from(most > 8192) + u32::from(most > 65_536),
    };
    f64::from(1_u32 << (21 + finer))
}

/// Returns channel number `channel` of a texel, as the 32 bits that the fetch returns.
pub(crate) fn channel(texel: &[u32; 4], element: Element, channel: u32, normalized: bool) -> u32 {
    let first = element.bytes() * channel;
    let bits = texel[(first / 4) as usize % 4] >> (8 * (first % 4));
    let (value, most) = match element {
        Element::U8 => (i32::from(bits as u8), 255.0),
        Element::S8 => (i32::from(bits as i8), 127.0),
        Element::U16 => (i32::from(bits as u16), 65535.0),
        Element::S16 => (i32::from(bits as i16), 32767.0),
        Element::F16 => return half(bits as u16),
        Element::U32 | Element::S32 | Element::F32 => return bits,
    };
    match normalized {
        // The most negative number is −1, like the one above it.
        true => (value as f32 / most).max(-1.0).to_bits(),
        false => value as u32,
    }
}

/// Returns an `f16` as the bits of an `f32`. A NaN keeps its bits, even a signaling one.
fn half(bits: u16) -> u32 {
    let (sign, fraction) = (u32::from(bits >> 15), u32::from(bits & 0x3ff));
    match bits & 0x7c00 {
        0x7c00 if fraction != 0 => sign << 31 | 0x7f80_0000 | fraction << 13,
        _ => crate::isa::half_as_f32(bits).to_bits(),
    }
}
