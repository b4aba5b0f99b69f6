//! Waves and once by hand, and what traces say.

use bench::draw::near_one;
use ch12_one_long_sequence::kernel::{Kernel, Size, Watch, Way};
use ch12_one_long_sequence::shared_out::{self, AHEAD, SHORT, SharedOut};
use ch12_one_long_sequence::told::{Life, Places};
use linrec::device::Device;
use linrec::simt::Trace;

#[test]
fn every_grid_gives_the_bits_of_one_block_and_of_once() {
    let (inputs, coeffs) = near_one((1, 40 * SHORT + 100), 121);
    let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
    let bits = |way| {
        let kernel = SharedOut::new(way, SHORT).unwrap();
        let (outputs, _) = kernel.compute(x, c, None).unwrap();
        outputs.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let one = bits(shared_out::Way::Waves(1));
    for blocks in [2, 7, 132] {
        assert!(bits(shared_out::Way::Waves(blocks)) == one, "{blocks}");
    }
    for at_a_time in [1, 5, 100] {
        assert!(bits(shared_out::Way::Once(at_a_time)) == one, "once, {at_a_time} at a time");
    }
}

#[test]
fn a_tile_is_told_waves_before_it_is_stored() {
    let seq_len = 4 * 16 * SHORT;
    let (inputs, coeffs) = near_one((1, seq_len), 122);
    let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
    let waves = SharedOut::new(shared_out::Way::Waves(4), SHORT).unwrap();
    let mut trace = Trace::new(1 << 20);
    waves.compute(x, c, Some(&mut trace)).unwrap();
    assert_eq!(trace.left_out, 0);
    let life = Life::of(&trace, SHORT, Places::Groups);
    assert_eq!(life.told.len(), waves.tiles(seq_len));
    for told in life.told.iter().filter(|told| told.tile >= 4 * AHEAD && told.tile < 64) {
        assert_eq!(told.tile as u64 % 4, told.block);
        let stored = |tile| life.stored.iter().find(|one| one.1 == tile).unwrap().2;
        assert!(stored(told.tile) > told.turn);
        // The tile that is stored about then is one of some waves before.
        assert!(stored(told.tile - 4 * (AHEAD - 2)) <= stored(told.tile));
    }
}

#[test]
fn a_late_block_is_passed_by_where_one_looks_back_and_awaited_where_one_does_not() {
    let seq_len = 16 * Size::SHIPPED.steps();
    let (inputs, coeffs) = near_one((1, seq_len), 123);
    let (x, c) = (inputs.as_slice().unwrap(), coeffs.as_slice().unwrap());
    let mut delays = vec![0; 16];
    delays[3] = 3000;
    let life = |way| {
        let kernel = Kernel::new(&Device::simt(), way, Size::SHIPPED).unwrap();
        let mut trace = Trace::new(1 << 20);
        let watch = Watch { delays: Some(&delays), trace: Some(&mut trace), ..Watch::default() };
        kernel.compute(x, c, None, watch).unwrap();
        assert_eq!(trace.left_out, 0);
        Life::of(&trace, Size::SHIPPED.steps(), Places::Apart)
    };
    let (chained, decoupled) = (life(Way::Chained), life(Way::Decoupled));
    assert_eq!((chained.told.len(), decoupled.told.len()), (16, 32));
    // The late block finds a state when it looks at last, and the one behind it has looked past it.
    assert_eq!(decoupled.distances[&3], 1);
    assert!(decoupled.distances[&4] > 1);
    for block in 4..16 {
        assert!(chained.waited(block) > 10, "{block}");
        assert!(decoupled.waited(block) <= 2, "{block}");
    }
}
