//! Surfaces against a model of their bytes, and queries of textures and surfaces.
//!
//! A surface is read and written by the byte in a row, the row and the plane. The model has the
//! bytes in an array and clamps, skips or refuses what is outside, for every geometry, type and
//! mode. A write is tried with places that do not meet, since two writes of one place would race.
//! Wrong uses have their reports in `object_mistakes`.

use std::collections::BTreeSet;

use simt::{Element, Extent, Image, Launch, Memory, ReportKind, Sampler};

use crate::objects::{GEOMETRIES, WAYS, arguments, buffer, kernel, launch, run};
use crate::values::Random;

/// The types of an access, and its number of bytes.
const ACCESSES: [(&str, u32); 11] = [
    ("b8", 1),
    ("b16", 2),
    ("b32", 4),
    ("b64", 8),
    ("v2.b8", 2),
    ("v2.b16", 4),
    ("v2.b32", 8),
    ("v2.b64", 16),
    ("v4.b8", 4),
    ("v4.b16", 8),
    ("v4.b32", 16),
];
const OUTSIDE: [&str; 3] = ["trap", "clamp", "zero"];
const ASKED: [&str; 7] = [
    "txq.width",
    "txq.height",
    "txq.depth",
    "txq.array_size",
    "txq.normalized_coords",
    "suq.width",
    "suq.height",
];

/// The opcodes that these tests cover.
pub fn opcodes() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = ASKED.iter().map(|asked| format!("{asked}.b32")).collect();
    all.extend(["suq.depth.b32", "suq.array_size.b32"].map(String::from));
    for (geometry, _) in GEOMETRIES {
        for (access, _) in ACCESSES {
            for outside in OUTSIDE {
                all.insert(format!("suld.b.{geometry}.{access}.{outside}"));
                all.insert(format!("sust.b.{geometry}.{access}.{outside}"));
            }
        }
    }
    all
}

const WIDTH: u32 = 5;
const HEIGHT: u32 = 3;
const DEPTH: u32 = 4;

/// A surface's extent, and how many rows and planes.
fn extent(geometry: &str) -> (Extent, [i64; 2]) {
    let (width, height, depth) = (WIDTH, HEIGHT, DEPTH);
    let (rows, planes) = (i64::from(height), i64::from(depth));
    match geometry {
        "1d" => (Extent::Array1d { width }, [1, 1]),
        "2d" => (Extent::Array2d { width, height }, [rows, 1]),
        "3d" => (Extent::Array3d { width, height, depth }, [rows, planes]),
        "a1d" => (Extent::Layered1d { width, layers: depth }, [1, planes]),
        _ => (Extent::Layered2d { width, height, layers: depth }, [rows, planes]),
    }
}

/// The registers that say where: those of [`GEOMETRIES`], as integers.
fn registers(written: &str) -> String {
    written.replace("%f1", "%r6").replace("%f2", "%r7").replace("%f3", "%r8")
}

/// The registers of an access, and the lines that put the four words from `%r10` on into them and
/// back.
fn values(access: &str) -> (String, [String; 2]) {
    let count = if access.starts_with('v') { access[1..2].parse().unwrap() } else { 1 };
    let ty = access.rsplit('.').next().unwrap();
    let list = |prefix: &str, from: usize| {
        let all: Vec<_> = (from..from + count).map(|i| format!("%{prefix}{i}")).collect();
        format!("{{{}}}", all.join(", "))
    };
    match ty {
        "b64" => {
            let pack = (0..count)
                .map(|i| format!("mov.b64 %rd{}, {{%r{}, %r{}}};", 10 + i, 10 + 2 * i, 11 + 2 * i));
            let unpack = (0..count)
                .map(|i| format!("mov.b64 {{%r{}, %r{}}}, %rd{};", 10 + 2 * i, 11 + 2 * i, 10 + i));
            (list("rd", 10), [pack.collect(), unpack.collect()])
        }
        "b16" => {
            let pack = (0..count).map(|i| format!("cvt.u16.u32 %h{i}, %r{};", 10 + i));
            let unpack = (0..count).map(|i| format!("cvt.u32.u16 %r{}, %h{i};", 10 + i));
            (list("h", 0), [pack.collect(), unpack.collect()])
        }
        // Bytes in registers that are wider than need be.
        _ => (list("r", 10), [String::new(), String::new()]),
    }
}

