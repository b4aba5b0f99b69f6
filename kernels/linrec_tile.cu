// One block computes one sequence that fits into its registers, a tile: every thread takes
// a few neighbouring steps, and then the threads combine their results in three levels.
//
// Arrays as for linrec_ref.cu; with `reverse` other than 0 the recurrence walks from the last
// element to the first. One block per sequence, of whole warps, with kMaxElemsPerThread *
// threads >= seq_len and at most kMaxThreadsPerBlock threads. With kMemcode 1 and 2 the tile
// passes through dynamic shared memory: kMaxElemsPerThread * threads elements and 16 bytes.
#include "memio.cuh"
#include "scan.cuh"

// How many blocks an SM should hold; 0 asks for nothing. A share of up to 16 bytes fits into 32
// registers, which lets an SM hold all 2048 threads. Unasked, the compiler takes a few more.
template <typename Stored, int kMaxElems, int kThreads>
constexpr int kBlocks = sizeof(Accum<Stored>) * kMaxElems <= 16 ? 2048 / kThreads : 0;

// ANCHOR: forward
template <typename Stored, int kMaxElemsPerThread, int kMaxThreadsPerBlock, int kMemcode,
          int kAlgocode>
__global__ void __launch_bounds__(kMaxThreadsPerBlock,
                                  kBlocks<Stored, kMaxElemsPerThread, kMaxThreadsPerBlock>)
    linrec_tile_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                    const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                    long long seq_len, int reverse) {
    using T = Accum<Stored>;
    extern __shared__ uint4 shared[];
    __shared__ Transition<T> totals[kMaxWarps];
    Stored* staging = (Stored*)shared;

    // A step that does not exist leaves every state as it is: coefficient 1, input 0.
    const Share mine = share<kMaxElemsPerThread>(seq_len);
    T x[kMaxElemsPerThread], c[kMaxElemsPerThread];
    load_tile<kMemcode>(row_of(inputs, seq_len, reverse), 0, seq_len, mine, T(0), staging, x);
    load_tile<kMemcode>(row_of(coeffs, seq_len, reverse), 0, seq_len, mine, T(1), staging, c);

    T carry = initial ? initial[blockIdx.x] : T(0);
    scan_tile<kAlgocode>(mine.last(seq_len), c, x, totals, carry);

    store_tile<kMemcode>(row_of(outputs, seq_len, reverse), 0, seq_len, mine, staging, x);
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
// ANCHOR_END: forward

// ANCHOR: backward
// The gradient flows against the recurrence: the same scan over d_outputs in the other direction,
// with the coefficient of one step later in the recurrence, one step before in the scan.
template <typename Stored, int kMaxElemsPerThread, int kMaxThreadsPerBlock, int kMemcode,
          int kAlgocode>
__global__ void __launch_bounds__(kMaxThreadsPerBlock,
                                  kBlocks<Stored, kMaxElemsPerThread, kMaxThreadsPerBlock>)
    linrec_tile_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                    const Accum<Stored>* initial, Stored* d_inputs, Stored* d_coeffs,
                    Accum<Stored>* d_initial, long long num_seqs, long long seq_len, int reverse) {
    using T = Accum<Stored>;
    extern __shared__ uint4 shared[];
    __shared__ Transition<T> totals[kMaxWarps];
    Stored* staging = (Stored*)shared;
    const bool back = !reverse;

    const Share mine = share<kMaxElemsPerThread>(seq_len);
    T delta[kMaxElemsPerThread], c[kMaxElemsPerThread];
    load_tile<kMemcode>(row_of(d_outputs, seq_len, back), 0, seq_len, mine, T(0), staging, delta);
    load_tile<kMemcode>(row_of(coeffs, seq_len, back), -1, seq_len, mine, T(1), staging, c);
    conjugate_all(c);

    T carry(0);
    scan_tile<kAlgocode>(mine.last(seq_len), c, delta, totals, carry);
    store_tile<kMemcode>(row_of(d_inputs, seq_len, back), 0, seq_len, mine, staging, delta);

    // The state before a step of the recurrence is one step later in the scan.
    T previous[kMaxElemsPerThread];
    const T start = initial ? initial[blockIdx.x] : T(0);
    load_tile<kMemcode>(row_of(outputs, seq_len, back), 1, seq_len, mine, start, staging, previous);
    conjugate_all(previous);
#pragma unroll
    for (int i = 0; i < kMaxElemsPerThread; i++) delta[i] = delta[i] * previous[i];
    store_tile<kMemcode>(row_of(d_coeffs, seq_len, back), 0, seq_len, mine, staging, delta);

    if (d_initial && threadIdx.x == 0) {
        const Row<const Stored> row = row_of(coeffs, seq_len, reverse);
        const T coeff = seq_len > 0 ? widen(row.data[row.position(0)]) : T(0);
        d_initial[blockIdx.x] = carry * conjugate(coeff);
    }
}
// ANCHOR_END: backward
