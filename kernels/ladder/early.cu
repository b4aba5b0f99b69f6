// The next tile's loads are in flight, into registers, while this tile is computed.
#include "ladder.cuh"

// ANCHOR: kernel
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    ladder_early(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                 float* final_state, long long num_seqs, long long seq_len) {
    __shared__ Transition<float> totals[2][kThreads / 32];
    constexpr int kSteps = 4 * kVectors * kThreads;
    const long long row = seq_len * blockIdx.x;
    float carry = initial ? initial[blockIdx.x] : 0.0f;
    int turn = 0;
    int len = tile_len<kSteps>(0, seq_len);
    auto next_x = load_pieces<kVectors>(inputs + row, len, 0.0f);
    auto next_c = load_pieces<kVectors>(coeffs + row, len, 1.0f);
    for (long long first = 0; first < seq_len; first += kSteps) {
        const long long next = first + kSteps;
        const int next_len = tile_len<kSteps>(next, seq_len);
        auto x = next_x, c = next_c;
        next_x = load_pieces<kVectors>(inputs + row + next, next_len, 0.0f);
        next_c = load_pieces<kVectors>(coeffs + row + next, next_len, 1.0f);
        scan_vectors<kThreads>(c, x, totals[turn], carry);
        store_pieces(outputs + row + first, len, x);
        len = next_len;
        turn = 1 - turn;
    }
    store_final(final_state, blockIdx.x, outputs + row, seq_len, carry);
}
// ANCHOR_END: kernel
