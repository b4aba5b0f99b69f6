//! A row of the table of instructions, and the kernel that tries it on all its operands.
//!
//! A row has the text of an instruction, the values for its operands, and a function that computes
//! its results from them without the emulator. The kernel loads a tuple of operands in every
//! thread, executes the instruction, and stores the results. The families have the rows, and each
//! has a test that checks all of them; `coverage` compares the opcodes of all rows with the
//! parser's.

use simt::{Launch, Memory, Module};

use crate::values::{Random, integers, low};

/// A class of registers: predicates, or 16, 32 or 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    P,
    H,
    W,
    L,
}

use Kind::{H, L, P, W};

impl Kind {
    pub fn of_bits(bits: u32) -> Kind {
        match bits {
            8 | 16 => H,
            32 => W,
            _ => L,
        }
    }

    pub fn bits(self) -> u32 {
        match self {
            P => 1,
            H => 16,
            W => 32,
            L => 64,
        }
    }

    fn register(self, number: usize) -> String {
        let class = match self {
            P => "p",
            H => "h",
            W => "r",
            L => "rd",
        };
        format!("%{class}{number}")
    }
}

/// The results that a lane must have, given the operands of all lanes of its warp and its number.
type Wanted = Box<dyn Fn(&[Vec<u64>], usize) -> Vec<u64>>;

/// An instruction, the registers that it takes, and the results that it must have.
pub struct Form {
    /// The opcode with its modifiers, as `coverage` counts it.
    pub opcode: String,
    /// `{d} {e} {f} {g}` are its results and `{1} {2} …` its operands. Each thread has 32 bytes in
    /// global, shared and local memory: their generic addresses are `%rd30`, `%rd31` and `%rd32`,
    /// and their addresses in the spaces are `%rd33`, `%r31` and `l`.
    text: String,
    results: Vec<Kind>,
    operands: Vec<Kind>,
    pools: Vec<Vec<u64>>,
    most: usize,
    wanted: Wanted,
    same: fn(u64, u64) -> bool,
    /// True if it is one instruction, which can also be tried with a guard and with its result in
    /// an operand's register.
    single: bool,
}

/// A row: an instruction with one result, which depends on the lane's operands alone.
pub fn form<const N: usize>(
    opcode: &str,
    result: Kind,
    operands: [Kind; N],
    wanted: impl Fn([u64; N]) -> u64 + 'static,
) -> Form {
    let names: Vec<String> = (1..=N).map(|i| format!("{{{i}}}")).collect();
    let text = format!("{opcode} {{d}}, {};", names.join(", "));
    Form {
        single: true,
        ..several(opcode, &text, [result], operands, move |values| [wanted(values)])
    }
}

/// A row of several instructions or results.
pub fn several<const N: usize, const M: usize>(
    opcode: &str,
    text: &str,
    results: [Kind; M],
    operands: [Kind; N],
    wanted: impl Fn([u64; N]) -> [u64; M] + 'static,
) -> Form {
    across(opcode, text, results, operands, move |warp, lane| {
        wanted(std::array::from_fn(|i| warp[lane][i])).to_vec()
    })
}

/// A row in which a lane's result depends on all lanes of its warp.
pub fn across<const N: usize, const M: usize>(
    opcode: &str,
    text: &str,
    results: [Kind; M],
    operands: [Kind; N],
    wanted: impl Fn(&[Vec<u64>], usize) -> Vec<u64> + 'static,
) -> Form {
    Form {
        opcode: opcode.to_string(),
        text: text.to_string(),
        results: results.to_vec(),
        operands: operands.to_vec(),
        pools: operands.iter().map(|kind| integers(kind.bits())).collect(),
        most: 6000,
        wanted: Box::new(wanted),
        same: |got, wanted| got == wanted,
        single: false,
    }
}

impl Form {
    /// With another text, for operands that are written in another way.
    pub fn written(mut self, text: &str) -> Form {
        self.text = text.to_string();
        self
    }

    /// With these values for the operands, instead of integers.
    pub fn over(mut self, pools: &[&[u64]]) -> Form {
        assert_eq!(pools.len(), self.operands.len(), "{}", self.opcode);
        self.pools = pools.iter().map(|pool| pool.to_vec()).collect();
        self
    }

    /// With the same values for all operands.
    pub fn all_over(mut self, pool: &[u64]) -> Form {
        self.pools.fill(pool.to_vec());
        self
    }

    /// With at most this number of tuples of operands.
    pub fn at_most(mut self, tuples: usize) -> Form {
        self.most = tuples;
        self
    }

    /// With results compared in another way than by their bits.
    pub fn same(mut self, same: fn(u64, u64) -> bool) -> Form {
        self.same = same;
        self
    }

