// As many blocks as the GPU holds, and each takes one row after the other.
#include "ladder.cuh"

// ANCHOR: kernel
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    ladder_persistent(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                      float* final_state, long long num_seqs, long long seq_len) {
    __shared__ Transition<float> totals[2][kThreads / 32];
    constexpr int kSteps = 4 * kVectors * kThreads;
    int turn = 0;
    for (long long seq = blockIdx.x; seq < num_seqs; seq += gridDim.x) {
        const long long row = seq_len * seq;
        float carry = initial ? initial[seq] : 0.0f;
        for (long long first = 0; first < seq_len; first += kSteps) {
            const int len = tile_len<kSteps>(first, seq_len);
            auto x = load_pieces<kVectors>(inputs + row + first, len, 0.0f);
            auto c = load_pieces<kVectors>(coeffs + row + first, len, 1.0f);
            scan_vectors<kThreads>(c, x, totals[turn], carry);
            store_pieces(outputs + row + first, len, x);
            turn = 1 - turn;
        }
        store_final(final_state, seq, outputs + row, seq_len, carry);
    }
}
// ANCHOR_END: kernel
