// What the kernels of this folder share: the tiles of one long sequence of floats.
//
// They lead from three launches to linrec_once.cu, one idea at a time (chapter 12). They
// go forward only, over one sequence of any length, whose arrays begin at multiples of 16
// bytes. `initial` and `final_state` may be null. A sequence without steps has one tile.
#pragma once
#include "../waves.cuh"

// ANCHOR: vector
// Elements k to k + 3 of a tile of `len` elements; `otherwise` beyond its end.
__device__ inline void load_vector(const float* tile, int k, int len, float otherwise, float (&elems)[4]) {
    if (k + 4 <= len) {
        const float4 vector = *(const float4*)(tile + k);
        elems[0] = vector.x, elems[1] = vector.y, elems[2] = vector.z, elems[3] = vector.w;
    } else {
        for (int i = 0; i < 4; i++) elems[i] = k + i < len ? tile[k + i] : otherwise;
    }
}

__device__ inline void store_vector(float* tile, int k, int len, const float (&elems)[4]) {
    if (k + 4 <= len) {
        *(float4*)(tile + k) = make_float4(elems[0], elems[1], elems[2], elems[3]);
    } else {
        for (int i = 0; i < 4; i++) {
            if (k + i < len) tile[k + i] = elems[i];
        }
    }
}
// ANCHOR_END: vector

// ANCHOR: tile
// A block's tile: each warp has kVectors pieces of 512 bytes, in which neighbouring lanes
// hold neighbouring vectors. Steps beyond the end of the sequence leave the state as it is.
template <int kVectors, int kThreads>
struct Tile {
    static constexpr int kSteps = 4 * kVectors * kThreads, kWarps = kThreads / 32;
    long long first;  // its first step in the sequence
    int len;
    Vectors<float, kVectors> x, c;
    Transition<float> before[kVectors];  // what the warp's earlier steps do

    __device__ static int piece(int w) {
        return 128 * (threadIdx.x / 32 * kVectors + w) + 4 * (threadIdx.x % 32);
    }

    // Loads tile `number`, and returns what the warp's steps do to the state.
    __device__ Transition<float> load(long long number, const float* inputs, const float* coeffs,
                                      long long seq_len) {
        first = number * kSteps;
        len = min((long long)kSteps, seq_len - first);
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
            load_vector(inputs + first, piece(w), len, 0.0f, x.at[w]);
            load_vector(coeffs + first, piece(w), len, 1.0f, c.at[w]);
        }
        return summarize_vectors(c, x, before);
    }

    // From the state before the warp's steps to the outputs.
    __device__ void apply(float state, float* outputs, float* final_state, long long seq_len) {
        walk_vectors(c, x, before, state);
#pragma unroll
        for (int w = 0; w < kVectors; w++) store_vector(outputs + first, piece(w), len, x.at[w]);
        if (!final_state || first + len < seq_len) return;
        // The lane with the last step has the final state; without steps it is the state before.
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (piece(w) + i == len - 1) *final_state = x.at[w][i];
            }
        }
        if (len == 0 && threadIdx.x == 0) *final_state = state;
    }
};
// ANCHOR_END: tile

// ANCHOR: late
// Delays a block by a number of loads, so that one can watch what others do meanwhile.
// Null except in experiments.
__device__ inline void be_late(const int* delays, int number, const Shared* shared) {
    for (int i = delays ? delays[number] : 0; i > 0; i--) load_relaxed(&shared->epoch);
}
// ANCHOR_END: late