    /// All tuples of the pools' values if they are few, else some at random, up to whole blocks.
    fn tuples(&self) -> Vec<Vec<u64>> {
        let product = self.pools.iter().fold(1_usize, |n, pool| n.saturating_mul(pool.len()));
        let mut random = Random(product as u64);
        let mut tuples: Vec<Vec<u64>> = if product <= self.most {
            let tuple = |mut number: usize| {
                let digit = |pool: &Vec<u64>| {
                    let value = pool[number % pool.len()];
                    number /= pool.len();
                    value
                };
                self.pools.iter().map(digit).collect()
            };
            (0..product).map(tuple).collect()
        } else {
            let mut some =
                || self.pools.iter().map(|pool| pool[random.below(pool.len())]).collect();
            (0..self.most).map(|_| some()).collect()
        };
        // Operands that are equal, negative to each other, or nothing but random bits.
        for i in 0..256 {
            let first = self.pools.first().map_or(0, |pool| pool[i % pool.len()]);
            let tuple = |_| match i % 4 {
                0 if self.pools.windows(2).all(|pair| pair[0] == pair[1]) => first,
                _ => random.next(),
            };
            let random: Vec<u64> = (0..self.pools.len()).map(tuple).collect();
            if self.pools.iter().zip(&self.operands).all(|(pool, kind)| is_open(pool, *kind)) {
                tuples.push(random);
            }
        }
        for tuple in &mut tuples {
            for (value, kind) in tuple.iter_mut().zip(&self.operands) {
                *value = low(*value, kind.bits());
            }
        }
        let count = tuples.len().next_multiple_of(THREADS as usize);
        (0..count).map(|i| tuples[i % tuples.len()].clone()).collect()
    }

    /// The kernels that try it: the instruction by itself, with its result in the registers of its
    /// operands, and under a guard.
    fn variants(&self) -> Vec<Variant> {
        let mut variants = vec![Variant::Plain];
        if self.single {
            let same = |i: &usize| self.operands[*i] == self.results[0];
            variants.extend((0..self.operands.len()).filter(same).map(Variant::Into));
            variants.push(Variant::Guarded);
        }
        variants
    }

    /// Runs it and returns the first wrong result.
    pub fn check(&self) -> Result<(), String> {
        let tuples = self.tuples();
        let warps = tuples.chunks(32);
        let wanted: Vec<Vec<u64>> =
            warps.flat_map(|warp| (0..warp.len()).map(|lane| (self.wanted)(warp, lane))).collect();
        let mut bytes = Vec::new();
        tuples.iter().flatten().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        for variant in self.variants() {
            let source = self.source(variant);
            let got = run(&source, &bytes, tuples.len(), self.results.len())
                .map_err(|error| format!("{} {variant:?}: {error}", self.opcode))?;
            for (thread, (tuple, wanted)) in tuples.iter().zip(&wanted).enumerate() {
                let is_guarded = variant == Variant::Guarded && thread % 2 == 1;
                for (i, kind) in self.results.iter().enumerate() {
                    let wanted = if is_guarded { UNTOUCHED } else { wanted[i] };
                    let (got, wanted) = (got[thread][i], low(wanted, kind.bits()));
                    if got == wanted || (self.same)(got, wanted) {
                        continue;
                    }
                    return Err(format!(
                        "{} {variant:?} of {tuple:x?} in lane {}: result {i} is {got:#x}, not {wanted:#x}",
                        self.opcode,
                        thread % 32
                    ));
                }
            }
        }
        Ok(())
    }

