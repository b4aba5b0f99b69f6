//! Launches whose blocks wait for each other.

use linrec::Error;
use linrec::device::{Buffer, Device, Function, Launch};
use linrec::simt::{ReportKind, Trace};

use super::programs::{NEXT_BLOCK, SCALE};
use super::{assert_error, on_every_device};

/// A grid whose blocks read what the next block wrote.
struct Ring {
    function: Function,
    blocks: u32,
    arrived: Buffer<u32>,
    numbers: Buffer<u32>,
    found: Buffer<u32>,
}

impl Ring {
    fn new(device: &Device, blocks: u32) -> Result<Ring, Error> {
        Ok(Ring {
            function: device.module(NEXT_BLOCK)?.function("next_block")?,
            blocks,
            arrived: device.zeros(1)?,
            numbers: device.allocate(blocks as usize)?,
            found: device.allocate(blocks as usize)?,
        })
    }

    /// Returns its launch, not yet cooperative.
    fn launch(&mut self, threads: u32, round: u32) -> Launch<'_> {
        let Ring { function, blocks, arrived, numbers, found } = self;
        function.launch(*blocks, threads).arg(arrived).arg(numbers).arg(found).arg(round)
    }

    /// Panics unless every block has found what the next wrote in this round.
    fn check(&self, round: u32) -> Result<(), Error> {
        let expected: Vec<u32> =
            (0..self.blocks).map(|block| 1000 * round + (block + 1) % self.blocks).collect();
        assert!(self.found.download()? == expected, "{} blocks, round {round}", self.blocks);
        Ok(())
    }
}

/// Runs on one thread: blocks that are not run together then begin one after the other has ended.
fn on_one_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(body)
}

