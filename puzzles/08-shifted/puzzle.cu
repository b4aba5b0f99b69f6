// The gradients of a recurrence, one thread per sequence, from the last step to the first. `delta` is the gradient of
// the loss with respect to the state.

__global__ void shifted(const float* d_outputs, const float* coeffs, const float* outputs, float* d_inputs,
                        float* d_coeffs, long long num_seqs, long long seq_len) {
    const long long seq = 32LL * blockIdx.x + threadIdx.x;
    if (seq >= num_seqs) return;
    const long long first = seq_len * seq;
    float delta = 0;
    for (long long l = seq_len - 1; l >= 0; l--) {
        // YOUR PART: by which coefficient did the state of step l go into the next step?
        const float coeff = coeffs[first + l];
        // END OF YOUR PART
        delta = fmaf(delta, coeff, d_outputs[first + l]);
        d_inputs[first + l] = delta;
        d_coeffs[first + l] = l > 0 ? delta * outputs[first + l - 1] : 0;
    }
}
