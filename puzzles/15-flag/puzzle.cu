// One long sequence: 32 steps for each block of one warp, and each block waits for the state that the block before it
// leaves. All blocks are on the device at once. The flags are 0 at first.

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

__global__ void flag(const float* inputs, const float* coeffs, float* outputs, unsigned* flags, float* states,
                     long long seq_len) {
    const int lane = threadIdx.x, tile = blockIdx.x;
    const long long i = 32LL * tile + lane;
    Transition mine = {1, 0};
    if (i < seq_len) mine = {coeffs[i], inputs[i]};
    mine = scan_warp(mine);
    float state = 0;
    if (lane == 31) {
        volatile unsigned* volatile_flags = flags;
        if (tile > 0) {
            while (volatile_flags[tile - 1] == 0) {
            }
            __threadfence();  // the flag first, and then what it stands for
            state = states[tile - 1];
        }
        const float after = fmaf(state, mine.coeff, mine.state);
        // YOUR PART: tell the next block
        states[tile] = after;
        volatile_flags[tile] = 1;
        // END OF YOUR PART
    }
    state = __shfl_sync(0xffffffff, state, 31);
    if (i < seq_len) outputs[i] = fmaf(state, mine.coeff, mine.state);
}
