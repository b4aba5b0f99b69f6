// What the steps of the ladder share: rows of floats in words of 16 bytes.
//
// The ladder leads from the pipe kernel to linrec_wide.cu, one idea at a time (chapter 10). Its
// kernels go forward only, and their rows consist of whole words and begin at multiples of 16
// bytes. Arrays and arguments otherwise as for linrec_ref.cu.
#pragma once
#include "../wide.cuh"

// ANCHOR: word
// Elements k to k + 3 of a tile with `len` elements, or four times `otherwise` behind its end.
__device__ inline void load_word(const float* tile, int k, int len, float otherwise, float* elems) {
    float4 word = make_float4(otherwise, otherwise, otherwise, otherwise);
    if (k < len) word = *(const float4*)(tile + k);
    elems[0] = word.x, elems[1] = word.y, elems[2] = word.z, elems[3] = word.w;
}

__device__ inline void store_word(float* tile, int k, int len, const float* elems) {
    const float4 word = make_float4(elems[0], elems[1], elems[2], elems[3]);
    if (k < len) *(float4*)(tile + k) = word;
}

// Of a tile of kSteps that begins with step `first`, what is in the row; less than nothing behind
// its end.
template <int kSteps>
__device__ int tile_len(long long first, long long seq_len) {
    return min((long long)kSteps, seq_len - first);
}
// ANCHOR_END: word

// ANCHOR: pieces
// Where in a tile the thread's words are: in each piece of 512 bytes, neighbouring lanes hold
// neighbouring words, and a warp has kWords pieces, one behind the other.
template <int kWords>
__device__ int piece(int w) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return 128 * (warp * kWords + w) + 4 * lane;
}

template <int kWords>
__device__ Words<float, kWords> load_pieces(const float* tile, int len, float otherwise) {
    Words<float, kWords> words;
#pragma unroll
    for (int w = 0; w < kWords; w++) {
        load_word(tile, piece<kWords>(w), len, otherwise, words.at[w]);
    }
    return words;
}

template <int kWords>
__device__ void store_pieces(float* tile, int len, const Words<float, kWords>& words) {
#pragma unroll
    for (int w = 0; w < kWords; w++) store_word(tile, piece<kWords>(w), len, words.at[w]);
}
// ANCHOR_END: pieces
