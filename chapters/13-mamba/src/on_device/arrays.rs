//! The arrays that a selective scan reads and writes on a device, and the checks of their sizes.
//!
//! Every array is a [`Buffer`] that the caller allocates once and uses for many calls, so that a
//! pass itself allocates nothing. A buffer knows only its length; [`Sizes`] gives the shapes, and a
//! pass refuses any buffer whose length disagrees with them before it launches a kernel.
//! `tests/suite/on_device.rs` tests the passes and the refusals.

use linrec::Error;
use linrec::device::{Buffer, Device, Shape, Storage};

use crate::Sizes;
use crate::arguments::Mixing;

/// The arguments of a selective scan in a device's memory, in the shapes of
/// [`Arguments`](crate::Arguments).
#[derive(Debug, Clone, Copy)]
pub struct Given<'a, S> {
    /// The sizes.
    pub sizes: Sizes,
    /// `[batch, channels, len]`.
    pub u: &'a Buffer<S>,
    /// `[batch, channels, len]`.
    pub delta: &'a Buffer<S>,
    /// `[channels, states]`.
    pub a: &'a Buffer<S>,
    /// The weights that write into the states.
    pub b: Mixing<&'a Buffer<S>, &'a Buffer<S>>,
    /// The weights that read from the states.
    pub c: Mixing<&'a Buffer<S>, &'a Buffer<S>>,
    /// `[channels]`.
    pub d: Option<&'a Buffer<S>>,
    /// `[batch, channels, len]`.
    pub z: Option<&'a Buffer<S>>,
    /// `[channels]`.
    pub delta_bias: Option<&'a Buffer<S>>,
    /// True if `delta` goes through softplus.
    pub delta_softplus: bool,
    /// The states before the first step, `[batch, channels, states]`; `None` means zero.
    pub initial: Option<&'a Buffer<S>>,
}

impl Sizes {
    /// Returns the number of elements of `u`.
    fn own(&self) -> usize {
        self.batch * self.channels * self.len
    }

    /// Returns the number of states of all channels at one position.
    fn all_states(&self) -> usize {
        self.batch * self.channels * self.states
    }

    /// Returns the number of elements of each of the recurrence's arrays.
    fn expanded(&self) -> usize {
        self.all_states() * self.len
    }

    /// Returns the number of elements of `B` or `C`.
    fn mixing<V, F>(&self, mixing: &Mixing<V, F>) -> usize {
        match mixing {
            Mixing::Varying(_) => self.batch * self.groups * self.states * self.len,
            Mixing::Fixed(_) => self.channels * self.states,
        }
    }
}

/// The memory traffic for each channel and position, in bytes. `B`, `C` and the arrays without
/// positions stay in the caches and do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// The number of bytes read.
    pub read: usize,
    /// The number of bytes written.
    pub written: usize,
}

impl Traffic {
    /// Returns the traffic of the expansion, of the recurrence and of the contraction, with
    /// `states` states of each channel and `bytes` bytes in a number.
    // ANCHOR: traffic
    pub fn of_passes(states: usize, has_d: bool, has_z: bool, bytes: usize) -> [Traffic; 3] {
        // u and Δ become x and c; these become h; that becomes y, with u once more for D, and z.
        let again = usize::from(has_d) + usize::from(has_z);
        let numbers = [(2, 2 * states), (2 * states, states), (states + again, 1)];
        numbers.map(|(read, written)| Traffic { read: read * bytes, written: written * bytes })
    }

    /// Returns the traffic of a fused scan, whose states stay on the chip.
    pub fn fused(has_z: bool, bytes: usize) -> Traffic {
        Traffic { read: (2 + usize::from(has_z)) * bytes, written: bytes }
    }
    // ANCHOR_END: traffic

    /// Returns the sum of both.
    pub fn all(&self) -> usize {
        self.read + self.written
    }
}

impl<'a, S> Mixing<&'a Buffer<S>, &'a Buffer<S>> {
    /// Returns the buffer of either variant.
    pub(super) fn buffer(&self) -> &'a Buffer<S> {
        match self {
            Mixing::Varying(buffer) | Mixing::Fixed(buffer) => buffer,
        }
    }
}

