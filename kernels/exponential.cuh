// The exponential function, by operations that every machine rounds alike.
//
// The hardware's own (ex2) approximates, and no emulator could give its bits. Here are
// only additions, multiplications and multiply-adds, each rounded to nearest, and
// shifts of bits. The compiler computes constants like 1.0 / 6.
#pragma once

#include "element.cuh"

// ANCHOR: split
// e^x as fraction * 2^exponent, with a fraction in [0.7, 1.42].
template <typename Real>
struct Split {
    Real fraction;
    int exponent;
};

// With n the whole number nearest to x / ln 2, e^x is 2^n e^r, where r = x - n ln 2 is
// within 0.347 of zero. Adding 1.5 * 2^23 rounds to a whole number, left in the lowest
// bits. ln 2 is the sum of two floats, and x - n ln 2 is exact but for the second. The
// first term that the Taylor series omits is r^9 / 9!, less than 2^-31.
//
// Beyond -104 and 89 the result is 0 or infinite; NaN stays NaN.
__device__ inline Split<float> split_exponential(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float to_whole = 12582912.0f;
    const float rounded = multiply_add(x, 0x1.715476p+0f, to_whole);
    const float n = rounded - to_whole;
    float r = multiply_add(-n, 0x1.62e43p-1f, x);
    r = multiply_add(-n, -0x1.05c61p-29f, r);
    float tail = 1.0f / 40320;
    tail = multiply_add(tail, r, 1.0f / 5040);
    tail = multiply_add(tail, r, 1.0f / 720);
    tail = multiply_add(tail, r, 1.0f / 120);
    tail = multiply_add(tail, r, 1.0f / 24);
    tail = multiply_add(tail, r, 1.0f / 6);
    tail = multiply_add(tail, r, 1.0f / 2);
    return {1 + multiply_add(r * r, tail, r), __float_as_int(rounded) - __float_as_int(to_whole)};
}
// ANCHOR_END: split

// The same with twice the digits: 1.5 * 2^52, and an omitted r^15 / 15!, less than 2^-63.
__device__ inline Split<double> split_exponential(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    const double to_whole = 6755399441055744.0;
    const double rounded = multiply_add(x, 0x1.71547652b82fep+0, to_whole);
    const double n = rounded - to_whole;
    double r = multiply_add(-n, 0x1.62e42fefa39efp-1, x);
    r = multiply_add(-n, 0x1.abc9e3b39803fp-56, r);
    double tail = 1.0 / 87178291200;
    tail = multiply_add(tail, r, 1.0 / 6227020800);
    tail = multiply_add(tail, r, 1.0 / 479001600);
    tail = multiply_add(tail, r, 1.0 / 39916800);
    tail = multiply_add(tail, r, 1.0 / 3628800);
    tail = multiply_add(tail, r, 1.0 / 362880);
    tail = multiply_add(tail, r, 1.0 / 40320);
    tail = multiply_add(tail, r, 1.0 / 5040);
    tail = multiply_add(tail, r, 1.0 / 720);
    tail = multiply_add(tail, r, 1.0 / 120);
    tail = multiply_add(tail, r, 1.0 / 24);
    tail = multiply_add(tail, r, 1.0 / 6);
    tail = multiply_add(tail, r, 1.0 / 2);
    // The lowest 32 bits hold the whole number; those of 1.5 * 2^52 are zero.
    return {1 + multiply_add(r * r, tail, r), (int)__double_as_longlong(rounded)};
}

__device__ inline float power_of_two(int exponent, float) {
    return __int_as_float((exponent + 127) << 23);
}
__device__ inline double power_of_two(int exponent, double) {
    return __longlong_as_double((long long)(exponent + 1023) << 52);
}

// fraction * 2^exponent. Half of the exponent at a time, so that both powers are normal numbers:
// the first product is exact, and the second rounds once where the result is subnormal.
template <typename Real>
__device__ Real scaled(Real fraction, int exponent) {
    const int half = exponent >> 1;
    return fraction * power_of_two(half, fraction) * power_of_two(exponent - half, fraction);
}

__device__ inline float exponential(float x) {
    const Split<float> split = split_exponential(x);
    return scaled(split.fraction, split.exponent);
}
__device__ inline double exponential(double x) {
    const Split<double> split = split_exponential(x);
    return scaled(split.fraction, split.exponent);
}

// The sum of two numbers as the nearest number and its error, exactly.
struct Sum {
    double high, low;
};
__device__ inline Sum two_sum(double a, double b) {
    const double high = a + b;
    const double of_b = high - a;
    return {high, (a - (high - of_b)) + (b - of_b)};
}

// An angle, less a whole number of right angles: within 45 degrees of zero (and some bits).
struct Reduced {
    Sum rest;
    int right_angles;
};

// For angles from 0 to 2^48. pi / 2 is the sum of three numbers; x - n (pi / 2) is
// exact but for the third, with an error far below 2^-100.
__device__ inline Reduced reduce(double x) {
    const double to_whole = 6755399441055744.0;
    const double rounded = multiply_add(x, 0x1.45f306dc9c883p-1, to_whole);
    const double n = rounded - to_whole;
    const double rest = multiply_add(-n, 0x1.921fb54442d18p+0, x);
    const double second = n * 0x1.1a62633145c07p-54;
    const double lost = multiply_add(n, 0x1.1a62633145c07p-54, -second);
    const Sum sum = two_sum(rest, -second);
    const double low = multiply_add(-n, -0x1.f1976b7ed8fbcp-110, sum.low - lost);
    return {two_sum(sum.high, low), (int)__double_as_longlong(rounded)};
}

