//! The kernels around the recurrence, and how they are launched.

use linrec::Error;
use linrec::device::{Buffer, Device, Function, Launch, Launched, Stream};
use linrec::kernels::{ElementType, program};

use super::Passes;
use super::arrays::Given;
use crate::arguments::{Mixing, Sizes};

/// Threads of a block, at most, where each has a channel's position for itself.
const THREADS: usize = 256;
/// Threads that share a sum over positions, and over channels: `kThreads` and `kWays` of
/// `kernels/sums.cu`.
const OVER_POSITIONS: u32 = 256;
const OVER_CHANNELS: u32 = 16;
/// Positions of a block in a sum over channels.
const COLUMNS: usize = 32;
/// A grid has at most so many blocks along its second axis; they then take more positions in turns.
const MOST: usize = 65_535;

/// `kernels/expand.cu`, `contract.cu` and `sums.cu` for one element type.
#[derive(Debug, Clone)]
pub(super) struct Kernels {
    expand_fwd: Function,
    expand_bwd: Function,
    contract_fwd: Function,
    contract_bwd: Function,
    over_channels: Function,
    over_positions: Function,
}

/// What is behind a launch: nothing if there was nothing to compute.
type Maybe = Result<Option<Launched>, Error>;

impl Kernels {
    pub(super) fn load(device: &Device, element: ElementType) -> Result<Kernels, Error> {
        let number = element.cuda_name();
        let load = |file: &str, entries: [String; 2]| -> Result<[Function; 2], Error> {
            let source = program(file).ok_or_else(|| Error::Device {
                device: device.label().to_owned(),
                message: format!("the library was built without `{file}`"),
            })?;
            let module = device.program(&source.with_entries(&entries))?;
            Ok([module.function(&entries[0])?, module.function(&entries[1])?])
        };
        let both = |name: &str| ["fwd", "bwd"].map(|pass| format!("{name}_{pass}<{number}>"));
        let [expand_fwd, expand_bwd] = load("expand.cu", both("expand"))?;
        let [contract_fwd, contract_bwd] = load("contract.cu", both("contract"))?;
        let sums = [
            format!("sum_over_channels<{number}, {OVER_CHANNELS}>"),
            format!("sum_over_positions<{number}, {OVER_POSITIONS}>"),
        ];
        let [over_channels, over_positions] = load("sums.cu", sums)?;
        Ok(Kernels {
            expand_fwd,
            expand_bwd,
            contract_fwd,
            contract_bwd,
            over_channels,
            over_positions,
        })
    }

