// One long sequence over many blocks: each waits for the state that the block before publishes.
//
// A block of 32 threads computes kTile steps. Before it waits it has computed what its own
// steps do to the state, so that from one block to the next there is a single multiply-add.
//
// `published` and `states` have an entry for each block; `published` and `next_tile`
// are zero before the launch. `initial` and `final_state` may be null.

constexpr int kElemsPerThread = 8;
constexpr int kTile = 32 * kElemsPerThread;
constexpr unsigned kAllLanes = 0xffffffff;

struct Transition {
    float coeff, state;
};

__device__ inline Transition compose(Transition first, Transition then) {
    return {first.coeff * then.coeff, fmaf(first.state, then.coeff, then.state)};
}

__device__ inline Transition shuffle_up(Transition mine, int lanes) {
    return {__shfl_up_sync(kAllLanes, mine.coeff, lanes),
            __shfl_up_sync(kAllLanes, mine.state, lanes)};
}

// ANCHOR: publish
// A thread that acquires what a release wrote sees what was written before the release.
__device__ inline void store_release(unsigned* flag, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ inline unsigned load_acquire(const unsigned* flag) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
// ANCHOR_END: publish

__global__ void __launch_bounds__(32)
    look_back(const float* inputs, const float* coeffs, float* outputs, const float* initial,
              float* final_state, long long seq_len, unsigned* next_tile, unsigned* published,
              float* states) {
    // ANCHOR: ticket
    // Tiles are dealt in the order in which blocks begin, which may differ from their
    // numbers: the block before is one that has begun, so waiting for it comes to an end.
    const int lane = threadIdx.x;
    unsigned tile = lane == 0 ? atomicAdd(next_tile, 1) : 0;
    tile = __shfl_sync(kAllLanes, tile, 0);
    // ANCHOR_END: ticket

    const long long first = (long long)kTile * tile + lane * kElemsPerThread;
    float x[kElemsPerThread], c[kElemsPerThread];
    Transition mine = {1, 0};
    for (int k = 0; k < kElemsPerThread; k++) {
        x[k] = first + k < seq_len ? inputs[first + k] : 0;
        c[k] = first + k < seq_len ? coeffs[first + k] : 1;
        mine = compose(mine, {c[k], x[k]});
    }
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const Transition before = shuffle_up(mine, lanes);
        if (lane >= lanes) mine = compose(before, mine);
    }

    // ANCHOR: wait
    // The last lane knows what the whole tile does. It waits for the state before the tile, and
    // publishes the one after it.
    float state = 0;
    if (lane == 31) {
        if (tile == 0) {
            if (initial) state = *initial;
        } else {
            while (load_acquire(&published[tile - 1]) == 0) {
            }
            state = states[tile - 1];
        }
        states[tile] = fmaf(state, mine.coeff, mine.state);
        store_release(&published[tile], 1);
    }
    state = __shfl_sync(kAllLanes, state, 31);
    // ANCHOR_END: wait

    const Transition before = shuffle_up(mine, 1);
    if (lane > 0) state = fmaf(state, before.coeff, before.state);
    for (int k = 0; k < kElemsPerThread; k++) {
        state = fmaf(state, c[k], x[k]);
        if (first + k < seq_len) outputs[first + k] = state;
        if (final_state && first + k == seq_len - 1) *final_state = state;
    }
}
