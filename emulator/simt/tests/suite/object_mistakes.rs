//! Wrong uses of textures and surfaces, each with its report, and the counters of fetches.
//!
//! A report names the object, its shape and the texel or byte. Reads of what the same launch has
//! written are a race, because a GPU reads through a cache that does not see it. Each kernel runs
//! in all ways of `objects`; correct uses are in `textures` and `surfaces`. The table of mistakes
//! is text, because most rows differ in a few words only.

use simt::{
    Access, AddressMode, Class, Element, Extent, Filter, Image, Launch, Memory, Report, ReportKind,
    Sampler,
};

use crate::objects::{WAYS, Way, arguments, buffer, fetch, kernel, kernel_with, launch, run};

/// A texture and a surface of 16 x 4 texels, `t` and `s`, and linear memory of 64, `l`, all over
/// the same bytes.
fn objects(memory: &Memory, element: Element) -> [u64; 4] {
    let address = buffer(memory, "texels", &[0; 256]);
    let image = |extent| Image { address, extent, element, channels: 1 };
    let clamp = Sampler { address_modes: [AddressMode::Clamp; 3], ..Sampler::default() };
    let plane = Extent::Array2d { width: 16, height: 4 };
    [
        memory.texture("t", image(plane), clamp).unwrap(),
        memory.surface("s", image(plane)).unwrap(),
        memory.texture("l", image(Extent::Linear { width: 64 }), clamp).unwrap(),
        memory.texture("a", image(Extent::Layered1d { width: 16, layers: 4 }), clamp).unwrap(),
    ]
}

/// Each wrong use on two lines: what it is applied to, where (layer, x and y) and the instruction,
/// and then the report. Fetches have their registers behind the opcode.
const MISTAKES: &str = "
none | 0 0 0 | tex.2d.v4.u32.f32 {%f1, %f2}
Texture: uses as a texture 0x4d, which is no handle of a texture or surface
s | 0 0 0 | tex.2d.v4.u32.f32 {%f1, %f2}
Texture: uses as a texture the handle of surface `s` (a 2-D array of 16 x 4)
t | 0 0 0 | suld.b.2d.v2.b32.trap {%r10, %r11}, [%rd1, {%r6, %r7}];
Texture: uses as a surface the handle of texture `t` (a 2-D array of 16 x 4)
gone | 0 0 0 | suld.b.2d.v2.b32.trap {%r10, %r11}, [%rd1, {%r6, %r7}];
Texture: uses as a surface 0x4000000040, the handle of one that has been given back
t | 0 0 0 | tex.1d.v4.u32.f32 {%f1}
Texture: reads texture `t` (a 2-D array of 16 x 4) by `tex.1d`, which is for another shape
l | 0 0 0 | tex.1d.v4.u32.f32 {%f1}
Texture: reads texture `l` (linear memory of 64) by a float, and linear memory is read by integers, \
with `tex1Dfetch`
t | 0 0 0 | tex.2d.v4.f32.f32 {%f1, %f2}
Texture: reads texture `t` (a 2-D array of 16 x 4) as a float, and it is read as integers (its \
elements are u32)
a | 4 0 0 | tex.a1d.v4.u32.f32 {%r5, %f1}
OutOfBounds: reads layer 4 of texture `a` (a layered 1-D array of 16, 4 times), which has none such \
(an H100 reads the last one)
s | 0 0 0 | suld.b.1d.b32.trap {%r10}, [%rd1, {%r6}];
Texture: reads surface `s` (a 2-D array of 16 x 4) by `suld.b.1d`, which is for another shape
s | 0 4 0 | suld.b.2d.v2.b32.trap {%r10, %r11}, [%rd1, {%r6, %r7}];
Misaligned: reads 8 bytes at byte 4 of a row, y 0, of surface `s` (a 2-D array of 16 x 4): that \
byte is no multiple of 8
s | 0 64 1 | suld.b.2d.v2.b32.trap {%r10, %r11}, [%rd1, {%r6, %r7}];
OutOfBounds: reads 8 bytes at byte 64 of a row, y 1, of surface `s` (a 2-D array of 16 x 4), which \
is outside of it
s | 0 56 4294967295 | suld.b.2d.v2.b32.trap {%r10, %r11}, [%rd1, {%r6, %r7}];
OutOfBounds: reads 8 bytes at byte 56 of a row, y -1, of surface `s` (a 2-D array of 16 x 4), which \
is outside of it
s | 0 64 0 | sust.b.2d.b8.trap [%rd1, {%r6, %r7}], {%r10};
OutOfBounds: writes 1 byte at byte 64 of a row, y 0, of surface `s` (a 2-D array of 16 x 4), which \
is outside of it
empty | 3 0 0 | tex.1d.v4.u32.s32 {%r5}
Uninitialized: reads through texture `empty` (linear memory of 16) 4 bytes at offset 12 of buffer \
`empty` (64 bytes), which nothing has written
freed | 3 0 0 | tex.1d.v4.u32.s32 {%r5}
OutOfBounds: reads 4 bytes at offset 12 of buffer `freed`, which has been freed
l | 0 0 0 | ld.global.u32 %r10, [%rd1];
OutOfBounds: reads 4 bytes at 0x4000000020, the handle of a texture or surface, which is no address
";

