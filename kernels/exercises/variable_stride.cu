// linrec_pipe.cu, forward, with the distance between a thread's elements either known to the
// compiler or in a variable: the same results and requests, another speed. Chapter 9 measures it.
//
// Arguments and launch as for linrec_pipe_fwd<float, ...> with kMemcode 0 and all levels.
#include "../memio.cuh"
#include "../scan.cuh"

// ANCHOR: elements
template <int kMaxElems>
__device__ void read_by(int stride, const float* data, Range existing, float otherwise,
                        float (&elems)[kMaxElems]) {
#pragma unroll
    for (int i = 0; i < kMaxElems; i++) {
        elems[i] = otherwise;
        if (existing.contains(i)) elems[i] = data[i * stride];
    }
}

template <int kMaxElems>
__device__ void write_by(int stride, float* data, int count, const float (&elems)[kMaxElems]) {
#pragma unroll
    for (int i = 0; i < kMaxElems; i++) {
        if (i < count) data[i * stride] = elems[i];
    }
}
// ANCHOR_END: elements

template <int kMaxElemsPerThread, int kMaxThreadsPerBlock, bool kKnownToLoads, bool kKnownToStores>
__global__ void __launch_bounds__(kMaxThreadsPerBlock)
    linrec_strides(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                   float* final_state, long long num_seqs, long long seq_len, int reverse) {
    __shared__ Transition<float> totals[2][kMaxWarps];
    const int max_len = kMaxElemsPerThread * blockDim.x;
    float carry = initial ? initial[blockIdx.x] : 0.0f;
    int turn = 0;
    for (long long first = 0; first < seq_len; first += max_len) {
        const int len = min((long long)max_len, seq_len - first);
        const Share mine = share<kMaxElemsPerThread>(len);
        const Row<float> row = row_of(outputs, seq_len, reverse);
        const Range exist = existing(row, first + mine.begin, mine.count);
        const long long begin = seq_len * blockIdx.x + row.position(first + mine.begin);
        float x[kMaxElemsPerThread], c[kMaxElemsPerThread];
        // ANCHOR: stride
        const int stride = reverse ? -1 : 1;
        if (kKnownToLoads) {
            read(inputs + begin, reverse, exist, 0.0f, x);
            read(coeffs + begin, reverse, exist, 1.0f, c);
        } else {
            read_by(stride, inputs + begin, exist, 0.0f, x);
            read_by(stride, coeffs + begin, exist, 1.0f, c);
        }
        // ANCHOR_END: stride
        scan_tile<kBlock>(mine.last(len), c, x, totals[turn], carry);
        if (kKnownToStores) {
            write(outputs + begin, reverse, mine.count, x);
        } else {
            write_by(stride, outputs + begin, mine.count, x);
        }
        turn = 1 - turn;
    }
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
