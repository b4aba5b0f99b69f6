//! Fetches from textures as an H100 does them (driver 580.159), by exact bits: where the
//! documentation leaves the choice, or exact arithmetic would give another texel.

use simt::{AddressMode, Element, Extent, Image, Memory, ReportKind, Sampler};

use crate::objects::{GEOMETRIES, buffer, fetch, kernel, run, sampler};
use AddressMode::{Border, Clamp, Mirror, Wrap};

/// Extents, address modes, texels, and normalized coordinates that lie in them; of none does the
/// product with the extent, rounded down, say so.
#[rustfmt::skip]
const BESIDE: &[(u32, AddressMode, u32, &[u32])] = &[
    (2, Mirror, 0, &[0xbf00_0000, 0x3fc0_0000]),
    (3, Wrap, 0, &[0xbf2a_aaaa]),
    (3, Wrap, 1, &[0xbeaa_aaaa, 0xbeaa_aaa6]),
    (3, Clamp, 0, &[0x3eaa_aaab, 0x3eaa_aaac, 0x3eaa_aaae]),
    (3, Clamp, 1, &[0x3f2a_aaab, 0x3f2a_aaac]),
    (3, Mirror, 2, &[0xbf2a_aaaa]),
    (3, Mirror, 1, &[0xbeaa_aaaa, 0xbeaa_aaa6, 0xbeaa_aaa8]),
    (3, Border, 0, &[0x3eaa_aaab, 0x3eaa_aaac, 0x3eaa_aaae]),
    (5, Wrap, 1, &[0xbf19_9999]),
    (5, Wrap, 2, &[0xbecc_cccc, 0xbecc_ccc7, 0xbecc_ccca]),
    (5, Clamp, 0, &[0x3e4c_cccd, 0x3e4c_ccce, 0x3e4c_ccda, 0x3e4c_ccd3, 0x3e4c_ccd0, 0x3e4c_cccf]),
    (5, Mirror, 3, &[0xbf19_9999]),
    (5, Mirror, 2, &[0xbecc_cccc, 0xbecc_ccc7, 0xbecc_ccca, 0xbecc_cccb]),
    (5, Border, 0, &[0x3e4c_cccd, 0x3e4c_ccce, 0x3e4c_ccda, 0x3e4c_ccd3]),
    (7, Wrap, 3, &[0xbedb_6db6, 0xbedb_6db2, 0xbedb_6db5]),
    (7, Clamp, 0, &[0x3e12_4925, 0x3e12_4926, 0x3e12_4937, 0x3e12_492e, 0x3e12_492a, 0x3e12_4927]),
    (7, Mirror, 3, &[0xbedb_6db6, 0xbedb_6db2, 0xbedb_6db5]),
    (7, Mirror, 2, &[0xbe92_4924]),
    (7, Border, 0, &[0x3e12_4925, 0x3e12_4926, 0x3e12_4937, 0x3e12_492e]),
    (32, Mirror, 15, &[0xbf00_0000]),
    (32, Mirror, 2, &[0xbdc0_0000]),
    (32, Mirror, 1, &[0xbd80_0000]),
    (100, Wrap, 96, &[0xbcf5_c28f, 0xbcf5_c28e, 0xbcf5_c23d, 0xbcf5_c266, 0xbcf5_c27b]),
    (100, Clamp, 0, &[0x3c23_d70b, 0x3c23_d7ae, 0x3c23_d75c, 0x3c23_d733, 0x3c23_d71e, 0x3c23_d714]),
    (100, Mirror, 49, &[0xbf00_0000]),
    (100, Mirror, 3, &[0xbcf5_c28f, 0xbcf5_c28e, 0xbcf5_c23d, 0xbcf5_c266, 0xbcf5_c27b]),
    (100, Border, 0, &[0x3c23_d70b, 0x3c23_d7ae, 0x3c23_d75c, 0x3c23_d733]),
    (1021, Wrap, 1017, &[0xbb40_906c, 0xbb40_906b, 0xbb40_902c, 0xbb40_904c, 0xbb40_905c]),
    (1021, Clamp, 0, &[0x3a80_6049, 0x3a80_684e, 0x3a80_644b, 0x3a80_624a, 0x3a80_6149, 0x3a80_60c8]),
    (1021, Mirror, 3, &[0xbb40_906c, 0xbb40_906b, 0xbb40_902c, 0xbb40_904c, 0xbb40_905c, 0xbb40_9064]),
    (1021, Border, 0, &[0x3a80_6049, 0x3a80_684e, 0x3a80_644b, 0x3a80_624a]),
    (4096, Mirror, 2047, &[0xbf00_0000]),
    (4096, Mirror, 2, &[0xba40_0000]),
    (4096, Mirror, 1, &[0xba00_0000]),
    (65_537, Wrap, 65_533, &[0xb83f_ff40, 0xb83f_ff3f, 0xb83f_bf40, 0xb83f_df40, 0xb83f_ef40]),
    (65_537, Clamp, 0, &[0x377f_ff01, 0x377f_ff80, 0x377f_ff40, 0x377f_ff20, 0x377f_ff10, 0x377f_ff08]),
    (65_537, Mirror, 3, &[0xb83f_ff40, 0xb83f_ff3f, 0xb83f_bf40, 0xb83f_df40, 0xb83f_ef40, 0xb83f_f740]),
    (65_537, Border, 0, &[0x377f_ff01, 0x377f_ff80, 0x377f_ff40, 0x377f_ff20]),
];

