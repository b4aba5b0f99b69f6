// The recurrence over one tile, held in the registers of a block, in three levels: in a
// thread by a loop, over the lanes of a warp by shuffles, over the warps by shared memory.
#pragma once
#include "transition.cuh"

constexpr int kMaxWarps = 32;  // in a block

template <int kMaxElems, typename T>
__device__ void conjugate_all(T (&elems)[kMaxElems]) {
#pragma unroll
    for (int i = 0; i < kMaxElems; i++) elems[i] = conjugate(elems[i]);
}

// How far the scan goes: the stages of the lesson. Only kBlock computes the recurrence.
constexpr int kNothing = 0, kThread = 1, kWarp = 2, kBlock = 3;

// ANCHOR: thread
// Level 1. Afterwards states[i] is what the thread's steps up to i make of a state of
// zero, and coeffs[i] the factor of any other state.
template <int kMaxElems, typename T>
__device__ void scan_thread(T (&coeffs)[kMaxElems], T (&states)[kMaxElems]) {
#pragma unroll
    for (int i = 1; i < kMaxElems; i++) {
        states[i] = multiply_add(states[i - 1], coeffs[i], states[i]);
        coeffs[i] = coeffs[i - 1] * coeffs[i];
    }
}
// ANCHOR_END: thread

// ANCHOR: warp
// Level 2. From the transition of each lane's steps to the one from the warp's first
// step to the lane's last. In every round a lane reaches twice as far back.
template <typename T>
__device__ Transition<T> scan_warp(Transition<T> mine) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const Transition<T> before = shuffle_up(mine, lanes);
        if (lane >= lanes) mine = compose(before, mine);
    }
    return mine;
}
// ANCHOR_END: warp

// ANCHOR: block
// Level 3. Takes the state before the tile, and returns the state before the thread's warp;
// `carry` becomes the state after the tile. Two calls in a row must use different `totals`.
template <typename T>
__device__ T scan_block(Transition<T> warp_total, Transition<T>* totals, T& carry) {
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 31) totals[warp] = warp_total;
    __syncthreads();
    T before_warp = carry;
    for (int w = 0; w < blockDim.x / 32; w++) {
        if (w == warp) before_warp = carry;
        carry = multiply_add(carry, totals[w].coeff, totals[w].state);
    }
    return before_warp;
}
// ANCHOR_END: block

// ANCHOR: tile
// All levels. states[] begins as the inputs and ends as the outputs; `carry` is the state before
// the tile and becomes the state after it. Its order of operations differs from the outputs': so
// that both have the same bits, the last output, states[last] in one thread, is set to the carry.
template <int kAlgocode, int kMaxElems, typename T>
__device__ void scan_tile(int last, T (&coeffs)[kMaxElems], T (&states)[kMaxElems],
                          Transition<T>* totals, T& carry) {
    if (kAlgocode >= kThread) scan_thread(coeffs, states);
    if (kAlgocode >= kWarp) {
        const Transition<T> mine = {coeffs[kMaxElems - 1], states[kMaxElems - 1]};
        const Transition<T> upto = scan_warp(mine);
        const Transition<T> before = shuffle_up(upto, 1);
        T state(0);  // before the thread's first step
        if (kAlgocode >= kBlock) state = scan_block(upto, totals, carry);
        if (threadIdx.x % 32 > 0) state = multiply_add(state, before.coeff, before.state);
#pragma unroll
        for (int i = 0; i < kMaxElems; i++) {
            states[i] = multiply_add(state, coeffs[i], states[i]);
            if (kAlgocode == kBlock && i == last) states[i] = carry;
        }
    }
}
// ANCHOR_END: tile
