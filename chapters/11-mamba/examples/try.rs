//! experiment
use ch11_mamba::training::Plan;
fn main() {
    let arg: Vec<f64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let start = std::time::Instant::now();
    let t = Plan::of_the_chapter(arg[0] > 0.0).train(arg[1] as u64, || ()).unwrap();
    for (s, a) in &t.curve { print!("{s}:{a:.2} "); }
    println!("\naccuracy {} in {:?}, {} weights", t.accuracy, start.elapsed(), t.block.weights.flat().len());
}
