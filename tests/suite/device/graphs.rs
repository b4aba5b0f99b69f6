//! Graphs: launches recorded once and replayed.
//!
//! A replay gives the bits of the launches, keeps everything that it needs, and keeps its order
//! with other work on the same buffers. Everything that a graph does not repeat is refused inside
//! of a recording. The numbers in the arrays are such that an element from a wrong place shows. The
//! calls of a driver that fail are in `driver`.

use linrec::Error;
use linrec::device::{
    BackwardOptions, Buffer, Choice, Device, ForwardOptions, Function, Graph, Launched, Recurrence,
    Stream,
};

use super::programs::SCALE;
use super::{assert_error, on_every_device};

const LEN: usize = 1 << 16;

fn scale(device: &Device) -> Result<Function, Error> {
    device.module(SCALE)?.function("scale")
}

fn double(
    function: &Function,
    stream: &Stream,
    values: &mut Buffer<f32>,
) -> Result<Launched, Error> {
    let len = values.len() as u32;
    function.launch(len.div_ceil(256), 256).arg(values).arg(2.0_f32).arg(len).run(stream)
}

/// Numbers in [0.5, 1); neighbours differ.
fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let mixed = |i: u32| (i ^ seed).wrapping_mul(2_654_435_761) >> 9;
    (0..len as u32).map(|i| 0.5 + mixed(i) as f32 / (1 << 24) as f32).collect()
}

/// Two passes forward, the second over what the first wrote, and one backward.
struct Chain {
    recurrence: Recurrence<f32>,
    shape: (usize, usize),
    inputs: Buffer<f32>,
    coeffs: Buffer<f32>,
    once: Buffer<f32>,
    twice: Buffer<f32>,
    last: Buffer<f32>,
    d_inputs: Buffer<f32>,
    d_coeffs: Buffer<f32>,
}

impl Chain {
    fn new(device: &Device) -> Result<Chain, Error> {
        let shape = (7, 333);
        let len = shape.0 * shape.1;
        let fresh = || device.allocate(len);
        Ok(Chain {
            recurrence: Recurrence::new(device, Choice::Fastest)?,
            shape,
            inputs: fresh()?,
            coeffs: device.upload(&numbers(len, 1))?,
            once: fresh()?,
            twice: fresh()?,
            last: device.allocate(shape.0)?,
            d_inputs: fresh()?,
            d_coeffs: fresh()?,
        })
    }

    fn queue(&mut self, stream: &Stream) -> Result<(), Error> {
        let Chain { recurrence, shape, inputs, coeffs, once, twice, last, d_inputs, d_coeffs } =
            self;
        let stream = Some(stream);
        let options = ForwardOptions { stream, ..ForwardOptions::default() };
        recurrence.forward_into(inputs, coeffs, once, *shape, options)?;
        let options =
            ForwardOptions { stream, final_state: Some(last), ..ForwardOptions::default() };
        recurrence.forward_into(once, coeffs, twice, *shape, options)?;
        let options = BackwardOptions { stream, ..BackwardOptions::default() };
        recurrence.backward_into(once, coeffs, twice, d_inputs, d_coeffs, *shape, options)?;
        Ok(())
    }

    /// Uploads new inputs, and NaN everywhere else.
    fn reset(&mut self, seed: u32) -> Result<(), Error> {
        self.inputs.upload(&numbers(self.inputs.len(), seed))?;
        for buffer in self.results_mut() {
            buffer.poison()?;
        }
        Ok(())
    }

    fn results_mut(&mut self) -> [&mut Buffer<f32>; 5] {
        let Chain { once, twice, last, d_inputs, d_coeffs, .. } = self;
        [once, twice, last, d_inputs, d_coeffs]
    }

    fn bits(&mut self) -> Result<Vec<u32>, Error> {
        let mut bits = Vec::new();
        for buffer in self.results_mut() {
            bits.extend(buffer.download()?.into_iter().map(f32::to_bits));
        }
        Ok(bits)
    }
}

#[test]
fn replays_over_changed_inputs_give_the_bits_of_plain_calls() {
    on_every_device(|device| {
        let mut chain = Chain::new(device)?;
        chain.reset(10)?;
        let graph = device.record(|stream| chain.queue(stream))?;
        assert_eq!((graph.len(), graph.device()), (3, device));
        assert!(chain.bits()?.into_iter().all(|bits| bits == u32::MAX), "nothing has run");
        let mut seen = Vec::new();
        for seed in [11, 12] {
            chain.reset(seed)?;
            chain.queue(&device.stream())?;
            let plain = chain.bits()?;
            assert!(plain.iter().all(|&bits| f32::from_bits(bits).is_finite()));
            chain.reset(seed)?;
            graph.replay(&device.stream())?;
            assert!(chain.bits()? == plain, "other bits on {}", device.label());
            seen.push(plain);
        }
        assert!(seen[0] != seen[1], "the inputs have changed");
        Ok(())
    });
}

