// linrec_once.cu with one mistake: a block tells what its tile does by a plain store.
//
// Others look at the same place meanwhile, and nothing orders the store and their looks: the compiler may keep it back
// or split it, and whoever finds half of it takes it for the whole.
#include "../waves.cuh"

template <typename Stored, int kVectors, int kThreads, bool kWhole, bool kReverse>
__global__ void __launch_bounds__(kThreads, kVectors > 2 ? 512 / kThreads : 1024 / kThreads)
    linrec_once_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs, const Accum<Stored>* initial,
                    Accum<Stored>* final_state, long long num_seqs, long long seq_len, int tile_vectors,
                    void* workspace, int deal) {
    using T = Accum<Stored>;
    constexpr int kPer = kPerVector<Stored>, kWarps = kThreads / 32;
    __shared__ Transition<T> totals[kWarps], befores[kWarps], groups[kWarps];
    __shared__ Transition<T> tiles[kPerLane];  // what comes before those of the tile's lane, and they
    __shared__ unsigned epoch, dealt;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (seq_len == 0) {
        const long long row = blockIdx.x;
        if (final_state && threadIdx.x == 0 && row < num_seqs) final_state[row] = initial ? initial[row] : T(0);
        return;
    }
    const int steps = tile_vectors * kPer;
    const int tiles_per_row = (seq_len + (kWhole ? 0 : kPer - 1) + steps - 1) / steps;
    if (threadIdx.x == 0) epoch = arrive((Shared*)workspace, deal ? &dealt : nullptr);
    if (deal) __syncthreads();
    const unsigned number = deal ? dealt : blockIdx.x;
    const Walk tile = {(int)(number / tiles_per_row), (int)(number % tiles_per_row)};
    const long long row = tile.row * seq_len;
    inputs += row, coeffs += row, outputs += row;
    T state = initial ? initial[tile.row] : T(0);

    const bool coeffs_aligned = skew(coeffs) == skew(inputs);
    const bool outputs_aligned = skew(outputs) == skew(inputs);
    const int head_steps = kWhole ? 0 : head(inputs, seq_len, kReverse);
    const Part part = part_of<kVectors, kReverse, Stored>((long long)tile.index * steps - head_steps, steps, seq_len);
    Vectors<Stored, kVectors> x, c;
    if (part.complete && (kWhole || coeffs_aligned)) {
        x = load_complete<kVectors, kReverse>(inputs + part.base);
        c = load_complete<kVectors, kReverse>(coeffs + part.base);
    } else {
        const View view = view_of<kVectors, kThreads, Stored>(part, steps, seq_len, kReverse);
        x = load_vectors<kWhole, kVectors>(inputs, true, view, T(0));
        c = load_vectors<kWhole, kVectors>(coeffs, coeffs_aligned, view, T(1));
    }
    turn(kReverse, x);
    turn(kReverse, c);
    Transition<T> before[kVectors];
    const Transition<T> total = summarize_vectors(c, x, before);
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    Carrier<T> carrier = Carrier<T>::begin(workspace, epoch, initial, tiles_per_row);
    carrier.row = tile.row;
    if (warp == 0) {
        const Transition<T> all = scan_warps<kWarps>(totals, befores);
        // ANCHOR: mistake
        Notice<T>* notice = carrier.place(tile.row, tile.index);
        if (lane == 0) *notice = notice_of(all, epoch);  // MISTAKE: a plain store; carrier.tell
        // ANCHOR_END: mistake
    }

    // Each warp waits for a group: the last one of all for the tile's own, which is told last.
    const int own_group = tile.index / kGroup, within = tile.index % kGroup;
    const int group = warp == kWarps - 1 ? own_group : warp;
    if (group < own_group || warp == kWarps - 1) {
        const int count = group < own_group ? kGroup : within;
        typename Carrier<T>::Found found = carrier.ask(group, count);
        Transition<T> mine[kPerLane];
        carrier.receive(found, group, count, mine);
        const Transition<T> upto = Carrier<T>::scan(mine);
        if (group < own_group) {
            if (lane == 31) groups[group] = upto;
        } else {
            const Transition<T> below = lane_up<32>(upto, 1);
            if (lane == within / kPerLane) {
                tiles[0] = lane > 0 ? below : Transition<T>{T(1), T(0)};
#pragma unroll
                for (int i = 1; i < kPerLane; i++) tiles[i] = mine[i - 1];
            }
        }
        if (carrier.gave_up && lane == 0) store_relaxed(&carrier.shared->failed, 1);
    }
    __syncthreads();
    for (int g = 0; g < own_group; g++) state = multiply_add(state, groups[g].coeff, groups[g].state);
    if (within >= kPerLane) state = multiply_add(state, tiles[0].coeff, tiles[0].state);
#pragma unroll
    for (int i = 1; i < kPerLane; i++) {
        if (i <= within % kPerLane) state = multiply_add(state, tiles[i].coeff, tiles[i].state);
    }
    state = multiply_add(state, befores[warp].coeff, befores[warp].state);
    walk_vectors(c, x, before, state);
    turn(kReverse, x);
    if (part.complete && (kWhole || outputs_aligned)) {
        store_complete<kReverse>(outputs + part.base, x);
    } else {
        const View view = view_of<kVectors, kThreads, Stored>(part, steps, seq_len, kReverse);
        store_vectors<kWhole>(outputs, outputs_aligned, view, x);
    }
    if (final_state && part.first + steps >= seq_len) {
        const View view = view_of<kVectors, kThreads, Stored>(part, steps, seq_len, kReverse);
        store_last(final_state + tile.row, view, seq_len, x);
    }
}