#[test]
fn blocks_may_wait_for_each_other() {
    on_every_device(|device| {
        let stream = device.stream();
        let function = device.module(NEXT_BLOCK)?.function("next_block")?;
        // The most blocks by their threads and by their shared memory, and fewer.
        for (threads, shared) in [(1, 0), (96, 0), (1024, 0), (32, 40 << 10), (32, 100 << 10)] {
            let most = function.resident_blocks(threads, shared)?;
            assert!(most >= 1 && (!device.is_simt() || most == 8), "{most}");
            for blocks in [1, 2, most] {
                let mut ring = Ring::new(device, blocks)?;
                for round in [1, 2] {
                    ring.found.poison()?;
                    let launch = ring.launch(threads, round).shared(shared).cooperative();
                    let launched = on_one_thread(|| launch.run(&stream))?;
                    ring.check(round)?;
                    if let Some(counters) = launched.counters() {
                        assert_eq!(counters.blocks, u64::from(blocks));
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn replays_of_cooperative_launches_are_cooperative() {
    on_every_device(|device| {
        let function = device.module(NEXT_BLOCK)?.function("next_block")?;
        let most = function.resident_blocks(64, 50 << 10)?;
        let (mut one, mut other) = (Ring::new(device, most)?, Ring::new(device, most)?);
        let graph = device.record(|stream| {
            one.launch(64, 5).shared(50 << 10).cooperative().run(stream)?;
            other.launch(64, 6).shared(50 << 10).cooperative().run(stream)?;
            one.launch(64, 7).shared(50 << 10).cooperative().run(stream).map(drop)
        })?;
        for _ in 0..3 {
            one.found.poison()?;
            other.found.poison()?;
            on_one_thread(|| graph.replay(&device.stream()))?;
            one.check(7)?;
            other.check(6)?;
        }
        Ok(())
    });
}

#[test]
fn more_blocks_than_fit_are_refused_with_both_numbers() {
    on_every_device(|device| {
        let function = device.module(NEXT_BLOCK)?.function("next_block")?;
        let fit = if device.is_simt() { 8192 / 2 } else { function.resident_blocks(33, 1000)? };
        let mut ring = Ring::new(device, fit + 1)?;
        let parts = [
            format!("{}: launching `next_block`: a cooperative launch", device.label()),
            format!("the grid of [{0}, 1, 1] has {0} blocks, and {fit} fit,", fit + 1),
            String::from("of 33 threads and 1000 bytes of dynamic shared memory each"),
        ];
        let parts = parts.each_ref().map(String::as_str);
        let launch = ring.launch(33, 1).shared(1000).cooperative();
        assert_error(launch.run(&device.stream()), &parts);
        let recorded = device
            .record(|stream| ring.launch(33, 1).shared(1000).cooperative().run(stream).map(drop));
        assert_error(recorded, &parts);
        assert_eq!(ring.arrived.download()?, [0], "nothing ran");

        // The product of the limits of the axes passes 32 bits, and the blocks are still counted.
        let function = device.module(SCALE)?.function("scale")?;
        let mut values = device.upload(&[1.0_f32])?;
        let launch = function.launch((1 << 30, 1 << 15, 1 << 15), (2, 4, 8));
        let launch = launch.arg(&mut values).arg(2.0_f32).arg(1_u32).cooperative();
        let blocks = format!("has {} blocks", 1_u64 << 60);
        assert_error(launch.run(&device.stream()), &[&blocks, "of 64 threads"]);
        Ok(())
    });
}

#[test]
fn impossible_launches_are_errors() {
    on_every_device(|device| {
        let function = device.module(NEXT_BLOCK)?.function("next_block")?;
        let asking = "asking how many blocks of `next_block` fit at once: ";
        for (threads, shared, said) in [
            (0, 0, "a block has 1 to 1024 threads, not 0"),
            (1025, 0, "a block has 1 to 1024 threads, not 1025"),
            (32, 1 << 20, "1048576 bytes of shared memory beside the kernel's own 0 are too many"),
            (32, u32::MAX, "are too many; a block has"),
        ] {
            assert_error(
                function.resident_blocks(threads, shared),
                &[device.label(), asking, said],
            );
        }
        Ok(())
    });
}

/// More blocks than `resident_blocks`, a whole grid or a part of it, traced and bounded.
#[test]
fn the_emulator_takes_any_number_of_blocks() {
    let device = Device::simt();
    let stream = device.stream();
    let mut ring = Ring::new(&device, 300).unwrap();
    ring.launch(1, 4).cooperative().run(&stream).unwrap();
    ring.check(4).unwrap();

    let mut trace = Trace::new(1000);
    let mut ring = Ring::new(&device, 3).unwrap();
    ring.launch(32, 1).cooperative().traced(&mut trace).run(&stream).unwrap();
    ring.check(1).unwrap();
    assert!((0..3).all(|block| trace.events.iter().any(|event| event.block == block)));
}

/// A block waits for blocks that never come, because they are run later or not at all.
#[test]
fn the_emulator_reports_blocks_that_make_no_progress() {
    let device = Device::simt();
    let kind =
        |launch: Launch| match on_one_thread(|| launch.instructions(1 << 20).run(&device.stream()))
        {
            Err(Error::Kernel(report)) => report.kind,
            other => panic!("{other:?}"),
        };
    let ring = || Ring::new(&device, 4).unwrap();
    assert_eq!(kind(ring().launch(1, 1)), ReportKind::Instructions, "not cooperative");
    let part = kind(ring().launch(1, 1).cooperative().blocks(0..3));
    assert_eq!(
        part,
        ReportKind::Instructions,
        "each atomic operation writes, which looks like progress"
    );
}

#[test]
fn zeros_are_zero() {
    on_every_device(|device| {
        assert_eq!(device.zeros::<f32>(1000)?.download()?, [0.0; 1000]);
        assert_eq!(device.zeros::<u64>(0)?.download()?, Vec::<u64>::new());
        let function = device.module(SCALE)?.function("scale")?;
        let mut values = device.zeros::<f32>(32)?;
        let launch = function.launch(1, 32).arg(&mut values).arg(2.0_f32).arg(32_u32);
        launch.run(&device.stream())?;
        assert_eq!(values.download()?, [0.0; 32], "a kernel reads them");
        device.record(|_| {
            assert_error(device.zeros::<f32>(1), &["filling a buffer", "are being recorded"]);
            Ok(())
        })?;
        Ok(())
    });
}

/// A kernel that traps, as after finding an error; on a GPU it ends the use of the device.
#[test]
fn the_emulator_reports_the_line_of_a_trap() {
    const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry halt()\n{\n.reg .pred \
                       %p1; .reg .b32 %r<3>;\nmov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;\nmad.lo.u32 %r1, %r1, \
                       64, %r2;\nsetp.eq.u32 %p1, %r1, 101;\n@%p1 trap;\nret;\n}";
    let device = Device::simt();
    let function = device.module(PTX).unwrap().function("halt").unwrap();
    for launch in [function.launch(3, 64), function.launch(3, 64).cooperative()] {
        let found = launch.run(&device.stream());
        assert_error(found, &["halt at PTX line 10, block 1, warp 1, lane 5: ", "executes trap"]);
    }
}

/// Two launches with separate buffers; the blocks of each wait for each other.
#[test]
fn launches_side_by_side_take_turns() {
    let device = Device::simt();
    let function = device.module(NEXT_BLOCK).unwrap().function("next_block").unwrap();
    let [mut first, mut second] =
        [(); 2].map(|()| Ring { function: function.clone(), ..Ring::new(&device, 3).unwrap() });
    let launches = [first.launch(32, 1), second.launch(32, 1)];
    let launched = Launch::run_side_by_side(&launches).unwrap();
    assert_eq!(launched.len(), 2);
    assert!(launched.iter().all(|launched| launched.counters().unwrap().blocks == 3));
    first.check(1).unwrap();
    second.check(1).unwrap();
    assert_eq!(Launch::run_side_by_side(&[]).unwrap().len(), 0);
}

#[test]
fn launches_side_by_side_are_alike_and_on_one_device() {
    let devices = [Device::simt(), Device::emulated(1).remove(0)];
    let [mut here, mut there] = devices.map(|device| Ring::new(&device, 2).unwrap());
    let error = Launch::run_side_by_side(&[here.launch(32, 1), there.launch(32, 1)]).unwrap_err();
    assert!(error.to_string().contains("a launch is on simt:0; keep all on one device"), "{error}");
    let mut larger = Ring::new(&Device::simt(), 3).unwrap();
    larger.function = here.function.clone();
    let error = Launch::run_side_by_side(&[here.launch(32, 1), larger.launch(32, 1)]).unwrap_err();
    assert!(error.to_string().contains("another kernel, grid or memory"), "{error}");
}
