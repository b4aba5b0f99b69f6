//! Parameters, and variables of a module in device memory.
//!
//! Loads of parameters and constants are tried with every type and vector at every offset.
//! Variables have their first values as PTX writes them, keep what launches leave, and live as long
//! as their module. They are bounded like all that a launch allocates. Wrong uses, and addresses of
//! parameters in registers, are in `cases/memory.ptx`.

use simt::{Launch, Memory, Module, Report, ReportKind, Stepper, Variable};

use crate::kernel::HEAD;
use crate::transfer::TYPES;

fn module(declarations: &str, body: &str) -> Module {
    module_of(declarations, "", body)
}

/// A module of a kernel with these declarations, more parameters, and this body.
fn module_of(declarations: &str, parameters: &str, body: &str) -> Module {
    let source = format!(
        "{HEAD}{declarations}
        .visible .entry k(.param .u64 out{parameters})
        {{
            .reg .b32 %r<8>; .reg .b64 %rd<8>;
            ld.param.u64 %rd7, [out];
            {body}
        }}"
    );
    let module = Module::parse(&source).and_then(Module::complete);
    module.unwrap_or_else(|error| panic!("{error}\n{source}"))
}

fn run(module: &Module, memory: &Memory, out: u64) -> Result<(), Report> {
    let arguments = out.to_le_bytes();
    let launch = Launch::new(module.kernel("k").unwrap(), [1; 3], [1; 3], &arguments);
    launch.prepare(memory)?.run(0..1).map(drop)
}

fn words<const N: usize>(memory: &Memory, address: u64) -> [u32; N] {
    let mut bytes = vec![0; 4 * N];
    memory.read(address, &mut bytes).unwrap();
    std::array::from_fn(|i| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()))
}

fn variable(memory: &Memory, module: &Module, name: &str) -> Variable {
    memory.variable(module, name).unwrap().unwrap_or_else(|| panic!("no variable `{name}`"))
}

/// The spaces of parameters, and those of constants.
const SPACES: [&str; 6] =
    ["param", "param::entry", "weak.param", "weak.param::entry", "const", "weak.const"];

/// Calls `visit` with each load from spaces that can only be loaded from: its opcode, the number of
/// its values, and their type.
fn each_load(mut visit: impl FnMut(&str, usize, (&str, usize, bool))) {
    for space in SPACES {
        for (vector, count) in [("", 1), (".v2", 2), (".v4", 4)] {
            let types = TYPES.map(|(name, bytes, signed)| (name, bytes as usize, signed));
            for ty in types.into_iter().filter(|ty| count * ty.1 <= 16) {
                visit(&format!("ld.{space}{vector}.{}", ty.0), count, ty);
            }
        }
    }
}

/// The opcodes that these tests cover.
pub fn opcodes() -> Vec<String> {
    let mut all = Vec::new();
    each_load(|opcode, _, _| all.push(opcode.to_string()));
    all
}

#[test]
fn parameters_and_constants_are_read_at_every_offset() {
    const SIZE: usize = 32;
    let bytes: [u8; SIZE] = std::array::from_fn(|i| (i * 37 + 100) as u8);
    let list = bytes.map(|byte| byte.to_string()).join(", ");
    each_load(|opcode, count, (name, width, signed)| {
        let is_parameter = opcode.contains("param");
        let (constant, parameter) = match is_parameter {
            true => (String::new(), format!(", .param .align 16 .b8 values[{SIZE}]")),
            false => (format!(".const .align 16 .b8 values[{SIZE}] = {{{list}}};"), String::new()),
        };
        // Into a register wider than the value where there is one: 64 bits but for floats.
        let (kind, bits) = if name == "f32" { ("r", 32) } else { ("rd", 64) };
        let names: Vec<String> = (1..=count).map(|i| format!("%{kind}{i}")).collect();
        let names = if count == 1 { names.concat() } else { format!("{{{}}}", names.join(", ")) };
        for offset in (0..=SIZE - count * width).step_by(count * width) {
            let mut body = format!("{opcode} {names}, [values+{offset}];\n");
            for i in 0..count {
                body += &format!("st.global.b{bits} [%rd7+{}], %{kind}{};\n", 8 * i, i + 1);
            }
            let module = module_of(&constant, &parameter, &body);
            let memory = Memory::new(1 << 20);
            let out = memory.allocate("out", 32).unwrap();
            let mut arguments = [&out.to_le_bytes()[..], &[0; 8], &bytes].concat();
            let kernel = module.kernel("k").unwrap();
            arguments.truncate(kernel.param_bytes() as usize);
            let places: Vec<(u32, u32)> =
                kernel.params().iter().map(|one| (one.offset, one.bytes)).collect();
            assert_eq!(places, [(0, 8), (16, SIZE as u32)][..1 + usize::from(is_parameter)]);
            let launch = Launch::new(kernel, [1; 3], [1; 3], &arguments).prepare(&memory).unwrap();
            launch.run(0..1).unwrap_or_else(|report| panic!("{report}"));
            for i in 0..count {
                let value = &bytes[offset + i * width..][..width];
                let fill = if signed && value[width - 1] >> 7 == 1 { 0xff } else { 0 };
                let mut wanted = [fill; 8];
                wanted[..width].copy_from_slice(value);
                let mut got = [0; 8];
                memory.read(out + 8 * i as u64, &mut got[..bits / 8]).unwrap();
                assert_eq!(got[..bits / 8], wanted[..bits / 8], "{opcode} at {offset}");
            }
        }
    });
}

