// The words in pieces, with loads or stores that tell the caches that nobody will need them again.
#include "ladder.cuh"

// ANCHOR: hints
template <bool kHint>
__device__ void load_hinted(const float* tile, int k, int len, float otherwise, float* elems) {
    float4 word = make_float4(otherwise, otherwise, otherwise, otherwise);
    const float4* from = (const float4*)(tile + k);
    if (k < len) word = kHint ? __ldcs(from) : *from;
    elems[0] = word.x, elems[1] = word.y, elems[2] = word.z, elems[3] = word.w;
}

template <bool kHint>
__device__ void store_hinted(float* tile, int k, int len, const float* elems) {
    const float4 word = make_float4(elems[0], elems[1], elems[2], elems[3]);
    float4* to = (float4*)(tile + k);
    if (k >= len) return;
    if (kHint) {
        __stcs(to, word);
    } else {
        *to = word;
    }
}
// ANCHOR_END: hints

template <bool kLoads, bool kStores, int kWords, int kThreads>
__global__ void __launch_bounds__(kThreads)
    ladder_hints(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                 float* final_state, long long num_seqs, long long seq_len) {
    __shared__ Transition<float> totals[2][kThreads / 32];
    constexpr int kSteps = 4 * kWords * kThreads;
    const long long row = seq_len * blockIdx.x;
    float carry = initial ? initial[blockIdx.x] : 0.0f;
    int turn = 0;
    for (long long first = 0; first < seq_len; first += kSteps) {
        const int len = tile_len<kSteps>(first, seq_len);
        Words<float, kWords> x, c;
#pragma unroll
        for (int w = 0; w < kWords; w++) {
            load_hinted<kLoads>(inputs + row + first, piece<kWords>(w), len, 0.0f, x.at[w]);
            load_hinted<kLoads>(coeffs + row + first, piece<kWords>(w), len, 1.0f, c.at[w]);
        }
        scan_words<kThreads>(c, x, totals[turn], carry);
#pragma unroll
        for (int w = 0; w < kWords; w++) {
            store_hinted<kStores>(outputs + row + first, piece<kWords>(w), len, x.at[w]);
        }
        turn = 1 - turn;
    }
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
