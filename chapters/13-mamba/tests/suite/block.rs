//! Tests of the block: its gradient, its task, its training.

use ch04_gradient::differences::central_differences;
use ch13_mamba::block::{Block, Config, Weights, engine};
use ch13_mamba::task::Task;
use ch13_mamba::training::{Plan, loss_and_gradient};
use ch13_mamba::writer::{Lessons, Sampler, Text, foreseen};
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
        // Away from the initial weights, where some slopes are too small to measure.
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
            // A central difference with this step is accurate to about 1e-10.
            assert!(
                worst < 1e-8 && (size > 1e-4 || got.is_empty()),
                "{name}: {worst:e} of {size:e}"
            );
        }
    }
}

/// The memory of a block holds all that it needs of earlier tokens.
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
    let message =
        |tokens: Array2<usize>| block.forward(&engine(), tokens.view()).unwrap_err().to_string();
    assert_eq!(message(array![[0, 6]]), "a block with tokens below 6 does not support token 6");
    let empty = "a block with tokens below 6 does not support a batch of shape [2, 0]";
    assert_eq!(message(Array2::zeros((2, 0))), empty);
}

#[test]
fn flat_weights_make_a_round_trip() {
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

/// Over three seeds, a selective block learns the task and a fixed one of the same size does not.
#[test]
fn only_the_selective_block_learns_the_task() {
    // A quick run trains with one seed, which takes nearly all the time of this chapter's tests.
    let seeds: &[u64] = if Table::asked() == Table::Quick { &[11] } else { &[11, 12, 13] };
    for &seed in seeds {
        let train = |is_selective| Plan::of_the_chapter(is_selective).train(seed, &|| ()).unwrap();
        let (selective, fixed) = rayon::join(|| train(true), || train(false));
        println!("seed {seed}: {} and {}", selective.accuracy(), fixed.accuracy());
        assert!(selective.accuracy() >= 0.95, "seed {seed}, selective: {}", selective.accuracy());
        assert!(fixed.accuracy() <= 0.6, "seed {seed}, fixed: {}", fixed.accuracy());
    }
}

/// A block writes by its logits, and goes on from its own memory of the text.
#[test]
fn a_sampler_writes_by_the_logits_of_the_whole_text() {
    let text = Text::new("abcabdabe");
    assert_eq!((text.alphabet(), text.token('d'), text.token('x')), (5, Some(3), None));
    assert_eq!(text.read(&[0, 4, 9]), "ae");
    let lessons = Lessons { steps: 30, batch: 4, len: 12, rate: 0.02 };
    let (block, bits) = lessons.teach(&engine(), &text, 3).unwrap();
    assert!(bits < 5_f64.log2(), "{bits}");
    assert!(foreseen(&engine(), &block, &text).unwrap() > 0.5);

    // Near zero it takes the likeliest token at each place, as computed over the whole text.
    let mut sampler = Sampler::new(&block, 0, 1e-6, 4).unwrap();
    let mut tokens = vec![0];
    for _ in 0..40 {
        tokens.push(sampler.write().unwrap());
    }
    let given = Array2::from_shape_fn((1, 40), |(_, l)| tokens[l]);
    let logits = block.forward(&engine(), given.view()).unwrap().logits;
    for (l, logits) in logits.columns().into_iter().enumerate() {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let size = logits.iter().fold(0.0, |size: f32, logit| size.max(logit.abs()));
        assert!(largest - logits[tokens[l + 1]] <= 1e-5 * size, "position {l}");
    }

    // At one it draws tokens with their probabilities. The first token has one distribution.
    let first = logits.column(0).mapv(|logit| f64::from(logit).exp());
    let (first, draws) = (&first / first.sum(), 2000);
    let mut counts = [0; 5];
    for seed in 0..draws {
        counts[Sampler::new(&block, 0, 1.0, seed).unwrap().write().unwrap()] += 1;
    }
    for (&count, p) in counts.iter().zip(&first) {
        // Six standard deviations.
        let limit = 6.0 * (draws as f64 * p * (1.0 - p)).sqrt() + 1.0;
        assert!((f64::from(count) - draws as f64 * p).abs() <= limit, "{counts:?} {first}");
    }
}

#[test]
fn a_sampler_refuses_bad_temperatures_and_logits() {
    let text = Text::new("");
    assert_eq!(text.draw(&mut StdRng::seed_from_u64(1), 2, 5).tokens.dim(), (2, 0));
    let config = small(true);
    let mut block = Block::<f64>::new(config, Weights::initial(&config, 1));
    for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Sampler::new(&block, 0, temperature, 1).err().unwrap().to_string();
        assert!(error.contains(&format!("a temperature of {temperature}")), "{error}");
    }
    block.weights.skip.fill(f64::NAN);
    let error = Sampler::new(&block, 0, 1.0, 1).unwrap().write().unwrap_err().to_string();
    assert!(error.contains("powers add up to NaN"), "{error}");
    assert!(Sampler::new(&block, 99, 1.0, 1).unwrap().write().is_err());
}
