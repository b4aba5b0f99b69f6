//! Tests of the unfused scan on every device: the emulator, and any GPU of the machine.
//!
//! The results of a device are compared with the golden data of Mamba's function, with the
//! definition in double precision, with the error bound of `bounds`, and bit by bit with the other
//! devices. The emulator also counts the bytes of every launch, because the page quotes them.
//! `problems.rs` draws the random problems.

use ch13_mamba::activation::{silu, softplus};
use ch13_mamba::golden::{self, Given};
use ch13_mamba::on_device::{self, GradientScratch, Scan, Scratch, Traffic};
use ch13_mamba::{Mixing, Sizes, bounds, direct, selective_scan_backward};
use linrec::contract::Domain;
use linrec::contract::golden::array_distance;
use linrec::cpu::Cpu;
use linrec::device::{Buffer, Choice, Device, Storage, under_test};
use linrec::kernels::KernelChoice;
use linrec::simt::Access;
use ndarray::{Array1, Array2, Array3, Array4};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::problems::{KINDS, SHAPES, drawn, gradients_within, random, within};

fn scan<S: ch13_mamba::Real + Storage<Accum = S>>(device: &Device) -> Scan<S> {
    Scan::new(device, Choice::FastestShipped).unwrap()
}

#[test]
fn mambas_own_numbers_agree_on_every_device() {
    for device in under_test() {
        let scan = scan::<f64>(&device);
        for case in golden::cases().unwrap() {
            let arguments = case.given.arguments();
            let output = scan.compute(&arguments).unwrap().output;
            let d = scan.differentiate(&arguments, case.d_y.view(), None).unwrap().gradients;
            for (array, distance) in golden::compared(&case, &output, &d) {
                println!("{} {} {array}: {distance:e}", device.label(), case.name);
                assert!(distance <= 1e-11, "{} {array}: {distance:e}", case.name);
            }
        }
    }
}

/// In `f32`, compares with double precision for the same numbers; in `f64`, with the definition.
#[test]
fn every_shape_is_within_its_bound_on_every_device() {
    let mut rng = StdRng::seed_from_u64(21);
    for device in under_test() {
        let (narrow_scan, wide_scan) = (scan::<f32>(&device), scan::<f64>(&device));
        for shape in SHAPES {
            for (is_full, kind) in [(true, KINDS[0]), (false, KINDS[1]), (true, KINDS[3])] {
                let mut given = drawn::<f64>(&mut rng, shape, is_full, kind);
                given.a.mapv_inplace(|a| if a < -2.5 { 40.0 * a } else { a });
                let (narrow, wide) = (given.narrow::<f32>(), given.narrow::<f32>().widen());
                let levels = Domain::tree_levels(shape[4]);
                let name = format!("{} {shape:?} {is_full}", device.label());

                let exact = direct(&wide.arguments()).unwrap();
                let got = wide_scan.compute(&wide.arguments()).unwrap().output;
                assert!(array_distance(&got.y, &exact.y) <= 1e-12, "{name}");
                assert!(array_distance(&got.last_state, &exact.last_state) <= 1e-12, "{name}");
                let bound = bounds::forward(&narrow.arguments(), levels).unwrap();
                let got = narrow_scan.compute(&narrow.arguments()).unwrap().output;
                within(&format!("{name} y"), &got.y, &exact.y, &bound.y);
                let last = (&got.last_state, &exact.last_state, &bound.last_state);
                within(&format!("{name} last state"), last.0, last.1, last.2);

                let d_y = given.u.mapv(|u| (0.3 - u) as f32);
                let d_last = exact.last_state.mapv(|h| h as f32);
                let (wide_d_y, wide_d_last) = (d_y.mapv(f64::from), d_last.mapv(f64::from));
                let (d, last) = (wide_d_y.view(), Some(wide_d_last.view()));
                let exact = selective_scan_backward(&Cpu::new(), &wide.arguments(), d, last);
                let exact = exact.unwrap();
                let got = wide_scan.differentiate(&wide.arguments(), d, last).unwrap().gradients;
                assert!(array_distance(&got.d_u, &exact.d_u) <= 1e-12, "{name}");
                assert!(array_distance(&got.d_a, &exact.d_a) <= 1e-12, "{name}");
                let (d, last) = (d_y.view(), Some(d_last.view()));
                let bound = bounds::backward(&narrow.arguments(), d, last, levels).unwrap();
                let got = narrow_scan.differentiate(&narrow.arguments(), d, last);
                let got = got.unwrap().gradients;
                gradients_within(&name, &got, &exact, &bound);
            }
        }
    }
}