impl<S> Given<'_, S> {
    /// Returns the shape of the recurrence: one row for each state of each channel.
    pub(super) fn rows(&self) -> Shape {
        Shape { num_seqs: self.sizes.all_states(), seq_len: self.sizes.len }
    }

    /// Checks the lengths of `own` (arrays with as many elements as `u` has), of the arguments and
    /// of the scratch arrays.
    pub(super) fn check(
        &self,
        own: &[(&'static str, usize)],
        scratch: &Scratch<S>,
    ) -> Result<(), Error> {
        let sizes = self.sizes;
        let buffers = [
            ("u", Some(self.u), sizes.own()),
            ("delta", Some(self.delta), sizes.own()),
            ("A", Some(self.a), sizes.channels * sizes.states),
            ("B", Some(self.b.buffer()), sizes.mixing(&self.b)),
            ("C", Some(self.c.buffer()), sizes.mixing(&self.c)),
            ("D", self.d, sizes.channels),
            ("z", self.z, sizes.own()),
            ("delta_bias", self.delta_bias, sizes.channels),
            ("initial", self.initial, sizes.all_states()),
            ("scratch", Some(&scratch.inputs), sizes.expanded()),
        ];
        let lens = buffers.iter().filter_map(|&(name, buffer, expected)| {
            buffer.map(|buffer| (name, buffer.len(), expected))
        });
        let own = own.iter().map(|&(name, len)| (name, len, sizes.own()));
        self.agree(lens.chain(own))
    }

    /// Checks the lengths of all arrays of a backward pass.
    pub(super) fn check_gradients(
        &self,
        d_y: &Buffer<S>,
        d_last: Option<&Buffer<S>>,
        scratch: &GradientScratch<S>,
        gradients: &Gradients<S>,
    ) -> Result<(), Error> {
        self.check(&[("d_y", d_y.len()), ("scratch", scratch.d_sum.len())], &scratch.states)?;
        let sizes = self.sizes;
        let expected = Gradients::<S>::lens(self);
        let d_last = d_last.map(|d_last| ("d_last_state", d_last.len(), sizes.all_states()));
        let lens = gradients.buffers().into_iter().zip(expected);
        let lens = lens.map(|((name, len), expected)| (name, len, expected));
        self.agree(lens.chain(d_last))
    }

    /// Compares lengths; each item is an array's name, its length and the expected length.
    fn agree(&self, lens: impl Iterator<Item = (&'static str, usize, usize)>) -> Result<(), Error> {
        let Sizes { batch, channels, groups, states, len } = self.sizes;
        for (name, elements, expected) in lens {
            if elements != expected {
                let sizes = vec![batch, channels, groups, states, len];
                let arrays = vec![("sizes", sizes), (name, vec![elements])];
                return Err(Error::ShapeMismatch { operation: "selective scan", arrays });
            }
        }
        Ok(())
    }
}

/// The arrays of the recurrence, `[batch, channels, states, len]`: the scratch memory of a scan.
#[derive(Debug)]
pub struct Scratch<S> {
    /// `x = Δ B u`.
    pub inputs: Buffer<S>,
    /// `c = e^(Δ A)`.
    pub coeffs: Buffer<S>,
    /// The states `h`.
    pub outputs: Buffer<S>,
}

impl<S: Storage> Scratch<S> {
    /// Allocates the scratch memory for problems of these sizes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if there is not enough memory.
    pub fn new(device: &Device, sizes: Sizes) -> Result<Self, Error> {
        let array = |name| device.allocate_named(name, sizes.expanded());
        Ok(Scratch {
            inputs: array("inputs")?,
            coeffs: array("coeffs")?,
            outputs: array("outputs")?,
        })
    }
}

/// The scratch memory of a backward pass.
#[derive(Debug)]
pub struct GradientScratch<S> {
    /// The states, computed again. The inputs are overwritten.
    pub states: Scratch<S>,
    /// The gradient of the recurrence's inputs, `[batch, channels, states, len]`.
    pub d_inputs: Buffer<S>,
    /// The gradient of the recurrence's coefficients.
    pub d_coeffs: Buffer<S>,
    /// The gradient of what the gate multiplies, `[batch, channels, len]`.
    pub d_sum: Buffer<S>,
    /// `Δ u`.
    pub scaled: Buffer<S>,
    /// `Δ`.
    pub steps: Buffer<S>,
}

impl<S: Storage> GradientScratch<S> {
    /// Allocates the scratch memory for problems of these sizes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if there is not enough memory.
    pub fn new(device: &Device, sizes: Sizes) -> Result<Self, Error> {
        let expanded = |name| device.allocate_named(name, sizes.expanded());
        let own = |name| device.allocate_named(name, sizes.own());
        Ok(GradientScratch {
            states: Scratch::new(device, sizes)?,
            d_inputs: expanded("d_inputs")?,
            d_coeffs: expanded("d_coeffs")?,
            d_sum: own("d_sum")?,
            scaled: own("scaled")?,
            steps: own("steps")?,
        })
    }
}

/// The gradients of a loss on a device, each in the shape of its argument.
#[derive(Debug)]
pub struct Gradients<S> {
    /// The gradient with respect to `u`.
    pub d_u: Buffer<S>,
    /// The gradient with respect to `delta` before bias and softplus.
    pub d_delta: Buffer<S>,
    /// The gradient with respect to `A`.
    pub d_a: Buffer<S>,
    /// The gradient with respect to `B`.
    pub d_b: Buffer<S>,
    /// The gradient with respect to `C`.
    pub d_c: Buffer<S>,
    /// The gradient with respect to the bias of `delta`, or to a bias of zero if none was given.
    pub d_delta_bias: Buffer<S>,
    /// The gradient with respect to the initial states, or to zeros if none were given.
    pub d_initial: Buffer<S>,
    /// The gradient with respect to `D`, if it was given.
    pub d_d: Option<Buffer<S>>,
    /// The gradient with respect to `z`, if it was given.
    pub d_z: Option<Buffer<S>>,
}

impl<S: Storage> Gradients<S> {
    /// Allocates the gradients for these arguments.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if there is not enough memory.
    pub fn new(device: &Device, given: &Given<S>) -> Result<Self, Error> {
        let [d_u, d_delta, d_a, d_b, d_c, d_delta_bias, d_initial, d_d, d_z] = Self::lens(given);
        let array = |name, len| device.allocate_named(name, len);
        Ok(Gradients {
            d_u: array("d_u", d_u)?,
            d_delta: array("d_delta", d_delta)?,
            d_a: array("d_A", d_a)?,
            d_b: array("d_B", d_b)?,
            d_c: array("d_C", d_c)?,
            d_delta_bias: array("d_delta_bias", d_delta_bias)?,
            d_initial: array("d_initial", d_initial)?,
            d_d: given.d.map(|_| array("d_D", d_d)).transpose()?,
            d_z: given.z.map(|_| array("d_z", d_z)).transpose()?,
        })
    }
}

impl<S> Gradients<S> {
    /// Returns all arrays that exist.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Buffer<S>> {
        let Gradients { d_u, d_delta, d_a, d_b, d_c, d_delta_bias, d_initial, d_d, d_z } = self;
        let always = [d_u, d_delta, d_a, d_b, d_c, d_delta_bias, d_initial];
        always.into_iter().chain(d_d).chain(d_z)
    }

    /// Returns the lengths in the order of the fields; zero if the argument is absent.
    fn lens(given: &Given<S>) -> [usize; 9] {
        let sizes = given.sizes;
        let own = sizes.own();
        [
            own,
            own,
            sizes.channels * sizes.states,
            sizes.mixing(&given.b),
            sizes.mixing(&given.c),
            sizes.channels,
            sizes.all_states(),
            given.d.map_or(0, |_| sizes.channels),
            given.z.map_or(0, |_| own),
        ]
    }

    fn buffers(&self) -> [(&'static str, usize); 9] {
        let optional = |buffer: &Option<Buffer<S>>| buffer.as_ref().map_or(0, Buffer::len);
        [
            ("d_u", self.d_u.len()),
            ("d_delta", self.d_delta.len()),
            ("d_A", self.d_a.len()),
            ("d_B", self.d_b.len()),
            ("d_C", self.d_c.len()),
            ("d_delta_bias", self.d_delta_bias.len()),
            ("d_initial", self.d_initial.len()),
            ("d_D", optional(&self.d_d)),
            ("d_z", optional(&self.d_z)),
        ]
    }
}
