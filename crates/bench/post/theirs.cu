// The post's pipe, from a copy of its repository, with memcode 0 and its launcher's threads.
#include <cuda.h>

#include <cassert>
#include <map>
#include <string>

#include "contest.cuh"
#include "linrec_pipe.cuh"

template <int kElems, int kThreads, bool kBackward>
static void launch(const Arrays& arrays, long long num_seqs, long long seq_len, bool reverse) {
    const long long wanted = (seq_len + kElems - 1) / kElems;
    const int threads = wanted < kThreads ? wanted : kThreads, len = seq_len;
    if (kBackward) {
        linrec_pipe_bwd_kernel<float, kElems, 32, kThreads, 0, 3><<<num_seqs, threads>>>(
            arrays.inputs, arrays.coeffs, arrays.outputs, arrays.first, arrays.second, len, reverse);
    } else {
        linrec_pipe_fwd_kernel<float, kElems, 32, kThreads, 0, 3><<<num_seqs, threads>>>(
            arrays.inputs, arrays.coeffs, arrays.first, len, reverse);
    }
}

Launch theirs(int elems, int threads, bool backward) {
#define SIZE(E, T) \
    if (elems == E && threads == T) return backward ? launch<E, T, true> : launch<E, T, false>;
    FOR_EACH_SIZE(SIZE)
    return nullptr;
}