/// Compares softplus and silu, computed by multiply-adds, with the standard library.
#[test]
fn activations_are_accurate_to_the_last_digits() {
    let len = 4001;
    let at = |l: usize| (l as f64 - 2000.0) / 40.0;
    for device in under_test() {
        // Without states, y is D u silu(z).
        let mut given = random(&mut StdRng::seed_from_u64(1), [1, 1, 1, 0, len], true);
        given.u.fill(1.0);
        given.d = Some(Array1::ones(1));
        given.z = Some(Array3::from_shape_fn((1, 1, len), |(_, _, l)| at(l)));
        let y = scan::<f64>(&device).compute(&given.arguments()).unwrap().output.y;
        for (l, &got) in y.iter().enumerate() {
            let exact = silu(at(l));
            assert!((got - exact).abs() <= 8.0 * f64::EPSILON * exact.abs(), "silu({})", at(l));
        }
        // With B = 1, u = 1 and no decay, the last state is the sum of Δ.
        for (l, bias) in [(0, 0.0), (1, 1e-3), (2, -7.5)] {
            let mut given = random(&mut StdRng::seed_from_u64(1), [1, len, 1, 1, 1], true);
            given.u.fill(1.0);
            given.b = Array2::ones((len, 1)).into();
            given.initial = None;
            given.delta = Array3::from_shape_fn((1, len, 1), |(_, j, _)| at(j));
            given.delta_bias = Some(Array1::from_elem(len, bias));
            let output = scan::<f64>(&device).compute(&given.arguments()).unwrap().output;
            for (j, &got) in output.last_state.iter().enumerate() {
                let exact = softplus(at(j) + bias);
                let error = (got - exact).abs();
                assert!(error <= 5.0 * f64::EPSILON * exact, "case {l}, softplus({})", at(j));
            }
        }
    }
}

/// Arrays on a device, with all options.
struct Held {
    sizes: Sizes,
    own: [Buffer<f32>; 3],
    a: Buffer<f32>,
    mixing: [Buffer<f32>; 4],
    per_channel: [Buffer<f32>; 2],
    initial: Buffer<f32>,
}

impl Held {
    /// Draws a problem whose B and C are the same at every position. They are stored as fixed
    /// arrays (the last two of `mixing`) and repeated along the sequence, with a group for each
    /// channel.
    fn new(device: &Device, [batch, channels, states, len]: [usize; 4]) -> Held {
        let shape = [batch, channels, channels, states, len];
        let given = drawn::<f64>(&mut StdRng::seed_from_u64(3), shape, true, [true, true]);
        let given: Given<f32> = given.narrow();
        let arguments = given.arguments();
        let upload = |values: Vec<f32>| device.upload(&values).unwrap();
        let [fixed_b, fixed_c] =
            [&given.b, &given.c].map(|mixing| upload(mixing.as_slice().unwrap().to_vec()));
        let [b, c] = [arguments.b, arguments.c].map(|mixing| {
            let shape = (batch, channels, states, len);
            let at = |(i, j, n, l)| mixing.at([i, j, n, l], 1);
            upload(Array4::from_shape_fn(shape, at).into_iter().collect())
        });
        let own = [given.u, given.delta, given.z.unwrap()];
        Held {
            sizes: Sizes { batch, channels, groups: channels, states, len },
            own: own.map(|array| upload(array.into_iter().collect())),
            a: upload(given.a.into_iter().collect()),
            mixing: [b, c, fixed_b, fixed_c],
            per_channel: [given.d, given.delta_bias].map(|a| upload(a.unwrap().to_vec())),
            initial: upload(given.initial.unwrap().into_iter().collect()),
        }
    }

    fn given(&self, is_fixed: bool) -> on_device::Given<'_, f32> {
        let [b, c, fixed_b, fixed_c] = &self.mixing;
        let (b, c) = match is_fixed {
            true => (Mixing::Fixed(fixed_b), Mixing::Fixed(fixed_c)),
            false => (Mixing::Varying(b), Mixing::Varying(c)),
        };
        let ([u, delta, z], [d, bias]) = (&self.own, &self.per_channel);
        on_device::Given {
            sizes: self.sizes,
            u,
            delta,
            a: &self.a,
            b,
            c,
            d: Some(d),
            z: Some(z),
            delta_bias: Some(bias),
            delta_softplus: true,
            initial: Some(&self.initial),
        }
    }
}

