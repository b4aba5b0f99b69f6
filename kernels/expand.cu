// A selective scan's expansion: a sequence for each state of each channel.
//
// u and delta give inputs x = (delta u) B and coefficients c = e^(delta A). One thread for each
// channel and position walks over the states, so that a warp's accesses for a state are neighbours
// in memory.
#include "selective.cuh"

// ANCHOR: forward
template <typename Real>
__global__ void expand_fwd(const Real* u, const Real* delta, const Real* bias, const Real* a,
                           const Real* b, Real* inputs, Real* coeffs, long long channels,
                           long long groups, long long states, long long len, int is_softplus,
                           int is_fixed) {
    const Channel mine({channels, groups, states, len});
    const Mixing write = mine.mixing(is_fixed);
    const Real added = bias ? bias[mine.channel] : 0;
    for (long long l = first_position(); l < len; l = next_position(l)) {
        const Real step = step_size(delta[mine.own + l], added, is_softplus);
        const Real scaled = step * u[mine.own + l];
        for (long long n = 0; n < states; n++) {
            coeffs[mine.at(n, l)] = exponential(step * a[mine.parameter(n)]);
            inputs[mine.at(n, l)] = scaled * b[write.at(n, l)];
        }
    }
}
// ANCHOR_END: forward

// The backward pass, from the gradients of inputs and coefficients to those of u and delta.
// If D is not null, u also gets the gradient of the contraction's sum, d_sum. `scaled` and
// `steps` become delta u and delta, the factors of the terms of B's and A's gradients.
// ANCHOR: backward
template <typename Real>
__global__ void expand_bwd(const Real* d_inputs, const Real* d_coeffs, const Real* coeffs,
                           const Real* d_sum, const Real* u, const Real* delta, const Real* bias,
                           const Real* a, const Real* b, const Real* d, Real* d_u, Real* d_delta,
                           Real* scaled, Real* steps, long long channels, long long groups,
                           long long states, long long len, int is_softplus, int is_fixed) {
    const Channel mine({channels, groups, states, len});
    const Mixing write = mine.mixing(is_fixed);
    const Real added = bias ? bias[mine.channel] : 0;
    for (long long l = first_position(); l < len; l = next_position(l)) {
        const Real given = delta[mine.own + l], input = u[mine.own + l];
        const Real step = step_size(given, added, is_softplus);
        Real d_scaled = 0, d_step = 0;
        for (long long n = 0; n < states; n++) {
            // An exponential is its own derivative: this is the gradient of delta A.
            const Real d_exponent = d_coeffs[mine.at(n, l)] * coeffs[mine.at(n, l)];
            d_step = multiply_add(a[mine.parameter(n)], d_exponent, d_step);
            d_scaled = multiply_add(b[write.at(n, l)], d_inputs[mine.at(n, l)], d_scaled);
        }
        const Real through = step * d_scaled;
        d_u[mine.own + l] = d ? multiply_add(d[mine.channel], d_sum[mine.own + l], through) : through;
        const Real slope = is_softplus ? (Real)sigmoid((double)given + (double)added) : 1;
        d_delta[mine.own + l] = multiply_add(input, d_scaled, d_step) * slope;
        scaled[mine.own + l] = step * input;
        steps[mine.own + l] = step;
    }
}
// ANCHOR_END: backward
