// One block computes one sequence of up to kTile elements: the smallest kernel with shuffles,
// shared memory and barriers. The kernels in broken/ show what each of them is for.
//
// One block per sequence, kThreads threads in a block. Arrays as for linrec_ref.cu, of float.

constexpr int kElemsPerThread = 4;
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kTile = kThreads * kElemsPerThread;
constexpr unsigned kAllLanes = 0xffffffff;

// ANCHOR: transition
// What a piece of a sequence does to the state: y becomes y * coeff + state.
struct Transition {
    float coeff, state;
};

// First one piece, then the next: again a transition.
__device__ inline Transition compose(Transition first, Transition then) {
    return {first.coeff * then.coeff, fmaf(first.state, then.coeff, then.state)};
}

__device__ inline Transition shuffle_up(Transition mine, int lanes) {
    return {__shfl_up_sync(kAllLanes, mine.coeff, lanes),
            __shfl_up_sync(kAllLanes, mine.state, lanes)};
}
// ANCHOR_END: transition

// ANCHOR: load
// Each thread gets kElemsPerThread neighbouring steps of a row. The block reads the row
// coalesced into shared memory and deals it out from there. Past the row's end is `padding`.
template <bool kReverse>
__device__ void load_tile(const float* row, long long seq_len, float padding, float* staging,
                          float (&elems)[kElemsPerThread]) {
    for (int k = 0; k < kElemsPerThread; k++) {
        const int step = k * kThreads + threadIdx.x;
        staging[step] = step < seq_len ? row[kReverse ? seq_len - 1 - step : step] : padding;
    }
    __syncthreads();  // all of it has arrived
    for (int k = 0; k < kElemsPerThread; k++) {
        elems[k] = staging[threadIdx.x * kElemsPerThread + k];
    }
    __syncthreads();  // all of it is taken: the next row may come
}
// ANCHOR_END: load

template <bool kReverse>
__device__ void store_tile(float* row, long long seq_len, float* staging,
                           const float (&elems)[kElemsPerThread]) {
    for (int k = 0; k < kElemsPerThread; k++) {
        staging[threadIdx.x * kElemsPerThread + k] = elems[k];
    }
    __syncthreads();
    for (int k = 0; k < kElemsPerThread; k++) {
        const int step = k * kThreads + threadIdx.x;
        if (step < seq_len) row[kReverse ? seq_len - 1 - step : step] = staging[step];
    }
}

template <bool kReverse>
__global__ void __launch_bounds__(kThreads)
    block_scan(const float* inputs, const float* coeffs, float* outputs, const float* initial,
               float* final_state, long long num_seqs, long long seq_len) {
    __shared__ float staging[kTile];
    __shared__ Transition totals[kWarps];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const long long row = seq_len * blockIdx.x;

    // ANCHOR: padding
    // A step with coefficient 1 and input 0 leaves the state as it is.
    float x[kElemsPerThread], c[kElemsPerThread];
    load_tile<kReverse>(inputs + row, seq_len, 0, staging, x);
    load_tile<kReverse>(coeffs + row, seq_len, 1, staging, c);
    // ANCHOR_END: padding

    // ANCHOR: thread
    // The transition of the thread's own steps.
    Transition mine = {1, 0};
    for (int k = 0; k < kElemsPerThread; k++) mine = compose(mine, {c[k], x[k]});
    // ANCHOR_END: thread

    // ANCHOR: warp
    // The transition from the warp's first step to the thread's last: twice as far in each round.
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const Transition before = shuffle_up(mine, lanes);
        if (lane >= lanes) mine = compose(before, mine);
    }
    // ANCHOR_END: warp

    // ANCHOR: block
    // The state before the warp's first step, from the transitions of the warps before.
    if (lane == 31) totals[warp] = mine;
    __syncthreads();
    float state = initial ? initial[blockIdx.x] : 0;
    for (int w = 0; w < warp; w++) state = fmaf(state, totals[w].coeff, totals[w].state);
    // ANCHOR_END: block

    // ANCHOR: outputs
    // The state before the thread's first step, and from there the loop.
    const Transition before = shuffle_up(mine, 1);
    if (lane > 0) state = fmaf(state, before.coeff, before.state);
    for (int k = 0; k < kElemsPerThread; k++) x[k] = state = fmaf(state, c[k], x[k]);
    // ANCHOR_END: outputs

    store_tile<kReverse>(outputs + row, seq_len, staging, x);
    if (final_state && threadIdx.x == 0) {
        final_state[blockIdx.x] = seq_len > 0 ? staging[seq_len - 1] : state;
    }
}
