//! The kernels around the recurrence, and how they are launched.

use linrec::Error;
use linrec::device::{Buffer, Device, Function, Launch, Launched, Stream};
use linrec::kernels::{ElementType, program};

use super::Passes;
use super::arrays::Given;
use crate::arguments::{Mixing, Sizes};

/// The largest block of a kernel in which each thread handles one position of one channel.
const THREADS: usize = 256;
/// The number of threads that share a sum over positions, and over channels: `kThreads` and `kWays`
/// of `kernels/sums.cu`.
const OVER_POSITIONS: u32 = 256;
const OVER_CHANNELS: u32 = 16;
/// The number of positions that a block of a sum over channels covers.
const COLUMNS: usize = 32;
/// The largest grid along its second axis; beyond it, blocks take several positions in turn.
const MOST: usize = 65_535;

/// The functions of `kernels/expand.cu`, `contract.cu` and `sums.cu` for one element type.
#[derive(Debug, Clone)]
pub(super) struct Kernels {
    expand_fwd: Function,
    expand_bwd: Function,
    contract_fwd: Function,
    contract_bwd: Function,
    over_channels: Function,
    over_positions: Function,
}

/// The result of a launch; `None` if it had nothing to compute.
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

    /// Computes `x` and `c`.
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

    /// Computes `y`.
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

    /// Computes the gradients of the states, of what the gate multiplies, and of `z` from the
    /// gradients of `y` and of the last states.
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

    /// Computes the gradients of `u` and `delta`, and writes `Δ u` and `Δ`. It receives the
    /// gradients of the inputs and coefficients, the coefficients, and the gradient of what the
    /// gate multiplies.
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

    /// Computes the gradient of `B` or `C`, whose variant is `mixing`: `weights` times `terms`,
    /// summed over the channels of each group, or over sequences and positions.
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

    /// Computes the gradient of an argument that does not depend on the input, one sum for each
    /// element of `sums`. A sum is over sequences and positions, of a row of the first of `terms`
    /// times its row of the second, times the row of its channel in `weights`.
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

    /// Copies a buffer: each sum has one term.
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

/// Prepares a launch with one thread for each position of each channel; `None` if there are none.
fn channels(function: &Function, sizes: Sizes) -> Option<Launch<'_>> {
    let (rows, len) = (sizes.batch * sizes.channels, sizes.len);
    let threads = len.next_multiple_of(32).min(THREADS);
    (rows * len > 0).then(|| {
        let along = len.div_ceil(threads).min(MOST);
        function.launch((blocks(rows), along as u32), threads as u32)
    })
}

/// A count beyond `u32` becomes the largest number, which no grid allows: the launch reports it.
fn blocks(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Adds the sizes in the order in which the kernels take them.
fn lens(launch: Launch<'_>, sizes: Sizes) -> Launch<'_> {
    let Sizes { channels, groups, states, len, .. } = sizes;
    let lens = [channels, groups, states, len];
    lens.into_iter().fold(launch, |launch, len| launch.arg(len as i64))
}
