//! experiment
use ch11_mamba::competitors::*;
use ch11_mamba::*;
use linrec::cpu::{Cpu, Simd};
use linrec::lesson::clock;
fn main() {
    let given = post::draw(1);
    let p = Problem::of(&given);
    let mut un = Unfused::new(&p);
    for what in ["0.5", "real", "max 0.01", "max 1e-3"] {
        if what == "real" { un.expand(&p); }
        if what == "max 0.01" { un.coeffs.mapv_inplace(|c| c.max(0.01)); }
        if what == "max 1e-3" { un.expand(&p); un.coeffs.mapv_inplace(|c| c.max(1e-3)); }
        for simd in Simd::ALL {
            let cpu = Cpu::new().with_simd(simd).unwrap().single_threaded();
            println!("{what} {simd} {:?}", clock::median(3, || un.recurrence(&cpu).unwrap()));
        }
    }
}
