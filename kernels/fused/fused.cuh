// What the kernels of this folder share: the arguments, and the work on one step of a channel.
//
// They lead from Mamba's way to selective_scan_fwd.cu, one idea at a time (chapter 14):
// forward, in float, with 16 states, D, a gate and softplus, and one group. u, delta, z and out
// are [batch, channels, seq_len], B and C [batch, 16, seq_len], A [channels, 16], D [channels].
#pragma once
#include "../scan.cuh"
#include "../selective_scan.cuh"

constexpr int kStates = 16;

// ANCHOR: arrays
struct Arrays {
    const float *u, *delta, *A, *B, *C, *D, *z;
    float* out;
    int channels;
    long long seq_len;

    // Where a channel's row begins in u, delta, z and out, and a state's row in B and C.
    __device__ long long row(long long batch, int channel) const { return (batch * channels + channel) * seq_len; }
    __device__ long long coupling(long long batch, int state) const { return (batch * kStates + state) * seq_len; }
    // A state's rate of decay, for powers of two in place of e.
    __device__ float rate(int channel, int state) const { return A[channel * kStates + state] * kLog2E; }
};
// ANCHOR_END: arrays

// ANCHOR: step
__device__ inline float decay(float d, float rate) { return Functions<false>::power_of_two(d * rate); }
__device__ inline float step_size(float delta) { return softplus<false>(delta); }
__device__ inline float gated(float y, float z) { return y * (z * sigmoid<false>(z)); }
// ANCHOR_END: step

// Four steps of a row whose length is a multiple of four; zeros where there are none.
__device__ inline void load_four(const float* row, long long step, bool exists, float (&elems)[4]) {
    const float4 four = exists ? *(const float4*)(row + step) : make_float4(0, 0, 0, 0);
    elems[0] = four.x, elems[1] = four.y, elems[2] = four.z, elems[3] = four.w;
}
