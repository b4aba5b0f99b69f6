// One long sequence in one launch: each block waits for the state that the block before publishes.
//
// `workspace` is zero before the first launch: 128 bytes with Shared, and 128 bytes for each tile.
#include "long.cuh"

// ANCHOR: published
// The state after a tile, and the launch that published it. Fills one line of the cache.
struct alignas(128) Published {
    unsigned epoch;
    float state;
};

// A thread that finds what a release wrote also finds all that was written before it.
__device__ inline void store_release(unsigned* to, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ inline unsigned load_acquire(const unsigned* from) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ inline void publish(Published* published, unsigned epoch, float state) {
    published->state = state;
    store_release(&published->epoch, epoch);
}

__device__ inline float await(const Published* published, unsigned epoch) {
    for (int polls = 0; polls < kMaxPolls; polls++) {
        if (load_acquire(&published->epoch) == epoch) return published->state;
    }
    asm volatile("trap;");
    return 0.0f;
}
// ANCHOR_END: published

// ANCHOR: kernel
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    long_chained(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                 float* final_state, long long seq_len, void* workspace, const int* delays) {
    using Mine = Tile<kVectors, kThreads>;
    __shared__ Transition<float> totals[Mine::kWarps], befores[Mine::kWarps];
    __shared__ unsigned epoch, number;
    __shared__ float before;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Shared* shared = (Shared*)workspace;
    if (threadIdx.x == 0) epoch = arrive(shared, &number);
    __syncthreads();
    Published* mine = (Published*)workspace + 1 + number;

    Mine tile;
    const Transition<float> total = tile.load(number, inputs, coeffs, seq_len);
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    if (warp == 0) {
        const Transition<float> all = scan_warps<Mine::kWarps>(totals, befores);
        be_late(delays, number, shared);
        if (lane == 0) {
            before = initial ? *initial : 0.0f;
            if (number > 0) before = await(mine - 1, epoch);
            publish(mine, epoch, multiply_add(before, all.coeff, all.state));
        }
    }
    __syncthreads();
    tile.apply(multiply_add(before, befores[warp].coeff, befores[warp].state), outputs, final_state, seq_len);
}
// ANCHOR_END: kernel
