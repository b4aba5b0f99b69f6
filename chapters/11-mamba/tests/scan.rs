//! The selective scan against Mamba's own numbers.

use ch11_mamba::golden::{self, Given};
use ch11_mamba::{bounds, direct, selective_scan, selective_scan_backward};
use linrec::contract::Domain;
use linrec::cpu::{Cpu, Simd};
use ndarray::{Array, Dimension};

#[test]
fn mambas_own_numbers_agree() {
    for case in golden::cases().unwrap() {
        for (array, distance) in golden::distances(&Cpu::new(), &case).unwrap() {
            assert!(distance <= 1e-11, "{} {array}: {distance:e}", case.name);
            println!("{} {array}: {distance:e}", case.name);
        }
    }
}

/// The largest error in units of its bound; every array has to be within.
fn within<D: Dimension>(
    name: &str,
    got: &Array<f32, D>,
    exact: &Array<f64, D>,
    bound: &Array<f64, D>,
) {
    assert_eq!(got.shape(), exact.shape());
    let mut worst: f64 = 0.0;
    for ((&got, exact), bound) in got.iter().zip(exact).zip(bound) {
        let error = (f64::from(got) - exact).abs();
        assert!(error <= *bound, "{name}: {got} instead of {exact}, bound {bound:e}");
        worst = worst.max(if error > 0.0 { error / bound } else { 0.0 });
    }
    println!("{name}: {worst:.3} of the bound");
}

/// The golden inputs are rounded to f32 first; what is exact for these is computed in double precision.
#[test]
fn in_single_precision_everything_is_within_its_bound() {
    for case in golden::cases().unwrap() {
        let narrow = case.given.narrow::<f32>();
        let wide = Given::widen(&narrow);
        let d_y = case.d_y.mapv(|d| d as f32);
        let levels = Domain::tree_levels(case.d_y.dim().2);
        for simd in Simd::ALL {
            let Some(cpu) = Cpu::new().with_simd(simd) else { continue };
            let got = selective_scan(&cpu, &narrow.arguments()).unwrap();
            let exact = direct(&narrow.arguments()).unwrap();
            let bound = bounds::forward(&narrow.arguments(), levels).unwrap();
            let name = |array: &str| format!("{simd} {} {array}", case.name);
            within(&name("y"), &got.y, &exact.y, &bound.y);
            within(&name("last state"), &got.last_state, &exact.last_state, &bound.last_state);

            let d_last = exact.last_state.mapv(|h| h as f32);
            let wide_d = (d_y.mapv(f64::from), d_last.mapv(f64::from));
            let (d, last) = (d_y.view(), Some(d_last.view()));
            let got = selective_scan_backward(&cpu, &narrow.arguments(), d, last).unwrap();
            let bound = bounds::backward(&narrow.arguments(), d, last, levels).unwrap();
            let (d, last) = (wide_d.0.view(), Some(wide_d.1.view()));
            let exact = selective_scan_backward(&cpu, &wide.arguments(), d, last).unwrap();
            within(&name("d_u"), &got.d_u, &exact.d_u, &bound.d_u);
            within(&name("d_delta"), &got.d_delta, &exact.d_delta, &bound.d_delta);
            within(&name("d_A"), &got.d_a, &exact.d_a, &bound.d_a);
            within(&name("d_B"), &got.d_b, &exact.d_b, &bound.d_b);
            within(&name("d_C"), &got.d_c, &exact.d_c, &bound.d_c);
            within(&name("d_D"), &got.d_d, &exact.d_d, &bound.d_d);
            within(&name("d_z"), &got.d_z, &exact.d_z, &bound.d_z);
            let bias = (&got.d_delta_bias, &exact.d_delta_bias, &bound.d_delta_bias);
            within(&name("d_delta_bias"), bias.0, bias.1, bias.2);
        }
    }
}
