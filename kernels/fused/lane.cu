// A lane for each channel, with all of its states in registers, walks along the steps: no scan.
//
// `seq_len` is a multiple of four. Launch: for each batch, a block for every kThreads channels.
#include "fused.cuh"

// ANCHOR: kernel
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    fused_lane(const float* u, const float* delta, const float* A, const float* B, const float* C, const float* D,
               const float* z, float* out, int channels, long long seq_len) {
    const Arrays all = {u, delta, A, B, C, D, z, out, channels, seq_len};
    const int blocks = (channels + kThreads - 1) / kThreads;
    const long long batch = blockIdx.x / blocks;
    const int channel = blockIdx.x % blocks * kThreads + threadIdx.x;
    if (channel >= channels) return;
    const long long row = all.row(batch, channel);
    float states[kStates], rates[kStates];
#pragma unroll
    for (int n = 0; n < kStates; n++) states[n] = 0.0f, rates[n] = all.rate(channel, n);
    for (long long step = 0; step < seq_len; step += 4) {
        float d[4], du[4], y[4], gate[4];
        load_four(delta + row, step, true, d);
        load_four(u + row, step, true, du);
        load_four(z + row, step, true, gate);
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = D[channel] * du[i], d[i] = step_size(d[i]), du[i] *= d[i];
#pragma unroll
        for (int n = 0; n < kStates; n++) {
            float b[4], c[4];
            load_four(B + all.coupling(batch, n), step, true, b);
            load_four(C + all.coupling(batch, n), step, true, c);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                states[n] = multiply_add(decay(d[i], rates[n]), states[n], du[i] * b[i]);
                y[i] = multiply_add(c[i], states[n], y[i]);
            }
        }
        *(float4*)(out + row + step) = make_float4(gated(y[0], gate[0]), gated(y[1], gate[1]), gated(y[2], gate[2]),
                                                   gated(y[3], gate[3]));
    }
}
// ANCHOR_END: kernel