    /// `x` and `c`.
    // ANCHOR: expand
    pub(super) fn expand<S: 'static>(
        &self,
        given: &Given<S>,
        inputs: &mut Buffer<S>,
        coeffs: &mut Buffer<S>,
        stream: &Stream,
    ) -> Maybe {
        let Some(launch) = channels(&self.expand_fwd, given.sizes) else { return Ok(None) };
        let launch = launch.arg(given.u).arg(given.delta).arg(given.delta_bias).arg(given.a);
        let launch = launch.arg(given.b.buffer()).arg(inputs).arg(coeffs);
        let launch = lens(launch, given.sizes).arg(i32::from(given.delta_softplus));
        launch.arg(i32::from(given.b.is_fixed())).run(stream).map(Some)
    }
    // ANCHOR_END: expand

    /// `y`.
    pub(super) fn contract<S: 'static>(
        &self,
        given: &Given<S>,
        outputs: &Buffer<S>,
        y: &mut Buffer<S>,
        stream: &Stream,
    ) -> Maybe {
        let Some(launch) = channels(&self.contract_fwd, given.sizes) else { return Ok(None) };
        let launch = launch.arg(outputs).arg(given.c.buffer()).arg(given.u).arg(given.d);
        let launch = lens(launch.arg(given.z).arg(y), given.sizes);
        launch.arg(i32::from(given.c.is_fixed())).run(stream).map(Some)
    }

    /// From the gradients of `y` and of the last states to those of the states, of what the gate
    /// multiplies, and of `z`.
    pub(super) fn contract_back<S: 'static>(
        &self,
        given: &Given<S>,
        (d_y, d_last): (&Buffer<S>, Option<&Buffer<S>>),
        outputs: &Buffer<S>,
        (d_outputs, d_sum, d_z): (&mut Buffer<S>, &mut Buffer<S>, Option<&mut Buffer<S>>),
        stream: &Stream,
    ) -> Maybe {
        let Some(launch) = channels(&self.contract_bwd, given.sizes) else { return Ok(None) };
        let launch = launch.arg(d_y).arg(d_last).arg(outputs).arg(given.c.buffer());
        let launch = launch.arg(given.u).arg(given.d).arg(given.z);
        let launch = lens(launch.arg(d_outputs).arg(d_sum).arg(d_z), given.sizes);
        launch.arg(i32::from(given.c.is_fixed())).run(stream).map(Some)
    }

    /// From the gradients of inputs and coefficients (and the coefficients, and the gradient of
    /// what the gate multiplies) to those of `u` and `delta`; also writes `Δ u` and `Δ`.
    pub(super) fn expand_back<S: 'static>(
        &self,
        given: &Given<S>,
        received: [&Buffer<S>; 4],
        (d_u, d_delta): (&mut Buffer<S>, &mut Buffer<S>),
        (scaled, steps): (&mut Buffer<S>, &mut Buffer<S>),
        stream: &Stream,
    ) -> Maybe {
        let Some(launch) = channels(&self.expand_bwd, given.sizes) else { return Ok(None) };
        let launch = received.into_iter().fold(launch, |launch, array| launch.arg(array));
        let launch = launch.arg(given.u).arg(given.delta).arg(given.delta_bias).arg(given.a);
        let launch = launch.arg(given.b.buffer()).arg(given.d);
        let launch = launch.arg(d_u).arg(d_delta).arg(scaled).arg(steps);
        let launch = lens(launch, given.sizes).arg(i32::from(given.delta_softplus));
        launch.arg(i32::from(given.b.is_fixed())).run(stream).map(Some)
    }

    /// The gradient of `B` or `C`, which is `mixing`: `weights` times `terms`, summed over the
    /// channels of each group, or over sequences and positions.
    pub(super) fn sum_shared<S: 'static>(
        &self,
        given: &Given<S>,
        mixing: Mixing<&Buffer<S>, &Buffer<S>>,
        weights: &Buffer<S>,
        terms: &Buffer<S>,
        sums: &mut Buffer<S>,
        stream: &Stream,
    ) -> Result<Passes, Error> {
        if mixing.is_fixed() {
            return self.sum_rows(given, Some(weights), (terms, None), sums, stream);
        }
        let Sizes { batch, groups, states, len, .. } = given.sizes;
        let (rows, tiles) = (batch * groups * states, len.div_ceil(COLUMNS).min(MOST));
        if rows * tiles == 0 {
            return Ok(Vec::new());
        }
        let threads = COLUMNS as u32 * OVER_CHANNELS;
        let launch = self.over_channels.launch((blocks(rows), tiles as u32), threads);
        let launch = lens(launch.arg(weights).arg(terms).arg(sums), given.sizes);
        Ok(vec![("sum over channels", launch.run(stream)?)])
    }

    /// The gradient of what does not depend on the input, one sum for each element of `sums`: of
    /// the rows of the first of `terms` times those of the second, over sequences and positions,
    /// each times that of its channel in `weights`.
    pub(super) fn sum_rows<S: 'static>(
        &self,
        given: &Given<S>,
        weights: Option<&Buffer<S>>,
        (terms, more): (&Buffer<S>, Option<&Buffer<S>>),
        sums: &mut Buffer<S>,
        stream: &Stream,
    ) -> Result<Passes, Error> {
        let Sizes { batch, channels, len, .. } = given.sizes;
        let rows = sums.len();
        if rows == 0 {
            return Ok(Vec::new());
        }
        let launch = self.over_positions.launch(blocks(rows), OVER_POSITIONS);
        let launch = launch.arg(weights).arg(terms).arg(more).arg(sums);
        let lens = [batch, channels, rows, len];
        let launch = lens.into_iter().fold(launch, |launch, len| launch.arg(len as i64));
        Ok(vec![("sum over positions", launch.run(stream)?)])
    }

    /// A copy: each sum is of one term.
    pub(super) fn copy<S: 'static>(
        &self,
        from: &Buffer<S>,
        to: &mut Buffer<S>,
        stream: &Stream,
    ) -> Result<Passes, Error> {
        let rows = to.len();
        if rows == 0 {
            return Ok(Vec::new());
        }
        let none = None::<&Buffer<S>>;
        let launch = self.over_positions.launch(blocks(rows), OVER_POSITIONS);
        let launch = launch.arg(none).arg(from).arg(none).arg(to);
        let launch =
            [1, rows, rows, 1].into_iter().fold(launch, |launch, len| launch.arg(len as i64));
        Ok(vec![("copy", launch.run(stream)?)])
    }
}

/// A launch with a thread for each position of each channel; `None` if there are none.
fn channels(function: &Function, sizes: Sizes) -> Option<Launch<'_>> {
    let (rows, len) = (sizes.batch * sizes.channels, sizes.len);
    let threads = len.next_multiple_of(32).min(THREADS);
    (rows * len > 0).then(|| {
        let along = len.div_ceil(threads).min(MOST);
        function.launch((blocks(rows), along as u32), threads as u32)
    })
}

/// More blocks than a number holds are more than any grid has: the launch says so.
fn blocks(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The sizes, as the kernels take them.
fn lens(launch: Launch<'_>, sizes: Sizes) -> Launch<'_> {
    let Sizes { channels, groups, states, len, .. } = sizes;
    let lens = [channels, groups, states, len];
    lens.into_iter().fold(launch, |launch, len| launch.arg(len as i64))
}
