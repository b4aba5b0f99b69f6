//! The training of the networks, and tests at lengths that they have not seen.

use ch04_gradient::model::Adam;
use linrec::Error;
use linrec::cpu::Cpu;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::layer::Kind;
use super::network::{Batch, Network};

/// A kind of network.
#[derive(Debug, Clone, Copy)]
pub struct Contestant {
    /// The name of the network.
    pub name: &'static str,
    /// The kinds of the layers.
    pub layers: &'static [Kind],
}

/// The networks that are compared.
// ANCHOR: contestants
pub const CONTESTANTS: [Contestant; 8] = [
    contestant("one layer, c in (0, 1)", &[Kind::Gate]),
    contestant("one layer, c in (−1, 1)", &[Kind::Signed]),
    contestant("one layer, complex", &[Kind::Complex]),
    contestant("two layers, c in (0, 1)", &[Kind::Gate, Kind::Gate]),
    contestant("two layers, c in (−1, 1)", &[Kind::Signed, Kind::Signed]),
    contestant("two layers, complex", &[Kind::Complex, Kind::Complex]),
    contestant("delta rule, β in (0, 1)", &[Kind::Delta(1)]),
    contestant("delta rule, β in (0, 2)", &[Kind::Delta(2)]),
];
// ANCHOR_END: contestants

const fn contestant(name: &'static str, layers: &'static [Kind]) -> Contestant {
    Contestant { name, layers }
}

/// The plan of a network's training.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The number of swaps in a sequence.
    pub len: usize,
    /// The number of sequences per step.
    pub batch: usize,
    /// The number of steps.
    pub steps: usize,
    /// The learning rate in the first half of the steps; in the second half it falls to zero.
    pub rate: f64,
}

impl Plan {
    /// The plan of the record.
    pub const RECORDED: Plan = Plan { len: 32, batch: 32, steps: 3000, rate: 0.01 };

    /// Trains on new sequences in every step; all randomness comes from `seed`. `watch` receives
    /// each step's number and loss.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    pub fn train(
        &self,
        layers: &[Kind],
        seed: u64,
        watch: &mut dyn FnMut(usize, f64),
    ) -> Result<Network, Error> {
        let cpu = Cpu::new().single_threaded();
        let mut rng = StdRng::seed_from_u64(seed);
        let mut network = Network::draw(layers, seed);
        let mut weights = network.flat();
        let mut adam = Adam::new(weights.len(), self.rate);
        for step in 0..self.steps {
            let left = (self.steps - step) as f64 / self.steps as f64;
            adam.set_rate(self.rate * (2.0 * left).min(1.0));
            let batch = Batch::draw(&mut rng, self.batch, self.len);
            let (loss, gradient) = network.loss_and_gradient(&cpu, &batch)?;
            adam.step(&mut weights, &gradient);
            network.set(&weights);
            watch(step, loss);
        }
        Ok(network)
    }
}

/// Returns, for each number of swaps from 1 to `len`, the share of `num_seqs` new sequences whose
/// ball is found after it.
///
/// # Errors
///
/// Returns an error if the engine fails.
pub fn right_after(network: &Network, num_seqs: usize, len: usize) -> Result<Vec<f64>, Error> {
    let cpu = Cpu::new().single_threaded();
    // Not the sequences of training, whose seeds are small.
    let batch = Batch::draw(&mut StdRng::seed_from_u64(1 << 32), num_seqs, len);
    let mut shares = vec![0.0; len + 1];
    for (l, is_right) in network.is_right(&cpu, &batch)?.into_iter().enumerate() {
        if is_right {
            shares[l % (len + 1)] += 1.0 / num_seqs as f64;
        }
    }
    Ok(shares.split_off(1))
}
