//! The recurrence over a group as an engine over arrays of the host.

use std::marker::PhantomData;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Dim, s};

use super::{Group, GroupRecurrence, Part, Rank, Split, Way};
use crate::device::engine::{fetch, results, send, send_state};
use crate::device::{BackwardOptions, Choice, ForwardOptions, Shape, Storage};
use crate::{Element, Engine, Error, Gradients, Options, Outputs, validate};

/// The copying wrapper around a [`GroupRecurrence`]: each rank's part of the arrays goes to its
/// device, and results come back. It is meant for tests and for arrays on the host.
///
/// ```
/// use linrec::device::{Device, Group, GroupEngine, Split};
/// use linrec::{Engine, Options};
/// use ndarray::array;
///
/// let group = Group::from_devices(&Device::emulated(3))?;
/// let engine = GroupEngine::<f32>::new(group, Split::Steps);
/// assert_eq!(engine.name(), "auto@3 x simt by steps");
/// let (inputs, coeffs) = (array![[1.0, 2.0, 3.0]], array![[0.0, 1.0, 0.5]]);
/// let result = engine.forward(inputs.view(), coeffs.view(), &Options::default())?;
/// assert_eq!(result.outputs, array![[1.0, 3.0, 4.5]]);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug)]
pub struct GroupEngine<S> {
    group: Group,
    pub(crate) split: Split,
    pub(crate) choice: Choice,
    pub(crate) pieces: Option<usize>,
    way: Way,
    name: String,
    storage: PhantomData<fn() -> S>,
}

impl<S: Storage> GroupEngine<S> {
    /// Makes an engine over the ranks of a group, by the fastest kernels.
    pub fn new(group: Group, split: Split) -> GroupEngine<S> {
        GroupEngine::by(group, split, Choice::Fastest)
    }

    /// Makes an engine by a kernel: see [`GroupRecurrence::by`].
    pub fn by(group: Group, split: Split, choice: impl Into<Choice>) -> GroupEngine<S> {
        let (choice, storage) = (choice.into(), PhantomData);
        let kind =
            if group.devices().iter().all(|device| device.is_simt()) { "simt" } else { "cuda" };
        let name = format!("{choice}@{} x {kind} by {split}", group.size());
        GroupEngine { group, split, choice, pieces: None, way: Way::default(), name, storage }
    }

    /// Finds states in another way: see [`GroupRecurrence::with_way`].
    #[must_use]
    pub fn with_way(self, way: Way) -> Self {
        let name = format!("{}, {way}", self.name);
        GroupEngine { way, name, ..self }
    }

    /// Cuts each sequence into `pieces` pieces: see [`GroupRecurrence::with_pieces`].
    #[must_use]
    pub fn with_pieces(self, pieces: usize) -> Self {
        let name = format!("{} in {pieces}", self.name);
        GroupEngine { pieces: Some(pieces), name, ..self }
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    fn recurrence<'a>(&self, rank: &'a Rank) -> Result<GroupRecurrence<'a, S>, Error> {
        let recurrence = GroupRecurrence::by(rank, self.split, self.choice)?.with_way(self.way);
        Ok(match self.pieces {
            Some(pieces) => recurrence.with_pieces(pieces),
            None => recurrence,
        })
    }

    /// One rank's side of [`Engine::forward`].
    fn forward_of(
        &self,
        rank: &Rank,
        [inputs, coeffs]: [ArrayView2<S::Accum>; 2],
        options: &Options<S::Accum>,
    ) -> Result<Results<S::Accum, 1>, Error> {
        let (recurrence, device) = (self.recurrence(rank)?, rank.device());
        let whole = Shape::from(inputs.dim());
        let part = recurrence.part(whole)?;
        let mine = |array| of(array, &part);
        let inputs = send::<S, _>(device, "inputs", mine(inputs))?;
        let coeffs = send::<S, _>(device, "coeffs", mine(coeffs))?;
        let initial = send_state(device, state_of(options, &part))?;
        let mut outputs = results::<S>(device, "outputs", part.len())?;
        let mut final_state = results(device, "final_state", part.rows.len())?;
        let options = ForwardOptions {
            direction: options.direction,
            log_coeffs: options.log_coeffs,
            initial: initial.as_ref(),
            final_state: Some(&mut final_state),
            stream: None,
        };
        recurrence.forward_into(&inputs, &coeffs, &mut outputs, whole, options)?;
        let arrays = [fetch(&outputs, part.shape())?];
        Ok(Results { part, arrays, states: final_state.download()? })
    }

    /// One rank's side of [`Engine::backward`].
    fn backward_of(
        &self,
        rank: &Rank,
        [d_outputs, coeffs, outputs]: [ArrayView2<S::Accum>; 3],
        options: &Options<S::Accum>,
    ) -> Result<Results<S::Accum, 2>, Error> {
        let (recurrence, device) = (self.recurrence(rank)?, rank.device());
        let whole = Shape::from(d_outputs.dim());
        let part = recurrence.part(whole)?;
        let mine = |array| of(array, &part);
        let d_outputs = send::<S, _>(device, "d_outputs", mine(d_outputs))?;
        let coeffs = send::<S, _>(device, "coeffs", mine(coeffs))?;
        let outputs = send::<S, _>(device, "outputs", mine(outputs))?;
        let initial = send_state(device, state_of(options, &part))?;
        let mut d_inputs = results::<S>(device, "d_inputs", part.len())?;
        let mut d_coeffs = results::<S>(device, "d_coeffs", part.len())?;
        let mut d_initial = results(device, "d_initial", part.rows.len())?;
        let options = BackwardOptions {
            direction: options.direction,
            log_coeffs: options.log_coeffs,
            initial: initial.as_ref(),
            d_initial: Some(&mut d_initial),
            stream: None,
        };
        recurrence.backward_into(
            &d_outputs,
            &coeffs,
            &outputs,
            &mut d_inputs,
            &mut d_coeffs,
            whole,
            options,
        )?;
        let arrays = [fetch(&d_inputs, part.shape())?, fetch(&d_coeffs, part.shape())?];
        Ok(Results { part, arrays, states: d_initial.download()? })
    }
}