/// The bytes of a value that are in one word.
fn each(access: &str) -> usize {
    match access.rsplit('.').next() {
        Some("b8") => 1,
        Some("b16") => 2,
        _ => 4,
    }
}

/// The bytes of a value in four words, as [`values`] spreads them, and back.
fn spread(access: &str, bytes: &[u8]) -> [u32; 4] {
    let each = each(access);
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(each)) {
        let mut whole = [0; 4];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_le_bytes(whole);
    }
    words
}

/// The byte at which an access begins; `None` if it is outside and reads zero, and `Err` if it is a
/// mistake.
fn model(geometry: &str, outside: &str, bytes: u32, at: [u32; 4]) -> Result<Option<usize>, ()> {
    let (_, [rows, planes]) = extent(geometry);
    let [_, x, y, z] = at.map(|word| i64::from(word as i32));
    let layer = i64::from(at[0] % (1 << 31));
    let (y, z) = match geometry {
        "1d" => (0, 0),
        "2d" => (y, 0),
        "3d" => (y, z),
        "a1d" => (0, layer),
        _ => (y, layer),
    };
    let row = i64::from(16 * WIDTH);
    let last = row - i64::from(bytes);
    let inside = (0..=last).contains(&x) && (0..rows).contains(&y) && (0..planes).contains(&z);
    let [x, y, z] = match (inside, outside) {
        (true, _) => [x, y, z],
        (_, "clamp") => [x.clamp(0, last), y.clamp(0, rows - 1), z.clamp(0, planes - 1)],
        (_, "zero") => return Ok(None),
        _ => return Err(()),
    };
    Ok(Some(((z * rows + y) * row + x) as usize))
}

fn places(bytes: u32, random: &mut Random) -> Vec<[u32; 4]> {
    let mut number = |n: u32| match random.below(12) {
        0 => n,
        1 => u32::MAX,
        2 => 1 << 31,
        3 => i32::MAX as u32,
        _ => random.below(n as usize) as u32,
    };
    let x = 16 * WIDTH / bytes;
    (0..200)
        .map(|_| [number(DEPTH), number(x).wrapping_mul(bytes), number(HEIGHT), number(DEPTH)])
        .map(|[layer, x, y, z]| [layer, x / bytes * bytes, y, z])
        .collect()
}

fn surface(memory: &Memory, geometry: &str, random: &mut Random) -> (u64, u64, Vec<u8>) {
    let bytes: Vec<u8> = (0..16 * WIDTH * HEIGHT * DEPTH).map(|_| random.next() as u8).collect();
    let address = buffer(memory, "texels", &bytes);
    let (extent, _) = extent(geometry);
    let image = Image { address, extent, element: Element::U32, channels: 4 };
    (memory.surface("s", image).unwrap(), address, bytes)
}

#[test]
fn surfaces_are_read_by_their_bytes() {
    let mut random = Random(1);
    for (geometry, at) in GEOMETRIES {
        let memory = Memory::new(1 << 30);
        let (surface, _, contents) = surface(&memory, geometry, &mut random);
        for (access, bytes) in ACCESSES {
            for outside in OUTSIDE {
                let (list, [_, unpack]) = values(access);
                let opcode = format!("suld.b.{geometry}.{access}.{outside}");
                let body = format!("{opcode} {list}, [%rd1, {}]; {unpack}", registers(at));
                let module = kernel(&body);
                let mut places = places(bytes, &mut random);
                if outside == "trap" {
                    for wrong in
                        places.iter().filter(|at| model(geometry, outside, bytes, **at).is_err())
                    {
                        let report = run(&module, &memory, surface, &[*wrong]).unwrap_err();
                        assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
                    }
                    places.retain(|at| model(geometry, outside, bytes, *at).is_ok());
                }
                let found = run(&module, &memory, surface, &places).unwrap();
                for (at, found) in places.into_iter().zip(found) {
                    let place = model(geometry, outside, bytes, at).unwrap();
                    let wanted = place.map_or([0; 4], |place| {
                        spread(access, &contents[place..place + bytes as usize])
                    });
                    assert_eq!(found, wanted, "{opcode} at {at:?}");
                }
            }
        }
    }
}

