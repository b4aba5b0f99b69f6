// One long sequence in one launch by decoupled look-back (Merrill and Garland, 2016):
// each block first publishes what its tile does to the state, and later the state after
// its tile; and it looks back over what earlier blocks published, until it finds a state.
//
// `workspace` is zero before the first launch: Shared, and 128 bytes for each tile with a Notice.
#include "long.cuh"

// ANCHOR: published
// What a block publishes. An aggregate is what its tile alone does to the state. A prefix is what
// all tiles up to it do, with the initial state: any state becomes `state`, so its coefficient is
// 0. The tag beside it says which: 2 * epoch for an aggregate, one more for a prefix.
struct alignas(128) Published {
    Notice<float> notice;
};

__device__ inline unsigned tag_of(const Notice<float>& notice, unsigned epoch) {
    if (is_of(notice, 2 * epoch)) return 2 * epoch;
    return is_of(notice, 2 * epoch + 1) ? 2 * epoch + 1 : 0;
}
// ANCHOR_END: published

// ANCHOR: look_back
// Finds the state before tile `number` with one warp: each lane looks at one of the 32
// tiles before it, lane 0 at the nearest, and then at one of the 32 before those.
__device__ inline float look_back(Published* tiles, int number, unsigned epoch, float initial) {
    const int lane = threadIdx.x % 32;
    Transition<float> since = {1.0f, 0.0f};  // of the tiles looked at so far
    for (int last = number - 1;; last -= 32) {
        const int mine = last - lane;
        // The sequence's beginning counts as a prefix.
        Transition<float> published = {0.0f, initial};
        unsigned prefixes = 0, nothing = 0, wanted = 0;
        for (int polls = 0; polls < kMaxPolls; polls++) {
            unsigned tag = 2 * epoch + 1;
            if (mine >= 0) {
                const Notice<float> found = look_up(&tiles[mine].notice);
                tag = tag_of(found, epoch);
                published = transition_of(found);
            }
            prefixes = __ballot_sync(kAllLanes, tag == 2 * epoch + 1);
            nothing = __ballot_sync(kAllLanes, tag == 0);
            // The nearest prefix and the lanes before it; without a prefix, all lanes.
            wanted = prefixes ? prefixes ^ (prefixes - 1) : kAllLanes;
            if ((nothing & wanted) == 0) break;
        }
        if (nothing & wanted) asm volatile("trap;");
        if ((wanted >> lane & 1) == 0) published = {1.0f, 0.0f};
        // The higher a lane, the earlier its tile.
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            const Transition<float> earlier = {lane_down<32>(published.coeff, lanes), lane_down<32>(published.state, lanes)};
            if (lane + lanes < 32) published = compose(earlier, published);
        }
        since = compose(lane_at<32>(published, 0), since);
        if (prefixes) return since.state;
    }
}
// ANCHOR_END: look_back

// ANCHOR: kernel
template <int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    long_decoupled(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                   float* final_state, long long seq_len, void* workspace, const int* delays) {
    using Mine = Tile<kVectors, kThreads>;
    __shared__ Transition<float> totals[Mine::kWarps], befores[Mine::kWarps];
    __shared__ unsigned epoch, number;
    __shared__ float before;
    Shared* shared = (Shared*)workspace;
    Published* tiles = (Published*)((char*)workspace + 128);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) epoch = arrive(shared, &number);
    __syncthreads();

    Mine tile;
    const Transition<float> total = tile.load(number, inputs, coeffs, seq_len);
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    if (warp == 0) {
        const Transition<float> all = scan_warps<Mine::kWarps>(totals, befores);
        Notice<float>* mine = &tiles[number].notice;
        if (lane == 0) put_up(mine, notice_of(all, 2 * epoch));
        be_late(delays, number, shared);
        const float state = look_back(tiles, number, epoch, initial ? *initial : 0.0f);
        const Transition<float> prefix = {0.0f, multiply_add(state, all.coeff, all.state)};
        if (lane == 0) put_up(mine, notice_of(prefix, 2 * epoch + 1));
        if (lane == 0) before = state;
    }
    __syncthreads();
    tile.apply(multiply_add(before, befores[warp].coeff, befores[warp].state), outputs, final_state, seq_len);
}
// ANCHOR_END: kernel
