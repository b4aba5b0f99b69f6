//! The block: its gradient, its task, its training.

use ch04_gradient::differences::central_differences;
use ch13_mamba::block::{Block, Config, Weights, engine};
use ch13_mamba::task::Task;
use ch13_mamba::training::{Plan, loss_and_gradient};
use linrec::contract::Table;
use ndarray::{Array2, array};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SMALL: Task = Task { symbols: 3, asked: 2, most: 4, positions: 7 };

fn small(is_selective: bool) -> Config {
    Config {
        tokens: SMALL.tokens(),
        answers: SMALL.symbols,
        width: 3,
        channels: 4,
        states: 3,
        rank: 2,
        reach: 3,
        is_selective,
    }
}

#[test]
fn the_blocks_gradient_is_the_slope_of_its_loss() {
    let batch = SMALL.draw(&mut StdRng::seed_from_u64(1), 5);
    for is_selective in [true, false] {
        let config = small(is_selective);
        // Not where training starts: there some slopes are too small to be seen.
        let mut rng = StdRng::seed_from_u64(2);
        let mut weights = Weights::initial(&config, 3);
        weights.delta_bias.fill(0.0);
        let flat = weights.flat().mapv(|weight| weight + rng.random_range(-1.0..1.0));
        let weights = Weights::<f64>::from_flat(&config, flat.view());
        let (_, gradient) =
            loss_and_gradient(&engine(), &Block::new(config, weights.clone()), &batch).unwrap();
        let slopes = central_differences(weights.flat().view(), 1e-5, |flat| {
            let block = Block::new(config, Weights::<f64>::from_flat(&config, flat));
            loss_and_gradient(&engine(), &block, &batch).map(|(loss, _)| loss)
        });
        let slopes = Weights::<f64>::from_flat(&config, slopes.unwrap().view());
        for ((name, got), (_, slope)) in gradient.arrays().into_iter().zip(slopes.arrays()) {
            let worst = (got - slope).iter().fold(0.0, |m: f64, d| m.max(d.abs()));
            let size = got.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
            // A central difference with this step is good to some 1e-10.
            assert!(
                worst < 1e-8 && (size > 1e-4 || got.is_empty()),
                "{name}: {worst:e} of {size:e}"
            );
        }
    }
}

/// What a block remembers of earlier tokens is all that it needs of them.
#[test]
fn a_block_takes_one_token_after_the_other() {
    let batch = SMALL.draw(&mut StdRng::seed_from_u64(6), 5);
    for is_selective in [true, false] {
        let config = small(is_selective);
        let block = Block::<f64>::new(config, Weights::initial(&config, 7));
        let expected = block.forward(&engine(), batch.tokens.view()).unwrap().logits;
        let size = expected.iter().fold(0.0, |m: f64, logit| m.max(logit.abs()));
        let mut memory = block.memory(5);
        let numbers = memory.len();
        for (l, tokens) in batch.tokens.columns().into_iter().enumerate() {
            let logits = block.step(&tokens.to_vec(), &mut memory).unwrap();
            for ((answer, sequence), &got) in logits.indexed_iter() {
                let exact = expected[[answer, sequence * SMALL.len() + l]];
                assert!((got - exact).abs() <= 1e-13 * size, "position {l}: {got} and {exact}");
            }
        }
        assert_eq!((memory.len(), numbers), (5 * 4 * (3 + 2), 5 * 4 * (3 + 2)));
        let error = block.step(&[0; 4], &mut memory).unwrap_err().to_string();
        assert_eq!(error, "shape mismatch in step: states [5, 4, 3], tokens [4]");
    }
}

#[test]
fn the_answers_are_the_last_symbols() {
    let task = Task { symbols: 8, asked: 3, most: 12, positions: 32 };
    let batch = task.draw(&mut StdRng::seed_from_u64(5), 200);
    for (tokens, answers) in batch.tokens.rows().into_iter().zip(batch.answers.rows()) {
        let (sequence, questions) = tokens.as_slice().unwrap().split_at(task.positions);
        let symbols: Vec<_> = sequence.iter().filter(|&&token| token > 0).map(|t| t - 1).collect();
        assert!((3..=12).contains(&symbols.len()));
        let last: Vec<_> = symbols.iter().rev().take(3).copied().collect();
        assert_eq!(answers.to_vec(), last);
        assert_eq!(questions, [9, 10, 11]);
        assert!(symbols.iter().all(|&symbol| symbol < 8));
    }
}

#[test]
fn tokens_that_a_block_does_not_know_are_named() {
    let config = small(true);
    let block = Block::new(config, Weights::initial(&config, 1));
    let said =
        |tokens: Array2<usize>| block.forward(&engine(), tokens.view()).unwrap_err().to_string();
    assert_eq!(said(array![[0, 6]]), "a block with tokens below 6 does not support token 6");
    let empty = "a block with tokens below 6 does not support a batch of shape [2, 0]";
    assert_eq!(said(Array2::zeros((2, 0))), empty);
}

#[test]
fn weights_go_there_and_back() {
    let config = small(true);
    let weights = Weights::initial(&config, 4);
    assert_eq!(Weights::<f64>::from_flat(&config, weights.flat().view()), weights);
}

#[test]
fn training_is_the_same_every_time() {
    let plan = Plan { steps: 5, every: 5, ..Plan::of_the_chapter(true) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (once, again) = (plan.train(1, &|| ()), pool.install(|| plan.train(1, &|| ())));
    assert_eq!(once.unwrap().block.weights, again.unwrap().block.weights);
}

/// Three seeds; a selective block learns the task, and a fixed one of the same size does not.
#[test]
fn only_the_selective_block_learns_the_task() {
    // A quick run trains once, which is nearly all of the time that this chapter's tests take.
    let seeds: &[u64] = if Table::asked() == Table::Quick { &[11] } else { &[11, 12, 13] };
    for &seed in seeds {
        let train = |is_selective| Plan::of_the_chapter(is_selective).train(seed, &|| ()).unwrap();
        let (selective, fixed) = rayon::join(|| train(true), || train(false));
        println!("seed {seed}: {} and {}", selective.accuracy(), fixed.accuracy());
        assert!(selective.accuracy() >= 0.95, "seed {seed}, selective: {}", selective.accuracy());
        assert!(fixed.accuracy() <= 0.6, "seed {seed}, fixed: {}", fixed.accuracy());
    }
}
