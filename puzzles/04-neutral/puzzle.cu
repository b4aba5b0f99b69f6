// One warp per sequence of up to 32 steps, and this time the last lane tells the final state, however short the
// sequence is.

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

__global__ void neutral(const float* inputs, const float* coeffs, float* outputs, float* final_state,
                        long long num_seqs, long long seq_len) {
    const int lane = threadIdx.x;
    const long long i = seq_len * blockIdx.x + lane;
    // YOUR PART: what does a lane hold that has no step?
    Transition mine = {0, 0};
    if (lane < seq_len) mine = {coeffs[i], inputs[i]};
    // END OF YOUR PART
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const Transition before = shuffle_up(mine, lanes);
        if (lane >= lanes) mine = compose(before, mine);
    }
    if (lane < seq_len) outputs[i] = mine.state;
    if (lane == 31) final_state[blockIdx.x] = mine.state;
}