#[test]
fn wrong_uses_are_reported() {
    let memory = Memory::new(1 << 20);
    let [texture, surface, linear, layered] = objects(&memory, Element::U32);
    let image = |name: &str, extent| {
        let address = memory.allocate(name, 64).unwrap();
        (Image { address, extent, element: Element::U32, channels: 1 }, address)
    };
    let (gone, _) = image("gone", Extent::Array1d { width: 4 });
    let gone = memory.surface("gone", gone).unwrap();
    memory.free(gone).unwrap();
    let [empty, freed] = ["empty", "freed"].map(|name| {
        let (image, address) = image(name, Extent::Linear { width: 16 });
        (memory.texture(name, image, Sampler::default()).unwrap(), address)
    });
    memory.free(freed.1).unwrap();
    for [what, wanted] in MISTAKES.trim().lines().collect::<Vec<_>>().as_chunks().0 {
        let [object, at, body] = what.splitn(3, " | ").collect::<Vec<_>>()[..] else { panic!() };
        let object = match object {
            "none" => 77,
            "gone" => gone,
            "empty" => empty.0,
            "freed" => freed.0,
            "t" => texture,
            "s" => surface,
            "l" => linear,
            _ => layered,
        };
        let at: Vec<u32> = at.split(' ').map(|number| number.parse().unwrap()).collect();
        let fetched = body.split_once(' ').filter(|(opcode, _)| opcode.starts_with("tex"));
        let body = fetched.map_or(body.to_string(), |(opcode, at)| fetch(opcode, at));
        let report = run(&kernel(&body), &memory, object, &[[at[0], at[1], at[2], 0]]).unwrap_err();
        assert_eq!(format!("{:?}: {}", report.kind, report.message), **wanted, "{body}");
    }
}

/// A launch must not read through a texture or surface what it has written, whichever thread wrote
/// it and whatever orders the two.
#[test]
fn reads_of_what_the_launch_writes_are_races() {
    let fetched = fetch("tex.1d.v4.u32.s32", "{%r5}");
    let loaded = "suld.b.2d.b32.trap {%r10}, [%rd1, {%r6, %r7}];";
    // Each thread writes word %r8 of the texels, whose address is in %rd10; %r5 to %r7 is what it
    // reads.
    let write = "ld.const.u64 %rd10, [place]; cvt.u64.u32 %rd11, %r8; add.u64 %rd10, %rd10, %rd11; st.global.u32 [%rd10], %r1;";
    let stored = "sust.b.2d.b32.trap [%rd1, {%r8, %r7}], {%r1};";
    let said = "which the same launch writes: textures and surfaces are read through a cache that does not see it";
    for (body, surface, at, wrong) in [
        // The thread itself, another one of its block, another block.
        (format!("{write} {fetched}"), false, [[0, 0, 0, 0], [60, 0, 0, 200]], true),
        (format!("{write} bar.sync 0; {fetched}"), false, [[10, 0, 0, 0], [0, 0, 0, 4]], true),
        (format!("{stored} {loaded}"), true, [[0, 0, 0, 0], [0, 32, 0, 32]], true),
        (
            format!("{stored} fence.acq_rel.gpu; bar.sync 0; {loaded}"),
            true,
            [[0, 8, 0, 0], [0, 0, 0, 8]],
            true,
        ),
        // What is read first is what was there.
        (format!("{fetched} {write}"), false, [[0, 0, 0, 0], [60, 0, 0, 240]], false),
        (format!("{loaded} {stored}"), true, [[0, 4, 0, 4], [0, 32, 0, 32]], false),
        // Another place.
        (format!("{write} bar.sync 0; {fetched}"), false, [[10, 0, 0, 0], [11, 0, 0, 4]], false),
    ] {
        let memory = Memory::new(1 << 20);
        let [_, plane, linear, _] = objects(&memory, Element::U32);
        let object = if surface { plane } else { linear };
        // `objects` made the first buffer.
        let source = kernel_with(".const .align 8 .u64 place;", &body);
        let place = memory.variable(&source, "place").unwrap().unwrap();
        memory.write(place.address, &(1_u64 << 40).to_le_bytes()).unwrap();
        let words: Vec<u8> =
            at.iter().flatten().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let (at, out) = (buffer(&memory, "at", &words), memory.allocate("out", 64).unwrap());
        let arguments = arguments(object, at, out);
        let mut found: Vec<Result<(), Report>> = Vec::new();
        for way in WAYS {
            let one = Launch::new(source.kernel("k").unwrap(), [1; 3], [2, 1, 1], &arguments);
            found.push(launch(one, &memory, way).map(|_| ()));
        }
        for found in found {
            match found {
                Ok(()) => assert!(!wrong, "no report: {body}"),
                Err(report) => {
                    assert!(wrong && report.kind == ReportKind::Race, "{body}: {report}");
                    assert!(
                        report.message.ends_with(said)
                            && report.message.starts_with("reads through "),
                        "{report}"
                    );
                }
            }
        }
    }
}

