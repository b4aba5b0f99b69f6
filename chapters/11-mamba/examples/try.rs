//! experiment
use ch11_mamba::block::Config;
use ch11_mamba::task::Task;
use ch11_mamba::training::Plan;
fn main() {
    let arg: Vec<f64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    // symbols remembered positions width states rank batch steps rate selective seed
    let n = |i: usize| arg[i] as usize;
    let task = Task { symbols: n(0), remembered: n(1), positions: n(2) };
    let config = Config { tokens: task.tokens(), answers: task.symbols, width: n(3), channels: 2 * n(3), states: n(4), rank: n(5), reach: 4, is_selective: arg[9] > 0.0 };
    let plan = Plan { task, config, batch: n(6), steps: n(7), rate: arg[8], every: 100, enough: 0.98 };
    let start = std::time::Instant::now();
    let mut last = 0;
    let t = plan.train(n(10) as u64, |s| last = s).unwrap();
    for (s, a) in &t.curve { print!("{s}:{a:.2} "); }
    println!("\nsteps {last} accuracy {} in {:?}, {} weights", t.accuracy, start.elapsed(), t.block.weights.flat().len());
}