/// Returns all results as bits.
fn everything(scan: &Scan<f32>, held: &Held, is_fixed: bool) -> Vec<(&'static str, Vec<u32>)> {
    let (device, given) = (scan.device(), held.given(is_fixed));
    let sizes = held.sizes;
    let (own, all) = (given.u.len(), sizes.batch * sizes.channels * sizes.states);
    let stream = device.stream();
    let (mut y, mut last) = (device.allocate(own).unwrap(), device.allocate(all).unwrap());
    y.poison().unwrap();
    last.poison().unwrap();
    let mut scratch = Scratch::new(device, sizes).unwrap();
    scan.forward_into(&given, &mut scratch, &mut y, Some(&mut last), &stream).unwrap();
    let mut scratch = GradientScratch::new(device, sizes).unwrap();
    let mut d = on_device::Gradients::new(device, &given).unwrap();
    let d_last = Some(&held.initial);
    scan.backward_into(&given, &y, d_last, &mut scratch, &mut d, &stream).unwrap();
    let bits = |buffer: &Buffer<f32>| -> Vec<u32> {
        buffer.download().unwrap().into_iter().map(f32::to_bits).collect()
    };
    vec![
        ("y", bits(&y)),
        ("last state", bits(&last)),
        ("d_u", bits(&d.d_u)),
        ("d_delta", bits(&d.d_delta)),
        ("d_A", bits(&d.d_a)),
        ("d_D", bits(d.d_d.as_ref().unwrap())),
        ("d_z", bits(d.d_z.as_ref().unwrap())),
        ("d_delta_bias", bits(&d.d_delta_bias)),
        ("d_initial", bits(&d.d_initial)),
        ("d_B", bits(&d.d_b)),
        ("d_C", bits(&d.d_c)),
    ]
}

/// Compares devices and repeated runs, with fixed B and C and with B and C repeated along the
/// sequence. (The gradients of fixed B and C are sums of the others, so they are only compared
/// between devices.)
#[test]
fn every_bit_is_the_same_on_every_device_and_in_every_run() {
    let shape = [2, 5, 3, 301];
    let expected = {
        let device = Device::simt();
        let (scan, held) = (scan::<f32>(&device), Held::new(&device, shape));
        [false, true].map(|is_fixed| everything(&scan, &held, is_fixed))
    };
    let [varying, fixed] = &expected;
    assert_eq!(varying[..9], fixed[..9]);
    assert!(
        varying.iter().flat_map(|(_, bits)| bits).all(|&bits| f32::from_bits(bits).is_finite())
    );
    for device in under_test() {
        let (scan, held) = (scan::<f32>(&device), Held::new(&device, shape));
        for _ in 0..if device.is_simt() { 1 } else { 100 } {
            for (is_fixed, expected) in [false, true].into_iter().zip(&expected) {
                assert_eq!(&everything(&scan, &held, is_fixed), expected, "{}", device.label());
            }
        }
    }
}

/// Compares the bytes of each launch with the traffic on the page, for every large array.
#[test]
fn every_large_array_is_read_and_written_as_often_as_the_page_says() {
    let device = Device::simt();
    let [batch, channels, states, len] = [2_u64, 5, 3, 300];
    let (scan, held) = (scan::<f32>(&device), Held::new(&device, [2, 5, 3, 300]));
    // The kernels of the recurrence read an initial state in different ways.
    let given = on_device::Given { initial: None, ..held.given(false) };
    let mut scratch = Scratch::new(&device, held.sizes).unwrap();
    let mut y = device.allocate(given.u.len()).unwrap();
    let passes = scan.forward_into(&given, &mut scratch, &mut y, None, &device.stream()).unwrap();
    let bytes = |name: &str, access: Access| -> u64 {
        let (_, pass) = passes.iter().find(|(pass, _)| *pass == name).unwrap();
        let sites = &pass.counters().unwrap().sites;
        sites.iter().filter(|site| site.access == access).map(|site| site.bytes).sum()
    };
    let (load, store) = (Access::GlobalLoad, Access::GlobalStore);
    let [expand, recurrence, contract] = Traffic::of_passes(states as usize, true, true, 4);
    let places = batch * channels * len;
    for (name, traffic) in [("expand", expand), ("recurrence", recurrence), ("contract", contract)]
    {
        assert_eq!(bytes(name, store), traffic.written as u64 * places, "{name}");
    }
    // Also A and B for each state and the bias for every thread; then C for each state, and D.
    let cached = |numbers: u64| 4 * numbers * places;
    let bias = 4 * batch * channels * len.next_multiple_of(256);
    assert_eq!(bytes("expand", load), expand.read as u64 * places + cached(2 * states) + bias);
    assert_eq!(bytes("recurrence", load), recurrence.read as u64 * places);
    assert_eq!(bytes("contract", load), contract.read as u64 * places + cached(states + 1));
    let [expand, recurrence, contract] = Traffic::of_passes(16, true, true, 4);
    assert_eq!(expand.all() + recurrence.all() + contract.all(), 404);
    assert_eq!(Traffic::fused(true, 4).all(), 16);
}

