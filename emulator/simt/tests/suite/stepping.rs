//! A launch that runs one instruction at a time: it ends as a launch that runs at once, and goes
//! back to every moment.
//!
//! The kernels are two of `steps.cu`: rows with barriers and shared memory, and a chain of blocks
//! that wait for each other. A stepper goes forward once and records the state at some moments; it
//! then goes backward over them and must find the same. All cases of `../cases` run by steps, too.

use simt::{Counters, Kernel, Launch, Memory, Module, ReportKind, Stepper, Trace, Values, What};

use crate::kernel::Bench;

/// The state of a stepper: the memory of `outputs`, registers of all warps, and shared memory.
#[derive(Debug, PartialEq)]
struct Seen {
    outputs: Vec<u8>,
    registers: Vec<simt::Register>,
    warps: Vec<simt::Warp>,
    shared: Vec<Option<u32>>,
    counters: Counters,
}

const PTX: &str = include_str!("../data/steps-12.0.ptx");

/// A kernel of `steps.cu` with arrays of `len` elements.
struct Case {
    entry: &'static str,
    len: usize,
    grid: u32,
    block: u32,
    arguments: fn(&Memory, [u64; 3], usize) -> Vec<u64>,
}

/// Two rows of a sequence each: a barrier, shared memory, a loop over tiles.
const ROWS: Case = Case {
    entry: "rows",
    len: 4096,
    grid: 2,
    block: 128,
    arguments: |_, [inputs, coeffs, outputs], len| vec![inputs, coeffs, outputs, len as u64 / 2],
};

/// Blocks that wait for each other.
const CHAIN: Case = Case {
    entry: "chain_of_blocks",
    len: 1000,
    grid: 32,
    block: 32,
    arguments: |memory, [inputs, coeffs, outputs], len| {
        let next = memory.allocate("next_tile", 4).unwrap();
        let published = memory.allocate("published", 4 * 32).unwrap();
        let states = memory.allocate("states", 4 * 32).unwrap();
        memory.fill(next, 4, 0).unwrap();
        memory.fill(published, 4 * 32, 0).unwrap();
        vec![inputs, coeffs, outputs, len as u64, next, published, states]
    },
};

impl Case {
    fn memory(&self) -> (Memory, Vec<u8>, u64) {
        let memory = Memory::new(1 << 30);
        let buffers = ["inputs", "coeffs", "outputs"]
            .map(|name| memory.allocate(name, 4 * self.len as u64).unwrap());
        let values = |scale: f32, offset: f32| -> Vec<u8> {
            let value = |i: usize| offset + scale * ((i * 7919 % 1000) as f32 / 1000.0);
            (0..self.len).flat_map(|i| value(i).to_le_bytes()).collect()
        };
        memory.write(buffers[0], &values(2.0, -1.0)).unwrap();
        memory.write(buffers[1], &values(0.02, 0.98)).unwrap();
        let arguments = (self.arguments)(&memory, buffers, self.len);
        (memory, arguments.iter().flat_map(|value| value.to_le_bytes()).collect(), buffers[2])
    }

    fn launch<'a>(&self, kernel: &'a Kernel, arguments: &'a [u8]) -> Launch<'a> {
        let arguments = &arguments[..kernel.param_bytes() as usize];
        Launch::new(kernel, [self.grid, 1, 1], [self.block, 1, 1], arguments)
    }

    fn native(&self) -> (Vec<u8>, Counters) {
        let (memory, arguments, outputs) = self.memory();
        let module = Module::parse(PTX).unwrap();
        let kernel = module.kernel(self.entry).unwrap();
        let launch = self.launch(kernel, &arguments).prepare(&memory).unwrap();
        let all = 0..u64::from(self.grid);
        let together = kernel.communicates();
        let counters =
            if together { launch.run_together(all, None) } else { launch.run(all) }.unwrap();
        (read(&memory, outputs, self.len), counters)
    }

