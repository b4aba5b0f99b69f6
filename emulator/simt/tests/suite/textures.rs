//! Fetches from textures, against the rule for coordinates that `simt` documents, in whole numbers.
//!
//! A coordinate is a float, which the rule turns into a texel: wrapped, mirrored, clamped or
//! outside. The model computes with integers, and the coordinates are around all borders, with NaN
//! and infinities. `measured_textures` has the coordinates that an H100 was asked for, and
//! `object_mistakes` the reports of wrong uses.

use std::collections::BTreeSet;

use simt::{AddressMode, Element, Extent, Image, Launch, Memory, Sampler, Stepper, Trace, What};

use crate::objects::{GEOMETRIES, arguments, buffer, fetch, kernel, run, sampler};
use crate::values::Random;
use AddressMode::{Border, Clamp, Mirror, Wrap};

const TYPES: [&str; 3] = ["f32", "s32", "u32"];
const MODES: [AddressMode; 4] = [Wrap, Clamp, Mirror, Border];

/// The opcodes that these tests cover.
pub fn opcodes() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for ty in TYPES {
        all.insert(format!("tex.1d.v4.{ty}.s32"));
        for (geometry, _) in GEOMETRIES {
            all.insert(format!("tex.{geometry}.v4.{ty}.f32"));
            all.insert(format!("tex.level.{geometry}.v4.{ty}.f32"));
        }
    }
    all
}

/// The texel of `texels` in which a coordinate lies: the coordinate is `number / 2^shift`, and all
/// is whole numbers. A normalized one is a part of the extent's 2^21, which suffices for the
/// extents here.
fn model(x: f32, texels: u32, mode: AddressMode, normalized: bool) -> Option<u32> {
    let n = i128::from(texels);
    let ends = |below: bool| match mode {
        Border => None,
        Clamp => Some(if below { 0 } else { texels - 1 }),
        _ if normalized => Some(0),
        _ => Some(if below { 0 } else { texels - 1 }),
    };
    if x.is_infinite() {
        return ends(x < 0.0);
    }
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 23 & 0xff) as i32, i128::from(bits & 0x7f_ffff));
    let (mut number, power) = match exponent {
        // Subnormal.
        0 => (0, 0),
        _ if x.is_nan() => (0, 0),
        _ => (fraction | 1 << 23, exponent - 150),
    };
    // Beyond 2^60 a number is even whatever it is, and below 2^-60 it is far from everything but 0.
    let shift = (-power).clamp(0, 100) as u32;
    number = if power > 0 { number << power.min(60) } else { number };
    if -power > 100 && number != 0 {
        number = 1;
    }
    if bits >> 31 == 1 {
        number = -number;
    }
    let floor = number >> shift;
    let scaled = if !normalized {
        floor
    } else {
        let part = number << 21 >> shift;
        let within = part & ((1 << 21) - 1);
        match mode {
            Wrap => (within * n) >> 21,
            Mirror if floor % 2 == 0 => (within * n) >> 21,
            Mirror => n - 1 - ((within * n) >> 21),
            _ => (part * n) >> 21,
        }
    };
    if mode == Border && (scaled < 0 || scaled >= n) {
        return None;
    }
    Some(scaled.clamp(0, n - 1) as u32)
}

/// Coordinates for an extent: whole numbers and halves in and around it, those beside them, and
/// what is no number of a texel.
fn coordinates(texels: u32, normalized: bool, random: &mut Random) -> Vec<f32> {
    let n = texels as f32;
    let mut all = vec![0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, 1e-45, -1e-45, 1e-30, -1e-30];
    all.extend([
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        1e9,
        -1e9,
        16_777_217.0,
    ]);
    for i in -2..=texels as i32 + 2 {
        let x = if normalized { i as f32 / n } else { i as f32 };
        for x in [x, x + 0.5 / if normalized { n } else { 1.0 }] {
            all.extend([x, x.next_up(), x.next_down()]);
            if normalized {
                all.extend([x + 1.0, x - 1.0, x + 2.0, x - 7.0]);
            }
        }
    }
    let scale = if normalized { 4.0 } else { 2.0 * n };
    all.extend((0..50).map(|_| ((random.next() >> 40) as f32 / (1 << 24) as f32 - 0.5) * scale));
    all.extend((0..50).map(|_| f32::from_bits(random.next() as u32)));
    all
}

