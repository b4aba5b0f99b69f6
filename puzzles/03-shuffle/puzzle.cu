// One warp per sequence of up to 32 steps, one step per lane. In every round, each lane prepends
// the transition of a lower lane to its own.

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

__global__ void shuffle(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                        long long seq_len) {
    const int lane = threadIdx.x;
    // Lanes past the end take the last step; no lane inside the sequence reads their values.
    const long long i = seq_len * blockIdx.x + (lane < seq_len ? lane : seq_len - 1);
    Transition mine = {coeffs[i], inputs[i]};
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        // YOUR PART: for which lanes is there a lane so far below?
        const Transition before = shuffle_up(mine, lanes);
        mine = compose(before, mine);
        // END OF YOUR PART
    }
    if (lane < seq_len) outputs[i] = mine.state;
}
