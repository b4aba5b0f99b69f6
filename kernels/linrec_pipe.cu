// One block computes one sequence of any length, tile by tile: the state after a tile
// is the state before the next.
//
// Arrays and template parameters as for linrec_tile.cu, without its limit on seq_len. One block per
// sequence, of whole warps, at most kMaxThreadsPerBlock threads.
#include "memio.cuh"
#include "scan.cuh"

// ANCHOR: forward
template <typename Stored, int kMaxElemsPerThread, int kMaxThreadsPerBlock, int kMemcode,
          int kAlgocode>
__global__ void __launch_bounds__(kMaxThreadsPerBlock)
    linrec_pipe_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                    const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                    long long seq_len, int reverse) {
    using T = Accum<Stored>;
    extern __shared__ uint4 shared[];
    __shared__ Transition<T> totals[2][kMaxWarps];  // taken in turns
    Stored* staging = (Stored*)shared;

    // ANCHOR: tiles
    const int max_len = kMaxElemsPerThread * blockDim.x;
    T carry = initial ? initial[blockIdx.x] : T(0);
    int turn = 0;
    for (long long first = 0; first < seq_len; first += max_len) {
        const int len = min((long long)max_len, seq_len - first);
        const Share mine = share<kMaxElemsPerThread>(len);
        T x[kMaxElemsPerThread], c[kMaxElemsPerThread];
        load_tile<kMemcode>(row_of(inputs, seq_len, reverse), first, len, mine, T(0), staging, x);
        load_tile<kMemcode>(row_of(coeffs, seq_len, reverse), first, len, mine, T(1), staging, c);
        scan_tile<kAlgocode>(mine.last(len), c, x, totals[turn], carry);
        store_tile<kMemcode>(row_of(outputs, seq_len, reverse), first, len, mine, staging, x);
        turn = 1 - turn;
    }
    // ANCHOR_END: tiles
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
// ANCHOR_END: forward

// ANCHOR: backward
template <typename Stored, int kMaxElemsPerThread, int kMaxThreadsPerBlock, int kMemcode,
          int kAlgocode>
__global__ void __launch_bounds__(kMaxThreadsPerBlock)
    linrec_pipe_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                    const Accum<Stored>* initial, Stored* d_inputs, Stored* d_coeffs,
                    Accum<Stored>* d_initial, long long num_seqs, long long seq_len, int reverse) {
    using T = Accum<Stored>;
    extern __shared__ uint4 shared[];
    __shared__ Transition<T> totals[2][kMaxWarps];
    Stored* staging = (Stored*)shared;
    const bool back = !reverse;

    const int max_len = kMaxElemsPerThread * blockDim.x;
    const T start = initial ? initial[blockIdx.x] : T(0);
    T carry(0);
    int turn = 0;
    for (long long first = 0; first < seq_len; first += max_len) {
        const int len = min((long long)max_len, seq_len - first);
        const Share mine = share<kMaxElemsPerThread>(len);
        // The same scan over d_outputs, with the coefficient of the step before.
        T delta[kMaxElemsPerThread], c[kMaxElemsPerThread];
        load_tile<kMemcode>(row_of(d_outputs, seq_len, back), first, len, mine, T(0), staging, delta);
        load_tile<kMemcode>(row_of(coeffs, seq_len, back), first - 1, len, mine, T(1), staging, c);
        conjugate_all(c);
        scan_tile<kAlgocode>(mine.last(len), c, delta, totals[turn], carry);
        store_tile<kMemcode>(row_of(d_inputs, seq_len, back), first, len, mine, staging, delta);

        T previous[kMaxElemsPerThread];
        load_tile<kMemcode>(row_of(outputs, seq_len, back), first + 1, len, mine, start, staging,
                            previous);
        conjugate_all(previous);
#pragma unroll
        for (int i = 0; i < kMaxElemsPerThread; i++) delta[i] = delta[i] * previous[i];
        store_tile<kMemcode>(row_of(d_coeffs, seq_len, back), first, len, mine, staging, delta);
        turn = 1 - turn;
    }

    if (d_initial && threadIdx.x == 0) {
        const Row<const Stored> row = row_of(coeffs, seq_len, reverse);
        const T coeff = seq_len > 0 ? widen(row.data[row.position(0)]) : T(0);
        d_initial[blockIdx.x] = carry * conjugate(coeff);
    }
}
// ANCHOR_END: backward