#[test]
fn surfaces_are_written_by_their_bytes() {
    let mut random = Random(2);
    for (geometry, at) in GEOMETRIES {
        for (access, bytes) in ACCESSES {
            for outside in OUTSIDE {
                let (list, [pack, _]) = values(access);
                let opcode = format!("sust.b.{geometry}.{access}.{outside}");
                let body = format!(
                    "add.u32 %r10, %r1, 1; shl.b32 %r11, %r1, 3; xor.b32 %r12, %r1, 77; not.b32 %r13, %r1;
                    {pack} {opcode} [%rd1, {}], {list};",
                    registers(at)
                );
                let module = kernel(&body);
                // Of those that meet, the first.
                let mut taken = BTreeSet::new();
                let mut places = places(bytes, &mut random);
                places.retain(|at| match model(geometry, outside, bytes, *at) {
                    Ok(Some(place)) => taken.insert(place / bytes.max(4) as usize),
                    Ok(None) => true,
                    Err(()) => false,
                });
                for way in WAYS {
                    let memory = Memory::new(1 << 30);
                    let (surface, address, mut wanted) = surface(&memory, geometry, &mut random);
                    let at: Vec<u8> =
                        places.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
                    let count = places.len() as u32;
                    let (at, out) = (
                        buffer(&memory, "at", &at),
                        memory.allocate("out", u64::from(16 * count)).unwrap(),
                    );
                    let arguments = arguments(surface, at, out);
                    let one =
                        Launch::new(module.kernel("k").unwrap(), [count, 1, 1], [1; 3], &arguments);
                    launch(one, &memory, way).unwrap_or_else(|report| panic!("{opcode}: {report}"));
                    for (i, place) in (0..count).zip(&places) {
                        let words = [i + 1, i << 3, i ^ 77, !i];
                        let part = |word: &u32| word.to_le_bytes()[..each(access)].to_vec();
                        let value: Vec<u8> = words.iter().flat_map(part).collect();
                        if let Some(place) = model(geometry, outside, bytes, *place).unwrap() {
                            wanted[place..place + bytes as usize]
                                .copy_from_slice(&value[..bytes as usize]);
                        }
                    }
                    let mut found = vec![0; wanted.len()];
                    memory.read(address, &mut found).unwrap();
                    assert!(found == wanted, "{opcode} {way:?}");
                }
            }
        }
    }
}

#[test]
fn textures_and_surfaces_say_how_large_they_are() {
    let memory = Memory::new(1 << 20);
    let address = memory.allocate("texels", 4096).unwrap();
    let normal = Sampler { normalized_coordinates: true, ..Sampler::default() };
    for (geometry, _) in GEOMETRIES {
        let (extent, [rows, planes]) = extent(geometry);
        let image = Image { address, extent, element: Element::U8, channels: 2 };
        let objects = [
            ("txq", memory.texture("t", image, normal).unwrap()),
            ("suq", memory.surface("s", image).unwrap()),
        ];
        for (name, object) in objects {
            let ask = |what: &str| {
                let module = kernel(&format!("{name}.{what}.b32 %r10, [%rd1];"));
                run(&module, &memory, object, &[[0; 4]]).map(|all| i64::from(all[0][0]))
            };
            assert_eq!(ask("width"), Ok(WIDTH.into()));
            let has_rows = !geometry.ends_with("1d");
            for (what, there, wanted) in [
                ("height", has_rows, rows),
                // Layers are a depth of textures: so it is on an H100.
                ("depth", geometry == "3d" || name == "txq" && geometry.starts_with('a'), planes),
                ("array_size", geometry.starts_with('a'), planes),
            ] {
                match ask(what) {
                    Ok(found) => assert_eq!((found, there), (wanted, true), "{geometry} {what}"),
                    Err(report) => {
                        assert!(!there && report.message.ends_with("which has none"), "{report}")
                    }
                }
            }
            if name == "txq" {
                assert_eq!(ask("normalized_coords"), Ok(u32::MAX.into()));
            }
        }
    }
}

