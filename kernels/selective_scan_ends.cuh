// The parts of the selective scan's forward pass that sequences cut into chunks of time need.
//
// The first launch leaves for each chunk but the last the states behind it, as if those before it
// were zero (before the first chunk they are the initial ones), in carries[chunk, batch, channel,
// state], and the sum of d in sizes[chunk, batch, channel]: the product of a state's decays is the
// exponential of that times A. The second launch goes from chunk to chunk, and puts the right
// states behind each. The third one computes the outputs from these. All follows from the sizes of
// the arrays, and not from how blocks are scheduled.
#pragma once
#include "selective_scan_tile.cuh"

// A sum of d with a meaning: a sequence begins in the chunk, and nothing comes through
// it. (Where d is NaN, so is the end.)
#define kCutOff __int_as_float(0x7fffffff)

// ANCHOR: carries
// The second launch, with a thread for each state of each batch: over all chunks but the last one.
template <bool kExact>
__global__ void __launch_bounds__(256)
    selective_scan_fwd_carries(const float* A, const float* sizes, float* carries, int batches, int channels,
                               int states, int chunks) {
    const long long all_channels = (long long)batches * channels, all_states = all_channels * states;
    const long long mine = (long long)blockIdx.x * blockDim.x + threadIdx.x, channel = mine / states;
    if (mine >= all_states) return;
    const float rate = A[channel % channels * states + mine % states] * kLog2E;
    float state = carries[mine];
    constexpr int kAtOnce = 8;  // loads on their way
    for (int first = 1; first < chunks; first += kAtOnce) {
        float size[kAtOnce], end[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) {
            const int chunk = min(first + i, chunks - 1);
            size[i] = sizes[chunk * all_channels + channel], end[i] = carries[chunk * all_states + mine];
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) {
            if (first + i == chunks) return;
            const float decay = Functions<kExact>::power_of_two(size[i] * rate);
            state = isnan(size[i]) ? end[i] : multiply_add(decay, state, end[i]);
            carries[(first + i) * all_states + mine] = state;
        }
    }
}
// ANCHOR_END: carries
