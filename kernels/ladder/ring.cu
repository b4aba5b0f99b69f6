// The next kAhead tiles are on their way, into shared memory, while this tile is computed.
//
// Dynamic shared memory: the words of two arrays for each of the tiles, 16 bytes each.
#include "ladder.cuh"

// ANCHOR: ring
// A ring of tiles: tile t is where tile t - kAhead was. Every thread has places of its own in it, so that
// nobody has to wait for anybody else.
template <int kWords, int kThreads, int kAhead>
struct Ring {
    uint4* places;

    __device__ uint4* place(long long tile, int array) const {
        return places + ((tile % kAhead) * 2 + array) * kWords * kThreads + threadIdx.x;
    }

    __device__ void send(const float* row, long long tile, int array, long long seq_len) const {
        const long long first = tile * (4 * kWords * kThreads);
#pragma unroll
        for (int w = 0; w < kWords; w++) {
            const long long step = piece<kWords>(first, w);
            if (step < seq_len) copy_word(place(tile, array) + w * kThreads, row + step);
        }
    }

    __device__ Words<float, kWords> receive(long long tile, int array, long long seq_len,
                                            float otherwise) const {
        const long long first = tile * (4 * kWords * kThreads);
        Words<float, kWords> words;
#pragma unroll
        for (int w = 0; w < kWords; w++) {
            const bool exists = piece<kWords>(first, w) < seq_len;
            const float* arrived = (const float*)(place(tile, array) + w * kThreads);
            load_word(arrived, exists ? 0 : 1, 1, otherwise, words.at[w]);
        }
        return words;
    }
};
// ANCHOR_END: ring

// ANCHOR: kernel
template <int kWords, int kThreads, int kAhead>
__global__ void __launch_bounds__(kThreads)
    ladder_ring(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                float* final_state, long long num_seqs, long long seq_len) {
    extern __shared__ uint4 shared[];
    __shared__ Transition<float> totals[2][kThreads / 32];
    const Ring<kWords, kThreads, kAhead> ring = {shared};
    constexpr int kSteps = 4 * kWords * kThreads;
    const long long row = seq_len * blockIdx.x, tiles = (seq_len + kSteps - 1) / kSteps;
    const auto send = [&](long long tile) {
        ring.send(inputs + row, tile, 0, seq_len);
        ring.send(coeffs + row, tile, 1, seq_len);
        close_group();
    };

    float carry = initial ? initial[blockIdx.x] : 0.0f;
#pragma unroll
    for (int tile = 0; tile < kAhead; tile++) send(tile);
    for (long long tile = 0; tile < tiles; tile++) {
        await_groups<kAhead - 1>();  // this tile is there
        auto x = ring.receive(tile, 0, seq_len, 0.0f);
        auto c = ring.receive(tile, 1, seq_len, 1.0f);
        send(tile + kAhead);
        scan_words<kThreads>(c, x, totals[tile % 2], carry);
        store_pieces(outputs + row, tile * kSteps, seq_len, x);
    }
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
// ANCHOR_END: kernel
