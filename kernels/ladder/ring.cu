// The next kAhead tiles are in flight, into shared memory, while this tile is computed.
//
// Dynamic shared memory: the vectors of two arrays for each of the tiles, 16 bytes each.
#include "ladder.cuh"

// ANCHOR: ring
// A thread's vectors in flight. Every thread has its own places in shared memory,
// kThreads apart, so that no thread waits for another.
template <int kVectors, int kThreads>
__device__ void send_pieces(uint4* places, const float* tile, int len) {
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const int k = piece<kVectors>(w);
        if (k < len) copy_vector(places + w * kThreads, tile + k);
    }
}

template <int kVectors, int kThreads>
__device__ Vectors<float, kVectors> receive_pieces(const uint4* places, int len, float otherwise) {
    Vectors<float, kVectors> vectors;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const int behind = piece<kVectors>(w) < len ? 0 : 1;
        load_vector((const float*)(places + w * kThreads), behind, 1, otherwise, vectors.at[w]);
    }
    return vectors;
}
// ANCHOR_END: ring

// ANCHOR: kernel
template <int kVectors, int kThreads, int kAhead>
__global__ void __launch_bounds__(kThreads)
    ladder_ring(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                float* final_state, long long num_seqs, long long seq_len) {
    extern __shared__ uint4 ring[];
    __shared__ Transition<float> totals[2][kThreads / 32];
    constexpr int kSteps = 4 * kVectors * kThreads, kPlaces = kVectors * kThreads;
    const long long row = seq_len * blockIdx.x;
    // Tile t is where tile t - kAhead was.
    const auto places = [&](long long tile) {
        return ring + tile % kAhead * 2 * kPlaces + threadIdx.x;
    };
    const auto send = [&](long long tile) {
        const long long first = tile * kSteps;
        const int len = tile_len<kSteps>(first, seq_len);
        send_pieces<kVectors, kThreads>(places(tile), inputs + row + first, len);
        send_pieces<kVectors, kThreads>(places(tile) + kPlaces, coeffs + row + first, len);
        close_group();
    };

    float carry = initial ? initial[blockIdx.x] : 0.0f;
#pragma unroll
    for (int tile = 0; tile < kAhead; tile++) send(tile);
    for (long long tile = 0; tile * kSteps < seq_len; tile++) {
        const int len = tile_len<kSteps>(tile * kSteps, seq_len);
        await_groups<kAhead - 1>();  // this tile has arrived
        auto x = receive_pieces<kVectors, kThreads>(places(tile), len, 0.0f);
        auto c = receive_pieces<kVectors, kThreads>(places(tile) + kPlaces, len, 1.0f);
        send(tile + kAhead);
        scan_vectors<kThreads>(c, x, totals[tile % 2], carry);
        store_pieces(outputs + row + tile * kSteps, len, x);
    }
    store_final(final_state, blockIdx.x, outputs + row, seq_len, carry);
}
// ANCHOR_END: kernel
