// long/chained.cu with one mistake: a block takes the tile of its own number.
//
// Blocks need not begin in the order of their numbers. If those that are on the GPU all wait for one that is not,
// it will never come.
#include "../long/long.cuh"

// The state after a tile, and the launch in which it was told. It has a line of the cache for itself.
struct alignas(128) Told {
    unsigned epoch;
    float state;
};

// Who finds what a release has written also finds all that was written before it.
__device__ inline void store_release(unsigned* to, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ inline unsigned load_acquire(const unsigned* from) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ inline void tell(Told* told, unsigned epoch, float state) {
    told->state = state;
    store_release(&told->epoch, epoch);
}

__device__ inline float await(const Told* told, unsigned epoch) {
    for (int polls = 0; polls < kMaxPolls; polls++) {
        if (load_acquire(&told->epoch) == epoch) return told->state;
    }
    asm volatile("trap;");
    return 0.0f;
}

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
    // ANCHOR: mistake
    if (threadIdx.x == 0) number = blockIdx.x;  // MISTAKE: as dealt
    __syncthreads();
    Told* mine = (Told*)workspace + 1 + number;
    // ANCHOR_END: mistake

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
            tell(mine, epoch, multiply_add(before, all.coeff, all.state));
        }
    }
    __syncthreads();
    tile.apply(multiply_add(before, befores[warp].coeff, befores[warp].state), outputs, final_state, seq_len);
}