#[test]
fn coordinates_lie_in_texels() {
    let mut random = Random(1);
    let memory = Memory::new(1 << 30);
    let module = kernel(&fetch("tex.1d.v4.u32.f32", "{%f1}"));
    for texels in [1, 2, 3, 5, 7, 32, 100, 1021] {
        let bytes: Vec<u8> = (0..texels).flat_map(|i| (i + 1_u32).to_le_bytes()).collect();
        let address = buffer(&memory, "texels", &bytes);
        let extent = Extent::Array1d { width: texels };
        let image = Image { address, extent, element: Element::U32, channels: 1 };
        for mode in MODES {
            for normalized in [false, true] {
                let sampler = sampler([mode; 3], normalized);
                let texture = memory.texture("t", image, sampler).unwrap();
                let all = coordinates(texels, normalized, &mut random);
                let at: Vec<_> = all.iter().map(|x| [0, x.to_bits(), 0, 0]).collect();
                let found = run(&module, &memory, texture, &at).unwrap();
                for (x, found) in all.into_iter().zip(found) {
                    let wanted = model(x, texels, mode, normalized).map_or(0, |texel| texel + 1);
                    let what = format!("{x:e} of {texels}, {mode:?}, normalized: {normalized}");
                    assert_eq!(found, [wanted, 0, 0, 0], "{what} ({:#x})", x.to_bits());
                }
                memory.free(texture).unwrap();
            }
        }
        memory.free(address).unwrap();
    }
}

/// Texels of odd extents, every geometry, another mode along each axis.
#[test]
fn every_geometry_and_type_is_fetched() {
    let (width, height, depth, pitch) = (5, 3, 4, 96);
    let mut random = Random(2);
    let memory = Memory::new(1 << 30);
    let extents = [
        ("1d", Extent::Array1d { width }),
        ("2d", Extent::Array2d { width, height }),
        ("2d", Extent::Pitched { width, height, pitch }),
        ("3d", Extent::Array3d { width, height, depth }),
        ("a1d", Extent::Layered1d { width, layers: depth }),
        ("a2d", Extent::Layered2d { width, height, layers: depth }),
    ];
    let mut tested = BTreeSet::new();
    for (geometry, extent) in extents {
        let (_, registers) = GEOMETRIES.into_iter().find(|(name, _)| *name == geometry).unwrap();
        for ((ty, level), channels) in TYPES
            .into_iter()
            .flat_map(|ty| [(ty, ""), (ty, "level.")])
            .zip([1, 2, 4].into_iter().cycle())
        {
            let element = match ty {
                "f32" => Element::F32,
                "s32" => Element::S32,
                _ => Element::U32,
            };
            let bytes: Vec<u8> = (0..16 * width * height * depth + pitch * height)
                .map(|_| random.next() as u8 & 0x7f)
                .collect();
            let address = buffer(&memory, "texels", &bytes);
            let image = Image { address, extent, element, channels };
            for modes in [[Clamp, Border, Mirror], [Mirror, Wrap, Border], [Border, Clamp, Wrap]] {
                for normalized in [false, true] {
                    let sampler = sampler(modes, normalized);
                    let texture = memory.texture("t", image, sampler).unwrap();
                    let opcode = format!("tex.{level}{geometry}.v4.{ty}.f32");
                    let module = kernel(&fetch(&opcode, registers));
                    tested.insert(opcode);
                    let pool =
                        [width, height, depth].map(|n| coordinates(n, normalized, &mut random));
                    let at: Vec<[u32; 4]> = (0..300)
                        .map(|_| {
                            let [x, y, z] = [0, 1, 2]
                                .map(|axis| pool[axis][random.below(pool[axis].len())].to_bits());
                            [random.below(depth as usize) as u32, x, y, z]
                        })
                        .collect();
                    let found = run(&module, &memory, texture, &at).unwrap();
                    for (at, found) in at.into_iter().zip(found) {
                        let along = |axis: usize, texels| {
                            model(f32::from_bits(at[axis + 1]), texels, modes[axis], normalized)
                        };
                        let (y, z) = match geometry {
                            "1d" => (Some(0), Some(0)),
                            "2d" => (along(1, height), Some(0)),
                            "3d" => (along(1, height), along(2, depth)),
                            "a1d" => (Some(0), Some(at[0])),
                            _ => (along(1, height), Some(at[0])),
                        };
                        let mut wanted = [0; 4];
                        if let (Some(x), Some(y), Some(z)) = (along(0, width), y, z) {
                            let rows = if geometry == "a1d" { 1 } else { height };
                            let texel = 4 * channels;
                            let is_pitched = matches!(extent, Extent::Pitched { .. });
                            let row = if is_pitched { pitch } else { width * texel };
                            let first = ((z * rows + y) * row + x * texel) as usize;
                            let texel = &bytes[first..first + texel as usize];
                            for (wanted, channel) in wanted.iter_mut().zip(texel.chunks(4)) {
                                *wanted = u32::from_le_bytes(channel.try_into().unwrap());
                            }
                        }
                        assert_eq!(found, wanted, "{extent:?} {modes:?} {normalized} at {at:?}");
                    }
                    memory.free(texture).unwrap();
                }
            }
            memory.free(address).unwrap();
        }
    }
    let others = TYPES.map(|ty| format!("tex.1d.v4.{ty}.s32"));
    assert_eq!(tested.into_iter().chain(others).collect::<BTreeSet<_>>(), opcodes());
}

