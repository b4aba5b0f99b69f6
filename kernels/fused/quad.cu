// Four lanes share two channels: each walks four states of both. Tiles of 32 steps come through
// shared memory.
//
// A warp has 16 channels; a block has kWarps warps, which share B and C. Launch: for
// each batch, a block for every 16 * kWarps channels.
#include "fused.cuh"

constexpr int kTileSteps = 32, kLanes = 4, kLaneStates = kStates / kLanes, kWarpChannels = 2 * 32 / kLanes;

// ANCHOR: shared
template <int kWarps>
struct Shared {
    static constexpr int kChannels = kWarps * kWarpChannels;
    float2 pairs[kTileSteps][kChannels + 1];  // d, d u
    float sums[kTileSteps][kChannels + 1];    // D u, and in the end y
    float couplings[kTileSteps][2 * kStates + 4];  // B, then C
};
// ANCHOR_END: shared

// ANCHOR: bring
// Loads a tile: a lane for each step, so that a warp reads 128 bytes of a row at once.
template <int kWarps>
__device__ void bring(Shared<kWarps>& shared, const Arrays& all, long long batch, int first_channel, long long first) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool exists = first + lane < all.seq_len;
    for (int k = 0; k < kWarpChannels; k++) {
        const int mine = warp * kWarpChannels + k, channel = first_channel + mine;
        const bool is_there = exists && channel < all.channels;
        const long long at = all.row(batch, channel) + first + lane;
        const float u = is_there ? all.u[at] : 0.0f, d = is_there ? step_size(all.delta[at]) : 0.0f;
        shared.pairs[lane][mine] = make_float2(d, d * u);
        shared.sums[lane][mine] = is_there ? all.D[channel] * u : 0.0f;
    }
    for (int n = warp; n < kStates; n += kWarps) {
        const long long at = all.coupling(batch, n) + first + lane;
        shared.couplings[lane][n] = exists ? all.B[at] : 0.0f;
        shared.couplings[lane][kStates + n] = exists ? all.C[at] : 0.0f;
    }
}
// ANCHOR_END: bring

// ANCHOR: finish
template <int kWarps>
__device__ void finish(const Shared<kWarps>& shared, const Arrays& all, long long batch, int first_channel, long long first) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int k = 0; k < kWarpChannels; k++) {
        const int mine = warp * kWarpChannels + k, channel = first_channel + mine;
        const long long at = all.row(batch, channel) + first + lane;
        if (first + lane < all.seq_len && channel < all.channels) all.out[at] = gated(shared.sums[lane][mine], all.z[at]);
    }
}
// ANCHOR_END: finish

// ANCHOR: kernel
template <int kWarps>
__global__ void __launch_bounds__(32 * kWarps)
    fused_quad(const float* u, const float* delta, const float* A, const float* B, const float* C, const float* D,
               const float* z, float* out, int channels, long long seq_len) {
    __shared__ Shared<kWarps> shared;
    constexpr int kChannels = Shared<kWarps>::kChannels;
    const Arrays all = {u, delta, A, B, C, D, z, out, channels, seq_len};
    const int blocks = (channels + kChannels - 1) / kChannels;
    const long long batch = blockIdx.x / blocks;
    const int first_channel = blockIdx.x % blocks * kChannels;
    // The lane's two channels in the block, 8 apart, and its states part * 4 to part * 4 + 3 of
    // both.
    const int lane = threadIdx.x % 32, part = lane / 8;
    const int mine[2] = {(int)threadIdx.x / 32 * kWarpChannels + lane % 8, (int)threadIdx.x / 32 * kWarpChannels + lane % 8 + 8};
    float states[2][kLaneStates], rates[2][kLaneStates];
#pragma unroll
    for (int i = 0; i < 2 * kLaneStates; i++) {
        const int channel = first_channel + mine[i / kLaneStates];
        states[i / kLaneStates][i % kLaneStates] = 0.0f;
        rates[i / kLaneStates][i % kLaneStates] =
            channel < channels ? all.rate(channel, part * kLaneStates + i % kLaneStates) : 0.0f;
    }
    for (long long first = 0; first < seq_len; first += kTileSteps) {
        bring(shared, all, batch, first_channel, first);
        __syncthreads();
#pragma unroll 2
        for (int step = 0; step < kTileSteps; step++) {
            const float4 b4 = *(const float4*)&shared.couplings[step][part * kLaneStates];
            const float4 c4 = *(const float4*)&shared.couplings[step][kStates + part * kLaneStates];
            const float b[kLaneStates] = {b4.x, b4.y, b4.z, b4.w}, c[kLaneStates] = {c4.x, c4.y, c4.z, c4.w};
            float y[2];
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const float2 pair = shared.pairs[step][mine[k]];
                y[k] = 0.0f;
#pragma unroll
                for (int n = 0; n < kLaneStates; n++) {
                    states[k][n] = multiply_add(decay(pair.x, rates[k][n]), states[k][n], pair.y * b[n]);
                    y[k] = multiply_add(c[n], states[k][n], y[k]);
                }
                // The sum over the four lanes of a channel.
                y[k] += __shfl_xor_sync(kAllLanes, y[k], 8);
                y[k] += __shfl_xor_sync(kAllLanes, y[k], 16);
            }
            if (part == 0) shared.sums[step][mine[0]] += y[0];
            if (part == 1) shared.sums[step][mine[1]] += y[1];
        }
        __syncwarp();
        finish(shared, all, batch, first_channel, first);
        __syncthreads();
    }
}
// ANCHOR_END: kernel
