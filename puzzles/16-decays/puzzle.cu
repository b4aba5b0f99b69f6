// Eight states for each sequence, as in a selective scan with constant decays, one per state.
// All states get the same input, and the output is their sum. One thread per sequence.

constexpr int kStates = 8;

__global__ void decays(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                       long long seq_len) {
    const long long seq = 32LL * blockIdx.x + threadIdx.x;
    if (seq >= num_seqs) return;
    float states[kStates] = {};
    // YOUR PART: the decay of state n, in each of the steps below
    const auto decay = [&](int n) { return coeffs[kStates * seq + n]; };
    // END OF YOUR PART
    for (long long i = seq_len * seq; i < seq_len * (seq + 1); i++) {
        const float input = inputs[i];
        float output = 0;
#pragma unroll
        for (int n = 0; n < kStates; n++) {
            states[n] = fmaf(states[n], decay(n), input);
            output += states[n];
        }
        outputs[i] = output;
    }
}
