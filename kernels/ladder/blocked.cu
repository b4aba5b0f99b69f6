// Several vectors for each thread, blocked: one behind the other.
#include "ladder.cuh"

// ANCHOR: kernel
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    ladder_blocked(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                      float* final_state, long long num_seqs, long long seq_len) {
    __shared__ Transition<float> totals[2][kThreads / 32];
    constexpr int kElems = 4 * kVectors, kSteps = kElems * kThreads;
    const int mine = kElems * threadIdx.x;
    const long long row = seq_len * blockIdx.x;
    float carry = initial ? initial[blockIdx.x] : 0.0f;
    int turn = 0;
    for (long long first = 0; first < seq_len; first += kSteps) {
        const int len = tile_len<kSteps>(first, seq_len);
        float x[kElems], c[kElems];
#pragma unroll
        for (int k = 0; k < kElems; k += 4) {
            load_vector(inputs + row + first, mine + k, len, 0.0f, x + k);
            load_vector(coeffs + row + first, mine + k, len, 1.0f, c + k);
        }
        scan_tile<kBlock>(-1, c, x, totals[turn], carry);
#pragma unroll
        for (int k = 0; k < kElems; k += 4) {
            store_vector(outputs + row + first, mine + k, len, x + k);
        }
        turn = 1 - turn;
    }
    store_final(final_state, blockIdx.x, outputs + row, seq_len, carry);
}
// ANCHOR_END: kernel
