// What the steps of the ladder share: rows of floats in words of 16 bytes.
//
// The ladder leads from the pipe kernel to linrec_wide.cu, one idea at a time (chapter 10). Its kernels go
// forward only, and their rows consist of whole words and begin at multiples of 16 bytes. Arrays and arguments
// otherwise as for linrec_ref.cu.
#pragma once
#include "../wide.cuh"

// ANCHOR: word
// The four steps of a row from `step` on, or four times `otherwise` behind its end.
__device__ inline void load_word(const float* row, long long step, long long seq_len, float otherwise,
                                 float* elems) {
    float4 word = make_float4(otherwise, otherwise, otherwise, otherwise);
    if (step < seq_len) word = *(const float4*)(row + step);
    elems[0] = word.x, elems[1] = word.y, elems[2] = word.z, elems[3] = word.w;
}

__device__ inline void store_word(float* row, long long step, long long seq_len, const float* elems) {
    const float4 word = make_float4(elems[0], elems[1], elems[2], elems[3]);
    if (step < seq_len) *(float4*)(row + step) = word;
}
// ANCHOR_END: word

// ANCHOR: pieces
// A thread's words of a tile that begins with step `first`: neighbouring lanes hold neighbouring words, and a
// warp's second piece of 512 bytes comes behind its first one.
template <int kWords>
__device__ long long piece(long long first, int w) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return first + 128 * (warp * kWords + w) + 4 * lane;
}

template <int kWords>
__device__ Words<float, kWords> load_pieces(const float* row, long long first, long long seq_len,
                                            float otherwise) {
    Words<float, kWords> words;
#pragma unroll
    for (int w = 0; w < kWords; w++) {
        load_word(row, piece<kWords>(first, w), seq_len, otherwise, words.at[w]);
    }
    return words;
}

template <int kWords>
__device__ void store_pieces(float* row, long long first, long long seq_len,
                             const Words<float, kWords>& words) {
#pragma unroll
    for (int w = 0; w < kWords; w++) {
        store_word(row, piece<kWords>(first, w), seq_len, words.at[w]);
    }
}
// ANCHOR_END: pieces
