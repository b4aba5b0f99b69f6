// One block per sequence of any length: a tile of 128 steps, then the next. While some warps still read the totals of
// one tile, others may already write those of the next one.

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

// What a piece of a sequence does to the state: y becomes y * coeff + state.
struct Transition {
    float coeff, state;
};

// First one piece, then the next: again a transition.
__device__ inline Transition compose(Transition first, Transition then) {
    return {first.coeff * then.coeff, fmaf(first.state, then.coeff, then.state)};
}

__device__ inline Transition shuffle_up(Transition mine, int lanes) {
    return {__shfl_up_sync(0xffffffff, mine.coeff, lanes),
            __shfl_up_sync(0xffffffff, mine.state, lanes)};
}

// What a warp does to the state from its first lane up to this one.
__device__ inline Transition scan_warp(Transition mine) {
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const Transition before = shuffle_up(mine, lanes);
        if (threadIdx.x % 32 >= lanes) mine = compose(before, mine);
    }
    return mine;
}

__global__ void turns(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                      long long seq_len) {
    __shared__ Transition totals[2][kWarps];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float state = 0;
    for (int tile = 0; (long long)kThreads * tile < seq_len; tile++) {
        const long long step = (long long)kThreads * tile + threadIdx.x;
        const long long i = seq_len * blockIdx.x + step;
        Transition mine = {1, 0};
        if (step < seq_len) mine = {coeffs[i], inputs[i]};
        mine = scan_warp(mine);
        // YOUR PART: where do the totals of this tile go, so that the barrier below is enough?
        __syncthreads();  // nobody reads the totals of the tile before any more
        Transition* tile_totals = totals[0];
        // END OF YOUR PART
        if (lane == 31) tile_totals[warp] = mine;
        __syncthreads();
        Transition before = {1, 0}, all = {1, 0};
        for (int w = 0; w < kWarps; w++) {
            if (w == warp) before = all;
            all = compose(all, tile_totals[w]);
        }
        mine = compose(before, mine);
        if (step < seq_len) outputs[i] = fmaf(state, mine.coeff, mine.state);
        state = fmaf(state, all.coeff, all.state);
    }
}
