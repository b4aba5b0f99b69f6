//! The vector instructions that the engine uses, chosen when it runs.

use std::fmt;

use ndarray::ArrayViewMut1;
use num_complex::Complex;

use super::Cpu;
use super::lanes::LaneJob;
use super::pass::{BackwardPass, ForwardPass};
use super::portable::{FUSED, Portable, Scalar};
use crate::Element;
#[cfg(target_arch = "x86_64")]
use {
    super::avx512::Avx512,
    super::complex::ComplexLanes,
    super::lanes::Lanes,
    pulp::NullaryFnOnce,
    pulp::x86::{V3, V4},
    std::marker::PhantomData,
};

/// A set of vector instructions, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Simd {
    /// The instructions that the program was compiled for (usually SSE2 on x86-64, NEON on
    /// AArch64).
    Portable,
    /// AVX2 with FMA: 256-bit vectors.
    Avx2,
    /// AVX-512 (F, BW, CD, DQ, VL): 512-bit vectors.
    Avx512,
    /// One step after the other ([`Cpu::in_order`]). Other work of the engine takes the widest
    /// vectors.
    Scalar,
}

impl Simd {
    /// All sets of vector instructions, the widest vectors first.
    pub const ALL: [Simd; 3] = [Simd::Avx512, Simd::Avx2, Simd::Portable];

    /// Returns whether this machine has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Simd::Portable | Simd::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => V3::try_new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => V4::try_new().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Simd::Avx2 | Simd::Avx512 => false,
        }
    }

    /// Returns the set with the widest vectors that this machine has.
    pub fn best() -> Self {
        Simd::ALL.into_iter().find(|simd| simd.is_available()).unwrap_or(Simd::Portable)
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Simd::Portable => "portable",
            Simd::Avx2 => "AVX2",
            Simd::Avx512 => "AVX-512",
            Simd::Scalar => "scalar",
        })
    }
}

/// The hook by which [`Element`](crate::Element) reaches the vectors of its type. Not for use
/// outside of this crate.
///
/// The passes are methods without type parameters: so they are compiled once, in this crate, and
/// not again in each crate that calls them.
#[doc(hidden)]
pub trait Vectors: Sized {
    /// Runs the job in the lanes of `simd`, or in portable ones where the machine does not have it.
    fn dispatch<J: LaneJob<Self>>(simd: Simd, job: J) -> J::Output;

    /// Computes the forward pass; `carries` are the states before and then after each row.
    fn forward(cpu: &Cpu, pass: ForwardPass<Self>, carries: ArrayViewMut1<Self>);

    /// Computes the backward pass; `carries` are the gradients of the states after and then before
    /// each row.
    fn backward(cpu: &Cpu, pass: BackwardPass<Self>, carries: ArrayViewMut1<Self>);
}

macro_rules! vectors {
    ($element:ty, $wrap:expr, $avx2:literal, $avx512:literal) => {
        impl Vectors for $element {
            #[inline]
            #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
            fn dispatch<J: LaneJob<Self>>(simd: Simd, job: J) -> J::Output {
                // The unit tests are compiled separately; `tests/suite` tests the vectors.
                if cfg!(test) {
                    return job.run::<4, _>(Portable);
                }
                if simd == Simd::Scalar {
                    return if J::TAKES_STEPS {
                        in_order(job)
                    } else {
                        Self::dispatch(Simd::best(), job)
                    };
                }
                #[cfg(target_arch = "x86_64")]
                match simd {
                    Simd::Avx512 => {
                        if let Some(token) = V4::try_new() {
                            let lanes = $wrap(Avx512::new(token));
                            let call = LaneCall::<Self, $avx512, _, _>(job, lanes, PhantomData);
                            return token.vectorize(call);
                        }
                    }
                    Simd::Avx2 => {
                        if let Some(token) = V3::try_new() {
                            let lanes = $wrap(token);
                            let call = LaneCall::<Self, $avx2, _, _>(job, lanes, PhantomData);
                            return token.vectorize(call);
                        }
                    }
                    Simd::Portable | Simd::Scalar => {}
                }
                job.run::<4, _>(Portable)
            }

            fn forward(cpu: &Cpu, pass: ForwardPass<Self>, carries: ArrayViewMut1<Self>) {
                cpu.run(pass, carries);
            }

            fn backward(cpu: &Cpu, pass: BackwardPass<Self>, carries: ArrayViewMut1<Self>) {
                cpu.run(pass, carries);
            }
        }
    };
}

vectors!(f32, std::convert::identity, 8, 16);
vectors!(f64, std::convert::identity, 4, 8);
vectors!(Complex<f32>, ComplexLanes, 8, 16);
vectors!(Complex<f64>, ComplexLanes, 4, 8);

/// Runs a job step by step, with the machine's multiply-add.
fn in_order<T: Element, J: LaneJob<T>>(job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = V3::try_new() {
        return token.vectorize(LaneCall::<T, 1, _, _>(job, Scalar::<true>, PhantomData));
    }
    job.run::<1, _>(Scalar::<FUSED>)
}

/// A job and its lanes: pulp calls it inside a function that is compiled for the instruction set.
#[cfg(target_arch = "x86_64")]
struct LaneCall<T, const W: usize, J, L>(J, L, PhantomData<T>);

#[cfg(target_arch = "x86_64")]
impl<T, const W: usize, J: LaneJob<T>, L: Lanes<T, W>> NullaryFnOnce for LaneCall<T, W, J, L> {
    type Output = J::Output;

    #[inline(always)]
    fn call(self) -> J::Output {
        self.0.run::<W, L>(self.1)
    }
}
