//! Coefficients that are given as logarithms: `c = e^a` before a pass, and `d_coeffs * c` behind
//! it.

use std::any::Any;
use std::ops::Deref;
use std::sync::OnceLock;

use super::room::{Contents, Pool, Room};
use super::{BackwardOptions, ForwardOptions, Recurrence, Shape};
use crate::Error;
use crate::device::{Buffer, Device, Function, Launch, Launched, Storage, Stream};
use crate::kernels::{ElementType, program};

/// Threads of a block of the kernels that work element by element.
const THREADS: u32 = 256;

/// What a recurrence has to have beside its own kernels. Nothing is loaded or allocated before it
/// is needed.
///
/// Coefficients are computed in the type of computation. If arrays are stored in another one, of 16
/// bits, all of the recurrence is computed in arrays of the wide type, and its results are rounded
/// once.
#[derive(Debug)]
pub(super) struct Logarithms<S: Storage> {
    kernels: OnceLock<Kernels>,
    /// The recurrence over arrays of the wide type, if they are stored in another one.
    wide: OnceLock<Recurrence<S::Accum>>,
    pool: Pool<S::Accum>,
}

/// The kernels of `kernels/exponential.cu` for one element type.
#[derive(Debug)]
struct Kernels {
    coeffs_from_logs: Function,
    d_logs_from_d_coeffs: Function,
    /// From memory to the type of computation and back, if that is another one.
    conversions: Option<Conversions>,
}

#[derive(Debug)]
struct Conversions {
    widened: Function,
    narrowed: Function,
}

impl Kernels {
    fn load(device: &Device, element: ElementType) -> Result<Kernels, Error> {
        let named = |kernel: &str| format!("{kernel}<{}>", element.cuda_name());
        let mut names = vec!["coeffs_from_logs", "d_logs_from_d_coeffs"];
        if element.accumulator() != element {
            names.extend(["widened", "narrowed"]);
        }
        let source = program("exponential.cu").ok_or_else(|| {
            Error::device(device.label(), "the library was built without `exponential.cu`")
        })?;
        let module =
            device.program(&source.with_entries(names.iter().map(|kernel| named(kernel))))?;
        let function = |kernel| module.function(&named(kernel));
        Ok(Kernels {
            coeffs_from_logs: function("coeffs_from_logs")?,
            d_logs_from_d_coeffs: function("d_logs_from_d_coeffs")?,
            conversions: match element.accumulator() == element {
                true => None,
                false => Some(Conversions {
                    widened: function("widened")?,
                    narrowed: function("narrowed")?,
                }),
            },
        })
    }
}

impl<S: Storage> Default for Logarithms<S> {
    fn default() -> Self {
        let (kernels, wide, pool) = (OnceLock::new(), OnceLock::new(), Pool::default());
        Logarithms { kernels, wide, pool }
    }
}

impl<S: Storage> Logarithms<S> {
    /// As [`Recurrence::forward_with_logs`].
    pub(super) fn forward_into(
        &self,
        recurrence: &Recurrence<S>,
        (inputs, logs, outputs): (&Buffer<S>, &Buffer<S>, &mut Buffer<S>),
        shape: Shape,
        options: ForwardOptions<S::Accum>,
        plain: impl FnOnce(
            &Recurrence<S::Accum>,
            (&Buffer<S::Accum>, &Buffer<S::Accum>, &mut Buffer<S::Accum>),
            ForwardOptions<S::Accum>,
        ) -> Result<Launched, Error>,
    ) -> Result<Launched, Error> {
        shape.check_forward(inputs, logs, outputs, &options)?;
        let wide = self.wide(recurrence)?;
        let home = recurrence.device.stream();
        let stream = options.stream.unwrap_or(&home);
        let options = ForwardOptions { log_coeffs: false, ..options };
        let mut call = self.call(recurrence, "forward_into", stream, logs.len())?;

        let coeffs = call.coeffs(logs)?;
        let inputs = call.widened(inputs)?;
        let launched = if let Some(outputs) = same_mut(outputs) {
            plain(wide, (&inputs, &coeffs, outputs), options)?
        } else {
            let mut room = call.room()?;
            let launched = plain(wide, (&inputs, &coeffs, &mut room), options)?;
            call.narrowed(&room, outputs)?;
            launched
        };
        Ok(call.launched(launched))
    }

