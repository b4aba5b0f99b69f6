// No recurrence: an addition, by blocks that walk along rows as the recurrence's blocks do.
#include "ladder.cuh"

// ANCHOR: kernel
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    ladder_walk(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                float* final_state, long long num_seqs, long long seq_len) {
    constexpr int kSteps = 4 * kVectors * kThreads;
    const long long row = seq_len * blockIdx.x;
    for (long long first = 0; first < seq_len; first += kSteps) {
        const int len = tile_len<kSteps>(first, seq_len);
        auto x = load_pieces<kVectors>(inputs + row + first, len, 0.0f);
        const auto c = load_pieces<kVectors>(coeffs + row + first, len, 0.0f);
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
#pragma unroll
            for (int i = 0; i < 4; i++) x.at[w][i] = x.at[w][i] + c.at[w][i];
        }
        store_pieces(outputs + row + first, len, x);
    }
}
// ANCHOR_END: kernel
