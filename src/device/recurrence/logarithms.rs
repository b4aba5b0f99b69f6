//! Coefficients that are given as logarithms: `c = e^a` before a pass, `d_coeffs * c` after it.
//!
//! Both passes take the same steps. The coefficients are computed into scratch; arrays of 16 bits
//! are widened to the type of computation; the pass runs over wide arrays; its results are
//! narrowed, and the gradient of the coefficients is multiplied by the coefficients. Arrays of the
//! type of computation are not copied: the pass reads and writes the caller's.
//! `tests/suite/exponential` tests the kernels, the contract and `tests/suite/device/recurrence.rs`
//! the whole.

use std::any::{Any, TypeId};
use std::array::from_fn;
use std::sync::OnceLock;

use super::call::COEFFS;
use super::scratch::{Contents, Pool, Scratch};
use super::{PassCall, Recurrence};
use crate::Error;
use crate::device::{Buffer, Device, Function, Launch, Launched, Storage, Stream};
use crate::kernels::{ElementType, Pass, program};

/// The threads of a block of the element-wise kernels.
const THREADS: u32 = 256;

/// The kernels and the scratch that logarithms take. Each is loaded or allocated when it is first
/// used.
///
/// Coefficients are computed in the type of computation. If arrays are stored in another type, of
/// 16 bits, the whole recurrence is computed in arrays of the wide type, and its results are
/// rounded once.
#[derive(Debug)]
pub(super) struct Logarithms<S: Storage> {
    kernels: OnceLock<ElementWiseKernels>,
    /// The recurrence over arrays of the wide type, if arrays are stored in another type.
    wide: OnceLock<Recurrence<S::Accum>>,
    pool: Pool<S::Accum>,
}

/// The kernels of `kernels/exponential.cu` for one element type.
#[derive(Debug)]
struct ElementWiseKernels {
    coeffs_from_logs: Function,
    d_logs_from_d_coeffs: Function,
    /// Conversions from the type in memory to the type of computation and back, if these differ.
    conversions: Option<Conversions>,
}

#[derive(Debug)]
struct Conversions {
    widened: Function,
    narrowed: Function,
}

impl ElementWiseKernels {
    fn load(device: &Device, element: ElementType) -> Result<ElementWiseKernels, Error> {
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
        Ok(ElementWiseKernels {
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
    /// Computes the coefficients, then the pass by `plain`, and then the gradient with respect to
    /// the logarithms: see [`Recurrence::compute_from_logs`].
    pub(super) fn compute<F, const I: usize, const O: usize>(
        &self,
        recurrence: &Recurrence<S>,
        call: PassCall<S, I, O>,
        plain: F,
    ) -> Result<Launched, Error>
    where
        F: FnOnce(&Recurrence<S::Accum>, PassCall<S::Accum, I, O>) -> Result<Launched, Error>,
    {
        let wide = self.wide(recurrence)?;
        let home = recurrence.device.stream();
        let on = call.stream.unwrap_or(&home);
        let mut work = self.work(recurrence, call.operation(), on, call.inputs[COEFFS].len())?;
        let PassCall { pass, shape, direction, inputs, mut results, initial, end, stream, .. } =
            call;

        let coeffs = work.coeffs(inputs[COEFFS])?;
        // Scratch for all arrays but the coefficients, if they are narrow.
        let (mut widened, mut computed) = (Vec::new(), Vec::new());
        if TypeId::of::<S>() != TypeId::of::<S::Accum>() {
            let others = inputs.iter().enumerate().filter(|(i, _)| *i != COEFFS);
            for (_, narrow) in others {
                widened.push(work.widened(narrow)?);
            }
            for _ in &results {
                computed.push(work.scratch()?);
            }
        }
        let wide_inputs = from_fn(|i| match same(inputs[i]) {
            _ if i == COEFFS => &*coeffs,
            Some(array) => array,
            None => &*widened[i - usize::from(i > COEFFS)],
        });
        let mut narrow = computed.iter_mut();
        let wide_results = results.each_mut().map(|array| match narrow.next() {
            Some(computed) => &mut **computed,
            None => same_mut(&mut **array).expect("an array that is not narrow"),
        });
        let call = PassCall {
            pass,
            shape,
            direction,
            log_coeffs: false,
            inputs: wide_inputs,
            results: wide_results,
            initial,
            end,
            stream,
        };
        let launched = plain(wide, call)?;
        for (i, result) in results.iter_mut().enumerate() {
            let is_gradient = pass == Pass::Backward && i == COEFFS;
            match (computed.get(i), is_gradient) {
                (Some(computed), true) => work.d_logs(computed, &coeffs, result)?,
                (Some(computed), false) => work.narrowed(computed, result)?,
                // In place.
                (None, true) => {
                    if let Some(d_coeffs) = same::<_, Buffer<S::Accum>>(&**result) {
                        let d_coeffs = d_coeffs.slice(..)?;
                        work.d_logs(&d_coeffs, &coeffs, result)?;
                    }
                }
                (None, false) => {}
            }
        }
        Ok(launched.and(&work.launched))
    }

    /// Returns the recurrence over arrays of the type of computation: this one, or one made for it.
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
                "log_coeffs: true for {here} by a program of one's own: it is computed in {wide}, \
                 for which the program has no kernels; store {wide}"
            );
            return Err(Error::Unsupported { engine: recurrence.choice.to_string(), what });
        }
        let wide = Recurrence::new(&recurrence.device, recurrence.choice)?;
        Ok(self.wide.get_or_init(|| wide))
    }

