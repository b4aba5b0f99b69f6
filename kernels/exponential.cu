// Coefficients given as logarithms: c = e^a before the recurrence, and the gradient
// with respect to a behind it, (dL/dc) c.
//
// One thread per element. Coefficients are computed and kept in the type of computation: in
// the 16-bit formats e^a would lose what a has near zero, where it matters most. So for these
// the whole recurrence computes in float, and widened and narrowed convert the other arrays.
#include "exponential.cuh"

// ANCHOR: exponential
template <typename Stored>
__global__ void coeffs_from_logs(const Stored* logs, Accum<Stored>* coeffs, long long len) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i < len) coeffs[i] = exponential(widen(logs[i]));
}

// d_logs may be d_coeffs itself.
template <typename Stored>
__global__ void d_logs_from_d_coeffs(const Accum<Stored>* d_coeffs, const Accum<Stored>* coeffs,
                                     Stored* d_logs, long long len) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i < len) d_logs[i] = narrow<Stored>(d_coeffs[i] * conjugate(coeffs[i]));
}
// ANCHOR_END: exponential

template <typename Stored>
__global__ void widened(const Stored* stored, Accum<Stored>* wide, long long len) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i < len) wide[i] = widen(stored[i]);
}

template <typename Stored>
__global__ void narrowed(const Accum<Stored>* wide, Stored* stored, long long len) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i < len) stored[i] = narrow<Stored>(wide[i]);
}
