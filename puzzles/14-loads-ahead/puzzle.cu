// One block per sequence of any length, tile after tile. Here a tile is asked for when it is needed, and the block waits
// for it. `ahead` has been asked for before the loop.

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

__global__ void loads_ahead(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                            long long seq_len) {
    __shared__ Transition totals[2][kWarps];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long first = seq_len * blockIdx.x;
    const auto load = [&](int tile) -> Transition {
        const long long step = (long long)kThreads * tile + threadIdx.x;
        if (step >= seq_len) return {1, 0};
        return {coeffs[first + step], inputs[first + step]};
    };
    float state = 0;
    Transition ahead = load(0);
    for (int tile = 0; (long long)kThreads * tile < seq_len; tile++) {
        // YOUR PART: what does the block compute with, and what does it ask for before it begins?
        const Transition loaded = load(tile);
        // END OF YOUR PART
        Transition mine = scan_warp(loaded);
        if (lane == 31) totals[tile % 2][warp] = mine;
        __syncthreads();
        Transition before = {1, 0}, all = {1, 0};
        for (int w = 0; w < kWarps; w++) {
            if (w == warp) before = all;
            all = compose(all, totals[tile % 2][w]);
        }
        mine = compose(before, mine);
        const long long step = (long long)kThreads * tile + threadIdx.x;
        if (step < seq_len) outputs[first + step] = fmaf(state, mine.coeff, mine.state);
        state = fmaf(state, all.coeff, all.state);
    }
}
