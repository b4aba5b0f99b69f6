// The sum of two arrays: each thread adds 4 elements, and a block of 128 threads a stretch of 512.

constexpr int kThreads = 128;
constexpr int kElemsPerThread = 4;

__global__ void coalesced(const float* inputs, const float* coeffs, float* outputs, long long len) {
    const long long first = 512LL * blockIdx.x;
    for (int k = 0; k < kElemsPerThread; k++) {
        // YOUR PART: which element of the stretch does this thread add in round k?
        const int mine = threadIdx.x * kElemsPerThread + k;
        // END OF YOUR PART
        const long long i = first + mine;
        if (i < len) outputs[i] = inputs[i] + coeffs[i];
    }
}
