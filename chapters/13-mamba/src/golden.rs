//! Mamba's own numbers: `selective_scan_ref` in double precision, with gradients by PyTorch's autograd.
//!
//! `tests/data/selective_scan_f64.npz` was made with PyTorch 2.11. It is compiled in, so that the chapter can check
//! itself wherever it runs.

use std::io::Cursor;

use linrec::Error;
use linrec::contract::golden::array_distance;
use linrec::cpu::Cpu;
use ndarray::{Array, Array1, Array2, Array3, Array4, Dimension};
use ndarray_npy::{NpzReader, ReadNpzError};

use crate::{Arguments, Gradients, Output, Real, selective_scan, selective_scan_backward};

/// A problem and its solution.
#[derive(Debug, Clone)]
pub struct Golden {
    /// The case's name in the archive.
    pub name: &'static str,
    /// The arguments, owned.
    pub given: Given<f64>,
    /// The gradient of the loss by `y`.
    pub d_y: Array3<f64>,
    /// `y` and the last state.
    pub output: Output<f64>,
    /// The gradients; zero where an argument was not given.
    pub gradients: Gradients<f64>,
}

/// [`Arguments`] that own their arrays.
#[derive(Debug, Clone)]
pub struct Given<T> {
    /// `[batch, channels, len]`.
    pub u: Array3<T>,
    /// `[batch, channels, len]`.
    pub delta: Array3<T>,
    /// `[channels, states]`.
    pub a: Array2<T>,
    /// `[batch, groups, states, len]`.
    pub b: Array4<T>,
    /// `[batch, groups, states, len]`.
    pub c: Array4<T>,
    /// `[channels]`.
    pub d: Option<Array1<T>>,
    /// `[batch, channels, len]`.
    pub z: Option<Array3<T>>,
    /// `[channels]`.
    pub delta_bias: Option<Array1<T>>,
    /// Whether `delta` goes through softplus.
    pub delta_softplus: bool,
}

impl<T: Real> Given<T> {
    /// The arguments, borrowed.
    pub fn arguments(&self) -> Arguments<'_, T> {
        Arguments {
            u: self.u.view(),
            delta: self.delta.view(),
            a: self.a.view(),
            b: self.b.view(),
            c: self.c.view(),
            d: self.d.as_ref().map(|d| d.view()),
            z: self.z.as_ref().map(|z| z.view()),
            delta_bias: self.delta_bias.as_ref().map(|bias| bias.view()),
            delta_softplus: self.delta_softplus,
        }
    }
}

impl<T: Real> Given<T> {
    /// All arrays in another type.
    fn map<S: Real>(&self, number: impl Fn(T) -> S) -> Given<S> {
        Given {
            u: self.u.mapv(&number),
            delta: self.delta.mapv(&number),
            a: self.a.mapv(&number),
            b: self.b.mapv(&number),
            c: self.c.mapv(&number),
            d: self.d.as_ref().map(|d| d.mapv(&number)),
            z: self.z.as_ref().map(|z| z.mapv(&number)),
            delta_bias: self.delta_bias.as_ref().map(|bias| bias.mapv(&number)),
            delta_softplus: self.delta_softplus,
        }
    }

    /// All arrays in double precision.
    pub fn widen(&self) -> Given<f64> {
        self.map(|number| number.widen())
    }
}

impl Given<f64> {
    /// All arrays rounded to another type.
    pub fn narrow<T: Real>(&self) -> Given<T> {
        self.map(T::narrow)
    }
}

/// All cases: the plain scan, groups, and everything that can be asked for, without and with groups.
///
/// # Errors
///
/// If the archive inside this program cannot be read.
pub fn cases() -> Result<Vec<Golden>, ReadNpzError> {
    let archive: &[u8] = include_bytes!("../../../tests/data/selective_scan_f64.npz");
    let mut npz = NpzReader::new(Cursor::new(archive))?;
    ["plain", "groups", "full", "fullgroups"].into_iter().map(|name| read(&mut npz, name)).collect()
}

type Npz<'a> = NpzReader<Cursor<&'a [u8]>>;

fn read(npz: &mut Npz, name: &'static str) -> Result<Golden, ReadNpzError> {
    fn array<D: Dimension>(
        npz: &mut Npz,
        case: &str,
        name: &str,
    ) -> Result<Array<f64, D>, ReadNpzError> {
        npz.by_name(&format!("{case}_{name}"))
    }
    let is_full = name.starts_with("full");
    let mut given = Given {
        u: array(npz, name, "u")?,
        delta: array(npz, name, "delta")?,
        a: array(npz, name, "A")?,
        b: array(npz, name, "B")?,
        c: array(npz, name, "C")?,
        d: None,
        z: None,
        delta_bias: None,
        delta_softplus: is_full,
    };
    let mut gradients = Gradients {
        d_u: array(npz, name, "d_u")?,
        d_delta: array(npz, name, "d_delta")?,
        d_a: array(npz, name, "d_A")?,
        d_b: array(npz, name, "d_B")?,
        d_c: array(npz, name, "d_C")?,
        d_d: Array1::zeros(given.a.nrows()),
        d_z: Array3::zeros(given.u.dim()),
        d_delta_bias: Array1::zeros(given.a.nrows()),
    };
    if is_full {
        given.d = Some(array(npz, name, "D")?);
        given.z = Some(array(npz, name, "z")?);
        given.delta_bias = Some(array(npz, name, "delta_bias")?);
        gradients.d_d = array(npz, name, "d_D")?;
        gradients.d_z = array(npz, name, "d_z")?;
        gradients.d_delta_bias = array(npz, name, "d_delta_bias")?;
    }
    let output = Output { y: array(npz, name, "y")?, last_state: array(npz, name, "last_state")? };
    Ok(Golden { name, given, d_y: array(npz, name, "d_y")?, output, gradients })
}

/// The distances of [`selective_scan`] and its gradients from Mamba's, as [`compared`] has them.
///
/// # Errors
///
/// The scan's own.
pub fn distances(cpu: &Cpu, golden: &Golden) -> Result<Vec<(&'static str, f64)>, Error> {
    let arguments = golden.given.arguments();
    let output = selective_scan(cpu, &arguments)?;
    let d = selective_scan_backward(cpu, &arguments, golden.d_y.view(), None)?;
    Ok(compared(golden, &output, &d))
}

/// The distance of every array from Mamba's, by its name: `max |a − b| / max |b|`, in double precision.
pub fn compared(
    golden: &Golden,
    output: &Output<f64>,
    d: &Gradients<f64>,
) -> Vec<(&'static str, f64)> {
    let expected = &golden.gradients;
    let mut distances = vec![
        ("y", array_distance(&output.y, &golden.output.y)),
        ("last state", array_distance(&output.last_state, &golden.output.last_state)),
        ("d_u", array_distance(&d.d_u, &expected.d_u)),
        ("d_delta", array_distance(&d.d_delta, &expected.d_delta)),
        ("d_A", array_distance(&d.d_a, &expected.d_a)),
        ("d_B", array_distance(&d.d_b, &expected.d_b)),
        ("d_C", array_distance(&d.d_c, &expected.d_c)),
    ];
    if golden.given.d.is_some() {
        distances.push(("d_D", array_distance(&d.d_d, &expected.d_d)));
        distances.push(("d_z", array_distance(&d.d_z, &expected.d_z)));
        distances.push(("d_delta_bias", array_distance(&d.d_delta_bias, &expected.d_delta_bias)));
    }
    distances
}