    /// As [`Recurrence::backward_with_logs`].
    pub(super) fn backward_into(
        &self,
        recurrence: &Recurrence<S>,
        [d_outputs, logs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_logs]: [&mut Buffer<S>; 2],
        shape: Shape,
        options: BackwardOptions<S::Accum>,
        plain: impl FnOnce(
            &Recurrence<S::Accum>,
            [&Buffer<S::Accum>; 3],
            [&mut Buffer<S::Accum>; 2],
            BackwardOptions<S::Accum>,
        ) -> Result<Launched, Error>,
    ) -> Result<Launched, Error> {
        shape.check_backward([d_outputs, logs, outputs], [d_inputs, d_logs], &options)?;
        let wide = self.wide(recurrence)?;
        let home = recurrence.device.stream();
        let stream = options.stream.unwrap_or(&home);
        let options = BackwardOptions { log_coeffs: false, ..options };
        let mut call = self.call(recurrence, "backward_into", stream, logs.len())?;

        let coeffs = call.coeffs(logs)?;
        let (d_outputs, outputs) = (call.widened(d_outputs)?, call.widened(outputs)?);
        let launched = if let Some(d_inputs) = same_mut(d_inputs)
            && let Some(d_coeffs) = same_mut(d_logs)
        {
            let inputs = [&*d_outputs, &*coeffs, &*outputs];
            let launched = plain(wide, inputs, [d_inputs, &mut *d_coeffs], options)?;
            let d_coeffs = d_coeffs.slice(..)?;
            call.d_logs(&d_coeffs, &coeffs, d_logs)?;
            launched
        } else {
            let (mut wide_d_inputs, mut d_coeffs) = (call.room()?, call.room()?);
            let inputs = [&*d_outputs, &*coeffs, &*outputs];
            let results = [&mut *wide_d_inputs, &mut *d_coeffs];
            let launched = plain(wide, inputs, results, options)?;
            call.narrowed(&wide_d_inputs, d_inputs)?;
            call.d_logs(&d_coeffs, &coeffs, d_logs)?;
            launched
        };
        Ok(call.launched(launched))
    }

    /// The recurrence over arrays of the type that is computed with: this one, or one made for it.
    fn wide<'a>(
        &'a self,
        recurrence: &'a Recurrence<S>,
    ) -> Result<&'a Recurrence<S::Accum>, Error> {
        if let Some(same) = same(recurrence) {
            return Ok(same);
        }
        if let Some(wide) = self.wide.get() {
            return Ok(wide);
        }
        if recurrence.own_program {
            let (here, wide) = (S::ELEMENT, S::ELEMENT.accumulator());
            let what = format!(
                "log_coeffs: true for {here} by a program of one's own: it is computed in {wide}, for which \
                 the program has no kernels; store {wide}"
            );
            return Err(Error::Unsupported { engine: recurrence.choice.to_string(), what });
        }
        let wide = Recurrence::new(&recurrence.device, recurrence.choice)?;
        Ok(self.wide.get_or_init(|| wide))
    }

    fn call<'a>(
        &'a self,
        recurrence: &'a Recurrence<S>,
        operation: &'static str,
        stream: &'a Stream,
        len: usize,
    ) -> Result<Call<'a, S>, Error> {
        let device = &recurrence.device;
        let kernels = match self.kernels.get() {
            Some(kernels) => kernels,
            None => {
                let kernels = Kernels::load(device, S::ELEMENT)?;
                self.kernels.get_or_init(|| kernels)
            }
        };
        let beside = Launched::nothing(&kernels.coeffs_from_logs);
        Ok(Call { kernels, pool: &self.pool, device, operation, stream, len, beside })
    }
}

/// One call: what it takes, and what it has launched beside the recurrence.
struct Call<'a, S: Storage> {
    kernels: &'a Kernels,
    pool: &'a Pool<S::Accum>,
    device: &'a Device,
    operation: &'static str,
    stream: &'a Stream,
    /// The elements of every array.
    len: usize,
    beside: Launched,
}