#[test]
fn a_recorded_scan_is_replayed() {
    for device in under_test() {
        let (scan, held) = (scan::<f32>(&device), Held::new(&device, [1, 3, 2, 70]));
        let given = held.given(false);
        let mut scratch = Scratch::new(&device, held.sizes).unwrap();
        let mut y = device.allocate(given.u.len()).unwrap();
        let stream = device.stream();
        scan.forward_into(&given, &mut scratch, &mut y, None, &stream).unwrap();
        let expected = y.download().unwrap();
        let record = device.record(|stream| {
            scan.forward_into(&given, &mut scratch, &mut y, None, stream).map(drop)
        });
        y.poison().unwrap();
        record.unwrap().replay(&stream).unwrap();
        assert_eq!(y.download().unwrap(), expected);
    }
}

#[test]
fn buffers_that_do_not_fit_are_named() {
    let device = Device::simt();
    let (scan, held) = (scan::<f32>(&device), Held::new(&device, [1, 3, 2, 5]));
    let scratch = || Scratch::new(&device, held.sizes).unwrap();
    let message = |given: &on_device::Given<f32>, y: usize| {
        let mut y = device.allocate(y).unwrap();
        let stream = device.stream();
        scan.forward_into(given, &mut scratch(), &mut y, None, &stream).unwrap_err().to_string()
    };
    let sizes = "shape mismatch in selective scan: sizes [1, 3, 3, 2, 5]";
    let given = held.given(false);
    assert_eq!(message(&given, 14), format!("{sizes}, y [14]"));
    let wrong = on_device::Given { z: given.d, ..given };
    assert_eq!(message(&wrong, 15), format!("{sizes}, z [3]"));
    let wrong = on_device::Given { c: Mixing::Fixed(given.u), ..given };
    assert_eq!(message(&wrong, 15), format!("{sizes}, C [15]"));
    let mut d = on_device::Gradients::new(&device, &held.given(true)).unwrap();
    let mut scratch = GradientScratch::new(&device, held.sizes).unwrap();
    let stream = device.stream();
    let error = scan.backward_into(&given, given.u, None, &mut scratch, &mut d, &stream);
    assert_eq!(error.unwrap_err().to_string(), format!("{sizes}, d_B [6]"));
}

/// Any kernel of the catalogue works, not only the fastest.
#[test]
fn the_recurrence_may_be_any_kernel() {
    let device = Device::simt();
    let mut rng = StdRng::seed_from_u64(5);
    let given = random(&mut rng, [1, 3, 1, 4, 130], true).narrow::<f32>();
    let exact = direct(&given.arguments()).unwrap();
    let bound = bounds::forward(&given.arguments(), Domain::tree_levels(130)).unwrap();
    for kernel in ["ref", "tile:4x256:0", "pipe:8x64:0", "wide:2x128"] {
        let scan = Scan::<f32>::new(&device, kernel.parse::<KernelChoice>().unwrap()).unwrap();
        let got = scan.compute(&given.arguments()).unwrap();
        let choice = got.passes.iter().find_map(|(_, pass)| pass.choice()).unwrap();
        assert_eq!(choice.to_string(), kernel.parse::<KernelChoice>().unwrap().to_string());
        within(kernel, &got.output.y, &exact.y, &bound.y);
    }
}
