// Two functions that bring a number into a range, softplus and silu, with their slopes.
//
// They are computed in double precision and rounded once to the type that is asked for.
// Logarithm and exponential consist of operations that every machine rounds alike.
#pragma once
#include "exponential.cuh"

// ANCHOR: logarithm
// ln(1 + t) for t from 0 to 1. With s = t / (2 + t) it is 2 (s + s^3 / 3 + s^5 / 5 +
// ...), and s is at most 1/3: the first omitted term, s^35 / 35, is less than 2^-58 of s.
__device__ inline double log_of_one_plus(double t) {
    const double s = t / (2 + t), square = s * s;
    double tail = 1.0 / 33;
#pragma unroll
    for (int k = 31; k >= 3; k -= 2) tail = multiply_add(tail, square, 1.0 / k);
    return multiply_add(2 * s * square, tail, 2 * s);
}
// ANCHOR_END: logarithm

// ANCHOR: softplus
// ln(1 + e^x), so written that nothing overflows and no digit is lost on either side.
__device__ inline double softplus(double x) {
    const double size = x < 0 ? -x : x;
    return (x > 0 ? x : 0) + log_of_one_plus(exponential(-size));
}

__device__ inline double sigmoid(double x) { return 1 / (1 + exponential(-x)); }

__device__ inline double silu(double x) { return x * sigmoid(x); }
// ANCHOR_END: softplus

// The slope of softplus is the sigmoid; this is the slope of silu.
__device__ inline double silu_slope(double x) {
    const double gate = sigmoid(x);
    return gate * (1 + x * (1 - gate));
}
