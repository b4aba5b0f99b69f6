// What the kernels around the recurrence of a selective scan share: where a channel's numbers are.
//
// u, delta, z and y have shape [batch, channels, len], the recurrence's arrays [batch, channels,
// states, len]. A is [channels, states]. B and C are [batch, groups, states, len], and each group
// has as many channels; or, if they do not depend on the input, [channels, states]. Bias, D and z
// may be null.
//
// A block works on one channel of one sequence, number blockIdx.x, at its threads' positions.
#pragma once
#include "activation.cuh"

struct Sizes {
    long long channels, groups, states, len;
};

// Where a channel's numbers of B or C are.
struct Mixing {
    long long first, to_next_state, to_next_step;

    __device__ long long at(long long n, long long l) const {
        return first + n * to_next_state + l * to_next_step;
    }
};

// ANCHOR: channel
struct Channel {
    Sizes sizes;
    unsigned sequence, channel;
    long long own;  // its first position in [batch, channels, len]

    __device__ explicit Channel(const Sizes& sizes) : sizes(sizes) {
        const unsigned channels = sizes.channels;
        sequence = blockIdx.x / channels;
        channel = blockIdx.x % channels;
        own = blockIdx.x * sizes.len;
    }

    // Position l of state n in arrays of [batch, channels, states, len].
    __device__ long long at(long long n, long long l) const {
        return own * sizes.states + n * sizes.len + l;
    }

    // State n in arrays of [channels, states].
    __device__ long long parameter(long long n) const { return channel * sizes.states + n; }

    __device__ Mixing mixing(bool is_fixed) const {
        if (is_fixed) return {parameter(0), 1, 0};
        const unsigned in_group = (unsigned)sizes.channels / (unsigned)sizes.groups;
        const long long group = sequence * sizes.groups + channel / in_group;
        return {group * sizes.states * sizes.len, sizes.len, 1};
    }
};
// ANCHOR_END: channel

// The positions of a thread: every kThreads-th.
__device__ inline long long first_position() {
    return (long long)blockDim.x * blockIdx.y + threadIdx.x;
}
__device__ inline long long next_position(long long l) {
    return l + (long long)blockDim.x * gridDim.y;
}

// ANCHOR: step_size
// The size of a step, from the given delta: with its bias, and made positive.
template <typename Real>
__device__ Real step_size(Real given, Real bias, bool is_softplus) {
    const double x = (double)given + (double)bias;
    return is_softplus ? (Real)softplus(x) : (Real)x;
}
// ANCHOR_END: step_size
