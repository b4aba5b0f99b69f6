// The sums in a selective scan's gradients, each in an order that depends on the shape
// alone: no atomic addition, and the same bits in every run.
#include "selective.cuh"

// ANCHOR: add_up
// Adds up what kThreads threads of a column hold, in a tree; the first of them gets
// the sum. They are kColumns places apart in `scratch`.
template <int kThreads, int kColumns, typename Real>
__device__ Real add_up(Real mine, int thread, int column, Real* scratch) {
    scratch[thread * kColumns + column] = mine;
#pragma unroll
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            mine = mine + scratch[(thread + half) * kColumns + column];
            scratch[thread * kColumns + column] = mine;
        }
    }
    __syncthreads();
    return mine;
}
// ANCHOR_END: add_up

// Over the channels of each group, for B and C of [batch, groups, states, len]: weights [batch,
// channels, len] times terms [batch, channels, states, len]. Block x has one state of one group,
// number blockIdx.x, and 32 positions at a time; kWays threads share the channels of each.
// ANCHOR: over_channels
template <typename Real, int kWays>
__global__ void __launch_bounds__(32 * kWays)
    sum_over_channels(const Real* weights, const Real* terms, Real* sums, long long channels,
                      long long groups, long long states, long long len) {
    __shared__ Real scratch[32 * kWays];
    const int column = threadIdx.x % 32, way = threadIdx.x / 32;
    const unsigned group = blockIdx.x / (unsigned)states, n = blockIdx.x % (unsigned)states;
    const long long in_group = channels / groups, first = group * in_group;
    for (long long tile = 32ll * blockIdx.y; tile < len; tile += 32ll * gridDim.y) {
        const long long l = tile + column;
        Real sum = 0;
        if (l < len) {
            for (long long row = first + way; row < first + in_group; row += kWays) {
                sum = multiply_add(weights[row * len + l], terms[(row * states + n) * len + l], sum);
            }
        }
        sum = add_up<kWays, 32>(sum, way, column, scratch);
        if (way == 0 && l < len) sums[blockIdx.x * len + l] = sum;
    }
}
// ANCHOR_END: over_channels

// Over sequences and positions, for inputs without time: A, and fixed B and C, [channels,
// states]; D and the bias [channels]. Block x has one row of terms [batch, rows, len], times
// the same row of `more`, and times weights [batch, channels, len]. Both of these may be null.
// ANCHOR: over_positions
template <typename Real, int kThreads>
__global__ void __launch_bounds__(kThreads)
    sum_over_positions(const Real* weights, const Real* terms, const Real* more, Real* sums,
                       long long batch, long long channels, long long rows, long long len) {
    __shared__ Real scratch[kThreads];
    const unsigned channel = blockIdx.x / (unsigned)(rows / channels);
    Real sum = 0;
    for (long long sequence = 0; sequence < batch; sequence++) {
        const long long row = (sequence * rows + blockIdx.x) * len;
        const long long weight = (sequence * channels + channel) * len;
        for (long long l = threadIdx.x; l < len; l += kThreads) {
            const Real term = more ? terms[row + l] * more[row + l] : terms[row + l];
            sum = weights ? multiply_add(weights[weight + l], term, sum) : sum + term;
        }
    }
    sum = add_up<kThreads, 1>(sum, threadIdx.x, 0, scratch);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
// ANCHOR_END: over_positions
