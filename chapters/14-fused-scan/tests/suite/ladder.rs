//! The rungs on every device.

use ch14_fused_scan::counts::Counted;
use ch14_fused_scan::ladder::{Arrays, Kernel, Rung};
use ch14_fused_scan::life::{self, Act};
use ch14_fused_scan::problem::{Problem, Sizes, worst};
use linrec::device::{Device, Exponential, SelectiveScan, under_test};
use linrec::simt::Class;

fn sizes(batch: usize, channels: usize, len: usize) -> Sizes {
    Sizes { batch, channels, len }
}

#[test]
fn every_rung_is_within_its_bound() {
    for device in under_test() {
        for rung in Rung::ALL {
            let kernel = Kernel::new(&device, rung).unwrap();
            for (sizes, slow) in [
                (sizes(2, 3, 100), false),
                (sizes(1, 70, 36), true),
                (sizes(1, 2, 1000), true),
                (sizes(3, 65, 4), false),
                (sizes(1, 1, 33), true),
                (sizes(1, 5, 1), false),
            ] {
                let problem = Problem::draw(sizes, slow, sizes.len as u64);
                let computed = kernel.compute(&problem);
                if rung.needs_vectors() && sizes.len % 4 > 0 {
                    let error = computed.unwrap_err().to_string();
                    assert!(error.contains(rung.name()) && error.contains("multiple"), "{error}");
                    continue;
                }
                let share = worst(&computed.unwrap().0, &problem.outputs(rung.order(sizes.len)));
                assert!(share <= 1.0, "{rung:?} {sizes:?} on {}: {share}", device.label());
            }
        }
    }
}

/// The kernel as it is launched here is the library's.
#[test]
fn the_last_rungs_have_the_bits_of_the_library() {
    let sizes = sizes(2, 70, 77);
    let problem = Problem::draw(sizes, false, 7);
    for device in under_test() {
        for (rung, exponential) in
            [(Rung::Shipped, Exponential::Fast), (Rung::Exact, Exponential::Exact)]
        {
            let (out, _) = Kernel::new(&device, rung).unwrap().compute(&problem).unwrap();
            let arrays = Arrays::upload(&device, &problem).unwrap();
            let (inputs, shape) = arrays.for_the_library();
            let mut theirs = device.allocate(sizes.elements()).unwrap();
            let scan = SelectiveScan::<f32>::new(&device, exponential);
            scan.forward_into(&inputs, &mut theirs, shape, Default::default()).unwrap();
            let theirs: Vec<f32> = theirs.download().unwrap();
            let bits = |out: &[f32]| out.iter().map(|out| out.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&out), bits(&theirs), "{rung:?}");
        }
    }
}

#[test]
fn the_library_reads_each_byte_once_and_a_scan_reads_shared_ones_again_for_each_channel() {
    let problem = Problem::draw(sizes(1, 64, 128), false, 9);
    for (rung, times) in [(Rung::BlockScan, 64), (Rung::Lane, 2), (Rung::Shipped, 1)] {
        let counted = Counted::of(rung, &problem).unwrap();
        for array in &counted.arrays {
            assert_eq!(array.touched, array.bytes, "{rung:?} {array:?}");
            let times = match array.name {
                "B" | "C" => times,
                "u" | "delta" | "z" | "out" => 1,
                _ => continue,
            };
            assert_eq!(array.asked, times * array.bytes, "{rung:?} {array:?}");
        }
        assert!(counted.class(Class::Special) > 1.0);
    }
}

#[test]
fn an_array_in_one_piece_computes_the_same() {
    let problem = Problem::draw(sizes(1, 64, 64), false, 10);
    let device = Device::simt();
    let kernel = Kernel::new(&device, Rung::Quad).unwrap();
    let arrays = Arrays::in_one_piece(&device, &problem).unwrap();
    let mut out = device.allocate(problem.sizes.elements()).unwrap();
    kernel.launch(&arrays, &mut out, None).unwrap();
    assert_eq!(out.download().unwrap(), kernel.compute(&problem).unwrap().0);
}

#[test]
fn a_tile_is_sent_made_ready_walked_and_stored_in_turns() {
    let deeds = life::of(6).unwrap();
    for tile in 0..6 {
        let turn = |act| {
            let of = deeds.iter().filter(|deed| (deed.tile, deed.act) == (tile, act));
            let turns: Vec<i64> = of.map(|deed| deed.turn).collect();
            assert_eq!(turns.len(), 1, "{act:?} of tile {tile}: {turns:?}");
            turns[0] - tile as i64
        };
        assert_eq!(Act::ALL.map(turn), [-2, -1, 0, 1], "tile {tile}");
    }
}
