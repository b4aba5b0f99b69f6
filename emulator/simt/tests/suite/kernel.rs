//! A short way from a few lines of PTX to a launch, for the suite and for the files of cases.

use simt::{
    Counters, Kernel, Launch, Memory, Module, ParseError, Prepared, Report, ReportKind, Stepper,
};

/// The first lines of a module.
pub const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A module all of whose kernels run.
pub fn module(source: &str) -> Module {
    let module = Module::parse(source).and_then(Module::complete);
    module.unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// A kernel `k` with pointers `a` and `b` as parameters, in `%rd1` and `%rd2`; the thread's number
/// in the grid in `%r1` and in the block in `%r2`; `%rd3` and `%rd4` are `a` and `b` plus four
/// bytes for each thread of the grid. `%r3` is the address of shared memory, `%r4` four times
/// `%r2`. Registers from 5 on are the body's.
pub fn source(body: &str) -> String {
    format!(
        "{HEAD}
        .visible .entry k(.param .u64 a, .param .u64 b)
        {{
            .reg .pred %p<20>;
            .reg .b16 %h<20>;
            .reg .b32 %r<40>;
            .reg .f32 %f<20>;
            .reg .b64 %rd<40>;
            .shared .align 16 .b8 s[4096];
            .local .align 16 .b8 l[64];
            ld.param.u64 %rd1, [a];
            ld.param.u64 %rd2, [b];
            mov.u32 %r1, %ctaid.x;
            mov.u32 %r3, %ntid.x;
            mov.u32 %r2, %tid.x;
            mad.lo.u32 %r1, %r1, %r3, %r2;
            mul.wide.u32 %rd4, %r1, 4;
            add.u64 %rd3, %rd1, %rd4;
            add.u64 %rd4, %rd2, %rd4;
            mul.lo.u32 %r4, %r2, 4;
            mov.u32 %r3, s;
            {body}
            ret;
        }}
        "
    )
}

/// Instructions that [`source`] puts before and after the body.
pub const AROUND: u64 = 12;

/// A kernel `k`, a memory with two buffers of which the host fills only `a`, and a launch.
pub struct Bench {
    source: String,
    module: Module,
    pub memory: Memory,
    pub a: u64,
    pub b: u64,
    pub setup: Setup,
}

/// The sizes and bounds of the launch of a [`Bench`].
#[derive(Clone)]
pub struct Setup {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    pub instructions: u64,
    pub host_bytes: u64,
    /// The number of bytes of `b` that are zero before the launch. Nothing has written the others.
    pub zeros: u64,
}

impl Default for Setup {
    /// One block of a warp.
    fn default() -> Setup {
        Setup {
            grid: [1; 3],
            block: [32, 1, 1],
            dynamic_shared: 0,
            instructions: 1 << 22,
            host_bytes: Launch::HOST_BYTES,
            zeros: 0,
        }
    }
}

/// The number of bytes of each buffer of a [`Bench`].
pub const BYTES: u64 = 4096;

/// A memory with the buffers of a [`Bench`] before the launch, and their addresses.
fn buffers(zeros: u64) -> (Memory, u64, u64) {
    let memory = Memory::new(1 << 30);
    let a = memory.allocate("inputs", BYTES).unwrap();
    let b = memory.allocate("outputs", BYTES).unwrap();
    let words: Vec<u8> = (0..BYTES as u32 / 4).flat_map(u32::to_le_bytes).collect();
    memory.write(a, &words).unwrap();
    memory.fill(b, zeros, 0).unwrap();
    (memory, a, b)
}

impl Bench {
    /// One block of a warp that runs the body of [`source`]. `a` holds 0, 1, 2, … as 32-bit words;
    /// `b` is never written.
    pub fn new(body: &str) -> Bench {
        Bench::of(&source(body))
    }

    /// The same for the kernel `k` of a whole module.
    pub fn of(source: &str) -> Bench {
        Bench::parse(source, Setup::default()).unwrap_or_else(|error| panic!("{error}\n{source}"))
    }

    /// A launch of the kernel `k` of a module, unless a kernel of the module is refused.
    pub fn parse(source: &str, setup: Setup) -> Result<Bench, ParseError> {
        let module = Module::parse(source).and_then(Module::complete)?;
        let (memory, a, b) = buffers(setup.zeros);
        Ok(Bench { source: source.to_string(), module, memory, a, b, setup })
    }

    pub fn threads(mut self, threads: u32) -> Bench {
        self.setup.block = [threads, 1, 1];
        self
    }

    pub fn blocks(mut self, blocks: u32) -> Bench {
        self.setup.grid = [blocks, 1, 1];
        self
    }

    pub fn kernel(&self) -> &Kernel {
        self.module.kernel("k").unwrap()
    }

    /// The addresses of `a` and `b`, or the part of them that the kernel takes.
    pub fn arguments(&self) -> Vec<u8> {
        let mut bytes = [self.a.to_le_bytes(), self.b.to_le_bytes()].concat();
        bytes.truncate(self.kernel().param_bytes() as usize);
        bytes
    }

    pub fn launch<'a>(&'a self, arguments: &'a [u8]) -> Launch<'a> {
        Launch {
            dynamic_shared: self.setup.dynamic_shared,
            instructions: self.setup.instructions,
            host_bytes: self.setup.host_bytes,
            ..Launch::new(self.kernel(), self.setup.grid, self.setup.block, arguments)
        }
    }

    /// Prepares the launch and hands it to `run`, with the number of its blocks.
    pub fn with<T>(
        &self,
        run: impl FnOnce(&Prepared<'_>, u64) -> Result<T, Report>,
    ) -> Result<T, Report> {
        let arguments = self.arguments();
        let launch = self.launch(&arguments);
        let blocks = launch.blocks();
        run(&launch.prepare(&self.memory)?, blocks)
    }

    pub fn run(&self) -> Result<Counters, Report> {
        self.with(|launch, blocks| launch.run(0..blocks))
    }

    pub fn run_together(&self) -> Result<Counters, Report> {
        self.with(|launch, blocks| launch.run_together(0..blocks, None))
    }

    /// Runs the kernel by instructions on new buffers, goes back to the middle and to the end
    /// again. Returns the words of `b` as well.
    pub fn stepped(&self, together: bool) -> Result<(Counters, Vec<u32>), Report> {
        let arguments = self.arguments();
        let (memory, _, b) = buffers(self.setup.zeros);
        let mut stepper = Stepper::new(self.launch(&arguments), memory, together)?;
        let counters = stepper.result().clone()?;
        stepper.seek(stepper.len() / 2);
        if let Some(step) = stepper.steps().get(stepper.position()) {
            let paths = stepper.warps().into_iter().flat_map(|warp| warp.paths);
            assert!(paths.into_iter().any(|path| path.pc == step.pc));
        }
        stepper.seek(stepper.len());
        assert_eq!(stepper.counters(), counters);
        Ok((counters, words(stepper.memory(), b)))
    }

    /// The text of a line of the PTX.
    pub fn line(&self, number: u32) -> &str {
        self.source.lines().nth(number as usize - 1).unwrap_or("").trim()
    }

    /// Checks that a run reports a mistake of a kind at an instruction, in these words.
    pub fn reports(
        &self,
        found: Result<Counters, Report>,
        kind: ReportKind,
        at: &str,
        message: &str,
    ) -> Report {
        let Err(report) = found else { panic!("no report, but this was expected: {message}") };
        assert_eq!((&*report.message, report.kind), (message, kind), "{report}");
        let line = self.line(report.line);
        assert!(line.contains(at), "line {} is `{line}` and not `{at}`: {report}", report.line);
        report
    }

    /// The first words of `b`.
    pub fn words<const N: usize>(&self) -> [u32; N] {
        self.outputs()[..N].try_into().unwrap()
    }

    /// The words of `b`.
    pub fn outputs(&self) -> Vec<u32> {
        words(&self.memory, self.b)
    }
}

/// The words of a buffer of a [`Bench`].
fn words(memory: &Memory, address: u64) -> Vec<u32> {
    let mut bytes = vec![0; BYTES as usize];
    memory.read(address, &mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
