// linrec_tile.cu with its steps dealt out another way: the threads with one step less
// are spread over the block, not at its end. An exercise of chapter 6.
//
// Arguments and launch as for linrec_tile.cu, with kMemcode 0 and all levels.
#include "../memio.cuh"
#include "../scan.cuh"

// ANCHOR: spread
// The first step of thread t is t / num_threads of the way. A tile has 2^15 steps at
// most and a block 2^10 threads, so the product fits into 32 bits.
__device__ inline Share spread(int tile_len) {
    const int num_threads = blockDim.x, thread = threadIdx.x;
    const int begin = thread * tile_len / num_threads;
    const int end = (thread + 1) * tile_len / num_threads;
    return {begin, end - begin};
}
// ANCHOR_END: spread

template <typename Stored, int kMaxElemsPerThread, int kMaxThreadsPerBlock, int kMemcode,
          int kAlgocode>
__global__ void __launch_bounds__(kMaxThreadsPerBlock)
    linrec_tile_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                    const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                    long long seq_len, int reverse) {
    using T = Accum<Stored>;
    __shared__ Transition<T> totals[kMaxWarps];
    const Share mine = spread(seq_len);
    const Row<const Stored> row = row_of(inputs, seq_len, reverse);
    const long long first = seq_len * blockIdx.x + row.position(mine.begin);
    const Range exist = existing(row, mine.begin, mine.count);

    T x[kMaxElemsPerThread], c[kMaxElemsPerThread];
    read(inputs + first, reverse, exist, T(0), x);
    read(coeffs + first, reverse, exist, T(1), c);

    T carry = initial ? initial[blockIdx.x] : T(0);
    scan_tile<kBlock>(mine.last(seq_len), c, x, totals, carry);

    write(outputs + first, reverse, mine.count, x);
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
