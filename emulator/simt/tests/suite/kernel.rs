//! A short way from a few lines of PTX to a launch.

use simt::{Counters, Kernel, Launch, Memory, Module, Prepared, Report, ReportKind, Stepper};

/// A kernel `k` with pointers `a` and `b` as parameters, in `%rd1` and `%rd2`; the thread's number
/// in the grid in `%r1` and in the block in `%r2`; `%rd3` and `%rd4` are `a` and `b` plus four
/// bytes for each thread of the grid. Registers from 5 on are the body's.
pub fn source(body: &str) -> String {
    format!(
        "
        .version 8.0
        .target sm_80
        .address_size 64
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

/// A module of one kernel `k` and a memory with two buffers, of which `b` is never written by the
/// host.
pub struct Bench {
    source: String,
    module: Module,
    pub memory: Memory,
    pub a: u64,
    pub b: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    pub instructions: u64,
    pub host_bytes: u64,
}

/// Bytes of each buffer of a [`Bench`].
pub const BYTES: u64 = 4096;

/// A memory with the buffers of a [`Bench`] as they are at first, and their addresses.
fn buffers() -> (Memory, u64, u64) {
    let memory = Memory::new(1 << 30);
    let a = memory.allocate("inputs", BYTES).unwrap();
    let b = memory.allocate("outputs", BYTES).unwrap();
    let words: Vec<u8> = (0..BYTES as u32 / 4).flat_map(u32::to_le_bytes).collect();
    memory.write(a, &words).unwrap();
    (memory, a, b)
}

impl Bench {
    /// One block of a warp. `a` holds 0, 1, 2, … as 32-bit words; `b` is never written.
    pub fn new(body: &str) -> Bench {
        Bench::of(&source(body))
    }

    /// One block of a warp, for the kernel `k` of a whole module. `a` holds 0, 1, 2, … as 32-bit
    /// words; `b` is never written.
    pub fn of(source: &str) -> Bench {
        let module = Module::parse(source)
            .and_then(Module::complete)
            .unwrap_or_else(|error| panic!("{error}\n{source}"));
        let (memory, a, b) = buffers();
        let (grid, block, source) = ([1; 3], [32, 1, 1], source.to_string());
        let (instructions, host_bytes) = (1 << 22, Launch::HOST_BYTES);
        let dynamic_shared = 0;
        Bench {
            source,
            module,
            memory,
            a,
            b,
            grid,
            block,
            dynamic_shared,
            instructions,
            host_bytes,
        }
    }

    pub fn threads(mut self, threads: u32) -> Bench {
        self.block = [threads, 1, 1];
        self
    }

    pub fn blocks(mut self, blocks: u32) -> Bench {
        self.grid = [blocks, 1, 1];
        self
    }

    pub fn kernel(&self) -> &Kernel {
        self.module.kernel("k").unwrap()
    }

    pub fn arguments(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.a.to_le_bytes());
        bytes[8..].copy_from_slice(&self.b.to_le_bytes());
        bytes
    }

    fn launch<'a>(&'a self, arguments: &'a [u8]) -> Launch<'a> {
        Launch {
            dynamic_shared: self.dynamic_shared,
            instructions: self.instructions,
            host_bytes: self.host_bytes,
            ..Launch::new(self.kernel(), self.grid, self.block, arguments)
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

    /// Runs it on buffers of its own, to be gone through by instructions.
    pub fn gone_through(&self, together: bool) -> Result<Counters, Report> {
        let arguments = self.arguments();
        Stepper::new(self.launch(&arguments), buffers().0, together)?.result().clone()
    }

    /// What stands in a line of the PTX.
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
        let report = match found {
            Ok(_) => panic!("no report, but this was expected: {message}"),
            Err(report) => report,
        };
        assert_eq!(report.message, message, "{report}");
        assert_eq!(report.kind, kind, "{report}");
        let line = self.line(report.line);
        assert!(line.contains(at), "line {} is `{line}` and not `{at}`: {report}", report.line);
        assert!(report.to_string().contains(message));
        report
    }

    /// The number of the line of the PTX in which a text stands first.
    pub fn line_of(&self, text: &str) -> usize {
        self.source.lines().position(|line| line.contains(text)).map_or(0, |line| line + 1)
    }

    /// The first words of `b`.
    pub fn words<const N: usize>(&self) -> [u32; N] {
        let mut bytes = vec![0; 4 * N];
        self.memory.read(self.b, &mut bytes).unwrap();
        std::array::from_fn(|i| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()))
    }
}
