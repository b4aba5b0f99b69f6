// The vectors in pieces, with loads or stores that ask the caches not to keep them.
#include "ladder.cuh"

// ANCHOR: hints
template <bool kHint>
__device__ void load_hinted(const float* tile, int k, int len, float otherwise, float* elems) {
    float4 vector = make_float4(otherwise, otherwise, otherwise, otherwise);
    const float4* from = (const float4*)(tile + k);
    if (k < len) vector = kHint ? __ldcs(from) : *from;
    elems[0] = vector.x, elems[1] = vector.y, elems[2] = vector.z, elems[3] = vector.w;
}

template <bool kHint>
__device__ void store_hinted(float* tile, int k, int len, const float* elems) {
    const float4 vector = make_float4(elems[0], elems[1], elems[2], elems[3]);
    float4* to = (float4*)(tile + k);
    if (k >= len) return;
    if (kHint) {
        __stcs(to, vector);
    } else {
        *to = vector;
    }
}
// ANCHOR_END: hints

template <bool kLoads, bool kStores, int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    ladder_hints(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                 float* final_state, long long num_seqs, long long seq_len) {
    __shared__ Transition<float> totals[2][kThreads / 32];
    constexpr int kSteps = 4 * kVectors * kThreads;
    const long long row = seq_len * blockIdx.x;
    float carry = initial ? initial[blockIdx.x] : 0.0f;
    int turn = 0;
    for (long long first = 0; first < seq_len; first += kSteps) {
        const int len = tile_len<kSteps>(first, seq_len);
        Vectors<float, kVectors> x, c;
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
            load_hinted<kLoads>(inputs + row + first, piece<kVectors>(w), len, 0.0f, x.at[w]);
            load_hinted<kLoads>(coeffs + row + first, piece<kVectors>(w), len, 1.0f, c.at[w]);
        }
        scan_vectors<kThreads>(c, x, totals[turn], carry);
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
            store_hinted<kStores>(outputs + row + first, piece<kVectors>(w), len, x.at[w]);
        }
        turn = 1 - turn;
    }
    store_final(final_state, blockIdx.x, outputs + row, seq_len, carry);
}
