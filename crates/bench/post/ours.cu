// This repository's pipe, with memcode 0. A block has no more warps than the row can use.
#include "contest.cuh"
#include "linrec_pipe.cu"

template <int kElems, int kThreads, bool kBackward>
static void launch(const Arrays& arrays, long long num_seqs, long long seq_len, bool reverse) {
    const long long warps = (seq_len + 32 * kElems - 1) / (32 * kElems);
    const int threads = warps < kThreads / 32 ? 32 * warps : kThreads;
    if (kBackward) {
        linrec_pipe_bwd<float, kElems, kThreads, 0, 3><<<num_seqs, threads>>>(
            arrays.inputs, arrays.coeffs, arrays.outputs, nullptr, arrays.first, arrays.second,
            arrays.carry, num_seqs, seq_len, reverse);
    } else {
        linrec_pipe_fwd<float, kElems, kThreads, 0, 3><<<num_seqs, threads>>>(
            arrays.inputs, arrays.coeffs, arrays.first, nullptr, arrays.carry, num_seqs, seq_len,
            reverse);
    }
}

Launch ours(int elems, int threads, bool backward) {
#define SIZE(E, T) \
    if (elems == E && threads == T) return backward ? launch<E, T, true> : launch<E, T, false>;
    FOR_EACH_SIZE(SIZE)
    return nullptr;
}
