//! Which textures and surfaces there can be: those that CUDA makes on an H100, but for linear
//! filters.

use super::image::{Element, Extent, Filter, Image, Sampler};

/// Of which bytes the address of linear and pitched memory is a multiple (`textureAlignment`), and
/// of which its pitch is (`texturePitchAlignment`).
const ALIGNMENT: u64 = 512;
const PITCH_ALIGNMENT: u32 = 32;

/// Says why there is no such texture, or without a sampler no such surface.
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

/// The most texels along x, y and z: the CUDA programming guide's table for compute capability 9.0.
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
