//! The operations of ranks, and their ends if a rank does not take part.
//!
//! Every collective operation is tested for several numbers of ranks. Then ranks fail, panic, end
//! early, come too late or call something else; the tests assert the error of every rank, and that
//! no rank waits longer than it has to. All ranks are threads with emulated devices. Ranks
//! that are processes are tested in `processes`.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::{SIZES, emulated};
use linrec::Error;
use linrec::device::{Device, Group, GroupRecurrence, Rank, Split, Way};

/// Longer than any rank waits if a failure is noticed as it should be.
const LONG: Duration = Duration::from_secs(600);
/// Long enough for work that takes no time.
const SHORT: Duration = Duration::from_millis(300);

#[test]
fn every_rank_has_all_arrays_in_their_order() {
    for size in SIZES {
        let group = emulated(size);
        let all = group.run(|rank| {
            let number = rank.number() as f64;
            let mine = rank.device().upload(&[number, 10.0 * number, -1.0])?;
            let mut all = rank.device().allocate(3 * size)?;
            for _ in 0..3 {
                all.poison()?;
                rank.all_gather(&mine, &mut all)?;
            }
            rank.barrier()?;
            all.download()
        });
        let one: Vec<f64> =
            (0..size).flat_map(|rank| [rank as f64, 10.0 * rank as f64, -1.0]).collect();
        assert_eq!(all, Ok(vec![one; size]));
    }
}

#[test]
fn arrays_are_broadcast_and_sent_around_the_ring() {
    for size in SIZES {
        let group = emulated(size);
        let seen = group.run(|rank| {
            let mut array = rank.device().upload(&[rank.number() as u32; 5])?;
            rank.broadcast(&mut array, size - 1)?;
            let received = array.download()?;
            // Around the ring, twice, with two arrays in a row.
            let (next, last) = ((rank.number() + 1) % size, (rank.number() + size - 1) % size);
            if size > 1 {
                for turn in 0..2 {
                    for number in [7 * turn, 7 * turn + 1] {
                        let mine = rank.device().upload(&[number + rank.number()])?;
                        rank.send(&mine, next)?;
                    }
                    for number in [7 * turn, 7 * turn + 1] {
                        let mut received = rank.device().allocate::<usize>(1)?;
                        rank.receive(&mut received, last)?;
                        assert_eq!(received.download()?, [number + last]);
                    }
                }
            }
            Ok(received)
        });
        assert_eq!(seen, Ok(vec![vec![size as u32 - 1; 5]; size]));
    }
}

#[test]
fn a_barrier_waits_for_all_ranks() {
    for size in SIZES {
        let arrived = AtomicUsize::new(0);
        let seen = emulated(size).run(|rank| {
            thread::sleep(Duration::from_millis(rank.number() as u64));
            arrived.fetch_add(1, Relaxed);
            rank.barrier()?;
            Ok(arrived.load(Relaxed))
        });
        assert_eq!(seen, Ok(vec![size; size]));
    }
}

/// Runs failing work; returns each rank's error and the group's. Nothing may wait.
fn failing(
    group: Group,
    work: impl Fn(&Rank) -> Result<(), Error> + Sync,
) -> (Vec<String>, String) {
    let errors: Vec<_> = (0..group.size()).map(|_| std::sync::Mutex::new(None)).collect();
    let start = Instant::now();
    let all = group.run(|rank| {
        let outcome = work(rank);
        *errors[rank.number()].lock().unwrap() = outcome.as_ref().err().map(Error::to_string);
        outcome
    });
    assert!(start.elapsed() < LONG / 2);
    let errors = errors.into_iter().map(|error| error.into_inner().unwrap().unwrap_or_default());
    (errors.collect(), all.expect_err("something is wrong").to_string())
}

#[test]
fn a_rank_that_fails_ends_all() {
    for size in &SIZES[1..] {
        let (errors, all) = failing(emulated(*size).with_deadline(LONG), |rank| {
            if rank.number() == 1 {
                rank.device().allocate::<f32>(3)?.upload(&[1.0])?; // of the wrong length
            }
            rank.barrier()
        });
        assert_eq!(all, "shape mismatch in upload: buffer [3], values [1]");
        for (rank, error) in errors.iter().enumerate().filter(|(rank, _)| *rank != 1) {
            let expected =
                format!("rank {rank} of {size}: meeting the other ranks: rank 1 failed: {all}");
            assert_eq!(*error, expected);
        }
    }
}

