//! The block: its gradient, its task, its training.

use ch04_gradient::differences::central_differences;
use ch11_mamba::block::{Block, Config, Weights, engine};
use ch11_mamba::task::Task;
use ch11_mamba::training::loss_and_gradient;
use rand::SeedableRng;
use rand::rngs::StdRng;

const SMALL: Task = Task { symbols: 3, remembered: 2, positions: 7 };

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
        let weights = Weights::initial(&config, 2);
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
            println!("{name}: {worst:e} of {size:e}");
            assert!(worst < 1e-8 && (size > 1e-5 || got.is_empty()), "{name}: {worst:e} of {size:e}");
        }
    }
}