/// Every value of 8 and 16 bits, and some of 32, in any channel; as they are, and as floats up
/// to 1.
#[test]
fn elements_have_their_values() {
    use Element::{F16, F32, S8, S16, S32, U8, U16, U32};
    let memory = Memory::new(1 << 30);
    let mut random = Random(3);
    for element in [U8, S8, U16, S16, U32, S32, F16, F32] {
        let bytes = element.bytes() as usize;
        let values: Vec<u32> = match bytes {
            1 => (0..256).collect(),
            2 => (0..65536).collect(),
            _ => (0..1000).map(|_| random.next() as u32).chain([0, 1 << 31, u32::MAX]).collect(),
        };
        let values: Vec<u32> =
            values.iter().copied().chain([0; 4]).take(values.len().next_multiple_of(4)).collect();
        let contents: Vec<u8> =
            values.iter().flat_map(|value| value.to_le_bytes()[..bytes].to_vec()).collect();
        let address = buffer(&memory, "texels", &contents);
        let integer = !matches!(element, F16 | F32);
        for channels in [1, 2, 4] {
            for normalized in if integer && bytes < 4 { &[false, true][..] } else { &[false] } {
                let width = values.len() as u32 / channels;
                let image = Image { address, extent: Extent::Linear { width }, element, channels };
                let sampler = Sampler { normalized_values: *normalized, ..Sampler::default() };
                let texture = memory.texture("t", image, sampler).unwrap();
                let types = if integer && !normalized { &["s32", "u32"][..] } else { &["f32"] };
                for ty in types {
                    let module = kernel(&fetch(&format!("tex.1d.v4.{ty}.s32"), "{%r5}"));
                    // Beyond its end there are zeros.
                    let beyond = [width, width + 1, u32::MAX, 1 << 31];
                    let at: Vec<_> = (0..width).chain(beyond).map(|x| [x, 0, 0, 0]).collect();
                    let found = run(&module, &memory, texture, &at).unwrap();
                    for (&[x, ..], found) in at.iter().zip(found) {
                        for (channel, found) in (0..4).zip(found) {
                            let value = values
                                .get((x.min(width) * channels + channel) as usize)
                                .filter(|_| channel < channels && x < width);
                            let Some(&value) = value else {
                                assert_eq!(found, 0, "{element:?} x {channels}, {x}, {channel}");
                                continue;
                            };
                            let signed = match bytes {
                                1 => i32::from(value as u8 as i8),
                                _ => i32::from(value as u16 as i16),
                            };
                            let part = |value: f64, most: f64| ((value / most) as f32).to_bits();
                            let wanted = match (element, normalized) {
                                (U8 | U16, false) => value,
                                (S8 | S16, false) => signed as u32,
                                (U8, true) => part(value.into(), 255.0),
                                (U16, true) => part(value.into(), 65535.0),
                                (S8, true) => part(signed.max(-127).into(), 127.0),
                                (S16, true) => part(signed.max(-32767).into(), 32767.0),
                                (F16, _) => half(value as u16),
                                _ => value,
                            };
                            assert_eq!(found, wanted, "{element:?} {value:#x} {normalized}");
                        }
                    }
                }
                memory.free(texture).unwrap();
            }
        }
        memory.free(address).unwrap();
    }
}