#[test]
fn a_rank_that_panics_ends_all() {
    for size in SIZES {
        let last = size - 1;
        let result = emulated(size).with_deadline(LONG).run(|rank| {
            assert!(rank.number() != last, "of rank {last}");
            rank.barrier()?;
            rank.barrier()
        });
        let error = result.unwrap_err().to_string();
        assert_eq!(error, format!("rank {last} of {size}: panicked: of rank {last}"));
    }
}

#[test]
fn a_rank_that_ends_early_is_not_waited_for() {
    for size in &SIZES[1..] {
        for way in 0..4 {
            let (errors, _) = failing(emulated(*size).with_deadline(LONG), |rank| {
                let mut array = rank.device().upload(&[1.0_f32])?;
                match (rank.number(), way) {
                    (0, _) => Ok(()),
                    (_, 0) => rank.barrier(),
                    (_, 1) => rank.broadcast(&mut array, 0),
                    (_, 2) => rank.receive(&mut array, 0),
                    (_, _) => (0..).try_for_each(|_| {
                        thread::yield_now();
                        rank.send(&array, 0)
                    }),
                }
            });
            for error in &errors[1..] {
                assert!(error.contains("rank 0 has ended, and takes no part"), "{way}: {error}");
            }
        }
    }
}

#[test]
fn no_rank_waits_longer_than_the_deadline() {
    for size in &SIZES[1..] {
        for way in 0..3 {
            let group = emulated(*size).with_deadline(SHORT);
            let start = Instant::now();
            let result = group.run(|rank| {
                let mut array = rank.device().upload(&[1.0_f32])?;
                match (rank.number(), way) {
                    // Long enough that all others have given up. It ends, as this thread is joined.
                    (0, _) => {
                        thread::sleep(3 * SHORT);
                        rank.barrier()
                    }
                    (_, 0) => rank.barrier(),
                    (_, 1) => rank.broadcast(&mut array, 0),
                    (_, _) => rank.receive(&mut array, 0),
                }
            });
            assert!(start.elapsed() < LONG);
            let error = result.unwrap_err().to_string();
            assert!(error.contains("rank 0 did not come in time"), "{error}");
        }
    }
}

#[test]
fn ranks_that_disagree_get_an_error() {
    for size in &SIZES[1..] {
        let (errors, _) = failing(emulated(*size).with_deadline(LONG), |rank| {
            let len = if rank.number() == 0 { 5 } else { 4 };
            let mine = rank.device().upload(&vec![1.0_f32; len])?;
            rank.all_gather(&mine, &mut rank.device().allocate(len * rank.size())?)
        });
        assert!(
            errors[0].contains("ranks disagree: `all_gather of 5 x 4 bytes` here"),
            "{errors:?}"
        );
        for error in &errors[1..] {
            assert!(error.contains("`all_gather of 5 x 4 bytes` on rank 0"), "{error}");
        }
        let (errors, _) = failing(emulated(*size).with_deadline(LONG), |rank| {
            let mut array = rank.device().upload(&[1.0_f32])?;
            if rank.number() == 0 { rank.barrier() } else { rank.broadcast(&mut array, 0) }
        });
        assert!(errors.iter().all(|error| error.contains("ranks disagree: `")), "{errors:?}");
    }
}

#[test]
fn ranks_that_disagree_on_shapes_get_an_error() {
    for size in &SIZES[1..] {
        let (errors, all) = failing(emulated(*size).with_deadline(LONG), |rank| {
            let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps);
            let shape = if rank.number() == 0 { (2, 64) } else { (2, 72) };
            let len = recurrence.part(shape)?.len();
            let ones = rank.device().upload(&vec![1.0; len])?;
            let mut outputs = rank.device().allocate(len)?;
            recurrence.forward_into(&ones, &ones, &mut outputs, shape, Default::default())?;
            Ok(())
        });
        assert!(errors.iter().all(|error| error.contains("ranks disagree: `")), "{errors:?}");
        assert!(all.contains("ranks disagree: `forward of f32 [2, "), "{all}");
        assert!(all.contains("[2, 64]") && all.contains("[2, 72]"), "{all}");
    }
}

#[test]
fn a_receiver_reports_an_array_of_another_length() {
    let (errors, all) = failing(emulated(2).with_deadline(LONG), |rank| match rank.number() {
        0 => rank.send(&rank.device().upload(&[1.0_f32; 3])?, 1),
        _ => rank.receive(&mut rank.device().allocate::<f32>(2)?, 0),
    });
    assert_eq!(all, "rank 1 of 2: receive: there are 12 bytes for an array of 8");
    assert_eq!(errors[0], "");
}

