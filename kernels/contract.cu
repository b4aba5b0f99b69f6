// A selective scan's contraction: the states of a channel become one sequence again.
//
// y = (sum of C h over the states, + D u) silu(z). One thread for each channel and position.
#include "selective.cuh"

// ANCHOR: read
// The sum at position l: what is read from the states, and the share that bypasses them, D u.
template <typename Real>
__device__ Real read_states(const Channel& mine, const Mixing& read, long long l,
                            const Real* outputs, const Real* c, const Real* u, const Real* d) {
    Real sum = 0;
    for (long long n = 0; n < mine.sizes.states; n++) {
        sum = multiply_add(c[read.at(n, l)], outputs[mine.at(n, l)], sum);
    }
    return d ? multiply_add(d[mine.channel], u[mine.own + l], sum) : sum;
}
// ANCHOR_END: read

// ANCHOR: forward
template <typename Real>
__global__ void contract_fwd(const Real* outputs, const Real* c, const Real* u, const Real* d,
                             const Real* z, Real* y, long long channels, long long groups,
                             long long states, long long len, int is_fixed) {
    const Channel mine({channels, groups, states, len});
    const Mixing read = mine.mixing(is_fixed);
    for (long long l = first_position(); l < len; l = next_position(l)) {
        const Real sum = read_states(mine, read, l, outputs, c, u, d);
        y[mine.own + l] = z ? sum * (Real)silu(z[mine.own + l]) : sum;
    }
}
// ANCHOR_END: forward

// The backward pass: through the gate, which has two factors, to the states. The last states also
// receive the loss's gradient d_last [batch, channels, states], if not null. d_z is null if z is.
// ANCHOR: backward
template <typename Real>
__global__ void contract_bwd(const Real* d_y, const Real* d_last, const Real* outputs,
                             const Real* c, const Real* u, const Real* d, const Real* z,
                             Real* d_outputs, Real* d_sum, Real* d_z, long long channels,
                             long long groups, long long states, long long len, int is_fixed) {
    const Channel mine({channels, groups, states, len});
    const Mixing read = mine.mixing(is_fixed);
    for (long long l = first_position(); l < len; l = next_position(l)) {
        Real of_sum = d_y[mine.own + l];
        if (z) {
            const double gate = z[mine.own + l];
            const Real sum = read_states(mine, read, l, outputs, c, u, d);
            d_z[mine.own + l] = of_sum * sum * (Real)silu_slope(gate);
            of_sum = of_sum * (Real)silu(gate);
        }
        d_sum[mine.own + l] = of_sum;
        const bool is_asked = d_last && l == len - 1;
        for (long long n = 0; n < states; n++) {
            const Real read_of_it = of_sum * c[read.at(n, l)];
            d_outputs[mine.at(n, l)] =
                is_asked ? read_of_it + d_last[blockIdx.x * states + n] : read_of_it;
        }
    }
}
// ANCHOR_END: backward
