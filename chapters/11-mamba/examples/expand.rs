//! experiment
use ch11_mamba::channel::*;
fn main() {
    let n = 1024; let s = 16;
    let u = vec![0.5f32; n]; let delta: Vec<f32> = (0..n).map(|i| 0.1 + i as f32 * 1e-3).collect(); let a: Vec<f32> = (0..s).map(|i| -1.0 - i as f32).collect();
    let b = vec![0.3f32; n * s];
    let ch = Channel { u: &u, delta: &delta, a: &a, b: &b, c: &b };
    let (mut x, mut c, mut sc) = (vec![0.0; n * s], vec![0.0; n * s], vec![0.0; n]);
    let t = std::time::Instant::now();
    for _ in 0..2048 { expand(&ch, &mut x, &mut c, &mut sc); }
    println!("{:.3} ns", t.elapsed().as_secs_f64() * 1e9 / (2048.0 * 16384.0));
}