#[test]
fn a_missing_receive_is_reported() {
    let (errors, all) = failing(emulated(3).with_deadline(LONG), |rank| {
        let mut array = rank.device().upload(&[1.0_f32])?;
        match rank.number() {
            0 => (0..3).try_for_each(|_| rank.send(&array, 2)),
            1 => Ok(()),
            _ => rank.receive(&mut array, 0),
        }
    });
    assert!(errors.iter().all(|error| error.is_empty() || error.contains("rank 2 has ended")));
    let sent = errors[0].is_empty();
    let words = if sent {
        "rank 2 has ended without receiving arrays that rank 0 has sent"
    } else {
        "rank 2 has ended"
    };
    assert!(all.contains(words), "{all}");
    // The array does not stay for the next run.
    let group = emulated(2);
    let send = |rank: &Rank| match rank.number() {
        0 => rank.send(&rank.device().upload(&[1_u8])?, 1),
        _ => {
            thread::sleep(Duration::from_millis(50));
            Ok(())
        }
    };
    let error = group.run(send).unwrap_err().to_string();
    assert!(error.contains("an array that rank 0 has sent (1 in all)"), "{error}");
    assert_eq!(group.run(Rank::barrier), Ok(vec![(), ()]));
}

#[test]
fn a_rank_that_fails_within_a_pass_ends_all() {
    for size in &SIZES[1..] {
        let (errors, all) = failing(emulated(*size).with_deadline(LONG), |rank| {
            let shape = (4, 64 * rank.size());
            let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps);
            let ones = rank.device().upload(&[1.0; 4 * 64])?;
            // The last rank has an array of another device, which is noticed only when it is used.
            let elsewhere = Device::simt().upload(&[1.0; 4 * 64])?;
            let coeffs = if rank.number() + 1 == rank.size() { &elsewhere } else { &ones };
            let mut outputs = rank.device().allocate(4 * 64)?;
            recurrence.forward_into(&ones, coeffs, &mut outputs, shape, Default::default())?;
            rank.barrier()
        });
        assert!(errors.iter().all(|error| !error.is_empty()), "{errors:?}");
        assert!(all.contains("is on"), "{all}");
    }
}

#[test]
fn ranks_that_disagree_on_the_way_get_an_error() {
    let (errors, _) = failing(emulated(2).with_deadline(LONG), |rank| {
        let way = if rank.number() == 0 { Way::Passes } else { Way::TailFirst };
        let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps).with_way(way);
        let ones = rank.device().upload(&[1.0; 64])?;
        let mut outputs = rank.device().allocate(64)?;
        recurrence.forward_into(&ones, &ones, &mut outputs, (2, 64), Default::default())?;
        Ok(())
    });
    for error in errors {
        assert!(error.contains(", passes") && error.contains(", tail first"), "{error}");
    }
}

#[test]
fn a_rank_out_of_range_is_refused() {
    let group = emulated(2);
    let results = group.run(|rank| {
        let mut array = rank.device().upload(&[1.0_f32])?;
        let mut three = rank.device().allocate(3)?;
        let refused = [
            rank.send(&array, 2).unwrap_err(),
            rank.receive(&mut array, rank.number()).unwrap_err(),
            rank.broadcast(&mut array, 2).unwrap_err(),
            rank.all_gather(&array, &mut three).unwrap_err(),
        ];
        // None of these has moved anything, so the ranks can still work together.
        rank.barrier()?;
        Ok(refused.map(|error| error.to_string()))
    });
    let [send, receive, broadcast, gather] = &results.unwrap()[1];
    assert_eq!(send, "rank 1 of 2: send: there is no rank 2, the last is 1");
    assert_eq!(receive, "rank 1 of 2: receive: rank 1 is this one");
    assert_eq!(broadcast, "rank 1 of 2: broadcast: there is no rank 2, the last is 1");
    assert_eq!(gather, "shape mismatch in all_gather: mine [1], all [3]");
}

#[test]
fn a_group_needs_a_device_and_may_run_again_after_a_failure() {
    assert!(Group::from_devices(&[]).is_err());
    let group = Group::through_host(&[Device::simt(), Device::simt()]).unwrap();
    assert!(group.run(|rank| rank.send(&rank.device().upload(&[1_u8])?, 7)).is_err());
    assert_eq!(group.run(|rank| rank.barrier().map(|()| rank.number())), Ok(vec![0, 1]));
}
