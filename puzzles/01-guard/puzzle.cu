// One thread per sequence, 32 threads in a block. There are seldom as many sequences as threads.

__global__ void guard(const float* inputs, const float* coeffs, float* outputs, long long num_seqs,
                      long long seq_len) {
    const long long seq = 32LL * blockIdx.x + threadIdx.x;
    // YOUR PART: which threads have nothing to do here?

    // END OF YOUR PART
    float state = 0;
    for (long long i = seq_len * seq; i < seq_len * (seq + 1); i++) {
        state = fmaf(state, coeffs[i], inputs[i]);
        outputs[i] = state;
    }
}
