// One warp per sequence of up to 512 steps, two warps in a block. The warp walks over its row in four rounds, with a
// vector of 16 bytes for each lane, and carries the state from round to round.

constexpr int kThreads = 64;
constexpr int kRounds = 4;

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

// What a lane does with the four steps of a vector.
__device__ inline Transition of_vector(float4 c, float4 x) {
    return compose(compose({c.x, x.x}, {c.y, x.y}), compose({c.z, x.z}, {c.w, x.w}));
}

// The states after each of the four steps.
__device__ inline float4 states(float state, float4 c, float4 x) {
    float4 y;
    y.x = fmaf(state, c.x, x.x);
    y.y = fmaf(y.x, c.y, x.y);
    y.z = fmaf(y.y, c.z, x.z);
    y.w = fmaf(y.z, c.w, x.w);
    return y;
}

__global__ void striped(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                        long long seq_len) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long seq = 2LL * blockIdx.x + warp;
    if (seq >= num_seqs) return;
    const float4* row_inputs = (const float4*)(inputs + seq_len * seq);
    const float4* row_coeffs = (const float4*)(coeffs + seq_len * seq);
    float4* row_outputs = (float4*)(outputs + seq_len * seq);
    float state = 0;
    for (int round = 0; round < kRounds; round++) {
        // YOUR PART: which vector of the row does this lane take in this round?
        const int vector = kRounds * lane + round;
        // END OF YOUR PART
        const bool is_mine = 4 * vector < seq_len;
        const float4 x = is_mine ? row_inputs[vector] : float4{0, 0, 0, 0};
        const float4 c = is_mine ? row_coeffs[vector] : float4{1, 1, 1, 1};
        const Transition mine = scan_warp(of_vector(c, x));
        Transition before = shuffle_up(mine, 1);
        if (lane == 0) before = {1, 0};
        const float4 y = states(fmaf(state, before.coeff, before.state), c, x);
        if (is_mine) row_outputs[vector] = y;
        // The last lane has the state after the round.
        state = __shfl_sync(0xffffffff, y.w, 31);
    }
}