/// Blocks that write the same texels through a surface race, as they do in global memory.
#[test]
fn surfaces_take_part_in_races() {
    let memory = Memory::new(1 << 20);
    let [_, surface, ..] = objects(&memory, Element::U32);
    let module = kernel("sust.b.2d.b32.trap [%rd1, {%r6, %r7}], {%r1};");
    let (at, out) = (buffer(&memory, "at", &[0; 64]), memory.allocate("out", 64).unwrap());
    let arguments = arguments(surface, at, out);
    for way in WAYS {
        let two = Launch::new(module.kernel("k").unwrap(), [2, 1, 1], [1; 3], &arguments);
        let report = launch(two, &memory, way).unwrap_err();
        assert_eq!(report.kind, ReportKind::Race);
        let wanted = match way {
            Way::Together => {
                "writes through surface `s` (a 2-D array of 16 x 4) offset 0 of buffer `texels` (256 bytes), which warp 0 of block 0 writes at PTX line 29: nothing orders the two"
            }
            _ => {
                "writes through surface `s` (a 2-D array of 16 x 4) 4 bytes at offset 0 of buffer `texels` (256 bytes), which block 0 writes in the same launch: nothing orders the two"
            }
        };
        assert_eq!(report.message, wanted);
    }
}

#[test]
fn impossible_objects_are_refused() {
    let memory = Memory::new(1 << 30);
    let address = memory.allocate("texels", 1000).unwrap();
    let image = Image {
        address,
        extent: Extent::Array1d { width: 10 },
        element: Element::F32,
        channels: 1,
    };
    let linear = |width| Extent::Linear { width };
    let pitched = |pitch| Extent::Pitched { width: 10, height: 2, pitch };
    let plain = Sampler::default();
    for (image, sampler, said) in [
        (Image { channels: 3, ..image }, plain, "a texel has 1, 2 or 4 channels, not 3"),
        (
            Image { extent: linear(0), ..image },
            plain,
            "linear memory of 0 texels: from 1 to 268435456 along x",
        ),
        (
            Image { extent: Extent::Array2d { width: 1, height: 1 << 17 }, ..image },
            plain,
            "65536 along y",
        ),
        (
            Image { address: address + 256, extent: linear(10), ..image },
            plain,
            "begins at a multiple of 512 bytes (`textureAlignment`)",
        ),
        (
            Image { extent: pitched(48), ..image },
            plain,
            "multiple of 32 bytes (`texturePitchAlignment`) and no less than the 40 of a row, not 48",
        ),
        (Image { extent: pitched(32), ..image }, plain, "no less than the 40 of a row, not 32"),
        (Image { address: address + 2, ..image }, plain, "its address is a multiple of 4 bytes"),
        (
            Image { extent: linear(251), ..image },
            plain,
            "its 1004 bytes do not lie in one buffer: it begins at offset 0 of buffer `texels` (1000 bytes)",
        ),
        (
            Image { address: 64, ..image },
            plain,
            "its 40 bytes do not lie in one buffer: it begins at address 0x40, near no buffer",
        ),
        (
            image,
            Sampler { filter: Filter::Linear, ..plain },
            "linear filtering (`cudaFilterModeLinear`) is not emulated",
        ),
        (
            image,
            Sampler { normalized_values: true, ..plain },
            "(`cudaReadModeNormalizedFloat`), not f32",
        ),
        (
            Image { extent: linear(10), ..image },
            Sampler { normalized_coordinates: true, ..plain },
            "which are not normalized",
        ),
    ] {
        let error = memory.texture("t", image, sampler).unwrap_err().to_string();
        assert!(error.starts_with("cannot make the texture or surface `t`: "), "{error}");
        assert!(error.contains(said), "{error}");
    }
    for extent in [linear(10), pitched(64)] {
        let error = memory.surface("s", Image { extent, ..image }).unwrap_err().to_string();
        assert!(
            error.ends_with("a surface lies in a CUDA array, and not in linear memory"),
            "{error}"
        );
    }
    let handle = memory.texture("t", image, plain).unwrap();
    assert!(memory.read(handle, &mut [0]).is_err());
    memory.free(handle).unwrap();
    assert!(memory.free(handle).is_err());
}

