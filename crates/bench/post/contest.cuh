// The arguments of both sides, and the post's twelve sizes: elements per thread, threads per block.
#pragma once

struct Arrays {
    const float *inputs, *coeffs, *outputs;  // backward: `inputs` are the gradients of the outputs
    float *first, *second;                   // forward: only the first is written
    float* carry;                            // one number per row, for our side only
};

using Launch = void (*)(const Arrays&, long long num_seqs, long long seq_len, bool reverse);

// Returns the launch of one size, or null if there is no such size.
Launch ours(int elems, int threads, bool backward);
Launch theirs(int elems, int threads, bool backward);

#define FOR_EACH_SIZE(USE) \
    USE(4, 32) USE(4, 64) USE(4, 128) USE(4, 256)  \
    USE(8, 32) USE(8, 64) USE(8, 128) USE(8, 256)  \
    USE(16, 32) USE(16, 64) USE(16, 128) USE(16, 256)