/// The results of a rank.
struct Results<A, const N: usize> {
    part: Part,
    arrays: [Array2<A>; N],
    /// The final states or the gradients of the initial states, one for each of its rows.
    states: Vec<A>,
}

/// Returns a rank's part of an array.
fn of<'a, A>(array: ArrayView2<'a, A>, part: &Part) -> ArrayView2<'a, A> {
    array.slice_move(s![part.rows.clone(), part.steps.clone()])
}

/// Returns the initial states of a rank's rows.
fn state_of<'a, A>(options: &'a Options<A>, part: &Part) -> Option<ArrayView1<'a, A>> {
    options.initial.as_ref().map(|initial| initial.slice(s![part.rows.clone()]))
}

/// Allocates an array and its states for all parts.
fn whole<A: Element>(
    operation: &'static str,
    (num_seqs, seq_len): (usize, usize),
) -> Result<(Array2<A>, Array1<A>), Error> {
    let array = validate::allocate(operation, Dim([num_seqs, seq_len]))?;
    Ok((array, validate::allocate(operation, Dim([num_seqs]))?))
}

impl<S: Storage> Engine<S::Accum> for GroupEngine<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<S::Accum>,
        coeffs: ArrayView2<S::Accum>,
        options: &Options<S::Accum>,
    ) -> Result<Outputs<S::Accum>, Error> {
        let shape = validate::forward(&inputs, &coeffs, options)?;
        let parts = self.group.run(|rank| self.forward_of(rank, [inputs, coeffs], options))?;
        let (mut outputs, mut final_state) = whole("forward", shape)?;
        for Results { part, arrays: [mine], states } in parts {
            outputs.slice_mut(s![part.rows.clone(), part.steps]).assign(&mine);
            final_state.slice_mut(s![part.rows]).assign(&Array1::from_vec(states));
        }
        Ok(Outputs { outputs, final_state })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<S::Accum>,
        coeffs: ArrayView2<S::Accum>,
        outputs: ArrayView2<S::Accum>,
        options: &Options<S::Accum>,
    ) -> Result<Gradients<S::Accum>, Error> {
        let shape = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let arrays = [d_outputs, coeffs, outputs];
        let parts = self.group.run(|rank| self.backward_of(rank, arrays, options))?;
        let (mut d_inputs, mut d_initial) = whole("backward", shape)?;
        let mut d_coeffs = d_inputs.clone();
        for Results { part, arrays: [of_inputs, of_coeffs], states } in parts {
            let at = s![part.rows.clone(), part.steps];
            d_inputs.slice_mut(at).assign(&of_inputs);
            d_coeffs.slice_mut(at).assign(&of_coeffs);
            d_initial.slice_mut(s![part.rows]).assign(&Array1::from_vec(states));
        }
        Ok(Gradients { d_inputs, d_coeffs, d_initial })
    }
}
