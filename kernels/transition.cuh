// What a piece of a sequence does to the state, and how two pieces become one.
#pragma once
#include "element.cuh"

constexpr unsigned kAllLanes = 0xffffffff;

// ANCHOR: transition
// A piece of a sequence takes the state y to y * coeff + state.
template <typename T>
struct Transition {
    T coeff, state;
};

// First one piece, then the next: a transition again.
template <typename T>
__device__ inline Transition<T> compose(Transition<T> first, Transition<T> then) {
    return {first.coeff * then.coeff, multiply_add(first.state, then.coeff, then.state)};
}
// ANCHOR_END: transition

// ANCHOR: shuffle
// The value of the lane `lanes` below; the lowest lanes get their own.
template <typename T>
__device__ inline T shuffle_up(T mine, int lanes) {
    return __shfl_up_sync(kAllLanes, mine, lanes);
}
template <typename Real>
__device__ inline complex<Real> shuffle_up(complex<Real> mine, int lanes) {
    return {shuffle_up(mine.re, lanes), shuffle_up(mine.im, lanes)};
}
template <typename T>
__device__ inline Transition<T> shuffle_up(Transition<T> mine, int lanes) {
    return {shuffle_up(mine.coeff, lanes), shuffle_up(mine.state, lanes)};
}
// ANCHOR_END: shuffle
