// Sequences that many blocks hold at once: each block has one tile, publishes what it
// does to the state, and reads what the tiles before it do.
//
// Tiles are combined as in linrec_waves.cu, with the same bits for the same `tile_vectors`.
// Arrays and arguments as there; a row has at most kGroup * kThreads / 32 tiles, each with
// a block. With `deal`, blocks take tiles in the order in which they begin, so that none
// waits for one that has not begun; otherwise all must be on the GPU at once.
#include "waves.cuh"

// ANCHOR: tiles_before
// What the tiles before a block's own do to the state.
template <int kWarps, typename T>
struct TilesBefore {
    Transition<T> groups[kWarps];   // the whole groups before the tile's group, one by each warp
    Transition<T> tiles[kPerLane];  // in the tile's group: those before its lane's, then its lane's

    // Each warp waits for a group: the last warp for the tile's own group, which is published last.
    __device__ void await(const Carrier<T>& carrier, Walk tile, Transition<T> (&pieces)[kWarps][32]) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int own_group = tile.index / kGroup, within = tile.index % kGroup;
        const int group = warp == kWarps - 1 ? own_group : warp;
        if (group >= own_group && warp < kWarps - 1) return;
        const int count = group < own_group ? kGroup : within;
        typename Carrier<T>::Found found = carrier.ask(group, count);
        Transition<T> mine[kPerLane];
        carrier.receive(found, group, count, mine);
        const int knows = within / kPerLane;
        const Folded<T> folded = fold(mine, pieces[warp], knows);
        if (group < own_group) {
            if (lane == 31) groups[group] = folded.all;
        } else if (lane == knows) {
            tiles[0] = folded.before;
#pragma unroll
            for (int i = 1; i < kPerLane; i++) tiles[i] = mine[i - 1];
        }
    }

    // Takes the state before the row to the state before the tile.
    __device__ T state_before(Walk tile, T state) const {
        const int own_group = tile.index / kGroup, within = tile.index % kGroup;
        for (int g = 0; g < own_group; g++) state = multiply_add(state, groups[g].coeff, groups[g].state);
        if (within >= kPerLane) state = multiply_add(state, tiles[0].coeff, tiles[0].state);
#pragma unroll
        for (int i = 1; i < kPerLane; i++) {
            if (i <= within % kPerLane) state = multiply_add(state, tiles[i].coeff, tiles[i].state);
        }
        return state;
    }
};

// Blocks take tiles in the order of their numbers, or in the order in which they begin.
__device__ inline Walk tile_of(unsigned number, int tiles_per_row) {
    return {(int)(number / tiles_per_row), (int)(number % tiles_per_row)};
}
// ANCHOR_END: tiles_before

// ANCHOR: forward
template <typename Stored, int kVectors, int kThreads, bool kWhole, bool kReverse>
__global__ void __launch_bounds__(kThreads, kVectors > 2 ? 512 / kThreads : 1024 / kThreads)
    linrec_once_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs, const Accum<Stored>* initial,
                    Accum<Stored>* final_state, long long num_seqs, long long seq_len, int tile_vectors,
                    void* workspace, int deal) {
    using T = Accum<Stored>;
    constexpr int kPer = kPerVector<Stored>, kWarps = kThreads / 32;
    __shared__ Transition<T> totals[kWarps], befores[kWarps];
    __shared__ TilesBefore<kWarps, T> tiles_before;
    __shared__ Transition<T> pieces[kWarps][32];
    __shared__ unsigned epoch, dealt;
    __shared__ uint4 stage[kVectors * kThreads];  // for parts that are not complete
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
    const Walk tile = tile_of(deal ? dealt : blockIdx.x, tiles_per_row);
    const long long row = tile.row * seq_len;
    inputs += row, coeffs += row, outputs += row;

    const bool coeffs_aligned = kWhole || skew(coeffs) == skew(inputs);
    const bool outputs_aligned = kWhole || skew(outputs) == skew(inputs);
    const int head_steps = kWhole ? 0 : head(inputs, seq_len, kReverse);
    const Part part = part_of<kVectors, kReverse, Stored>((long long)tile.index * steps - head_steps, steps, seq_len);
    uint4* slots = stage + threadIdx.x;
    // A warp may have no step of so short a tile.
    const bool busy = warp * 32 * kVectors < tile_vectors;
    Vectors<Stored, kVectors> x, c;
    Transition<T> before[kVectors], total = {T(1), T(0)};
    if (busy) {
        x = load<kVectors, kThreads, kReverse>(slots, inputs, true, part, seq_len, T(0));
        c = load<kVectors, kThreads, kReverse>(slots, coeffs, coeffs_aligned, part, seq_len, T(1));
        total = summarize_vectors(c, x, before);
    }
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    Carrier<T> carrier = Carrier<T>::begin(workspace, epoch, {initial}, tiles_per_row);
    carrier.row = tile.row;
    if (warp == 0) {
        const Transition<T> all = scan_warps<kWarps>(totals, befores);
        if (lane == 0) carrier.publish(tile, all);
    }

    tiles_before.await(carrier, tile, pieces);
    __syncthreads();
    if (!busy) return;
    T state = tiles_before.state_before(tile, initial ? initial[tile.row] : T(0));
    state = multiply_add(state, befores[warp].coeff, befores[warp].state);
    walk_vectors(c, x, before, state);
    const auto store_last = [&](T last) { final_state[tile.row] = last; };
    if (final_state && part.end == seq_len) with_last(store_last, part, seq_len, x);
    store<kThreads, kReverse>(outputs, outputs_aligned, slots, part, seq_len, x);
}
// ANCHOR_END: forward