#[test]
fn recorded_launches_have_a_kernel_and_replays_have_counters() {
    on_every_device(|device| {
        let function = scale(device)?;
        let mut values = device.upload(&vec![1.0; LEN])?;
        let plain = double(&function, &device.stream(), &mut values)?;
        let graph = device.record(|stream| {
            assert!(double(&function, stream, &mut values)?.counters().is_none(), "not yet");
            double(&function, stream, &mut values).map(drop)
        })?;
        let replayed = graph.replay(&device.stream())?;
        assert_eq!(values.download()?, vec![8.0; LEN]);
        let instructions = |launched: &Launched| launched.counters().map(|all| all.instructions);
        assert_eq!(instructions(&replayed), instructions(&plain).map(|all| 2 * all));

        let auto = Recurrence::<f32>::new(device, Choice::Fastest)?;
        let inputs = device.upload(&[1.0; 12])?;
        let mut outputs = device.allocate(12)?;
        device.record(|stream| {
            let options = ForwardOptions { stream: Some(stream), ..ForwardOptions::default() };
            let launched = auto.forward_into(&inputs, &inputs, &mut outputs, (3, 4), options)?;
            assert!(launched.choice().is_some());
            Ok(())
        })?;
        Ok(())
    });
}

#[test]
fn a_graph_keeps_its_buffers_and_kernels() {
    on_every_device(|device| {
        let values = device.upload(&numbers(LEN, 1))?;
        let graph = {
            // The launches go through memory that has no handle any more.
            let recurrence = Recurrence::<f32>::new(device, Choice::Fastest)?;
            let (zeros, mut between) = (device.upload(&vec![0.0; LEN])?, device.allocate(LEN)?);
            let mut values = values.slice(..)?;
            let function = scale(device)?;
            device.record(|stream| {
                let options =
                    || ForwardOptions { stream: Some(stream), ..ForwardOptions::default() };
                recurrence.forward_into(&values, &zeros, &mut between, (1, LEN), options())?;
                double(&function, stream, &mut between)?;
                recurrence.forward_into(&between, &zeros, &mut values, (1, LEN), options())?;
                Ok(())
            })?
        };
        // Freed memory would be allocated again here, and written.
        let mut others = Vec::new();
        for _ in 0..4 {
            let mut other = device.allocate::<f32>(LEN)?;
            other.poison()?;
            others.push(other);
        }
        graph.replay(&device.stream())?;
        graph.replay(&device.stream())?;
        let expected: Vec<_> = numbers(LEN, 1).into_iter().map(|number| 4.0 * number).collect();
        assert_eq!(values.download()?, expected);
        for other in others {
            assert!(
                other.download()?.into_iter().all(f32::is_nan),
                "a replay wrote to others' memory"
            );
        }
        Ok(())
    });
}

#[test]
fn replays_keep_the_order_of_work_on_their_buffers() {
    on_every_device(|device| {
        let function = scale(device)?;
        let streams = [device.stream(), device.new_stream()?, device.new_stream()?];
        let rounds = if device.is_simt() { 1 } else { 20 };
        for _ in 0..rounds {
            let mut values = device.allocate(LEN)?;
            let graph = device.record(|stream| {
                double(&function, stream, &mut values)?;
                double(&function, stream, &mut values).map(drop)
            })?;
            values.upload(&vec![1.0_f32; LEN])?;
            for stream in &streams {
                graph.replay(stream)?;
                double(&function, &streams[1], &mut values)?;
            }
            // Work that is still queued is done before the copy.
            drop(graph);
            assert_eq!(values.download()?, vec![512.0; LEN]);
        }
        Ok(())
    });
}

