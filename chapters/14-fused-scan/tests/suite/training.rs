//! Chapter 13's block with the fused scan inside.

use ch13_mamba::block::{Block, Config, Weights, engine};
use ch13_mamba::on_device::Scan;
use ch13_mamba::task::{Batch, Task};
use ch13_mamba::training::Plan;
use ch14_fused_scan::training::{Fused, compare};
use linrec::device::{Choice, Exponential, under_test};
use rand::SeedableRng;
use rand::rngs::StdRng;

const TASK: Task = Task { symbols: 3, asked: 2, most: 4, positions: 37 };

fn config(is_selective: bool) -> Config {
    Config {
        tokens: TASK.tokens(),
        answers: TASK.symbols,
        width: 5,
        channels: 7,
        states: 9,
        rank: 2,
        reach: 3,
        is_selective,
    }
}

fn block(is_selective: bool) -> (Block<f32>, Batch) {
    let weights = Weights::initial(&config(is_selective), 3).flat();
    let weights = Weights::from_flat(&config(is_selective), weights.view());
    let batch = TASK.draw(&mut StdRng::seed_from_u64(4), 5);
    (Block::new(config(is_selective), weights), batch)
}

/// Both are rounded: a loss of about one to some units in the last place of `f32`, and gradients to
/// some more.
#[test]
fn losses_and_gradients_are_those_of_chapter_13() {
    let all = under_test().into_iter().flat_map(|device| [(device.clone(), true), (device, false)]);
    for (device, is_selective) in all {
        let (block, batch) = block(is_selective);
        let unfused = Scan::<f32>::new(&device, Choice::FastestShipped).unwrap();
        for exponential in [Exponential::Fast, Exponential::Exact] {
            let fused = Fused::new(&device, exponential);
            let label = device.label();
            for (([one, other], gradients), what) in [
                (compare(&block, &batch, &engine(), &fused).unwrap(), "by the CPU"),
                (compare(&block, &batch, &unfused, &fused).unwrap(), "unfused"),
            ] {
                assert!((one - other).abs() < 1e-6, "{label}: {other}, and {one} {what}");
                assert!(gradients < 1e-5, "{label}: gradients differ by {gradients} {what}");
            }
        }
    }
}

/// The fused scan takes part in all of a training.
#[test]
fn a_training_ends_where_the_cpus_does() {
    let plan = Plan {
        task: TASK,
        config: config(true),
        batch: 3,
        steps: 5,
        rate: 0.01,
        every: 5,
        tested: 8,
    };
    let by_cpu = plan.train(7, &|| ()).unwrap();
    for device in under_test() {
        let fused = Fused::new(&device, Exponential::Exact);
        let trained = plan.train_by(&fused, 7, &|| ()).unwrap();
        let again = plan.train_by(&fused, 7, &|| ()).unwrap();
        let (expected, weights) = (by_cpu.block.weights.flat(), trained.block.weights.flat());
        let farthest = (&expected - &weights).iter().fold(0.0, |far: f64, d| far.max(d.abs()));
        assert!(farthest < 1e-4, "{}: weights differ by {farthest}", device.label());
        assert!(weights == again.block.weights.flat(), "{}: not twice the same", device.label());
        assert!(weights != Weights::<f64>::initial(&config(true), 7).flat());
    }
}