/// Texels of a 1-D array that hold their numbers, from 1: what a fetch gives for these coordinates,
/// of which 0 is the border.
fn found(texels: u32, mode: AddressMode, normalized: bool, coordinates: &[u32]) -> Vec<u32> {
    let memory = Memory::new(1 << 24);
    let bytes: Vec<u8> = (1..=texels).flat_map(u32::to_le_bytes).collect();
    let address = buffer(&memory, "texels", &bytes);
    let extent = Extent::Array1d { width: texels };
    let image = Image { address, extent, element: Element::U32, channels: 1 };
    let texture = memory.texture("t", image, sampler([mode; 3], normalized)).unwrap();
    let at: Vec<_> = coordinates.iter().map(|&x| [0, x, 0, 0]).collect();
    let module = kernel(&fetch("tex.1d.v4.u32.f32", "{%f1}"));
    run(&module, &memory, texture, &at).unwrap().iter().map(|values| values[0]).collect()
}

#[test]
fn normalized_coordinates_beside_borders_lie_where_an_h100_has_them() {
    for &(texels, mode, texel, coordinates) in BESIDE {
        let found = found(texels, mode, true, coordinates);
        assert_eq!(found, vec![texel + 1; coordinates.len()], "{texels} {mode:?} {coordinates:x?}");
    }
}

/// The fractional bits of normalized coordinates, by the size of the texture: the extents, whether
/// it is layered, and the bits along each axis.
#[rustfmt::skip]
const BITS: &[([u32; 3], bool, &[u32])] = &[
    ([8191, 0, 0], false, &[21]),
    ([8193, 0, 0], false, &[22]),
    ([65_535, 0, 0], false, &[22]),
    ([65_537, 0, 0], false, &[23]),
    ([131_071, 0, 0], false, &[23]),
    ([8192, 5, 0], false, &[21, 21]),
    ([8193, 5, 0], false, &[22, 22]),
    ([5, 8193, 0], false, &[22, 22]),
    ([5, 65_535, 0], false, &[22, 22]),
    ([65_537, 5, 0], false, &[23, 23]),
    ([5, 3, 2049], false, &[21, 21, 21]),
    ([5, 3, 4095], false, &[22, 22, 22]),
    ([8191, 3, 5], false, &[21, 21, 21]),
    ([8193, 3, 5], false, &[22, 22, 21]),
    ([3, 16_383, 5], false, &[22, 22, 21]),
    ([8191, 0, 0], true, &[21]),
    ([8193, 0, 0], true, &[22]),
    ([16_385, 0, 0], true, &[23]),
    ([5, 4097, 0], true, &[21, 21]),
    ([16_384, 5, 0], true, &[22, 22]),
    ([5, 32_767, 0], true, &[23, 23]),
];

/// The coordinate is one in the last place above a multiple of the extent's part. Cut to `bits`
/// fractional bits it is below the border of two texels, or on it.
#[test]
fn coordinates_have_the_bits_of_an_h100_by_the_sizes_of_the_whole() {
    for &([width, height, depth], is_layered, bits) in BITS {
        let extent = match (bits.len(), is_layered) {
            (1, false) => Extent::Array1d { width },
            (1, true) => Extent::Layered1d { width, layers: 1 },
            (2, false) => Extent::Array2d { width, height },
            (2, true) => Extent::Layered2d { width, height, layers: 1 },
            _ => Extent::Array3d { width, height, depth },
        };
        let (geometry, names) = GEOMETRIES[bits.len() - 1 + if is_layered { 3 } else { 0 }];
        let sizes = [width, height.max(1), depth.max(1)];
        let count: u32 = sizes.iter().product();
        let memory = Memory::new(1 << 26);
        let texels: Vec<u8> = (0..count).flat_map(u32::to_le_bytes).collect();
        let address = buffer(&memory, "texels", &texels);
        let image = Image { address, extent, element: Element::U32, channels: 1 };
        let texture = memory.texture("t", image, sampler([Clamp; 3], true)).unwrap();
        let module = kernel(&fetch(&format!("tex.{geometry}.v4.u32.f32"), names));
        for (axis, &bits) in bits.iter().enumerate() {
            let (n, step) = (u64::from(sizes[axis]), [1, width, width * height.max(1)][axis]);
            // Beside the borders of all texels, as far as single precision tells them apart.
            let borders = (1..n).step_by((n / 500).max(1) as usize);
            let near = |border: u64| {
                let x = (border as f64 / n as f64) as f32;
                [-2, -1, 0, 1, 2].map(|off| f32::from_bits(x.to_bits().wrapping_add_signed(off)))
            };
            let all: Vec<f32> = borders.flat_map(near).collect();
            let place =
                |x: &f32| std::array::from_fn(|i| if i == 1 + axis { x.to_bits() } else { 0 });
            let at: Vec<[u32; 4]> = all.iter().map(place).collect();
            let found = run(&module, &memory, texture, &at).unwrap();
            for (x, values) in all.into_iter().zip(found) {
                let part = (f64::from(x) * f64::from(1_u32 << bits)) as u64;
                let wanted = ((part * n) >> bits).min(n - 1) as u32 * step;
                assert_eq!(values[0], wanted, "{sizes:?} axis {axis}: {x:e}");
            }
        }
    }
}

