//! Streams and events.

use linrec::Error;
use linrec::device::{Device, Function, Stream};

use super::programs::SCALE;
use super::{assert_error, on_every_device};

const LEN: usize = 1 << 20;

fn double(device: &Device) -> Result<Function, Error> {
    device.module(SCALE)?.function("scale")
}

fn queue(
    function: &Function,
    stream: &Stream,
    values: &mut linrec::device::Buffer<f32>,
) -> Result<(), Error> {
    let len = values.len() as u32;
    let launch = function.launch(len.div_ceil(256), 256).arg(values).arg(2.0_f32).arg(len);
    launch.run(stream).map(drop)
}

#[test]
fn events_time_what_lies_between_them() {
    on_every_device(|device| {
        let (start, end, stream) = (device.event()?, device.event()?, device.stream());
        assert_error(start.elapsed_ms(&end), &["the first event has not been recorded"]);
        start.record(&stream)?;
        assert_error(start.elapsed_ms(&end), &["the second event has not been recorded"]);
        let mut values = device.upload(&vec![0.0; LEN])?;
        queue(&double(device)?, &stream, &mut values)?;
        end.record(&stream)?;
        let elapsed = start.elapsed_ms(&end)?;
        assert!(elapsed > 0.0, "{elapsed} ms");
        Ok(())
    });
}

#[test]
fn work_on_one_buffer_keeps_its_order_across_streams() {
    on_every_device(|device| {
        let function = double(device)?;
        let streams =
            [device.stream(), device.new_stream()?, device.new_stream()?, device.new_stream()?];
        let rounds = if device.is_simt() { 1 } else { 20 };
        for _ in 0..rounds {
            let mut values = device.allocate(LEN)?;
            values.upload(&vec![1.0_f32; LEN])?;
            for stream in streams.iter().cycle().take(10) {
                queue(&function, stream, &mut values)?;
            }
            assert_eq!(values.download()?, vec![1024.0; LEN]);
        }
        Ok(())
    });
}

#[test]
fn memory_is_not_reused_under_a_running_kernel() {
    on_every_device(|device| {
        let function = double(device)?;
        let (one, other) = (device.new_stream()?, device.new_stream()?);
        let rounds = if device.is_simt() { 1 } else { 50 };
        for _ in 0..rounds {
            let mut kept = device.upload(&vec![1.0_f32; LEN])?;
            let mut dropped = device.upload(&vec![1.0_f32; LEN])?;
            queue(&function, &one, &mut dropped)?;
            queue(&function, &one, &mut dropped)?;
            drop(dropped);
            // The kernels above are done with the memory that this gets.
            let mut next = device.upload(&vec![1.0_f32; LEN])?;
            queue(&function, &other, &mut next)?;
            queue(&function, &other, &mut kept)?;
            assert_eq!(next.download()?, vec![2.0; LEN]);
            assert_eq!(kept.download()?, vec![2.0; LEN]);
        }
        Ok(())
    });
}

#[test]
fn a_stream_outlives_its_handle_and_waits_for_events() {
    on_every_device(|device| {
        let function = double(device)?;
        let mut values = device.upload(&vec![1.0_f32; LEN])?;
        let (event, later) = (device.event()?, device.new_stream()?);
        later.wait(&event)?;
        let stream = device.new_stream()?;
        queue(&function, &stream, &mut values)?;
        event.record(&stream)?;
        drop(stream);
        later.wait(&event)?;
        later.synchronize()?;
        device.synchronize()?;
        assert_eq!(values.download()?, vec![2.0; LEN]);
        Ok(())
    });
}

#[test]
fn events_and_streams_of_other_devices_are_refused() {
    on_every_device(|device| {
        for other in linrec::device::under_test() {
            if other != *device {
                let (here, there) = (device.event()?, other.event()?);
                let there_label = format!("is on {}", other.label());
                assert_error(here.record(&other.stream()), &["the stream", &there_label]);
                assert_error(device.stream().wait(&there), &["the event", &there_label]);
                assert_error(here.elapsed_ms(&there), &["the second event", &there_label]);
            }
        }
        Ok(())
    });
}