// For any larger angle (Payne and Hanek). x is a whole number m of 53 bits times 2^e.
// Bits of 2 / pi that 2^e makes multiples of 4 do not count, and the next 192 suffice:
// m times those, less what overflows, is a fraction of a full turn. Its first two bits
// are the right angles, the next 128 the rest.
__device__ inline Reduced reduce_large(double x) {
    using Bits = unsigned long long;
    const Bits bits = __double_as_longlong(x);
    const Bits m = (bits & 0x000fffffffffffffull) | 0x0010000000000000ull;
    const int first = (int)(bits >> 52) - 1075 - 2 + 64;
    // A word of zeros, then the fraction bits of 2 / pi.
    constexpr Bits two_by_pi[20] = {
        0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
        0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
        0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
        0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
        0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    };
    Bits word[4] = {};
#pragma unroll
    for (int i = 0; i < 17; ++i) {
        for (int j = 0; j < 4; ++j) word[j] = i == first / 64 ? two_by_pi[i + j] : word[j];
    }
    const int shift = first % 64;
    if (shift > 0) {
        for (int j = 0; j < 3; ++j) word[j] = word[j] << shift | word[j + 1] >> (64 - shift);
    }
    const Bits lowest = m * word[2];
    const Bits middle = m * word[1] + __umul64hi(m, word[2]);
    const Bits highest = m * word[0] + __umul64hi(m, word[1]) + (middle < m * word[1]);

    int right_angles = (int)(highest >> 62);
    Bits high = highest << 2 | middle >> 62, low = middle << 2 | lowest >> 62;
    const bool above = high >> 63;
    if (above) {  // half a right angle or more: count it, and turn back
        ++right_angles;
        low = ~low + 1;
        high = ~high + (low == 0);
    }
    // The first 53 bits, the next 64, and both times pi / 2.
    const double fraction = (double)(high >> 11) * 0x1p-53;
    const double rest = (double)(high << 53 | low >> 11) * 0x1p-117;
    const double product = fraction * 0x1.921fb54442d18p+0;
    double missing = multiply_add(fraction, 0x1.921fb54442d18p+0, -product);
    missing = multiply_add(fraction, 0x1.1a62633145c07p-54, missing);
    missing = multiply_add(rest, 0x1.921fb54442d18p+0, missing);
    const Sum sum = two_sum(product, missing);
    const double sign = above ? -1.0 : 1.0;
    return {{sign * sum.high, sign * sum.low}, right_angles};
}

// cos x + i sin x. An angle that is infinite or NaN gives NaN in both parts.
__device__ inline complex<double> unit(double x) {
    const double size = x < 0 ? -x : x;
    if (!(size <= 0x1.fffffffffffffp+1023)) return {size - size, size - size};
    const Reduced reduced = size <= 0x1p+48 ? reduce(size) : reduce_large(size);
    const double r = reduced.rest.high, low = reduced.rest.low;
    const double z = r * r;

    // Taylor's series up to r^17 and r^18; r^19 / 19! is less than 2^-62 of r.
    double sine = 1.0 / 355687428096000;
    sine = multiply_add(sine, z, -1.0 / 1307674368000);
    sine = multiply_add(sine, z, 1.0 / 6227020800);
    sine = multiply_add(sine, z, -1.0 / 39916800);
    sine = multiply_add(sine, z, 1.0 / 362880);
    sine = multiply_add(sine, z, -1.0 / 5040);
    sine = multiply_add(sine, z, 1.0 / 120);
    sine = multiply_add(sine, z, -1.0 / 6);
    sine = r + multiply_add(z * r, sine, multiply_add(-0.5 * z, low, low));

    double cosine = -1.0 / 6402373705728000;
    cosine = multiply_add(cosine, z, 1.0 / 20922789888000);
    cosine = multiply_add(cosine, z, -1.0 / 87178291200);
    cosine = multiply_add(cosine, z, 1.0 / 479001600);
    cosine = multiply_add(cosine, z, -1.0 / 3628800);
    cosine = multiply_add(cosine, z, 1.0 / 40320);
    cosine = multiply_add(cosine, z, -1.0 / 720);
    cosine = multiply_add(cosine, z, 1.0 / 24);
    const double half = 0.5 * z;
    const double near = 1 - half;
    const double lost = ((1 - near) - half) - multiply_add(r, low, 0.5 * multiply_add(r, r, -z));
    cosine = near + multiply_add(z * z, cosine, lost);

    const bool odd = reduced.right_angles & 1;
    const double re = odd ? sine : cosine, im = odd ? cosine : sine;
    const bool left = (reduced.right_angles + 1) & 2, below = reduced.right_angles & 2;
    return {left ? -re : re, below != (x < 0) ? -im : im};
}

// e^(re + i im). Where re is -infinity it is 0, whatever the angle.
__device__ inline complex<double> exponential(complex<double> x) {
    if (x.re == -__longlong_as_double(0x7ff0000000000000)) return {0, 0};
    const Split<double> size = split_exponential(x.re);
    const complex<double> turn = unit(x.im);
    return {scaled(size.fraction * turn.re, size.exponent),
            scaled(size.fraction * turn.im, size.exponent)};
}
// In double precision, and rounded once more: an angle of 24 bits may need many more of pi.
__device__ inline complex<float> exponential(complex<float> x) {
    const complex<double> wide = exponential(complex<double>(x.re, x.im));
    return {(float)wide.re, (float)wide.im};
}
