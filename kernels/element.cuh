// What a kernel asks of the numbers it computes with.
//
// `Stored` is a number's type in memory, `Accum<Stored>` the type it is computed in: float for
// the 16-bit formats, itself for all others. Rounding is spelled out: everything is compiled
// with --fmad=false, `a * b` and `a + b` round once each, and multiply_add(a, b, c) rounds
// once in all. So the compiler has no choice to make, and every machine gives the same bits.
#pragma once

// ANCHOR: multiply_add
__device__ inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }
// ANCHOR_END: multiply_add

__device__ inline float conjugate(float a) { return a; }
__device__ inline double conjugate(double a) { return a; }

// Complex numbers are stored as their real part and then their imaginary part. The
// alignment lets one load read both.
template <typename Real>
struct alignas(2 * sizeof(Real)) complex {
    Real re, im;

    complex() = default;
    __device__ complex(Real re, Real im = 0) : re(re), im(im) {}
};

// Two multiply-adds for each part.
template <typename Real>
__device__ complex<Real> multiply_add(complex<Real> a, complex<Real> b, complex<Real> c) {
    return {multiply_add(a.re, b.re, multiply_add(-a.im, b.im, c.re)),
            multiply_add(a.re, b.im, multiply_add(a.im, b.re, c.im))};
}

template <typename Real>
__device__ complex<Real> operator*(complex<Real> a, complex<Real> b) {
    return {multiply_add(a.re, b.re, -a.im * b.im), multiply_add(a.re, b.im, a.im * b.re)};
}

template <typename Real>
__device__ complex<Real> conjugate(complex<Real> a) {
    return {a.re, -a.im};
}

// The 16-bit formats: bf16 is the upper half of a float, f16 is IEEE's half precision. NVIDIA's
// own headers for them belong to the toolkit; the few conversions are one instruction each.
struct bf16 {
    unsigned short bits;
};
struct f16 {
    unsigned short bits;
};

// ANCHOR: stored
template <typename Stored>
struct Accumulator {
    using type = Stored;
};
template <>
struct Accumulator<bf16> {
    using type = float;
};
template <>
struct Accumulator<f16> {
    using type = float;
};

template <typename Stored>
using Accum = typename Accumulator<Stored>::type;

// widen: from memory to the type of computation, exactly.
template <typename Stored>
__device__ inline Stored widen(Stored x) {
    return x;
}
__device__ inline float widen(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline float widen(f16 x) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}

// narrow: back to memory, rounded to nearest even.
template <typename Stored>
struct Narrow {
    __device__ static Stored from(Stored x) { return x; }
};
template <>
struct Narrow<bf16> {
    __device__ static bf16 from(float x) {
        bf16 narrow;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
        return narrow;
    }
};
template <>
struct Narrow<f16> {
    __device__ static f16 from(float x) {
        f16 narrow;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
        return narrow;
    }
};
template <typename Stored>
__device__ inline Stored narrow(Accum<Stored> x) {
    return Narrow<Stored>::from(x);
}
// ANCHOR_END: stored
