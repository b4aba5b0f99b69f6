//! The chapter's ways of cutting rows, over several numbers of ranks.

use ch17_several_gpus::by_hand::{ByHand, stretch};
use ch17_several_gpus::mailbox::Mailboxes;
use linrec::Element;
use linrec::contract::{self, Domain};
use linrec::device::{Device, Group, Storage};
use num_complex::Complex;

const SIZES: [usize; 5] = [1, 2, 3, 4, 8];

fn by_hand<T: Storage<Accum = T> + Element>(ranks: usize, max_len: usize) {
    let engine = ByHand::new(Group::from_devices(&Device::emulated(ranks)).unwrap());
    let domain = Domain {
        max_len,
        levels: |len| 2 * Domain::tree_levels(len),
        backward: false,
        reverse: false,
        log_coeffs: false,
        ..Domain::default()
    };
    let report = contract::run::<T>(&engine, &domain.as_asked());
    println!("{report}");
    assert!(report.passed(), "{report}");
}

#[test]
fn rows_cut_by_hand_hold_the_contract() {
    for ranks in SIZES {
        by_hand::<f32>(ranks, 1100);
    }
    by_hand::<f64>(3, 400);
    by_hand::<Complex<f32>>(3, 400);
    by_hand::<Complex<f64>>(3, 400);
}

#[test]
fn mailboxes_hold_the_contract() {
    for ranks in SIZES {
        let engine = Mailboxes::new(ranks).unwrap();
        let domain = Domain { max_len: 1500, ..engine.domain() };
        let report = contract::run::<f32>(&engine, &domain.as_asked());
        println!("{report}");
        assert!(report.passed(), "{report}");
    }
}

#[test]
fn every_step_is_in_one_stretch() {
    for ranks in SIZES {
        for seq_len in [0, 1, 2, 7, 8, 1000] {
            let steps: Vec<usize> =
                (0..ranks).flat_map(|rank| stretch(seq_len, rank, ranks)).collect();
            assert_eq!(steps, (0..seq_len).collect::<Vec<_>>());
        }
    }
}