    fn source(&self, variant: Variant) -> String {
        let (mut load, mut store, mut text) = (String::new(), String::new(), self.text.clone());
        for (i, kind) in self.operands.iter().enumerate() {
            let (register, offset) = (kind.register(5 + i), 8 * i);
            load += &match kind {
                P => format!(
                    "ld.global.u32 %r20, [%rd20+{offset}];\nsetp.ne.u32 {register}, %r20, 0;\n"
                ),
                // The bits above a 16-bit value must not matter, so its sign fills them.
                H => format!("ld.global.s16 {register}, [%rd20+{offset}];\n"),
                W => format!("ld.global.b32 {register}, [%rd20+{offset}];\n"),
                L => format!("ld.global.b64 {register}, [%rd20+{offset}];\n"),
            };
            text = text.replace(&format!("{{{}}}", i + 1), &register);
        }
        for (i, kind) in self.results.iter().enumerate() {
            let register = match variant {
                Variant::Into(operand) => kind.register(5 + operand),
                _ => kind.register(1 + i),
            };
            text = text.replace(["{d}", "{e}", "{f}", "{g}"][i], &register);
            let offset = 8 * i;
            if variant == Variant::Guarded {
                load += &match kind {
                    P => format!("setp.ne.u32 {register}, {}, 0;\n", UNTOUCHED & 1),
                    H => format!("mov.b16 {register}, {};\n", low(UNTOUCHED, 16)),
                    W => format!("mov.b32 {register}, {};\n", low(UNTOUCHED, 32)),
                    L => format!("mov.b64 {register}, {UNTOUCHED};\n"),
                };
            }
            store += &match kind {
                P => format!(
                    "selp.b32 %r20, 1, 0, {register};\nst.global.b32 [%rd21+{offset}], %r20;\n"
                ),
                H => format!(
                    "cvt.u32.u16 %r20, {register};\nst.global.b32 [%rd21+{offset}], %r20;\n"
                ),
                W => format!("st.global.b32 [%rd21+{offset}], {register};\n"),
                L => format!("st.global.b64 [%rd21+{offset}], {register};\n"),
            };
        }
        if variant == Variant::Guarded {
            text = format!("@%p0 {text}");
        }
        let (inputs, outputs) = (8 * self.operands.len().max(1), 8 * self.results.len());
        format!(
            "
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry form(.param .u64 inputs, .param .u64 outputs, .param .u64 scratch)
            {{
                .reg .pred %p<16>;
                .reg .b16 %h<16>;
                .reg .b32 %r<40>;
                .reg .b64 %rd<40>;
                .shared .align 16 .b8 s[{shared}];
                .local .align 16 .b8 l[32];
                .param .align 16 .b8 p[32];
                ld.param.u64 %rd20, [inputs];
                ld.param.u64 %rd21, [outputs];
                ld.param.u64 %rd33, [scratch];
                mov.u32 %r31, %tid.x;
                mov.u32 %r20, %ctaid.x;
                mad.lo.u32 %r21, %r20, {THREADS}, %r31;
                mul.wide.u32 %rd30, %r21, {inputs};
                add.u64 %rd20, %rd20, %rd30;
                mul.wide.u32 %rd30, %r21, {outputs};
                add.u64 %rd21, %rd21, %rd30;
                mul.wide.u32 %rd30, %r21, {SCRATCH};
                add.u64 %rd33, %rd33, %rd30;
                cvta.global.u64 %rd30, %rd33;
                mov.u32 %r20, s;
                mad.lo.u32 %r31, %r31, {SCRATCH}, %r20;
                cvt.u64.u32 %rd31, %r31;
                cvta.shared.u64 %rd31, %rd31;
                mov.u64 %rd32, l;
                cvta.local.u64 %rd32, %rd32;
                and.b32 %r20, %r21, 1;
                setp.eq.u32 %p0, %r20, 0;
                {load}
                {text}
                {store}
                ret;
            }}
            ",
            shared = THREADS * SCRATCH,
        )
    }
}

/// Threads of a block.
const THREADS: u32 = 128;
/// The bytes of memory that each thread has for itself.
const SCRATCH: u32 = 32;
/// The value of a register that a guarded instruction must not write.
const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5b;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Plain,
    Into(usize),
    Guarded,
}

/// Returns whether random values belong to a pool. They do unless it is a short list of special
/// cases.
fn is_open(pool: &[u64], kind: Kind) -> bool {
    kind == P || pool.len() > 24
}

/// Runs a form's kernel with a tuple of operands for each of `threads`, and returns `count` results
/// of each.
fn run(source: &str, input: &[u8], threads: usize, count: usize) -> Result<Vec<Vec<u64>>, String> {
    let module =
        Module::parse(source).and_then(Module::complete).map_err(|error| error.to_string())?;
    let kernel = module.kernel("form").ok_or("there is no kernel")?;
    let memory = Memory::new(1 << 30);
    let allocate = |name: &str, bytes: usize| {
        let address = memory.allocate(name, bytes as u64).map_err(|error| error.to_string())?;
        memory.fill(address, bytes as u64, 0).map_err(|error| error.to_string())?;
        Ok::<u64, String>(address)
    };
    // A form without operands has an address, too.
    let inputs = allocate("inputs", input.len().max(8 * threads))?;
    let outputs = allocate("outputs", 8 * count * threads)?;
    let scratch = allocate("scratch", SCRATCH as usize * threads)?;
    memory.write(inputs, input).map_err(|error| error.to_string())?;

    let arguments: Vec<u8> =
        [inputs, outputs, scratch].into_iter().flat_map(u64::to_le_bytes).collect();
    let blocks = threads as u32 / THREADS;
    let launch = Launch::new(kernel, [blocks, 1, 1], [THREADS, 1, 1], &arguments);
    let launch = launch.prepare(&memory).map_err(|report| report.to_string())?;
    launch.run(0..blocks.into()).map_err(|report| report.to_string())?;

    let mut bytes = vec![0; 8 * count * threads];
    memory.read(outputs, &mut bytes).map_err(|error| error.to_string())?;
    let (values, _) = bytes.as_chunks();
    let values: Vec<u64> = values.iter().map(|value| u64::from_le_bytes(*value)).collect();
    Ok(values.chunks(count.max(1)).map(<[u64]>::to_vec).collect())
}

/// Checks all rows of a family, and fails with what is wrong in each.
pub fn check(family: &str, forms: &[Form]) {
    let wrong: Vec<String> = forms.iter().filter_map(|form| form.check().err()).collect();
    println!("{family}: {} forms", forms.len());
    let (count, all) = (wrong.len(), forms.len());
    assert!(wrong.is_empty(), "{family}: {count} of {all} forms are wrong:\n{}", wrong.join("\n"));
}
