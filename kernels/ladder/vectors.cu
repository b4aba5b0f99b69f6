// A vector of 16 bytes for each thread, straight from memory into registers and back.
#include "ladder.cuh"

// ANCHOR: kernel
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    ladder_vectors(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                 float* final_state, long long num_seqs, long long seq_len) {
    __shared__ Transition<float> totals[2][kThreads / 32];  // taken in turns
    const long long row = seq_len * blockIdx.x;
    float carry = initial ? initial[blockIdx.x] : 0.0f;
    int turn = 0;
    for (long long first = 0; first < seq_len; first += 4 * kThreads) {
        const int len = tile_len<4 * kThreads>(first, seq_len);
        float x[4], c[4];
        load_vector(inputs + row + first, 4 * threadIdx.x, len, 0.0f, x);
        load_vector(coeffs + row + first, 4 * threadIdx.x, len, 1.0f, c);
        scan_tile<kBlock>(-1, c, x, totals[turn], carry);
        store_vector(outputs + row + first, 4 * threadIdx.x, len, x);
        turn = 1 - turn;
    }
    store_final(final_state, blockIdx.x, outputs + row, seq_len, carry);
}
// ANCHOR_END: kernel