/// `f16` as `f32`, by its bits.
fn half(bits: u16) -> u32 {
    let (sign, exponent, fraction) =
        (u32::from(bits >> 15) << 31, u32::from(bits >> 10 & 31), u32::from(bits & 0x3ff));
    sign | match exponent {
        0 if fraction == 0 => 0,
        0 => {
            let top = 31 - fraction.leading_zeros();
            (top + 103) << 23 | (fraction << (23 - top)) & 0x7f_ffff
        }
        31 => 0xff << 23 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    }
}

/// A stepper goes back in a launch with textures as in any other.
#[test]
fn a_stepper_goes_through_fetches() {
    let memory = Memory::new(1 << 20);
    let address = buffer(&memory, "texels", &[7; 64]);
    let image =
        Image { address, extent: Extent::Linear { width: 16 }, element: Element::U32, channels: 1 };
    let texture = memory.texture("t", image, Sampler::default()).unwrap();
    let at = buffer(&memory, "at", &[0; 512]);
    let out = memory.allocate("out", 512).unwrap();
    let arguments = arguments(texture, at, out);
    let module = kernel(&fetch("tex.1d.v4.u32.s32", "%r5"));
    let launch = Launch::new(module.kernel("k").unwrap(), [1; 3], [32, 1, 1], &arguments);
    let mut stepper = Stepper::new(launch, memory, false).unwrap();
    assert!(stepper.result().is_ok(), "{:?}", stepper.result());
    stepper.seek(3);
    stepper.seek(stepper.len());
    let mut word = [0; 4];
    stepper.memory().read(out, &mut word).unwrap();
    assert_eq!(word, [7; 4]);
}

/// A trace shows the texels that were there, and what the lanes got.
#[test]
fn fetches_are_in_the_trace() {
    let memory = Memory::new(1 << 20);
    let address = buffer(&memory, "texels", &[1, 2, 3, 4, 5, 6, 7, 8]);
    let extent = Extent::Linear { width: 4 };
    let image = Image { address, extent, element: Element::U8, channels: 2 };
    let texture = memory.texture("t", image, Sampler::default()).unwrap();
    let at: Vec<u8> = [2_u32, 0, 0, 0, 9, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    let (at, out) = (buffer(&memory, "at", &at), memory.allocate("out", 32).unwrap());
    let arguments = arguments(texture, at, out);
    let module = kernel(&fetch("tex.1d.v4.u32.s32", "{%r5}"));
    let launch = Launch::new(module.kernel("k").unwrap(), [1; 3], [2, 1, 1], &arguments);
    let mut trace = Trace::new(9);
    launch.prepare(&memory).unwrap().run_traced(0..1, &mut trace).unwrap();
    // Behind the load of the places.
    let event = &trace.events[1];
    let What::Load(accessed) = &event.what else { panic!("{event:?}") };
    assert_eq!((event.lanes, accessed.shared, accessed.bytes), (1, false, 1));
    assert_eq!(accessed.addresses[0], address + 4);
    assert_eq!(accessed.values.iter().map(|values| values[0]).collect::<Vec<_>>(), [5, 6]);
}
