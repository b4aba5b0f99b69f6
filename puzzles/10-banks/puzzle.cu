// One warp per sequence of up to 1024 steps, 32 consecutive ones for each lane. Loads and stores of global memory are
// coalesced; between them and the lanes' own steps lies shared memory, with its 32 banks.

constexpr int kSteps = 32;

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

// YOUR PART: how many floats apart do the steps of neighbouring lanes lie in shared memory?
constexpr int kStride = 32;
// END OF YOUR PART

__device__ inline int place(int step) { return step / kSteps * kStride + step % kSteps; }

__global__ void banks(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                      long long seq_len) {
    __shared__ float x[32 * kStride], c[32 * kStride];
    const int lane = threadIdx.x;
    const long long first = seq_len * blockIdx.x;
    for (int step = lane; step < 32 * kSteps; step += 32) {
        x[place(step)] = step < seq_len ? inputs[first + step] : 0;
        c[place(step)] = step < seq_len ? coeffs[first + step] : 1;
    }
    __syncwarp();
    Transition mine = {1, 0};
    for (int k = 0; k < kSteps; k++) {
        const int at = place(lane * kSteps + k);
        mine = compose(mine, {c[at], x[at]});
    }
    const Transition before = shuffle_up(scan_warp(mine), 1);
    float state = lane > 0 ? before.state : 0;
    for (int k = 0; k < kSteps; k++) {
        const int at = place(lane * kSteps + k);
        state = fmaf(state, c[at], x[at]);
        x[at] = state;
    }
    __syncwarp();
    for (int step = lane; step < seq_len; step += 32) outputs[first + step] = x[place(step)];
}
