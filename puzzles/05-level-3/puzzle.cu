// One block of four warps per sequence of up to 128 steps. Each warp has scanned its own 32 steps, and the last lane
// of each has left in shared memory what the whole warp does.

constexpr int kWarps = 4;

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

__global__ void level_3(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                        long long seq_len) {
    __shared__ Transition totals[kWarps];
    const int step = threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long i = seq_len * blockIdx.x + step;
    Transition mine = {1, 0};
    if (step < seq_len) mine = {coeffs[i], inputs[i]};
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const Transition before = shuffle_up(mine, lanes);
        if (lane >= lanes) mine = compose(before, mine);
    }
    if (lane == 31) totals[warp] = mine;
    // YOUR PART: what do the warps before this one do together?
    Transition before = {1, 0};
    // END OF YOUR PART
    mine = compose(before, mine);
    if (step < seq_len) outputs[i] = mine.state;
}
