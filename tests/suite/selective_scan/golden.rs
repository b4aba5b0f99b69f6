//! Mamba's own numbers, `selective_scan_ref` in double precision: they confirm the reference, which
//! in turn confirms f32.

use std::io::Cursor;

use linrec::contract::golden::array_distance;
use ndarray::{Array, Array3, Array4, Dimension, Ix1, Ix2, Ix3, Ix4};
use ndarray_npy::{NpzReader, ReadNpzError};

use super::reference::{Bounded, Coupling, Problem, Sizes};

type Archive = NpzReader<Cursor<&'static [u8]>>;

/// The largest `max |a − b| / max |b|` of an array.
const LIMIT: f64 = 1e-12;

fn array<D: Dimension>(
    archive: &mut Archive,
    case: &str,
    name: &str,
) -> Result<Array<f64, D>, ReadNpzError> {
    archive.by_name(&format!("{case}_{name}"))
}

fn numbers<D: Dimension>(array: Array<f64, D>) -> Vec<f64> {
    array.iter().copied().collect()
}

/// Reads a case, with its outputs and last states.
fn read(archive: &mut Archive, case: &str) -> Result<(Problem, [Array3<f64>; 2]), ReadNpzError> {
    let is_full = case.starts_with("full");
    let u: Array3<f64> = array(archive, case, "u")?;
    let b: Array4<f64> = array(archive, case, "B")?;
    let ((batch, channels, len), (_, groups, states, _)) = (u.dim(), b.dim());
    let mut scan = Problem {
        sizes: Sizes { batch, channels, groups, states, len },
        u: numbers(u),
        delta: numbers(array::<Ix3>(archive, case, "delta")?),
        a: numbers(array::<Ix2>(archive, case, "A")?),
        b: Coupling { values: numbers(b), varies: true },
        c: Coupling { values: numbers(array::<Ix4>(archive, case, "C")?), varies: true },
        d: None,
        z: None,
        bias: None,
        softplus: is_full,
        initial: None,
        restarts: None,
        chunks: None,
        additions: None,
        cuts: Vec::new(),
        d_out: Vec::new(),
        d_last: None,
    };
    if is_full {
        scan.d = Some(numbers(array::<Ix1>(archive, case, "D")?));
        scan.z = Some(numbers(array::<Ix3>(archive, case, "z")?));
        scan.bias = Some(numbers(array::<Ix1>(archive, case, "delta_bias")?));
    }
    Ok((scan, [array(archive, case, "y")?, array(archive, case, "last_state")?]))
}

fn rounded(scan: &Problem) -> Problem {
    let round = |numbers: &Vec<f64>| numbers.iter().map(|&x| f64::from(x as f32)).collect();
    let any = |numbers: &Option<Vec<f64>>| numbers.as_ref().map(round);
    Problem {
        u: round(&scan.u),
        delta: round(&scan.delta),
        a: round(&scan.a),
        b: Coupling { values: round(&scan.b.values), varies: true },
        c: Coupling { values: round(&scan.c.values), varies: true },
        d: any(&scan.d),
        z: any(&scan.z),
        bias: any(&scan.bias),
        ..scan.clone()
    }
}

#[test]
fn the_reference_has_mambas_numbers_and_devices_those_of_the_reference()
-> Result<(), Box<dyn std::error::Error>> {
    let bytes: &[u8] = include_bytes!("../../data/selective_scan_f64.npz");
    let mut archive = NpzReader::new(Cursor::new(bytes))?;
    for case in ["plain", "groups", "full", "fullgroups"] {
        let (scan, expected) = read(&mut archive, case)?;
        let results = scan.results();
        for (expected, computed) in expected.iter().zip([&results.out, &results.last]) {
            let values = computed.iter().map(|&Bounded { value, .. }| value).collect();
            let computed = Array3::from_shape_vec(expected.dim(), values)?;
            let distance = array_distance(&computed, expected);
            assert!(distance <= LIMIT, "{case}: {distance:e}");
        }
        super::check_scan::<f32>(&rounded(&scan), case, 0)?;
    }
    Ok(())
}
