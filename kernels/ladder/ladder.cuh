// What the steps of the ladder share: rows of floats in vectors of 16 bytes.
//
// The ladder leads from the pipe kernel to linrec_wide.cu, one idea at a time (chapter 10). Its
// kernels go forward only, and their rows consist of whole vectors and begin at multiples of 16
// bytes. Arrays and arguments otherwise as for linrec_ref.cu.
#pragma once
#include "../wide.cuh"

// ANCHOR: vector
// Elements k to k + 3 of a tile with `len` elements, or four times `otherwise` behind its end.
__device__ inline void load_vector(const float* tile, int k, int len, float otherwise, float* elems) {
    float4 vector = make_float4(otherwise, otherwise, otherwise, otherwise);
    if (k < len) vector = *(const float4*)(tile + k);
    elems[0] = vector.x, elems[1] = vector.y, elems[2] = vector.z, elems[3] = vector.w;
}

__device__ inline void store_vector(float* tile, int k, int len, const float* elems) {
    const float4 vector = make_float4(elems[0], elems[1], elems[2], elems[3]);
    if (k < len) *(float4*)(tile + k) = vector;
}

// The elements in the row of a tile of kSteps that begins with step `first`; negative
// beyond its end.
template <int kSteps>
__device__ int tile_len(long long first, long long seq_len) {
    return min((long long)kSteps, seq_len - first);
}
// ANCHOR_END: vector

// The state after a row is its last output, which a thread of the block has stored;
// `carry` differs by rounding, and remains where a row has no steps.
__device__ inline void store_final(float* final_state, long long seq, const float* outputs,
                                   long long seq_len, float carry) {
    if (!final_state) return;
    __syncthreads();
    if (threadIdx.x == 0) final_state[seq] = seq_len > 0 ? outputs[seq_len - 1] : carry;
}

// ANCHOR: pieces
// Where in a tile the thread's vectors are: in each piece of 512 bytes, neighbouring
// lanes hold neighbouring vectors, and a warp has kVectors pieces, one behind the other.
template <int kVectors>
__device__ int piece(int w) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return 128 * (warp * kVectors + w) + 4 * lane;
}

template <int kVectors>
__device__ Vectors<float, kVectors> load_pieces(const float* tile, int len, float otherwise) {
    Vectors<float, kVectors> vectors;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        load_vector(tile, piece<kVectors>(w), len, otherwise, vectors.at[w]);
    }
    return vectors;
}

template <int kVectors>
__device__ void store_pieces(float* tile, int len, const Vectors<float, kVectors>& vectors) {
#pragma unroll
    for (int w = 0; w < kVectors; w++) store_vector(tile, piece<kVectors>(w), len, vectors.at[w]);
}
// ANCHOR_END: pieces
