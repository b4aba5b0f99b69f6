//! experiment
use ch11_mamba::competitors::*;
use ch11_mamba::*;
use linrec::cpu::{Cpu, roof};
use linrec::lesson::clock;
fn main() {
    let t = std::time::Instant::now();
    let given = post::draw(1); println!("draw {:?}", t.elapsed());
    let p = Problem::of(&given);
    let cpu = Cpu::new();
    let mut un = Unfused::new(&p);
    let n = given.u.len();
    let mut y = [vec![0.0f32; n], vec![0.0; n], vec![0.0; n]];
    let t = std::time::Instant::now();
    let b = bounds::forward(&given.arguments(), 14).unwrap(); println!("bounds {:?}", t.elapsed());
    let t = std::time::Instant::now();
    let d = direct(&given.arguments()).unwrap(); println!("direct {:?}", t.elapsed());
    let got = selective_scan(&cpu, &given.arguments()).unwrap();
    let mut worst = 0f64; let mut err = 0f64; let mut big = 0f64;
    for ((g, e), b) in got.y.iter().zip(&d.y).zip(&b.y) { let x = (f64::from(*g) - e).abs(); err = err.max(x); worst = worst.max(x / b); big = big.max(e.abs()); }
    println!("err {err:e} worst {worst} max y {big} bound {:e}", b.y.iter().fold(0.0f64, |m, &b| m.max(b)));
    let bb = [by_time(given.b.as_slice().unwrap(), 1024), by_time(given.c.as_slice().unwrap(), 1024)];
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let [y0, y1, y2] = &mut y;
            let un = std::cell::RefCell::new(&mut un);
            let times = clock::medians(3, [
                &mut || { let u: &mut Unfused = &mut un.borrow_mut(); roof::forward(&cpu, u.inputs.as_slice().unwrap(), u.coeffs.as_slice().unwrap(), u.outputs.as_slice_mut().unwrap()) },
                &mut || plain(&p, y0),
                &mut || un.borrow_mut().expand(&p),
                &mut || un.borrow_mut().recurrence(&cpu).unwrap(),
                &mut || un.borrow_mut().contract(&p, y1),
                &mut || { selective_scan(&cpu, &given.arguments()).unwrap(); },
                &mut || fused(&p, [&bb[0], &bb[1]], y2),
            ]);
            let bw = 3.0 * 4.0 * (given.a.len() * 1024) as f64 / times[0].as_secs_f64();
            println!("{threads}: bw {:.1} GB/s floor {:.1} ms", bw * 1e-9, Unfused::bytes(&p) / bw * 1e3);
            for (name, t) in ["roof", "plain", "expand", "rec", "contract", "channel", "fused"].iter().zip(times) { println!("  {name} {:.1} ms", t.as_secs_f64() * 1e3); }
        });
    }
    println!("{:?}", y[0].iter().zip(&y[1]).zip(&y[2]).zip(&d.y).fold([0f64; 3], |m, (((a, b), c), d)| [m[0].max((*a as f64 - d).abs()), m[1].max((*b as f64 - d).abs()), m[2].max((*c as f64 - d).abs())]));
}
