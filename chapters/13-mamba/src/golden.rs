//! Mamba's own numbers: `selective_scan_ref` in double precision, with PyTorch's gradients.
//!
//! `tests/data/selective_scan_f64.npz` was made with PyTorch 2.11. It is compiled in, so that the
//! chapter can check itself on any machine.

use std::io::Cursor;

use linrec::contract::golden::array_distance;
use linrec::cpu::Cpu;
use linrec::{Element, Error};
use ndarray::{Array, Array1, Array2, Array3, Dimension, Ix4};
use ndarray_npy::{NpzReader, ReadNpzError};

use crate::arguments::{Mixing, MixingArray};
use crate::{Arguments, Gradients, Output, State, selective_scan, selective_scan_backward};

/// A problem and its solution.
#[derive(Debug, Clone)]
pub struct Golden {
    /// The case's name in the archive.
    pub name: &'static str,
    /// The arguments, owned.
    pub given: Given<f64>,
    /// The gradient of the loss with respect to `y`.
    pub d_y: Array3<f64>,
    /// `y` and the last state.
    pub output: Output<f64>,
    /// The gradients. They are zero where an argument was not given, and for the initial states,
    /// which Mamba's function does not take.
    pub gradients: Gradients<f64>,
}

/// Owned [`Arguments`].
#[derive(Debug, Clone)]
pub struct Given<S: State> {
    /// `[batch, channels, len]`.
    pub u: Array3<S::Real>,
    /// `[batch, channels, len]`.
    pub delta: Array3<S::Real>,
    /// `[channels, states]`.
    pub a: Array2<S>,
    /// `[batch, groups, states, len]`, or `[channels, states]`.
    pub b: MixingArray<S>,
    /// `[batch, groups, states, len]`, or `[channels, states]`.
    pub c: MixingArray<S>,
    /// `[channels]`.
    pub d: Option<Array1<S::Real>>,
    /// `[batch, channels, len]`.
    pub z: Option<Array3<S::Real>>,
    /// `[channels]`.
    pub delta_bias: Option<Array1<S::Real>>,
    /// True if `delta` goes through softplus.
    pub delta_softplus: bool,
    /// `[batch, channels, states]`.
    pub initial: Option<Array3<S>>,
}

impl<S: State> Given<S> {
    /// Makes a problem without any of the options.
    pub fn new(
        u: Array3<S::Real>,
        delta: Array3<S::Real>,
        a: Array2<S>,
        b: impl Into<MixingArray<S>>,
        c: impl Into<MixingArray<S>>,
    ) -> Self {
        let (b, c) = (b.into(), c.into());
        let (d, z, delta_bias, initial) = (None, None, None, None);
        Given { u, delta, a, b, c, d, z, delta_bias, delta_softplus: false, initial }
    }

    /// Borrows the arguments.
    pub fn arguments(&self) -> Arguments<'_, S> {
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
            initial: self.initial.as_ref().map(|states| states.view()),
        }
    }

    /// Converts all arrays to other types.
    fn map<R: State>(&self, real: impl Fn(S::Real) -> R::Real, state: impl Fn(S) -> R) -> Given<R> {
        Given {
            u: self.u.mapv(&real),
            delta: self.delta.mapv(&real),
            a: self.a.mapv(&state),
            b: self.b.mapv(&state),
            c: self.c.mapv(&state),
            d: self.d.as_ref().map(|d| d.mapv(&real)),
            z: self.z.as_ref().map(|z| z.mapv(&real)),
            delta_bias: self.delta_bias.as_ref().map(|bias| bias.mapv(&real)),
            delta_softplus: self.delta_softplus,
            initial: self.initial.as_ref().map(|states| states.mapv(&state)),
        }
    }

    /// Converts all arrays to double precision.
    pub fn widen(&self) -> Given<S::Wide> {
        self.map(|number| number.widen(), |number| number.widen())
    }

    /// Rounds all arrays to another type.
    pub fn narrow<R: State<Precise = S>>(&self) -> Given<R>
    where
        S: State<Real = f64>,
    {
        self.map(R::Real::narrow, R::narrow)
    }
}

/// Reads all cases: the plain scan and the scan with every option, each without and with groups.
///
/// # Errors
///
/// Returns an error if the archive inside this program is unreadable.
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
        b: array::<Ix4>(npz, name, "B")?.into(),
        c: array::<Ix4>(npz, name, "C")?.into(),
        d: None,
        z: None,
        delta_bias: None,
        delta_softplus: is_full,
        initial: None,
    };
    let mut gradients = Gradients {
        d_u: array(npz, name, "d_u")?,
        d_delta: array(npz, name, "d_delta")?,
        d_a: array(npz, name, "d_A")?,
        d_b: array::<Ix4>(npz, name, "d_B")?.into(),
        d_c: array::<Ix4>(npz, name, "d_C")?.into(),
        d_d: Array1::zeros(given.a.nrows()),
        d_z: Array3::zeros(given.u.dim()),
        d_delta_bias: Array1::zeros(given.a.nrows()),
        d_initial: Array3::zeros((given.u.dim().0, given.a.nrows(), given.a.ncols())),
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

/// Returns the distances of [`selective_scan`] and its gradients from Mamba's, by [`compared`].
///
/// # Errors
///
/// Returns an error if the scan fails.
pub fn distances(cpu: &Cpu, golden: &Golden) -> Result<Vec<(&'static str, f64)>, Error> {
    let arguments = golden.given.arguments();
    let output = selective_scan(cpu, &arguments)?;
    let d = selective_scan_backward(cpu, &arguments, golden.d_y.view(), None)?;
    Ok(compared(golden, &output, &d))
}

/// Returns the distance of every array from Mamba's with the array's name: `max |a − b| / max |b|`,
/// in double precision.
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
        ("d_B", between(&d.d_b, &expected.d_b)),
        ("d_C", between(&d.d_c, &expected.d_c)),
    ];
    if golden.given.d.is_some() {
        distances.push(("d_D", array_distance(&d.d_d, &expected.d_d)));
        distances.push(("d_z", array_distance(&d.d_z, &expected.d_z)));
        distances.push(("d_delta_bias", array_distance(&d.d_delta_bias, &expected.d_delta_bias)));
    }
    distances
}

/// Returns the distance of two gradients of `B` or `C`; infinite if they are different variants.
fn between(got: &MixingArray<f64>, expected: &MixingArray<f64>) -> f64 {
    match (got, expected) {
        (Mixing::Varying(got), Mixing::Varying(expected)) => array_distance(got, expected),
        (Mixing::Fixed(got), Mixing::Fixed(expected)) => array_distance(got, expected),
        _ => f64::INFINITY,
    }
}
