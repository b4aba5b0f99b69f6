//! Any kernel on any arguments gives counters or a report, and does nothing else.

use simt_fuzz::execution::{Outcome, corpus, execute, input};
use simt_fuzz::parser::Random;

#[test]
fn mutated_kernels_neither_panic_nor_escape() {
    let (corpus, mut random) = (corpus(), Random(1));
    let (mut ran, mut reported) = (0, std::collections::HashMap::new());
    for number in 0..RUNS {
        let (source, seed) = (input(&corpus, &mut random), random.draw());
        match std::panic::catch_unwind(|| execute(&source, &mut Random(seed))) {
            Ok(Outcome::Refused) => {}
            Ok(Outcome::Ran) => ran += 1,
            Ok(Outcome::Reported(kind)) => *reported.entry(kind).or_insert(0) += 1,
            Err(_) => {
                panic!("number {number} with seed {seed}:\n{}", String::from_utf8_lossy(&source))
            }
        }
    }
    // So that a change does not turn all of them away at the door.
    assert!(ran > RUNS / 100, "{ran} of {RUNS} ran: {reported:?}");
    assert!(reported.len() >= 8, "{reported:?}");
}

const RUNS: usize = 6_000;
