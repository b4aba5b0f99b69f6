// Four sequences of up to 32 steps in one warp: eight lanes for each, with a vector of 16 bytes each.

constexpr int kLanes = 8;

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

__global__ void rows(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                     long long seq_len) {
    // YOUR PART: which sequence is this lane's, and which of that sequence's eight lanes is it?
    const long long seq = 4LL * blockIdx.x;
    const int lane = threadIdx.x;
    // END OF YOUR PART
    const bool is_mine = seq < num_seqs && lane < kLanes && 4 * lane < seq_len;
    const float4* row_inputs = (const float4*)(inputs + seq_len * seq);
    const float4* row_coeffs = (const float4*)(coeffs + seq_len * seq);
    float4* row_outputs = (float4*)(outputs + seq_len * seq);
    const float4 x = is_mine ? row_inputs[lane] : float4{0, 0, 0, 0};
    const float4 c = is_mine ? row_coeffs[lane] : float4{1, 1, 1, 1};
    Transition mine = of_vector(c, x);
    for (int lanes = 1; lanes < kLanes; lanes *= 2) {
        const Transition before = shuffle_up(mine, lanes);
        if (lane >= lanes) mine = compose(before, mine);
    }
    const Transition before = shuffle_up(mine, 1);
    const float4 y = states(lane > 0 ? before.state : 0, c, x);
    if (is_mine) row_outputs[lane] = y;
}