#[test]
fn operations_that_graphs_cannot_repeat_are_errors() {
    on_every_device(|device| {
        let function = scale(device)?;
        let (event, before) = (device.event()?, device.event()?);
        before.record(&device.stream())?;
        let mut values = device.upload(&[1.0_f32])?;
        let nothing = device.record(|_| Ok(()))?;
        assert!(nothing.is_empty());
        let why = "not while launches are being recorded";
        let graph = device.record(|stream| {
            assert_error(values.upload(&[2.0]), &["uploading: ", why, "before the recording"]);
            assert_error(device.upload(&[2.0]), &["uploading", why]);
            assert_error(values.download(), &["downloading: ", why]);
            assert_error(values.zero(), &["filling a buffer: ", why]);
            assert_error(values.poison(), &["filling a buffer", why]);
            assert_error(device.synchronize(), &["waiting for the device: ", why]);
            assert_error(device.stream().synchronize(), &["waiting for a stream: ", why]);
            assert_error(before.record(&device.stream()), &["recording an event: ", why]);
            assert_error(device.stream().wait(&before), &["waiting for an event: ", why]);
            assert_error(before.elapsed_ms(&before), &["timing: ", why]);
            assert_error(nothing.replay(&device.stream()), &["replaying a graph: ", why]);
            assert_error(device.record(|_| Ok(())), &["recording: ", why]);
            let other = double(&function, &device.stream(), &mut values);
            assert_error(
                other,
                &["launching `scale`", "on another stream", "`Device::record` passes in"],
            );

            let only = "takes launches and nothing else";
            assert_error(stream.synchronize(), &["waiting for a stream", only]);
            assert_error(event.record(stream), &["recording an event", only]);
            assert_error(stream.wait(&before), &["waiting for an event", only]);
            assert_error(nothing.replay(stream), &["replaying a graph", only]);
            double(&function, stream, &mut values).map(drop)
        })?;
        // The refused operations have left nothing behind.
        assert_eq!((graph.len(), values.download()?), (1, vec![1.0]));
        graph.replay(&device.stream())?;
        nothing.replay(&device.stream())?;
        assert_eq!(values.download()?, [2.0]);
        Ok(())
    });
}

#[test]
fn a_failed_recording_ends() {
    on_every_device(|device| {
        let function = scale(device)?;
        let mut values = device.upload(&[1.0_f32, 2.0])?;
        let mut kept = None;
        let failed = device.record(|stream| {
            kept = Some(stream.clone());
            double(&function, stream, &mut values)?;
            // Found when it is recorded, and not when it is replayed.
            function.launch(1, 32).arg(&mut values).arg(2.0_f32).run(stream).map(drop)
        });
        assert_error(
            failed,
            &["launching `scale`", "2 arguments were given, and the kernel takes 3"],
        );
        let kept = kept.unwrap();
        assert_error(double(&function, &kept, &mut values), &["`scale`: the recording", "is over"]);
        assert_error(kept.synchronize(), &["takes launches and nothing else"]);

        let panicked = std::panic::catch_unwind(|| device.record(|_| panic!("on purpose")));
        assert!(panicked.is_err());
        values.upload(&[5.0, 6.0])?;
        double(&function, &device.stream(), &mut values)?;
        assert_eq!(values.download()?, [10.0, 12.0]);
        Ok(())
    });
}

#[test]
fn a_mistake_of_a_kernel_shows_when_it_is_replayed() {
    // On a GPU it might end the use of the device.
    let device = Device::simt();
    let function = scale(&device).unwrap();
    let [mut one, mut three] = [1, 1].map(|_| device.upload(&[1.0_f32; 32]).unwrap());
    let graph = device.record(|stream| {
        double(&function, stream, &mut one)?;
        function.launch(1, 64).arg(&mut one).arg(2.0_f32).arg(33_u32).run(stream)?;
        double(&function, stream, &mut three).map(drop)
    });
    assert_error(graph.unwrap().replay(&device.stream()), &["scale", "past the end of buffer"]);
    assert_eq!(three.download().unwrap(), [1.0; 32], "what follows has not run");
}

#[test]
fn traces_and_other_devices() {
    on_every_device(|device| {
        let function = scale(device)?;
        let mut values = device.upload(&[1.0_f32; 2])?;
        let mut trace = linrec::simt::Trace::new(1000);
        let traced = device.record(|stream| {
            let launch = function.launch(1, 32).arg(&mut values).arg(2.0_f32).arg(2_u32);
            launch.traced(&mut trace).run(stream).map(drop)
        });
        assert_error(traced, &["launching `scale`", "trace"]);
        for other in linrec::device::under_test() {
            if other != *device {
                let there = format!("is on {}", other.label());
                let graph =
                    device.record(|stream| double(&function, stream, &mut values).map(drop))?;
                assert_error(
                    graph.replay(&other.stream()),
                    &["replaying a graph: the stream", &there],
                );
                let mixed = other.record(|stream| double(&function, stream, &mut values).map(drop));
                assert_error(mixed, &["launching `scale`", "the stream", &there]);
            }
        }
        Ok(())
    });
}

#[test]
fn threads_may_share_a_graph() {
    fn shared<T: Send + Sync>() {}
    shared::<Graph>();
    on_every_device(|device| {
        let function = scale(device)?;
        let mut values = device.upload(&vec![1.0_f32; LEN])?;
        let graph = device.record(|stream| double(&function, stream, &mut values).map(drop))?;
        let rounds = 4;
        std::thread::scope(|scope| {
            let replay = || (0..rounds).try_for_each(|_| graph.replay(&device.stream()).map(drop));
            let threads = if device.is_simt() { 1 } else { 3 };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(replay)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap())
        })?;
        let doublings = if device.is_simt() { rounds } else { 3 * rounds };
        assert_eq!(values.download()?, vec![2.0_f32.powi(doublings); LEN]);
        Ok(())
    });
}