    fn work<'a>(
        &'a self,
        recurrence: &'a Recurrence<S>,
        operation: &'static str,
        stream: &'a Stream,
        len: usize,
    ) -> Result<Work<'a, S>, Error> {
        let device = &recurrence.device;
        let kernels = match self.kernels.get() {
            Some(kernels) => kernels,
            None => {
                let kernels = ElementWiseKernels::load(device, S::ELEMENT)?;
                self.kernels.get_or_init(|| kernels)
            }
        };
        let launched = Launched::nothing(&kernels.coeffs_from_logs);
        Ok(Work { kernels, pool: &self.pool, device, operation, stream, len, launched })
    }
}

/// The element-wise kernels of one call.
struct Work<'a, S: Storage> {
    kernels: &'a ElementWiseKernels,
    pool: &'a Pool<S::Accum>,
    device: &'a Device,
    operation: &'static str,
    stream: &'a Stream,
    /// The number of elements of every array.
    len: usize,
    /// The launches so far, without those of the recurrence.
    launched: Launched,
}

impl<'a, S: Storage> Work<'a, S> {
    /// Computes the coefficients from their logarithms.
    fn coeffs(&mut self, logs: &Buffer<S>) -> Result<Scratch<'a, S::Accum>, Error> {
        let mut coeffs = self.scratch()?;
        let launch = self.begin(&self.kernels.coeffs_from_logs);
        self.run(launch.map(|launch| launch.arg(logs).arg(&mut *coeffs)))?;
        Ok(coeffs)
    }

    /// Computes the gradient with respect to the logarithms; `d_logs` may be the memory of
    /// `d_coeffs`.
    fn d_logs(
        &mut self,
        d_coeffs: &Buffer<S::Accum>,
        coeffs: &Buffer<S::Accum>,
        d_logs: &mut Buffer<S>,
    ) -> Result<(), Error> {
        let launch = self.begin(&self.kernels.d_logs_from_d_coeffs);
        self.run(launch.map(|launch| launch.arg(d_coeffs).arg(coeffs).arg(d_logs)))
    }

    /// Converts an array to the type of computation.
    fn widened(&mut self, narrow: &Buffer<S>) -> Result<Scratch<'a, S::Accum>, Error> {
        let kernels = self.kernels.conversions.as_ref().ok_or_else(|| self.no_conversion())?;
        let mut wide = self.scratch()?;
        let launch = self.begin(&kernels.widened);
        self.run(launch.map(|launch| launch.arg(narrow).arg(&mut *wide)))?;
        Ok(wide)
    }

    /// Rounds a result to the type in memory.
    fn narrowed(&mut self, wide: &Buffer<S::Accum>, narrow: &mut Buffer<S>) -> Result<(), Error> {
        let kernels = self.kernels.conversions.as_ref().ok_or_else(|| self.no_conversion())?;
        let launch = self.begin(&kernels.narrowed);
        self.run(launch.map(|launch| launch.arg(wide).arg(narrow)))
    }

    fn scratch(&self) -> Result<Scratch<'a, S::Accum>, Error> {
        let stream = Some(self.stream);
        let scratch = self.pool.scratch(self.device, stream, Contents::LOGARITHMS, self.len);
        scratch.map_err(|error| match error {
            Error::Device { device, message } => {
                Error::device(device, format!("{}, log_coeffs: true: {message}", self.operation))
            }
            error => error,
        })
    }

    /// Returns a launch over all elements; `None` if there are none.
    fn begin(&self, function: &'a Function) -> Option<Launch<'a>> {
        // More blocks than a `u32` holds are more than any grid has, and the launch is an error.
        let blocks = u32::try_from(self.len.div_ceil(THREADS as usize)).unwrap_or(u32::MAX);
        (blocks > 0).then(|| function.launch(blocks, THREADS))
    }

    fn run(&mut self, launch: Option<Launch>) -> Result<(), Error> {
        if let Some(launch) = launch {
            let launched = launch.arg(self.len as i64).run(self.stream)?;
            self.launched = launched.and(&self.launched);
        }
        Ok(())
    }

    /// The error for a type without conversions. Only types of 16 bits are converted, and these
    /// have them.
    fn no_conversion(&self) -> Error {
        let message = format!("{}: no kernel converts {}", self.operation, S::ELEMENT);
        Error::device(self.device.label(), message)
    }
}

/// Returns the value if `A` and `B` are the same type. Only the compiler knows for which types of
/// storage the type of computation is the same.
fn same<A: 'static, B: 'static>(value: &A) -> Option<&B> {
    (value as &dyn Any).downcast_ref()
}

fn same_mut<A: 'static, B: 'static>(value: &mut A) -> Option<&mut B> {
    (value as &mut dyn Any).downcast_mut()
}
