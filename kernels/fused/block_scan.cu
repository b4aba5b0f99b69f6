// A block for each channel, and a scan of pairs for each of its states: the way of Mamba's own
// kernel.
//
// A thread has four steps. `seq_len` is a multiple of four. Launch: batch * channels blocks.
#include "fused.cuh"

// ANCHOR: kernel
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    fused_block_scan(const float* u, const float* delta, const float* A, const float* B, const float* C, const float* D,
                     const float* z, float* out, int channels, long long seq_len) {
    __shared__ Transition<float> totals[2][kThreads / 32];
    __shared__ float carries[kStates];  // the states before the tile
    const Arrays all = {u, delta, A, B, C, D, z, out, channels, seq_len};
    const long long batch = blockIdx.x / channels;
    const int channel = blockIdx.x % channels;
    const long long row = all.row(batch, channel);
    if (threadIdx.x < kStates) carries[threadIdx.x] = 0.0f;
    __syncthreads();
    for (long long first = 0; first < seq_len; first += 4 * kThreads) {
        const long long step = first + 4 * threadIdx.x;
        const bool exists = step < seq_len;
        float d[4], du[4], y[4], gate[4];
        load_four(delta + row, step, exists, d);
        load_four(u + row, step, exists, du);
        load_four(z + row, step, exists, gate);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            y[i] = D[channel] * du[i];
            d[i] = exists ? step_size(d[i]) : 0.0f;
            du[i] *= d[i];
        }
#pragma unroll 1
        for (int n = 0; n < kStates; n++) {
            const float rate = all.rate(channel, n);
            float states[4], coeffs[4], c[4];
            load_four(B + all.coupling(batch, n), step, exists, states);
            load_four(C + all.coupling(batch, n), step, exists, c);
#pragma unroll
            for (int i = 0; i < 4; i++) coeffs[i] = decay(d[i], rate), states[i] *= du[i];
            float carry = carries[n];
            scan_tile<kBlock>(-1, coeffs, states, totals[n % 2], carry);
            if (threadIdx.x == 0) carries[n] = carry;
#pragma unroll
            for (int i = 0; i < 4; i++) y[i] = multiply_add(c[i], states[i], y[i]);
        }
        if (exists) {
            *(float4*)(out + row + step) = make_float4(gated(y[0], gate[0]), gated(y[1], gate[1]), gated(y[2], gate[2]),
                                                       gated(y[3], gate[3]));
        }
    }
}
// ANCHOR_END: kernel