// ANCHOR: backward
template <typename Stored, int kVectors, int kThreads, bool kWhole, bool kReverse>
__global__ void __launch_bounds__(kThreads, kVectors > 2 ? 512 / kThreads : 1024 / kThreads)
    linrec_once_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                    const Accum<Stored>* initial, Stored* d_inputs, Stored* d_coeffs, Accum<Stored>* d_initial,
                    long long num_seqs, long long seq_len, int tile_vectors, void* workspace, int deal) {
    using T = Accum<Stored>;
    constexpr int kPer = kPerVector<Stored>, kWarps = kThreads / 32;
    constexpr bool kBack = !kReverse;
    __shared__ Transition<T> totals[kWarps], befores[kWarps];
    __shared__ TilesBefore<kWarps, T> tiles_before;
    __shared__ Transition<T> pieces[kWarps][32];
    __shared__ unsigned epoch, dealt;
    __shared__ uint4 stage[kVectors * kThreads];  // for parts that are not complete
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (seq_len == 0) {
        const long long row = blockIdx.x;
        if (d_initial && threadIdx.x == 0 && row < num_seqs) d_initial[row] = T(0);
        return;
    }
    const int steps = tile_vectors * kPer;
    const int tiles_per_row = (seq_len + (kWhole ? 0 : kPer - 1) + steps - 1) / steps;
    if (threadIdx.x == 0) epoch = arrive((Shared*)workspace, deal ? &dealt : nullptr);
    if (deal) __syncthreads();
    const Walk tile = tile_of(deal ? dealt : blockIdx.x, tiles_per_row);
    const long long row = tile.row * seq_len;
    d_outputs += row, coeffs += row, outputs += row, d_inputs += row, d_coeffs += row;
    const T start = initial ? initial[tile.row] : T(0);

    const bool coeffs_aligned = kWhole || skew(coeffs) == skew(d_outputs);
    const bool outputs_aligned = kWhole || skew(outputs) == skew(d_outputs);
    const bool d_inputs_aligned = kWhole || skew(d_inputs) == skew(d_outputs);
    const bool d_coeffs_aligned = kWhole || skew(d_coeffs) == skew(d_outputs);
    const int head_steps = kWhole ? 0 : head(d_outputs, seq_len, kBack);
    const Part part = part_of<kVectors, kBack, Stored>((long long)tile.index * steps - head_steps, steps, seq_len);
    uint4* slots = stage + threadIdx.x;
    const bool busy = warp * 32 * kVectors < tile_vectors;
    Vectors<Stored, kVectors> delta, c, previous;
    Transition<T> before[kVectors], total = {T(1), T(0)};
    if (busy) {
        delta = load<kVectors, kThreads, kBack>(slots, d_outputs, true, part, seq_len, T(0));
        c = load<kVectors, kThreads, kBack>(slots, coeffs, coeffs_aligned, part, seq_len, T(1));
        previous = load<kVectors, kThreads, kBack>(slots, outputs, outputs_aligned, part, seq_len, T(0));
        // The same scan over d_outputs, with the coefficient of the step before.
        take_previous(c, load_neighbour<kVectors, kBack>(coeffs, part, seq_len, false, T(1)));
        take_next(previous, load_neighbour<kVectors, kBack>(outputs, part, seq_len, true, start));
        conjugate_vectors(c);
        total = summarize_vectors(c, delta, before);
    }
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    Carrier<T> carrier = Carrier<T>::begin(workspace, epoch, {nullptr}, tiles_per_row);
    carrier.row = tile.row;
    if (warp == 0) {
        const Transition<T> all = scan_warps<kWarps>(totals, befores);
        if (lane == 0) carrier.publish(tile, all);
    }
    tiles_before.await(carrier, tile, pieces);
    __syncthreads();
    if (!busy) return;
    T state = tiles_before.state_before(tile, T(0));
    state = multiply_add(state, befores[warp].coeff, befores[warp].state);
    walk_vectors(c, delta, before, state);

    if (part.end == seq_len) {
        end_with(previous, part, seq_len, start);
        const Stored* first_coeff = coeffs + (kReverse ? seq_len - 1 : 0);
        const auto store_last = [&](T last) { d_initial[tile.row] = last; };
        if (d_initial) with_last(store_last, part, seq_len, delta, first_coeff);
    }
    conjugate_vectors(previous);
    multiply_vectors(previous, delta);
    store<kThreads, kBack>(d_inputs, d_inputs_aligned, slots, part, seq_len, delta);
    store<kThreads, kBack>(d_coeffs, d_coeffs_aligned, slots, part, seq_len, previous);
}
// ANCHOR_END: backward
