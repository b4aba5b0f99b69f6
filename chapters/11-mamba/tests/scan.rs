//! The selective scan against Mamba's own numbers.

use ch11_mamba::golden;
use linrec::cpu::Cpu;

#[test]
fn mambas_own_numbers_agree() {
    for case in golden::cases().unwrap() {
        for (array, distance) in golden::distances(&Cpu::new(), &case).unwrap() {
            assert!(distance <= 1e-11, "{} {array}: {distance:e}", case.name);
            println!("{} {array}: {distance:e}", case.name);
        }
    }
}
