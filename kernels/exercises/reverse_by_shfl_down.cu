// linrec_tile.cu with another way to walk in reverse: the steps stay in the row's
// order, and a lane's inputs come from the lanes above. An exercise of chapter 6.
//
// Arguments and launch as for linrec_tile.cu, with kMemcode 0 and all levels.
#include "../memio.cuh"
#include "../scan.cuh"

template <typename T>
__device__ Transition<T> shuffle_down(Transition<T> mine, int lanes) {
    return {__shfl_down_sync(kAllLanes, mine.coeff, lanes),
            __shfl_down_sync(kAllLanes, mine.state, lanes)};
}

// ANCHOR: thread
// Level 1, from the thread's last step to its first.
template <int kMaxElems, typename T>
__device__ void scan_thread_down(T (&coeffs)[kMaxElems], T (&states)[kMaxElems]) {
#pragma unroll
    for (int i = kMaxElems - 2; i >= 0; i--) {
        states[i] = multiply_add(states[i + 1], coeffs[i], states[i]);
        coeffs[i] = coeffs[i + 1] * coeffs[i];
    }
}
// ANCHOR_END: thread

// ANCHOR: warp
// Level 2. Lanes above come first.
template <typename T>
__device__ Transition<T> scan_warp_down(Transition<T> mine) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const Transition<T> above = shuffle_down(mine, lanes);
        if (lane + lanes < 32) mine = compose(above, mine);
    }
    return mine;
}
// ANCHOR_END: warp

// ANCHOR: block
// Level 3, from the last warp to the first.
template <typename T>
__device__ T scan_block_down(Transition<T> warp_total, Transition<T>* totals, T& carry) {
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) totals[warp] = warp_total;
    __syncthreads();
    T before_warp = carry;
    for (int w = blockDim.x / 32 - 1; w >= 0; w--) {
        if (w == warp) before_warp = carry;
        carry = multiply_add(carry, totals[w].coeff, totals[w].state);
    }
    return before_warp;
}
// ANCHOR_END: block

template <int kMaxElems, typename T>
__device__ void scan_tile_down(int last, T (&coeffs)[kMaxElems], T (&states)[kMaxElems],
                               Transition<T>* totals, T& carry) {
    scan_thread_down(coeffs, states);
    const Transition<T> upto = scan_warp_down(Transition<T>{coeffs[0], states[0]});
    const Transition<T> before = shuffle_down(upto, 1);
    T state = scan_block_down(upto, totals, carry);
    if (threadIdx.x % 32 < 31) state = multiply_add(state, before.coeff, before.state);
#pragma unroll
    for (int i = 0; i < kMaxElems; i++) {
        states[i] = multiply_add(state, coeffs[i], states[i]);
        if (i == last) states[i] = carry;
    }
}

template <typename Stored, int kMaxElemsPerThread, int kMaxThreadsPerBlock, int kMemcode,
          int kAlgocode>
__global__ void __launch_bounds__(kMaxThreadsPerBlock)
    linrec_tile_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                    const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                    long long seq_len, int reverse) {
    using T = Accum<Stored>;
    __shared__ Transition<T> totals[kMaxWarps];

    const Share mine = share<kMaxElemsPerThread>(seq_len);
    T x[kMaxElemsPerThread], c[kMaxElemsPerThread];
    load_tile<0>(row_of(inputs, seq_len, false), 0, seq_len, mine, T(0), (Stored*)nullptr, x);
    load_tile<0>(row_of(coeffs, seq_len, false), 0, seq_len, mine, T(1), (Stored*)nullptr, c);

    T carry = initial ? initial[blockIdx.x] : T(0);
    if (reverse) {
        scan_tile_down(threadIdx.x == 0 && seq_len > 0 ? 0 : -1, c, x, totals, carry);
    } else {
        scan_tile<kBlock>(mine.last(seq_len), c, x, totals, carry);
    }

    store_tile<0>(row_of(outputs, seq_len, false), 0, seq_len, mine, (Stored*)nullptr, x);
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
