//! The tests of groups on real GPUs, with NCCL: on two of them, and on as many more as exist.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use super::recurrence::{bits, hold_over_tails, judge, take_turns};
use half::bf16;
use linrec::contract::{Domain, Table};
use linrec::device::{
    Choice, Device, ForwardOptions, Group, GroupEngine, Recurrence, Split, Storage, Way,
};
use num_complex::Complex;

/// Returns groups of 2, 4, 8 … GPUs.
///
/// # Panics
///
/// If fewer than two GPUs exist.
fn groups() -> impl Iterator<Item = (usize, Group)> {
    let gpus = Device::gpus();
    assert!(gpus.len() > 1, "this test needs two GPUs, and here are {}", gpus.len());
    let sizes = (1..).map(|power| 1_usize << power);
    let most = gpus.len();
    let group = move |size| (size, Group::from_devices(&gpus[..size]).expect("a group of them"));
    sizes.take_while(move |&size| size <= most).map(group)
}

const WAYS: [Way; 4] = [Way::Passes, Way::TailFirst, Way::Mailboxes, Way::TailByMail];

#[test]
#[ignore = "needs several GPUs and NCCL"]
fn several_gpus_hold_the_contract() {
    fn hold<S: Storage>(drawn: usize) {
        for way in WAYS {
            for (_, group) in groups() {
                let engine = GroupEngine::<S>::new(group, Split::Steps).with_way(way);
                judge::<S>(&engine, Domain { table: Table::Drawn(drawn), ..engine.domain() });
            }
        }
        for (_, group) in groups() {
            let engine = GroupEngine::<S>::new(group, Split::Rows);
            judge::<S>(&engine, Domain { table: Table::Drawn(drawn), ..engine.domain() });
        }
    }
    hold::<f32>(60);
    hold::<f64>(20);
    hold::<bf16>(20);
    hold::<Complex<f32>>(20);
}

#[test]
#[ignore = "needs several GPUs and NCCL"]
fn several_gpus_look_for_tails() {
    for way in [Way::TailFirst, Way::TailByMail] {
        for (size, group) in groups() {
            let engine = GroupEngine::<f32>::new(group, Split::Steps).with_way(way);
            hold_over_tails(&engine, size * 40_000);
        }
    }
}

#[test]
#[ignore = "needs several GPUs and NCCL"]
fn several_gpus_have_the_bits_of_emulated_devices() {
    for (size, group) in groups() {
        let kernel: linrec::kernels::KernelChoice = "pipe:8x64:0".parse().expect("it is one");
        let emulated = Group::from_devices(&Device::emulated(size)).expect("there are devices");
        let here = GroupEngine::<f32>::by(emulated, Split::Steps, kernel).with_pieces(8 * size);
        let here = bits::<f32>(&here, 3, 640 * size);
        let there = |group| GroupEngine::<f32>::by(group, Split::Steps, kernel);
        assert!(bits::<f32>(&there(group).with_pieces(8 * size), 3, 640 * size) == here, "{size}");
        // Without mail: the coefficients do not fade.
        let gpus = Group::from_devices(&Device::gpus()[..size]).expect("they are a group");
        let gathered = there(gpus).with_pieces(8 * size).with_way(Way::TailFirst);
        assert!(bits::<f32>(&gathered, 3, 640 * size) == here, "{size}, gathered");
    }
}

/// Returns a group of all GPUs, in their order or in the opposite one.
fn all_gpus(is_reversed: bool) -> Group {
    let mut gpus = Device::gpus();
    if is_reversed {
        gpus.reverse();
    }
    Group::through_host(&gpus).expect("there are devices")
}

/// For a block for each sequence, for blocks that share sequences, and for one long sequence.
const SHAPES: [(usize, usize); 3] = [(3000, 4096), (5, 1 << 18), (1, 1 << 20)];

#[test]
#[ignore = "needs several GPUs and NCCL"]
fn groups_in_opposite_orders_take_turns_on_several_gpus() {
    for shape in SHAPES {
        take_turns(all_gpus, 40, shape);
    }
}

/// A chain of launches in another stream keeps all multiprocessors of each GPU busy.
#[test]
#[ignore = "needs several GPUs and NCCL"]
fn other_work_makes_passes_late_on_several_gpus() {
    let is_over = AtomicBool::new(false);
    let keep_busy = |device: Device| -> Result<(), linrec::Error> {
        let (shape, recurrence) =
            ((4096, 16_384), Recurrence::<f32>::new(&device, Choice::Fastest)?);
        let stream = device.new_stream()?;
        let ones = device.upload(&vec![1.0_f32; shape.0 * shape.1])?;
        let mut outputs = device.zeros(shape.0 * shape.1)?;
        while !is_over.load(Relaxed) {
            for _ in 0..50 {
                let options = ForwardOptions { stream: Some(&stream), ..Default::default() };
                recurrence.forward_into(&ones, &ones, &mut outputs, shape, options)?;
            }
            stream.synchronize()?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let keep_busy = &keep_busy;
        let busy: Vec<_> = Device::gpus()
            .into_iter()
            .map(|device| scope.spawn(move || keep_busy(device)))
            .collect();
        let passes = scope.spawn(|| SHAPES.map(|shape| take_turns(all_gpus, 10, shape)));
        let passes = passes.join();
        is_over.store(true, Relaxed);
        for thread in busy {
            thread.join().expect("no panic").expect("the neighbour works");
        }
        passes.expect("both groups go on");
    });
}

/// Short arrays and long ones: recurrences send short messages in another way.
#[test]
#[ignore = "needs several GPUs and NCCL"]
fn arrays_go_from_gpu_to_gpu() {
    for (size, group) in groups() {
        for len in [1_usize, 31, 1 << 20, (1 << 22) + 3] {
            let of = |rank: usize| (0..len).map(move |index| index.wrapping_mul(rank + 1) as u32);
            let checked = group.run(|rank| {
                let (number, device) = (rank.number(), rank.device());
                let mut mine = device.upload(&of(number).collect::<Vec<_>>())?;
                let mut all = device.allocate::<u32>(len * size)?;
                rank.all_gather(&mine, &mut all)?;
                assert!(all.download()?.into_iter().eq((0..size).flat_map(of)), "{size}: {len}");
                let (next, before) = ((number + 1) % size, (number + size - 1) % size);
                let mut received = device.allocate::<u32>(len)?;
                // One after the other, so that no rank sends while all wait.
                if number > 0 {
                    rank.receive(&mut received, before)?;
                }
                rank.send(&mine, next)?;
                if number == 0 {
                    rank.receive(&mut received, before)?;
                }
                assert!(received.download()?.into_iter().eq(of(before)), "{size}: {len}");
                rank.broadcast(&mut mine, size - 1)?;
                assert!(mine.download()?.into_iter().eq(of(size - 1)), "{size}: {len}");
                Ok(())
            });
            checked.expect("all arrive");
        }
    }
}

#[test]
#[ignore = "needs several GPUs and NCCL"]
fn a_rank_that_fails_ends_the_others_on_several_gpus() {
    for (size, group) in groups() {
        let failed = group.run(|rank| {
            if rank.number() == 1 {
                rank.device().allocate::<f32>(3)?.upload(&[1.0])?; // of the wrong length
            }
            rank.barrier()
        });
        let error = failed.expect_err("rank 1 fails").to_string();
        assert!(error.contains("shape mismatch in upload"), "{size}: {error}");
    }
}