/// The smallest and the largest subnormal number, of both signs.
#[test]
fn subnormal_coordinates_are_zero() {
    let subnormal = [0x8000_0001, 0x807f_ffff, 1, 0x7f_ffff];
    for texels in [1, 2, 7, 4096, 65537] {
        for (mode, normalized) in
            [Wrap, Clamp, Mirror, Border].into_iter().flat_map(|mode| [(mode, false), (mode, true)])
        {
            assert_eq!(found(texels, mode, normalized, &subnormal), [1; 4], "{texels} {mode:?}");
        }
        // The normal number beside them is beyond the border, and before it the last texel of the
        // repeated ones.
        assert_eq!(found(texels, Border, false, &[0x8080_0000]), [0]);
        assert_eq!(found(texels, Border, true, &[0x8080_0000]), [0]);
        assert_eq!(found(texels, Wrap, true, &[0x8080_0000]), [texels]);
    }
}

/// NaN, infinity and numbers beyond all texels, of 7.
#[test]
fn what_is_no_number_of_a_texel_lies_where_an_h100_has_it() {
    let (nan, infinity, huge) = (f32::NAN, f32::INFINITY, 3.4e38_f32);
    let coordinates = [nan, -nan, infinity, -infinity, huge, -huge, 1e9, -1e9].map(f32::to_bits);
    for (mode, normalized, wanted) in [
        (Wrap, false, [1, 1, 7, 1, 7, 1, 7, 1]),
        (Clamp, false, [1, 1, 7, 1, 7, 1, 7, 1]),
        (Mirror, false, [1, 1, 7, 1, 7, 1, 7, 1]),
        (Border, false, [1, 1, 0, 0, 0, 0, 0, 0]),
        (Wrap, true, [1; 8]),
        (Clamp, true, [1, 1, 7, 1, 7, 1, 7, 1]),
        (Mirror, true, [1; 8]),
        (Border, true, [1, 1, 0, 0, 0, 0, 0, 0]),
    ] {
        assert_eq!(found(7, mode, normalized, &coordinates), wanted, "{mode:?} {normalized}");
    }
}

/// Halves that are NaN keep their bits, and none is made quiet; single ones and subnormal numbers
/// are as they are.
#[test]
fn floats_keep_their_bits() {
    let memory = Memory::new(1 << 20);
    let module = kernel(&fetch("tex.1d.v4.f32.s32", "{%r5}"));
    let found = |element: Element, bytes: &[u8]| -> Vec<u32> {
        let width = bytes.len() as u32 / element.bytes();
        let address = buffer(&memory, "texels", bytes);
        let image = Image { address, extent: Extent::Linear { width }, element, channels: 1 };
        let texture = memory.texture("t", image, Sampler::default()).unwrap();
        let at: Vec<_> = (0..width).map(|x| [x, 0, 0, 0]).collect();
        run(&module, &memory, texture, &at).unwrap().iter().map(|values| values[0]).collect()
    };
    let halves = [0x7c01_u16, 0x7e00, 0xfe00, 0xfc01];
    assert_eq!(
        found(Element::F16, &halves.map(u16::to_le_bytes).concat()),
        [0x7f80_2000, 0x7fc0_0000, 0xffc0_0000, 0xff80_2000]
    );
    let singles = [0x7f80_0001_u32, 0xff80_0001, 0x7fc0_0000, 1, 0x8000_0001];
    assert_eq!(found(Element::F32, &singles.map(u32::to_le_bytes).concat()), singles);
}

/// An H100 reads the last layer where there is none, which here is a mistake; the report says both.
#[test]
fn a_layer_that_is_not_there_is_reported() {
    let memory = Memory::new(1 << 20);
    let address = buffer(&memory, "texels", &[1; 80]);
    let extent = Extent::Layered1d { width: 5, layers: 4 };
    let image = Image { address, extent, element: Element::U32, channels: 1 };
    let texture = memory.texture("t", image, Sampler::default()).unwrap();
    let module = kernel(&fetch("tex.a1d.v4.u32.f32", "{%r5, %f1}"));
    for layer in [4, 1 << 31, u32::MAX] {
        let report = run(&module, &memory, texture, &[[layer, 0, 0, 0]]).unwrap_err();
        assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
        assert!(report.message.contains("an H100 reads the last one"), "{report}");
    }
    assert!(run(&module, &memory, texture, &[[3, 0, 0, 0]]).is_ok());
}