impl<'a, S: Storage> Call<'a, S> {
    /// The coefficients whose logarithms these are.
    fn coeffs(&mut self, logs: &Buffer<S>) -> Result<Room<'a, S::Accum>, Error> {
        let mut coeffs = self.room()?;
        let launch = self.begin(&self.kernels.coeffs_from_logs);
        self.run(launch.map(|launch| launch.arg(logs).arg(&mut *coeffs)))?;
        Ok(coeffs)
    }

    /// The gradient with respect to the logarithms; `d_logs` may be the memory of `d_coeffs`.
    fn d_logs(
        &mut self,
        d_coeffs: &Buffer<S::Accum>,
        coeffs: &Buffer<S::Accum>,
        d_logs: &mut Buffer<S>,
    ) -> Result<(), Error> {
        let launch = self.begin(&self.kernels.d_logs_from_d_coeffs);
        self.run(launch.map(|launch| launch.arg(d_coeffs).arg(coeffs).arg(d_logs)))
    }

    /// An array as the recurrence computes with it: itself, or converted.
    fn widened<'b>(&mut self, stored: &'b Buffer<S>) -> Result<Wide<'a, 'b, S::Accum>, Error> {
        if let Some(same) = same(stored) {
            return Ok(Wide::Same(same));
        }
        let kernels = self.kernels.conversions.as_ref().ok_or_else(|| self.no_conversion())?;
        let mut wide = self.room()?;
        let launch = self.begin(&kernels.widened);
        self.run(launch.map(|launch| launch.arg(stored).arg(&mut *wide)))?;
        Ok(Wide::Converted(wide))
    }

    /// Rounds a result to what it is stored as.
    fn narrowed(&mut self, wide: &Buffer<S::Accum>, stored: &mut Buffer<S>) -> Result<(), Error> {
        let kernels = self.kernels.conversions.as_ref().ok_or_else(|| self.no_conversion())?;
        let launch = self.begin(&kernels.narrowed);
        self.run(launch.map(|launch| launch.arg(wide).arg(stored)))
    }

    /// An array of this call's own.
    fn room(&self) -> Result<Room<'a, S::Accum>, Error> {
        let room = self.pool.room(self.device, Some(self.stream), Contents::LOGARITHMS, self.len);
        room.map_err(|error| match error {
            Error::Device { device, message } => {
                Error::device(device, format!("{}, log_coeffs: true: {message}", self.operation))
            }
            error => error,
        })
    }

    /// A launch over all elements; `None` if there are none.
    fn begin(&self, function: &'a Function) -> Option<Launch<'a>> {
        // More blocks than a number holds are more than any grid has: the launch says so.
        let blocks = u32::try_from(self.len.div_ceil(THREADS as usize)).unwrap_or(u32::MAX);
        (blocks > 0).then(|| function.launch(blocks, THREADS))
    }

    fn run(&mut self, launch: Option<Launch>) -> Result<(), Error> {
        if let Some(launch) = launch {
            let launched = launch.arg(self.len as i64).run(self.stream)?;
            self.beside = launched.and(&self.beside);
        }
        Ok(())
    }

    /// What the call launched, all in all.
    fn launched(self, recurrence: Launched) -> Launched {
        recurrence.and(&self.beside)
    }

    /// Types of 16 bits have conversions, and no other is stored as what it is not.
    fn no_conversion(&self) -> Error {
        let message = format!("{}: no kernel converts {}", self.operation, S::ELEMENT);
        Error::device(self.device.label(), message)
    }
}

/// An array of the type of computation.
enum Wide<'a, 'b, A> {
    /// The caller's.
    Same(&'b Buffer<A>),
    /// A copy of the caller's.
    Converted(Room<'a, A>),
}

impl<A> Deref for Wide<'_, '_, A> {
    type Target = Buffer<A>;

    fn deref(&self) -> &Buffer<A> {
        match self {
            Wide::Same(buffer) => buffer,
            Wide::Converted(room) => room,
        }
    }
}

/// The value, if it is of the type that is asked for: whether a type is computed with as it is
/// stored is known to the compiler for each type, and not here.
fn same<A: 'static, B: 'static>(value: &A) -> Option<&B> {
    (value as &dyn Any).downcast_ref()
}

fn same_mut<A: 'static, B: 'static>(value: &mut A) -> Option<&mut B> {
    (value as &mut dyn Any).downcast_mut()
}
