//! What a selective scan reads and writes on a device, and whether it fits together.

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
    /// What writes into the states.
    pub b: Mixing<&'a Buffer<S>, &'a Buffer<S>>,
    /// What reads from them.
    pub c: Mixing<&'a Buffer<S>, &'a Buffer<S>>,
    /// `[channels]`.
    pub d: Option<&'a Buffer<S>>,
    /// `[batch, channels, len]`.
    pub z: Option<&'a Buffer<S>>,
    /// `[channels]`.
    pub delta_bias: Option<&'a Buffer<S>>,
    /// Whether `delta` goes through softplus.
    pub delta_softplus: bool,
    /// The states before the first step, `[batch, channels, states]`; `None` means zero.
    pub initial: Option<&'a Buffer<S>>,
}

impl Sizes {
    /// The elements of `u`.
    fn own(&self) -> usize {
        self.batch * self.channels * self.len
    }

    /// The states of all channels at one position.
    fn all_states(&self) -> usize {
        self.batch * self.channels * self.states
    }

    /// The elements of the recurrence's arrays.
    fn expanded(&self) -> usize {
        self.all_states() * self.len
    }

    /// The elements of `B` or `C`.
    fn mixing<V, F>(&self, mixing: &Mixing<V, F>) -> usize {
        match mixing {
            Mixing::Varying(_) => self.batch * self.groups * self.states * self.len,
            Mixing::Fixed(_) => self.channels * self.states,
        }
    }
}

/// What passes through the memory for each channel and position, in bytes: `B`, `C` and what a
/// channel has once lie in the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Read.
    pub read: usize,
    /// Written.
    pub written: usize,
}

impl Traffic {
    /// Of the expansion, of the recurrence and of the contraction, with so many states and numbers
    /// of so many bytes.
    // ANCHOR: traffic
    pub fn of_passes(states: usize, has_d: bool, has_z: bool, bytes: usize) -> [Traffic; 3] {
        // u and Δ become x and c; these become h; that becomes y, with u once more for D, and z.
        let again = usize::from(has_d) + usize::from(has_z);
        let numbers = [(2, 2 * states), (2 * states, states), (states + again, 1)];
        numbers.map(|(read, written)| Traffic { read: read * bytes, written: written * bytes })
    }

    /// If the states stayed on the chip.
    pub fn fused(has_z: bool, bytes: usize) -> Traffic {
        Traffic { read: (2 + usize::from(has_z)) * bytes, written: bytes }
    }
    // ANCHOR_END: traffic

    /// Both.
    pub fn all(&self) -> usize {
        self.read + self.written
    }
}

impl<'a, S> Mixing<&'a Buffer<S>, &'a Buffer<S>> {
    /// Its numbers, however they lie.
    pub(super) fn buffer(&self) -> &'a Buffer<S> {
        match self {
            Mixing::Varying(buffer) | Mixing::Fixed(buffer) => buffer,
        }
    }
}

