//! The blocks and arguments with which a kernel is launched in a case.

use bytemuck::Pod;
use linrec::contract::Case;
use linrec::device::Device;
use linrec::kernels::Ptx;
use linrec::{Element, Error};
use num_complex::Complex;

use crate::cases::case;
use crate::description::Puzzle;
use crate::judge::{Verdict, function};
use crate::problem::{self, Arrays, Computes};

/// A launch of a puzzle's kernel, for a debugger that runs it by itself instead of
/// [`judge`](crate::judge).
#[derive(Debug, Clone, PartialEq)]
pub struct Staged {
    /// The kernel's name in the PTX.
    pub symbol: String,
    /// The number of blocks in the grid.
    pub blocks: usize,
    /// The arguments in the kernel's order, with their names.
    pub arguments: Vec<(String, Argument<f32>)>,
}

/// An argument of a kernel. A complex number is two elements of a [`Staged`] launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument<T> {
    /// An array with these elements.
    Given(Vec<T>),
    /// An array for results, with this number of elements.
    Wanted(usize),
    /// Scratch for messages between blocks, with this number of elements.
    Scratch(usize),
    /// This number of flags, each a 32-bit zero.
    Flags(usize),
    /// A 64-bit number.
    Count(i64),
}

impl<T: Pod> Argument<T> {
    fn in_f32(self) -> Argument<f32> {
        let per_element = size_of::<T>() / size_of::<f32>();
        match self {
            Argument::Given(values) => Argument::Given(bytemuck::cast_slice(&values).to_vec()),
            Argument::Wanted(count) => Argument::Wanted(per_element * count),
            Argument::Scratch(count) => Argument::Scratch(per_element * count),
            Argument::Flags(count) => Argument::Flags(count),
            Argument::Count(count) => Argument::Count(count),
        }
    }
}

impl Puzzle {
    /// Returns the number of blocks for a case.
    pub(crate) fn blocks(&self, case: &Case) -> usize {
        let along =
            self.launch.steps_per_block.map_or(1, |steps| case.seq_len.div_ceil(steps as usize));
        case.num_seqs.div_ceil(self.launch.seqs_per_block as usize) * along
    }

    /// Returns the arguments in a case, in the kernel's order.
    pub(crate) fn arguments<T: Element>(
        &self,
        case: &Case,
        arrays: &Arrays<T>,
    ) -> impl Iterator<Item = (&str, Argument<T>)> {
        self.problem.arguments.iter().map(move |name| {
            let argument = match name.as_str() {
                "num_seqs" => Argument::Count(case.num_seqs as i64),
                "seq_len" => Argument::Count(case.seq_len as i64),
                "len" => Argument::Count((case.num_seqs * case.seq_len) as i64),
                "flags" => Argument::Flags(self.blocks(case)),
                "states" => Argument::Scratch(self.blocks(case)),
                name => match arrays.given.iter().find(|given| given.0 == name) {
                    Some((_, values)) => Argument::Given(values.clone()),
                    None => {
                        let wanted = arrays.wanted.iter().find(|wanted| wanted.name == name);
                        Argument::Wanted(wanted.map_or(0, |wanted| wanted.exact.len()))
                    }
                },
            };
            (name.as_str(), argument)
        })
    }

    /// Returns the launch that a verdict of the emulator is about: the launch that went wrong, or
    /// the launch that was counted. `None` if the verdict concerns no launch.
    ///
    /// # Errors
    ///
    /// Returns an error if the PTX does not contain the kernel.
    pub fn staged(&self, ptx: &Ptx, verdict: &Verdict) -> Result<Option<Staged>, Error> {
        let case = match verdict {
            Verdict::Wrong { case: Some(words), .. } => {
                self.tried().find(|case| self.problem.words(case) == *words)
            }
            Verdict::Right { counts, .. } if !counts.is_empty() => Some(case(self.goal.size)),
            _ => None,
        };
        let Some(case) = case else { return Ok(None) };
        let arguments = match self.problem.computes {
            Computes::ComplexGradients => {
                self.in_f32(&case, &problem::gradients::<Complex<f32>>(&case)?)
            }
            computes => self.in_f32(&case, &problem::real(computes, &case)?),
        };
        let function = function(self, &Device::simt().module(ptx.text())?)?;
        let symbol = function.name().to_owned();
        Ok(Some(Staged { symbol, blocks: self.blocks(&case), arguments }))
    }

    /// Returns all cases, including the case of the goal.
    fn tried(&self) -> impl Iterator<Item = Case> {
        let counted = !self.goal.counts.is_empty();
        self.problem.cases().into_iter().chain(counted.then(|| case(self.goal.size)))
    }

    fn in_f32<T: Element + Pod>(
        &self,
        case: &Case,
        arrays: &Arrays<T>,
    ) -> Vec<(String, Argument<f32>)> {
        let arguments = self.arguments(case, arrays);
        arguments.map(|(name, argument)| (name.to_owned(), argument.in_f32())).collect()
    }
}
