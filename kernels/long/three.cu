// One long sequence in three launches: each tile's transition; the state before each; the outputs.
//
// The launches share `tiles`, a transition for each tile, and `states`. The first and
// the third have a block for each tile, the second a single block of 1024 threads.
#include "long.cuh"

// ANCHOR: reduce
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    long_reduce(const float* inputs, const float* coeffs, long long seq_len, Transition<float>* tiles) {
    using Mine = Tile<kVectors, kThreads>;
    __shared__ Transition<float> totals[Mine::kWarps], befores[Mine::kWarps];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Mine tile;
    const Transition<float> total = tile.load(blockIdx.x, inputs, coeffs, seq_len);
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    if (warp == 0) {
        const Transition<float> all = scan_warps<Mine::kWarps>(totals, befores);
        if (lane == 0) tiles[blockIdx.x] = all;
    }
}
// ANCHOR_END: reduce

// ANCHOR: scan
// Each thread takes four neighbouring tiles at a time, and the block 4096.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    long_scan(const Transition<float>* tiles, const float* initial, float* states, int num_tiles) {
    constexpr int kEach = 4;
    __shared__ Transition<float> totals[kThreads / 32], befores[kThreads / 32];
    __shared__ Transition<float> all;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float carry = initial ? *initial : 0.0f;
    for (int first = 0; first < num_tiles; first += kEach * kThreads) {
        const int mine = first + kEach * threadIdx.x;
        Transition<float> tile[kEach], upto = {1.0f, 0.0f};
        for (int i = 0; i < kEach; i++) {
            tile[i] = {1.0f, 0.0f};
            if (mine + i < num_tiles) tile[i] = tiles[mine + i];
            upto = compose(upto, tile[i]);
        }
        upto = scan_lanes<32>(lane, upto);
        if (lane == 31) totals[warp] = upto;
        __syncthreads();
        if (warp == 0) {
            const Transition<float> sum = scan_warps<kThreads / 32>(totals, befores);
            if (lane == 0) all = sum;
        }
        __syncthreads();
        float state = multiply_add(carry, befores[warp].coeff, befores[warp].state);
        const Transition<float> below = lane_up<32>(upto, 1);
        if (lane > 0) state = multiply_add(state, below.coeff, below.state);
        for (int i = 0; i < kEach; i++) {
            if (mine + i < num_tiles) states[mine + i] = state;
            state = multiply_add(state, tile[i].coeff, tile[i].state);
        }
        carry = multiply_add(carry, all.coeff, all.state);
        __syncthreads();
    }
}
// ANCHOR_END: scan

// ANCHOR: apply
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    long_apply(const float* inputs, const float* coeffs, float* outputs, const float* states,
               float* final_state, long long seq_len) {
    using Mine = Tile<kVectors, kThreads>;
    __shared__ Transition<float> totals[Mine::kWarps], befores[Mine::kWarps];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float before = states[blockIdx.x];
    Mine tile;
    const Transition<float> total = tile.load(blockIdx.x, inputs, coeffs, seq_len);
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    if (warp == 0) scan_warps<Mine::kWarps>(totals, befores);
    __syncthreads();
    const float state = multiply_add(before, befores[warp].coeff, befores[warp].state);
    tile.apply(state, outputs, final_state, seq_len);
}
// ANCHOR_END: apply
