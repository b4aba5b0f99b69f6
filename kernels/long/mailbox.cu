// Rows cut over several devices that reach each other's memory: a launch for each, a block a row.
//
// A device has a mailbox for each row in its own memory. A block takes the state before
// its stretch from there, and posts the state after it to the next device before it writes
// the last outputs. `from` is null on the first device, `to` on the last. Mailboxes hold
// zeros at first; each launch has another epoch. Rows are multiples of 16 bytes.
#include "long.cuh"

// ANCHOR: mail
// The state that comes into a row's stretch, and the launch that posted it. Fills a cache line.
struct alignas(128) Mail {
    unsigned epoch;
    float state;
};

// As between blocks of one device, but in the scope `sys`: all devices, and the host.
__device__ inline void store_release(unsigned* to, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ inline unsigned load_acquire(const unsigned* from) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ inline void post(Mail* to, unsigned epoch, float state) {
    to->state = state;
    store_release(&to->epoch, epoch);
}

__device__ inline float fetch(const Mail* from, unsigned epoch) {
    for (int polls = 0; polls < kMaxPolls; polls++) {
        if (load_acquire(&from->epoch) == epoch) return from->state;
    }
    asm volatile("trap;");
    return 0.0f;
}
// ANCHOR_END: mail

// ANCHOR: kernel
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    long_mailbox(const float* inputs, const float* coeffs, float* outputs, const Mail* from, Mail* to, unsigned epoch,
                 long long stretch_len) {
    using Mine = Tile<kVectors, kThreads>;
    __shared__ Transition<float> totals[Mine::kWarps], befores[Mine::kWarps];
    __shared__ float before;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long row = blockIdx.x, start = row * stretch_len;
    const long long tiles = (stretch_len + Mine::kSteps - 1) / Mine::kSteps;

    float after = 0.0f;  // in the thread that carries
    for (long long number = 0; number < tiles; number++) {
        Mine tile;
        const Transition<float> total = tile.load(number, inputs + start, coeffs + start, stretch_len);
        if (lane == 0) totals[warp] = total;
        __syncthreads();
        if (warp == 0) {
            const Transition<float> all = scan_warps<Mine::kWarps>(totals, befores);
            if (lane == 0) {
                // The first tile has arrived: its transition was computed without the state.
                before = number == 0 && from ? fetch(from + row, epoch) : after;
                after = multiply_add(before, all.coeff, all.state);
                if (number + 1 == tiles && to) post(to + row, epoch, after);
            }
        }
        __syncthreads();
        const float state = multiply_add(before, befores[warp].coeff, befores[warp].state);
        tile.apply(state, outputs + start, nullptr, stretch_len);
        __syncthreads();  // all have read what the next tile overwrites
    }
}
// ANCHOR_END: kernel
