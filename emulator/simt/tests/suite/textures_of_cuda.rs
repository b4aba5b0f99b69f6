//! CUDA with textures and surfaces, as NVRTC compiles it.

use simt::{AddressMode, Element, Extent, Image, Launch, Memory, Module, Sampler};

use crate::objects::{WAYS, buffer, launch, words};

const SOURCES: [&str; 2] =
    [include_str!("../data/textures-12.0.ptx"), include_str!("../data/textures-13.2.ptx")];

/// The PTX of two compilers for one file, each run on a new memory.
#[test]
fn fetches_of_texels() {
    for source in SOURCES {
        let module = Module::parse(source).and_then(Module::complete).unwrap();
        let memory = Memory::new(1 << 30);
        let (threads, blocks) = (40, 3);
        let count = threads * blocks;
        let floats =
            |n: u32| -> Vec<u8> { (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect() };
        let clamp = Sampler { address_modes: [AddressMode::Clamp; 3], ..Sampler::default() };
        let texture = |name: &str, bytes: &[u8], extent, element, channels| {
            let address = buffer(&memory, name, bytes);
            memory.texture(name, Image { address, extent, element, channels }, clamp).unwrap()
        };
        let linear =
            texture("linear", &floats(100), Extent::Linear { width: 100 }, Element::F32, 1);
        let rows = Extent::Pitched { width: 5, height: 7, pitch: 128 };
        let pitched = texture("pitched", &floats(32 * 7), rows, Element::F32, 4);
        let volume = Extent::Array3d { width: 5, height: 6, depth: 7 };
        let volume = texture("volume", &floats(5 * 6 * 7), volume, Element::F32, 1);
        let layers = Extent::Layered2d { width: 9, height: 4, layers: 3 };
        let layers = texture("layers", &floats(9 * 4 * 3), layers, Element::F32, 1);
        let at = |i: u32| [i % 11, i * 7 % 13, i * 5 % 17];
        let places: Vec<u8> = (0..count)
            .flat_map(|i| {
                let [x, y, z] = at(i);
                [x, y, z, 0]
            })
            .flat_map(|x| (x as f32 - 2.25).to_le_bytes())
            .collect();
        let places = buffer(&memory, "places", &places);
        let out = memory.allocate("out", u64::from(32 * count)).unwrap();
        let arguments: Vec<u8> = [linear, pitched, volume, layers, places, out]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        let fetches = module.kernel("fetches").unwrap();
        let run = |kernel, grid, arguments: &[u8]| {
            for way in WAYS {
                launch(Launch::new(kernel, grid, [threads, 1, 1], arguments), &memory, way)
                    .unwrap();
            }
        };
        run(fetches, [blocks, 1, 1], &arguments);
        let mut bytes = vec![0; 32 * count as usize];
        memory.read(out, &mut bytes).unwrap();
        let found = words(&bytes);
        // The texel of the coordinate -2.25 + `more`.
        let texel = |more: u32, n: u32| (i64::from(more) - 3).clamp(0, i64::from(n) - 1) as u32;
        for i in 0..count {
            let [x, y, z] = at(i);
            let pitched = |channel| 32 * texel(y, 7) + 4 * texel(x, 5) + channel;
            let wanted = [
                if (3..103).contains(&i) { i - 3 } else { 0 },
                (texel(z, 7) * 6 + texel(y, 6)) * 5 + texel(x, 5),
                (i % 3 * 4 + texel(y, 4)) * 9 + texel(x, 9),
                pitched(2),
            ];
            assert_eq!(
                found[i as usize].map(f32::from_bits),
                wanted.map(|x| x as f32),
                "thread {i}"
            );
            let wanted = [0, 1, 2, 3].map(pitched);
            assert_eq!(
                found[(count + i) as usize].map(f32::from_bits),
                wanted.map(|x| x as f32),
                "thread {i}"
            );
        }

        let raw: Vec<u8> = (0..240).map(|i| (i * 37 % 256) as u8).collect();
        let bytes = texture("bytes", &raw, Extent::Array2d { width: 5, height: 6 }, Element::U8, 4);
        let line = texture("line", &raw, Extent::Array1d { width: 9 }, Element::S16, 2);
        let lines =
            texture("lines", &raw, Extent::Layered1d { width: 9, layers: 2 }, Element::S32, 1);
        let out = memory.allocate("integers", u64::from(16 * count)).unwrap();
        let arguments: Vec<u8> =
            [bytes, line, lines, places, out].into_iter().flat_map(u64::to_le_bytes).collect();
        run(module.kernel("integers").unwrap(), [blocks, 1, 1], &arguments);
        let mut found = vec![0; 16 * count as usize];
        memory.read(out, &mut found).unwrap();
        let word =
            |at: u32| u32::from_le_bytes(raw[at as usize..at as usize + 4].try_into().unwrap());
        for (i, found) in (0..count).zip(words(&found)) {
            let [x, y, _] = at(i);
            let pair = word(4 * texel(x, 9));
            let wanted = [
                word(4 * (texel(y, 6) * 5 + texel(x, 5))),
                pair as i16 as u32,
                (pair >> 16) as i16 as u32,
                word(4 * (i % 2 * 9 + texel(x, 9))),
            ];
            assert_eq!(found, wanted, "thread {i}");
        }
    }
}

#[test]
fn copies_of_surfaces() {
    for source in SOURCES {
        let module = Module::parse(source).and_then(Module::complete).unwrap();
        for way in WAYS {
            let memory = Memory::new(1 << 30);
            let bytes = |n: u32, factor: u32| -> Vec<u8> {
                (0..n).map(|i| (i * factor % 251) as u8).collect()
            };
            let make = |name: &str, contents: &[u8], extent, element, channels| {
                let address = buffer(&memory, name, contents);
                (
                    memory.surface(name, Image { address, extent, element, channels }).unwrap(),
                    address,
                )
            };
            // 33 threads in two blocks of 17 for 33 texels, and 5 rows for 4.
            let plane = Extent::Array2d { width: 33, height: 4 };
            let (from, _) = make("from", &bytes(33 * 4 * 4, 7), plane, Element::F32, 1);
            let (to, to_at) = make("to", &bytes(33 * 4 * 4, 1), plane, Element::F32, 1);
            let extent = Extent::Layered2d { width: 33, height: 4, layers: 2 };
            let (layers, layers_at) =
                make("layers", &bytes(33 * 4 * 2 * 8, 3), extent, Element::F32, 2);
            let extent = Extent::Array3d { width: 3, height: 2, depth: 2 };
            let (volume, volume_at) =
                make("volume", &bytes(3 * 2 * 2 * 4, 5), extent, Element::U8, 4);
            let arguments: Vec<u8> =
                [from, to, layers, volume].into_iter().flat_map(u64::to_le_bytes).collect();
            let kernel = module.kernel("surfaces").unwrap();
            launch(Launch::new(kernel, [2, 5, 1], [17, 1, 1], &arguments), &memory, way).unwrap();
            let read = |address, count: u32| {
                let mut all = vec![0; count as usize];
                memory.read(address, &mut all).unwrap();
                all
            };
            assert_eq!(read(to_at, 33 * 4 * 4), bytes(33 * 4 * 4, 7));
            // The upper layer has become the lower one's.
            let mut wanted = bytes(33 * 4 * 2 * 8, 3);
            wanted.copy_within(33 * 4 * 8.., 0);
            assert_eq!(read(layers_at, 33 * 4 * 2 * 8), wanted);
            let mut wanted = bytes(48, 5);
            for x in 0..3 {
                // From row 1 of plane 0 to row 0 of plane 1.
                wanted.copy_within(12 + 4 * x..16 + 4 * x, 24 + 4 * x);
                wanted[24 + 4 * x] = wanted[24 + 4 * x].wrapping_add(1);
            }
            assert_eq!(read(volume_at, 48), wanted);
        }
    }
}
