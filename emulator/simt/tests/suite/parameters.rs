//! `ld.param`: every type and vector at every offset. Addresses of parameters in registers are in
//! `cases/memory.ptx`.

use simt::{Launch, Memory, Module};

/// The types, their bytes, and whether they are signed.
const TYPES: [(&str, usize, bool); 14] = [
    ("b8", 1, false),
    ("u8", 1, false),
    ("s8", 1, true),
    ("b16", 2, false),
    ("u16", 2, false),
    ("s16", 2, true),
    ("b32", 4, false),
    ("u32", 4, false),
    ("s32", 4, true),
    ("f32", 4, false),
    ("b64", 8, false),
    ("u64", 8, false),
    ("s64", 8, true),
    ("f64", 8, false),
];

const SPACES: [&str; 4] = ["param", "param::entry", "weak.param", "weak.param::entry"];

/// Each load from these spaces of what only can be loaded: its opcode, how many values it has, and
/// their type.
pub fn each_load(spaces: &[&str], mut visit: impl FnMut(&str, usize, (&str, usize, bool))) {
    for space in spaces {
        for (vector, count) in [("", 1), (".v2", 2), (".v4", 4)] {
            for ty in TYPES {
                if count * ty.1 <= 16 {
                    visit(&format!("ld.{space}{vector}.{}", ty.0), count, ty);
                }
            }
        }
    }
}

/// The opcodes of these loads.
pub fn loads(spaces: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    each_load(spaces, |opcode, _, _| all.push(opcode.to_string()));
    all
}

pub fn opcodes() -> Vec<String> {
    loads(&SPACES)
}

#[test]
fn parameters_are_read_at_every_offset() {
    const SIZE: usize = 32;
    let bytes: [u8; SIZE] = std::array::from_fn(|i| (i * 37 + 100) as u8);
    let mut forms = 0;
    each_load(&SPACES, |opcode, count, (name, width, signed)| {
        // Into a register wider than the value where there is one: 64 bits but for floats.
        let kind = if name == "f32" { "r" } else { "rd" };
        let names: Vec<String> = (1..=count).map(|i| format!("%{kind}{i}")).collect();
        let names = if count == 1 { names.concat() } else { format!("{{{}}}", names.join(", ")) };
        let size = count * width;
        for offset in (0..=SIZE - size).step_by(size) {
            let stores: String = (0..count)
                .map(|i| {
                    format!(
                        "st.global.b{} [%rd9+{}], %{kind}{};\n",
                        if kind == "r" { 32 } else { 64 },
                        8 * i,
                        i + 1
                    )
                })
                .collect();
            let source = format!(
                ".version 8.0\n.target sm_80\n.address_size 64
                .visible .entry k(.param .u64 out, .param .align 16 .b8 values[{SIZE}])
                {{
                    .reg .b32 %r<6>; .reg .b64 %rd<10>;
                    ld.param.u64 %rd9, [out];
                    {opcode} {names}, [values+{offset}];
                    {stores}
                }}"
            );
            let module = Module::parse(&source)
                .and_then(Module::complete)
                .unwrap_or_else(|error| panic!("{error}"));
            let kernel = module.kernel("k").unwrap();
            let places: Vec<(u32, u32)> =
                kernel.params().iter().map(|p| (p.offset, p.bytes)).collect();
            assert_eq!(places, [(0, 8), (16, SIZE as u32)]);
            let memory = Memory::new(1 << 20);
            let out = memory.allocate("out", 32).unwrap();
            let mut arguments = [0; 16 + SIZE];
            arguments[..8].copy_from_slice(&out.to_le_bytes());
            arguments[16..].copy_from_slice(&bytes);
            let launch = Launch::new(kernel, [1; 3], [1; 3], &arguments).prepare(&memory).unwrap();
            launch.run(0..1).unwrap_or_else(|report| panic!("{report}"));
            for i in 0..count {
                let mut got = [0; 8];
                memory.read(out + 8 * i as u64, &mut got).unwrap();
                let place = offset + i * width;
                let mut wanted =
                    [if signed && bytes[place + width - 1] >> 7 == 1 { 0xff } else { 0 }; 8];
                wanted[..width].copy_from_slice(&bytes[place..place + width]);
                assert_eq!(got, wanted, "{opcode} at {offset}");
            }
        }
        forms += 1;
    });
    println!("parameters: {forms} forms");
}