#[test]
fn values_are_laid_out_as_they_are_written() {
    let module = module(
        ".visible .global .align 4 .u32 one = -1;
        .global .align 1 .b8 text[6] = {104, 101, 108, 108, 111};
        .weak .const .align 4 .f32 floats[3] = {0f3F800000, 1.5};
        .global .align 2 .b16 grid[2][3] = {{1, 2}, {0x30U, 4, 5}};
        .global .align 4 .s32 open[] = {7, 8, 9};
        .global .align 4 .u32 rows[][2] = {{1}, {2, 3}};
        .global .align 8 .v2 .u32 pairs[2] = {{1, 2}, {3, 4}};
        .common .global .f64 zero;
        .global .align 8 .u64 addresses[4] = {one, generic(text)+2, grid+6, floats};
        .global .align 4 .u32 first = 1, second[2], third = 3;
        .global .u32 big[40000];",
        "",
    );
    let memory = Memory::new(1 << 20);
    let all = memory.variables(&module).unwrap();
    let sizes: Vec<_> = all.iter().map(|one| (&*one.name, one.bytes, one.constant)).collect();
    let expected = [
        ("one", 4, false),
        ("text", 6, false),
        ("floats", 12, true),
        ("grid", 12, false),
        ("open", 12, false),
        ("rows", 16, false),
        ("pairs", 16, false),
        ("zero", 8, false),
        ("addresses", 32, false),
        ("first", 4, false),
        ("second", 8, false),
        ("third", 4, false),
        ("big", 160_000, false),
    ];
    assert_eq!(sizes, expected);
    let address = |name| variable(&memory, &module, name).address;
    assert_eq!(words(&memory, address("one")), [u32::MAX]);
    let mut text = [9; 6];
    memory.read(address("text"), &mut text).unwrap();
    assert_eq!(&text, b"hello\0");
    assert_eq!(words(&memory, address("floats")), [1_f32.to_bits(), 1.5_f32.to_bits(), 0]);
    assert_eq!(words(&memory, address("grid")), [1 | 2 << 16, 0x30 << 16, 4 | 5 << 16]);
    assert_eq!(words(&memory, address("open")), [7, 8, 9]);
    assert_eq!(words(&memory, address("rows")), [1, 0, 2, 3]);
    assert_eq!(words(&memory, address("pairs")), [1, 2, 3, 4]);
    assert_eq!(words(&memory, address("third")), [3]);
    let wanted = [address("one"), address("text") + 2, address("grid") + 6, address("floats")];
    let wanted = wanted.map(|address| [address as u32, (address >> 32) as u32]);
    assert_eq!(words::<8>(&memory, address("addresses")), wanted.concat()[..]);
    assert!(memory.variable(&module, "k").unwrap().is_none());
}

/// A kernel that counts in a variable of the module and in a variable of the kernel, through all
/// kinds of addresses.
const COUNTS: &str = "
    .global .align 4 .u32 own = 5;
    mov.u64 %rd1, calls;
    ld.global.u32 %r1, [%rd1];
    add.u32 %r1, %r1, step;
    st.global.u32 [calls], %r1;
    cvta.global.u64 %rd2, own;
    ld.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 1;
    st.u32 [own], %r2;
    mov.u64 %rd3, steps+4;
    cvta.const.u64 %rd4, %rd3;
    ld.u32 %r3, [%rd4];
    cvta.to.const.u64 %rd5, %rd4;
    ld.const.u32 %r4, [%rd5+-4];
    atom.global.add.u32 %r5, [calls+4], %r3;
    st.global.v4.u32 [%rd7], {%r1, %r2, %r3, %r4};";

