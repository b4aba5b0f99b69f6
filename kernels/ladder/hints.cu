// The words in pieces, with loads or stores that tell the caches that nobody will need them again.
#include "ladder.cuh"

// ANCHOR: hints
template <bool kHint>
__device__ void load_hinted(const float* row, long long step, long long seq_len, float otherwise,
                            float* elems) {
    float4 word = make_float4(otherwise, otherwise, otherwise, otherwise);
    const float4* from = (const float4*)(row + step);
    if (step < seq_len) word = kHint ? __ldcs(from) : *from;
    elems[0] = word.x, elems[1] = word.y, elems[2] = word.z, elems[3] = word.w;
}

template <bool kHint>
__device__ void store_hinted(float* row, long long step, long long seq_len, const float* elems) {
    const float4 word = make_float4(elems[0], elems[1], elems[2], elems[3]);
    float4* to = (float4*)(row + step);
    if (step >= seq_len) return;
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
    const long long row = seq_len * blockIdx.x;
    float carry = initial ? initial[blockIdx.x] : 0.0f;
    int turn = 0;
    for (long long first = 0; first < seq_len; first += 4 * kWords * kThreads) {
        Words<float, kWords> x, c;
#pragma unroll
        for (int w = 0; w < kWords; w++) {
            const long long step = piece<kWords>(first, w);
            load_hinted<kLoads>(inputs + row, step, seq_len, 0.0f, x.at[w]);
            load_hinted<kLoads>(coeffs + row, step, seq_len, 1.0f, c.at[w]);
        }
        scan_words<kThreads>(c, x, totals[turn], carry);
#pragma unroll
        for (int w = 0; w < kWords; w++) {
            const long long step = piece<kWords>(first, w);
            store_hinted<kStores>(outputs + row, step, seq_len, x.at[w]);
        }
        turn = 1 - turn;
    }
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