/// Fetches and surfaces are counted as requests with their bytes, and without sectors.
#[test]
fn fetches_are_counted() {
    let memory = Memory::new(1 << 20);
    let [texture, surface, ..] = objects(&memory, Element::U32);
    // Of two warps with four threads each, one is outside.
    let at: Vec<u8> = (0..64_u32)
        .flat_map(|i| [0, if i % 32 == 3 { 1 << 31 } else { 4 * i % 64 }, 0, 0])
        .flat_map(u32::to_le_bytes)
        .collect();
    let (at, out) = (buffer(&memory, "at", &at), memory.allocate("out", 1024).unwrap());
    let zeros = "suld.b.2d.b32.zero %r10, [%rd1, {%r6, %r7}];";
    let nothing = "sust.b.2d.b32.zero [%rd1, {%r6, %r7}], %r1;";
    let first = "setp.lt.u32 %p1, %r1, 3; @%p1";
    for (body, object, access, lanes) in [
        (fetch("tex.2d.v4.u32.f32", "{%f1, %f2}"), texture, Access::TextureFetch, 64),
        (zeros.to_string(), surface, Access::SurfaceLoad, 62),
        (format!("{first} {nothing}"), surface, Access::SurfaceStore, 3),
    ] {
        let module = kernel_with("", &body.replacen("setp", ".reg .pred %p1; setp", 1));
        let arguments = arguments(object, at, out);
        for way in WAYS {
            let one = Launch::new(module.kernel("k").unwrap(), [1; 3], [64, 1, 1], &arguments);
            let counters = launch(one, &memory, way).unwrap();
            let site = counters.sites.iter().find(|site| site.access == access).unwrap();
            let warps = if lanes == 3 { 1 } else { 2 };
            assert_eq!((site.requests, site.bytes, site.sectors), (warps, 4 * lanes, 0), "{body}");
            assert_eq!(counters.class(Class::Texture), 2);
        }
    }
}

/// Texels of a byte in one word are no race, in place and in whatever block.
#[test]
fn neighbours_in_a_word_are_apart() {
    let module = kernel(
        "suld.b.1d.b8.trap {%r10}, [%rd1, {%r6}]; add.u32 %r11, %r10, 1; sust.b.1d.b8.trap [%rd1, {%r6}], {%r11};",
    );
    for way in WAYS {
        let memory = Memory::new(1 << 20);
        let address = buffer(&memory, "texels", &[5; 64]);
        let extent = Extent::Array1d { width: 64 };
        let image = Image { address, extent, element: Element::U8, channels: 1 };
        let surface = memory.surface("s", image).unwrap();
        // One block for two bytes of every word, one for the others.
        let at = [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11].map(|x| [0, x, 0, 0]);
        let at: Vec<u8> = at.iter().flatten().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let (at, out) = (buffer(&memory, "at", &at), memory.allocate("out", 192).unwrap());
        let arguments = arguments(surface, at, out);
        let two = Launch::new(module.kernel("k").unwrap(), [2, 1, 1], [6, 1, 1], &arguments);
        launch(two, &memory, way).unwrap_or_else(|report| panic!("{way:?}: {report}"));
        let mut found = [0; 64];
        memory.read(address, &mut found).unwrap();
        assert_eq!((&found[..12], &found[12..]), (&[6; 12][..], &[5; 52][..]));
    }
}
