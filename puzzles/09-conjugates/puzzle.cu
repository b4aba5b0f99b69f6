// The gradients of a recurrence of complex numbers, in PyTorch's convention: with them, a small step against the
// gradient makes the loss smaller. (`float2` holds the real part in x and the imaginary one in y.)

__device__ inline float2 add(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline float2 multiply(float2 a, float2 b) {
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
__device__ inline float2 conjugate(float2 z) { return {z.x, -z.y}; }

__global__ void conjugates(const float2* d_outputs, const float2* coeffs, const float2* outputs,
                           float2* d_inputs, float2* d_coeffs, long long num_seqs, long long seq_len) {
    const long long seq = 32LL * blockIdx.x + threadIdx.x;
    if (seq >= num_seqs) return;
    const long long first = seq_len * seq;
    float2 delta = {0, 0}, coeff = {0, 0};
    for (long long l = seq_len - 1; l >= 0; l--) {
        const float2 previous = l > 0 ? outputs[first + l - 1] : float2{0, 0};
        // YOUR PART: of y = previous * coeff + x, what comes back to `previous`, and what to `coeff`?
        delta = add(multiply(delta, coeff), d_outputs[first + l]);
        d_coeffs[first + l] = multiply(delta, previous);
        // END OF YOUR PART
        d_inputs[first + l] = delta;
        coeff = coeffs[first + l];
    }
}