/// The layers that an H100 (driver 580.159) has read of four, for numbers beyond the last layer and
/// from 2^31 on.
#[test]
fn layers_are_numbered_with_31_bits() {
    let memory = Memory::new(1 << 20);
    let bytes: Vec<u8> = (1..=4_u32).flat_map(u32::to_le_bytes).collect();
    let address = buffer(&memory, "texels", &bytes);
    let extent = Extent::Layered1d { width: 1, layers: 4 };
    let image = Image { address, extent, element: Element::U32, channels: 1 };
    let surface = memory.surface("s", image).unwrap();
    let module = |outside: &str| {
        kernel(&format!("suld.b.a1d.b32.{outside} {{%r10}}, [%rd1, {{%r5, %r6}}];"))
    };
    let layers = [0, 3, 4, 5, 100, (1 << 31) - 1, 1 << 31, u32::MAX].map(|layer| [layer, 0, 0, 0]);
    for (outside, wanted) in
        [("clamp", [1, 4, 4, 4, 4, 4, 1, 4]), ("zero", [1, 4, 0, 0, 0, 0, 1, 0])]
    {
        let found = run(&module(outside), &memory, surface, &layers).unwrap();
        assert_eq!(found.iter().map(|found| found[0]).collect::<Vec<_>>(), wanted, "{outside}");
    }
    let report = run(&module("trap"), &memory, surface, &[layers[7]]).unwrap_err();
    assert!(report.message.contains("layer 4294967295"), "{report}");
}

/// Rows of 4099 bytes follow each other without gaps, over more than a page: what is aligned in its
/// row need not be in memory.
#[test]
fn rows_begin_anywhere() {
    let (width, height) = (4099, 9);
    let bytes: Vec<u8> = (0..width * height).map(|i| (i * 31 % 257) as u8).collect();
    let extent = Extent::Array2d { width, height };
    let mut random = Random(4);
    for (access, length) in [("b32", 4), ("v4.b8", 4), ("v4.b16", 8), ("v4.b32", 16)] {
        let (list, [pack, unpack]) = values(access);
        let mut at: Vec<[u32; 4]> = (0..2000)
            .map(|_| {
                [0, random.below(4099 / length) as u32 * length as u32, random.below(9) as u32, 0]
            })
            .collect();
        at.sort_unstable();
        at.dedup();
        let load =
            kernel(&format!("suld.b.2d.{access}.trap {list}, [%rd1, {{%r6, %r7}}]; {unpack}"));
        // Each byte is replaced by its complement.
        let store = kernel(&format!(
            "suld.b.2d.{access}.trap {list}, [%rd1, {{%r6, %r7}}]; {unpack}
            not.b32 %r10, %r10; not.b32 %r11, %r11; not.b32 %r12, %r12; not.b32 %r13, %r13;
            {pack} sust.b.2d.{access}.trap [%rd1, {{%r6, %r7}}], {list};"
        ));
        let memory = Memory::new(1 << 20);
        let address = buffer(&memory, "texels", &bytes);
        let image = Image { address, extent, element: Element::U8, channels: 1 };
        let surface = memory.surface("s", image).unwrap();
        let found = run(&load, &memory, surface, &at).unwrap();
        let place = |at: &[u32; 4]| (at[2] * width + at[1]) as usize;
        for (at, found) in at.iter().zip(found) {
            let first = place(at);
            assert_eq!(found, spread(access, &bytes[first..first + length]), "{access} at {at:?}");
        }
        let mut wanted = bytes.clone();
        for at in &at {
            let first = place(at);
            wanted[first..first + length].iter_mut().for_each(|byte| *byte = !*byte);
        }
        let words: Vec<u8> = at.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let (places, out) =
            (buffer(&memory, "at", &words), memory.allocate("out", words.len() as u64).unwrap());
        let arguments: Vec<u8> =
            [surface, places, out].into_iter().flat_map(u64::to_le_bytes).collect();
        let one = Launch::new(store.kernel("k").unwrap(), [1; 3], [1; 3], &arguments);
        for (i, _) in at.iter().enumerate() {
            // A thread at a time: neighbours share words, which a launch may not read behind a
            // store.
            let mut arguments = arguments.clone();
            arguments[8..16].copy_from_slice(&(places + 16 * i as u64).to_le_bytes());
            launch(Launch { arguments: &arguments, ..one }, &memory, WAYS[0]).unwrap();
        }
        let mut found = vec![0; bytes.len()];
        memory.read(address, &mut found).unwrap();
        assert!(found == wanted, "{access}");
    }
}