impl<S> Given<'_, S> {
    /// What the recurrence is computed of: a row for each state of each channel.
    pub(super) fn rows(&self) -> Shape {
        Shape { num_seqs: self.sizes.all_states(), seq_len: self.sizes.len }
    }

    /// An error unless these arrays, `u`'s likes, and all that was given have the sizes they
    /// should.
    pub(super) fn check(&self, own: &[(&'static str, usize)], room: &Room<S>) -> Result<(), Error> {
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
            ("room", Some(&room.inputs), sizes.expanded()),
        ];
        let lens = buffers.iter().filter_map(|&(name, buffer, expected)| {
            buffer.map(|buffer| (name, buffer.len(), expected))
        });
        let own = own.iter().map(|&(name, len)| (name, len, sizes.own()));
        self.agree(lens.chain(own))
    }

    /// An error unless all that a backward pass is given has the lengths that the sizes ask for.
    pub(super) fn check_gradients(
        &self,
        d_y: &Buffer<S>,
        d_last: Option<&Buffer<S>>,
        room: &GradientRoom<S>,
        gradients: &Gradients<S>,
    ) -> Result<(), Error> {
        self.check(&[("d_y", d_y.len()), ("room", room.d_sum.len())], &room.states)?;
        let sizes = self.sizes;
        let expected = Gradients::<S>::lens(self);
        let d_last = d_last.map(|d_last| ("d_last_state", d_last.len(), sizes.all_states()));
        let lens = gradients.buffers().into_iter().zip(expected);
        let lens = lens.map(|((name, len), expected)| (name, len, expected));
        self.agree(lens.chain(d_last))
    }

    /// Each array has a name, as many elements as it has, and as many as it should have.
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

/// What has the states' dimension: the recurrence's arrays, `[batch, channels, states, len]`.
#[derive(Debug)]
// ANCHOR: room
pub struct Room<S> {
    /// `x = Δ B u`.
    pub inputs: Buffer<S>,
    /// `c = e^(Δ A)`.
    pub coeffs: Buffer<S>,
    /// The states `h`.
    pub outputs: Buffer<S>,
}
// ANCHOR_END: room

impl<S: Storage> Room<S> {
    /// Room for problems of these sizes.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory.
    pub fn new(device: &Device, sizes: Sizes) -> Result<Self, Error> {
        let array = |name| device.allocate_named(name, sizes.expanded());
        Ok(Room { inputs: array("inputs")?, coeffs: array("coeffs")?, outputs: array("outputs")? })
    }
}

/// What a backward pass needs beside its results.
#[derive(Debug)]
pub struct GradientRoom<S> {
    /// The states, computed again. The inputs are overwritten.
    pub states: Room<S>,
    /// The gradient of the recurrence's inputs, `[batch, channels, states, len]`.
    pub d_inputs: Buffer<S>,
    /// That of its coefficients.
    pub d_coeffs: Buffer<S>,
    /// That of what the gate multiplies, `[batch, channels, len]`.
    pub d_sum: Buffer<S>,
    /// `Δ u`.
    pub scaled: Buffer<S>,
    /// `Δ`.
    pub steps: Buffer<S>,
}

impl<S: Storage> GradientRoom<S> {
    /// Room for problems of these sizes.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory.
    pub fn new(device: &Device, sizes: Sizes) -> Result<Self, Error> {
        let expanded = |name| device.allocate_named(name, sizes.expanded());
        let own = |name| device.allocate_named(name, sizes.own());
        Ok(GradientRoom {
            states: Room::new(device, sizes)?,
            d_inputs: expanded("d_inputs")?,
            d_coeffs: expanded("d_coeffs")?,
            d_sum: own("d_sum")?,
            scaled: own("scaled")?,
            steps: own("steps")?,
        })
    }
}

/// The gradients of a loss on a device, each in the shape of the argument it belongs to.
#[derive(Debug)]
pub struct Gradients<S> {
    /// Of `u`.
    pub d_u: Buffer<S>,
    /// Of `delta` as it was given.
    pub d_delta: Buffer<S>,
    /// Of `A`.
    pub d_a: Buffer<S>,
    /// Of `B`.
    pub d_b: Buffer<S>,
    /// Of `C`.
    pub d_c: Buffer<S>,
    /// Of the bias of `delta`; what it would be if none was given.
    pub d_delta_bias: Buffer<S>,
    /// Of the states before the first step; what it would be if none were given.
    pub d_initial: Buffer<S>,
    /// Of `D`, if it was given.
    pub d_d: Option<Buffer<S>>,
    /// Of `z`, if it was given.
    pub d_z: Option<Buffer<S>>,
}

impl<S: Storage> Gradients<S> {
    /// Room for the gradients of what is given.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory.
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
    /// All arrays that there are.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Buffer<S>> {
        let Gradients { d_u, d_delta, d_a, d_b, d_c, d_delta_bias, d_initial, d_d, d_z } = self;
        let always = [d_u, d_delta, d_a, d_b, d_c, d_delta_bias, d_initial];
        always.into_iter().chain(d_d).chain(d_z)
    }

    /// How many elements each has, in the order of the fields; none where there is no such
    /// argument.
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