    fn stepper(&self) -> (Stepper, u64) {
        let (memory, arguments, outputs) = self.memory();
        let module = Module::parse_named(PTX).unwrap();
        let kernel = module.kernel(self.entry).unwrap();
        let launch = self.launch(kernel, &arguments);
        (Stepper::new(launch, memory, kernel.communicates()).unwrap(), outputs)
    }

    fn seen(&self, stepper: &Stepper, outputs: u64) -> Seen {
        let warps = stepper.warps();
        let blocks = warps.iter().filter(|warp| warp.warp == 0).map(|warp| warp.block);
        Seen {
            outputs: read(stepper.memory(), outputs, self.len),
            registers: warps
                .iter()
                .flat_map(|warp| stepper.registers(warp.block, warp.warp))
                .collect(),
            shared: blocks.flat_map(|block| stepper.shared(block)).collect(),
            warps,
            counters: stepper.counters(),
        }
    }
}

fn read(memory: &Memory, address: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; 4 * len];
    memory.read(address, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_stepper_ends_as_the_launch_does() {
    for case in [ROWS, CHAIN] {
        let (outputs, counters) = case.native();
        let (mut stepper, address) = case.stepper();
        assert_eq!(stepper.result().as_ref(), Ok(&counters), "{}", case.entry);
        assert_eq!(read(stepper.memory(), address, case.len), outputs, "{}", case.entry);
        assert_eq!(stepper.position(), stepper.len());
        stepper.seek(0);
        assert_eq!(stepper.counters().instructions, 0);
        stepper.seek(usize::MAX);
        assert_eq!(stepper.counters(), counters, "{}", case.entry);
        assert_eq!(read(stepper.memory(), address, case.len), outputs, "{}", case.entry);
        assert_eq!((stepper.current(), stepper.warps()), (None, Vec::new()));
    }
}

#[test]
fn a_stepper_goes_back_to_every_moment() {
    for case in [ROWS, CHAIN] {
        let (mut stepper, address) = case.stepper();
        let moments: Vec<usize> = (0..stepper.len()).step_by(stepper.len() / 37).collect();
        stepper.seek(0);
        let forward: Vec<Seen> = moments
            .iter()
            .map(|&moment| {
                stepper.seek(moment);
                assert_eq!(stepper.position(), moment);
                case.seen(&stepper, address)
            })
            .collect();
        for (&moment, seen) in moments.iter().zip(&forward).rev() {
            stepper.seek(moment);
            assert!(case.seen(&stepper, address) == *seen, "{} at {moment}", case.entry);
        }
        // One instruction at a time, as a reader goes.
        for moment in (1000..1100).chain((1000..1099).rev()) {
            stepper.seek(moment);
            let (block, warp) = stepper.current().unwrap();
            let step = stepper.steps()[moment];
            assert_eq!((step.block, step.warp), (block, warp));
            let warps = stepper.warps();
            let here = warps.iter().find(|one| (one.block, one.warp) == (block, warp)).unwrap();
            assert!(here.paths.iter().any(|path| path.pc == step.pc && path.lanes == step.lanes));
        }
    }
}

/// The launch ends where an access races with one far before it, whether the stepper comes there
/// from the beginning or from a moment in between.
#[test]
fn a_race_is_found_again_from_every_moment() {
    let case = Case { entry: "chain_without_waiting", ..CHAIN };
    let (mut stepper, address) = case.stepper();
    let report = stepper.result().clone().unwrap_err();
    assert_eq!(report.kind, ReportKind::Race);
    let end = case.seen(&stepper, address);
    for moment in (0..stepper.len()).step_by(97).rev() {
        stepper.seek(moment);
        stepper.seek(usize::MAX);
        assert_eq!(stepper.position(), stepper.len());
        assert!(case.seen(&stepper, address) == end, "from {moment}");
    }
}

/// A warp that has arrived at a barrier waits until the others have.
#[test]
fn a_warp_that_waits_is_shown() {
    let (mut stepper, _) = ROWS.stepper();
    let barrier = |step: &simt::Step| stepper.kernel().is_barrier(step.pc);
    let first = stepper.steps().iter().position(barrier).unwrap();
    stepper.seek(first + 1);
    let waits: Vec<bool> =
        stepper.warps().iter().map(|warp| warp.paths[0].waits.is_some()).collect();
    assert_eq!(waits, [true, false, false, false]);
    assert_eq!(stepper.current(), Some((0, 1)));
    let variables = stepper.kernel().shared_variables();
    assert!(variables.iter().any(|variable| variable.name.ends_with("totals")), "{variables:?}");
    // Its last lane wrote its transition before.
    assert_eq!(stepper.shared(0).iter().filter(|word| word.is_some()).count(), 2);
}

#[test]
fn a_trace_of_a_part_is_that_part_of_the_whole() {
    let (mut stepper, _) = ROWS.stepper();
    let all = stepper.len();
    let mut whole = Trace::new(1 << 20);
    stepper.trace(0..all, &mut whole);
    let middle = all / 2;
    let mut parts = [Trace::new(1 << 20), Trace::new(1 << 20)];
    stepper.trace(middle..all, &mut parts[1]);
    stepper.trace(0..middle, &mut parts[0]);
    assert_eq!(stepper.position(), middle);
    let joined = [&parts[0].events[..], &parts[1].events[..]].concat();
    assert!(joined == whole.events);
    assert!(whole.events.iter().any(|event| matches!(event.what, What::Barrier)));
}

/// Registers go by the names of the PTX, and a value shows where it is written.
#[test]
fn registers_have_names() {
    let source = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry k(.param .u64 a)
        {
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b32 %alone;
            .reg .b64 %rd<2>;
            mov.u32 %r1, %tid.x;
            add.s32 %alone, %r1, 5;
            setp.gt.s32 %p1, %alone, 20;
            ld.param.u64 %rd1, [a];
            @%p1 st.global.u32 [%rd1+4], %alone;
            ret;
        }";
    let module = Module::parse_named(source).unwrap();
    let kernel = module.kernel("k").unwrap();
    assert_eq!(kernel.writes(1), Some("%alone"));
    assert_eq!((kernel.writes(4), kernel.instruction(2).1), (None, "setp.gt.s32"));
    let memory = Memory::new(1 << 20);
    let arguments = memory.allocate("a", 4).unwrap().to_le_bytes();
    let launch = Launch::new(kernel, [1; 3], [32, 1, 1], &arguments);
    let mut stepper = Stepper::new(launch, memory, false).unwrap();
    // The last step is the one that the report is about.
    let report = stepper.result().as_ref().unwrap_err();
    assert_eq!((report.kind, report.lanes), (ReportKind::OutOfBounds, u32::MAX << 16));
    assert_eq!((stepper.len(), stepper.position()), (5, 5));
    stepper.seek(3);
    let registers = stepper.registers(0, 0);
    let names: Vec<&str> = registers.iter().map(|register| &*register.name).collect();
    assert_eq!(names, ["%alone", "%p1"]);
    assert_eq!(registers[0].values, Values::Words(std::array::from_fn(|lane| lane as u32 + 5)));
    assert_eq!(registers[1].values, Values::Mask(u32::MAX << 16));
    stepper.seek(4);
    assert_eq!(stepper.steps()[4].active, u32::MAX << 16);
}

/// A stepper saves moments in between, and counts from each of them. The bound is that of the whole
/// launch.
#[test]
fn an_endless_loop_ends_at_the_bound() {
    let mut endless = Bench::new("L: add.s32 %r5, %r5, 1; bra L;");
    endless.setup.instructions = 20_000;
    let report = endless.stepped(false).unwrap_err();
    assert_eq!(report, endless.run().unwrap_err());
    let message = "is over the launch's bound of 20000 instructions, all of which are used up";
    assert_eq!(report.message, message);
}