fn counts() -> Module {
    let declarations = ".visible .global .align 4 .u32 calls[2] = {10, 100};
        .const .align 4 .u32 steps[2] = {6, 7};";
    module(declarations, &COUNTS.replace("step;", "1;"))
}

#[test]
fn what_a_launch_leaves_the_next_one_finds() {
    let counts = counts();
    let memory = Memory::new(1 << 20);
    let out = memory.allocate("out", 16).unwrap();
    for launch in 1..4 {
        run(&counts, &memory, out).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(words(&memory, out), [10 + launch, 5 + launch, 7, 6]);
    }
    let calls = variable(&memory, &counts, "calls");
    assert_eq!(words(&memory, calls.address), [13, 121]);
    // The host may write constant memory as well. Another memory and another module have their own
    // variables.
    memory.write(calls.address, &50_u32.to_le_bytes()).unwrap();
    memory.write(variable(&memory, &counts, "steps").address, &9_u32.to_le_bytes()).unwrap();
    run(&counts.clone(), &memory, out).unwrap();
    assert_eq!(words(&memory, out), [51, 9, 7, 9]);
    let other = Memory::new(1 << 20);
    let out_there = other.allocate("out", 16).unwrap();
    run(&counts, &other, out_there).unwrap();
    assert_eq!(words(&other, out_there), [11, 6, 7, 6]);
    let again = self::counts();
    run(&again, &memory, out).unwrap();
    assert_eq!(words(&memory, out), [11, 6, 7, 6]);
    // The variables of a module that is gone make room for those of the next module.
    let used = memory.used();
    drop(again);
    run(&self::counts(), &memory, out).unwrap();
    assert_eq!(memory.used(), used);
}

#[test]
fn a_stepper_goes_back_to_what_they_held() {
    let source = ".version 8.0 .target sm_80 .address_size 64
        .global .align 4 .u32 zero; .global .align 4 .u32 calls = 3;
        .entry k() { .reg .b32 %r<3>;
            atom.global.add.u32 %r1, [calls], 1; atom.global.add.u32 %r2, [zero+0], %r1; }";
    let module = Module::parse_named(source).unwrap();
    let memory = Memory::new(1 << 20);
    let (calls, zero) = (variable(&memory, &module, "calls"), variable(&memory, &module, "zero"));
    let launch = Launch::new(module.kernel("k").unwrap(), [1; 3], [1; 3], &[]);
    let mut stepper = Stepper::new(launch, memory, false).unwrap();
    assert!(stepper.result().is_ok());
    for _ in 0..2 {
        assert_eq!(words(stepper.memory(), calls.address), [4]);
        assert_eq!(words(stepper.memory(), zero.address), [3]);
        stepper.seek(0);
        assert_eq!(words(stepper.memory(), calls.address), [3]);
        assert_eq!(words(stepper.memory(), zero.address), [0]);
        stepper.seek(3);
    }
}

#[test]
fn variables_keep_to_the_bounds() {
    // Of a large one that is zero, only what is touched costs anything.
    let sparse = module(
        ".global .align 4 .b8 large[1073741824];",
        "ld.global.u32 %r1, [large+536870912]; st.global.u32 [large+1073741820], %r1;",
    );
    let memory = Memory::with_resident_limit(2 << 30, 1 << 20);
    run(&sparse, &memory, 0).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(memory.used(), 1 << 30);
    let report = run(&sparse, &Memory::new(1 << 20), 0).unwrap_err();
    assert_eq!(report.kind, ReportKind::Launch);
    assert!(report.message.starts_with("has no room for the variables of its module"), "{report}");

    let given = module(".global .u32 x[2][65536] = {{1}, {2}};", "mov.u64 %rd1, x;");
    let memory = Memory::new(1 << 20);
    let arguments = [0; 8];
    let launch = Launch::new(given.kernel("k").unwrap(), [1; 3], [1; 3], &arguments);
    let report = Launch { host_bytes: 65_000, ..launch }.prepare(&memory).unwrap_err();
    assert_eq!(report.kind, ReportKind::HostBytes, "{report}");
    assert!(report.message.starts_with("needs 65536 more bytes of the host for the variables"));
    assert_eq!(memory.used(), 0);
    assert!(launch.prepare(&memory).is_ok());
    assert!(Launch { host_bytes: 65_000, ..launch }.prepare(&memory).is_ok(), "they are there");
}
