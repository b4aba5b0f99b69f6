// Few long sequences as fast as memory allows: all blocks share each of them.
//
// The tiles of all rows are numbered row after row, and block b of B has the tiles b, b + B, b + 2B and so on: a wave
// is a tile of each. As soon as a tile has come, its block finds out what it does to the state and tells all others,
// kAhead waves before its outputs are due: so hardly ever does one wait for another. Until then the tile
// stays in shared memory.
//
// Which tiles there are and in which order they are combined depends on the shape and the configuration alone, so
// the outputs have the same bits for every number of blocks. All blocks must be on the GPU at once.
//
// Arrays and arguments as for linrec_wide.cu, and two more: `tile_vectors`, how many vectors a tile has, a
// multiple of 32 up to kThreads * kVectors; and `workspace`, zero before the first launch: Shared, and a Notice for each
// tile, each row's rounded up to whole groups. There are fewer than 2^31 tiles. Template parameters: what is
// stored; how many vectors each thread has; threads in a block that compute, beside which a warp carries the
// state; how many waves ahead a tile is told, three at least, and how many more are in flight before that; whether all rows consist
// of whole vectors and begin at multiples of 16 bytes.
#include "waves.cuh"

// ANCHOR: forward
template <typename Stored, int kVectors, int kThreads, int kAhead, int kInFlight, bool kWhole>
__global__ void __launch_bounds__(kThreads + 32)
    linrec_waves_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                     const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                     long long seq_len, int reverse, int tile_vectors, void* workspace) {
    static_assert(kAhead >= 3, "a block may ask for what others tell a wave later");
    using T = Accum<Stored>;
    constexpr int kPer = kPerVector<Stored>, kWarps = kThreads / 32, kSlots = kAhead + kInFlight;
    __shared__ Transition<T> totals[2][kWarps];        // of each warp, taken in turns
    __shared__ Transition<T> befores[kAhead][kWarps];  // of all warps before it, for each tile that is told
    __shared__ T states[2];                            // before this wave's tile and the next one's
    extern __shared__ uint4 ring[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if (seq_len == 0) {
        for (long long row = blockIdx.x; row < num_seqs; row += gridDim.x) {
            if (final_state && threadIdx.x == 0) final_state[row] = initial ? initial[row] : T(0);
        }
        return;
    }
    const int steps = tile_vectors * kPer;
    const int tiles_per_row = (seq_len + (kWhole ? 0 : kPer - 1) + steps - 1) / steps;
    const int tiles = num_seqs * tiles_per_row;
    const int waves = blockIdx.x < tiles ? (tiles - 1 - (int)blockIdx.x) / (int)gridDim.x + 1 : 0;
    const int rows_on = gridDim.x / tiles_per_row, tiles_on = gridDim.x % tiles_per_row;
    const bool computes = warp < kWarps;

    // For the warps that compute.
    const bool coeffs_aligned = skew(coeffs) == skew(inputs);
    const bool outputs_aligned = skew(outputs) == skew(inputs);
    const auto first_of = [&](Walk tile) -> long long {
        const int before = kWhole ? 0 : head(inputs + tile.row * seq_len, seq_len, reverse);
        return (long long)tile.index * steps - before;
    };
    const auto view_at = [&](Walk tile) {
        return view_of_tile<kVectors, kThreads, Stored>(first_of(tile), steps, seq_len, reverse);
    };
    const auto slots_of = [&](int slot) { return ring + slot * 2 * kVectors * kThreads + threadIdx.x; };
    const auto send = [&](Walk tile, int slot, bool exists) {
        if (exists) {
            const View view = view_at(tile);
            const long long row = tile.row * seq_len;
            uint4* slots = slots_of(slot);
            send_vectors<kVectors, kThreads>(slots, inputs + row, true, view);
            send_vectors<kVectors, kThreads>(slots + kVectors * kThreads, coeffs + row, coeffs_aligned, view);
        }
        close_group();
    };
    struct Loaded {
        Vectors<Stored, kVectors> x, c;
    };
    const auto receive = [&](Walk tile, View view, int slot) -> Loaded {
        const long long row = tile.row * seq_len;
        const uint4* slots = slots_of(slot);
        Loaded now = {
            receive_vectors<kWhole, kVectors, kThreads>(slots, inputs + row, true, view, T(0)),
            receive_vectors<kWhole, kVectors, kThreads>(slots + kVectors * kThreads, coeffs + row, coeffs_aligned,
                                                        view, T(1))};
        turn(reverse, now.x);
        turn(reverse, now.c);
        return now;
    };
    // What the thread's vectors find before them in the warp, and what the warp does to the state.
    const auto summarize = [&](Walk tile, int slot, Transition<T> (&before)[kVectors], Transition<T>& warp_total) {
        const Loaded now = receive(tile, view_at(tile), slot);
        Transition<T> upto[kVectors];
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
            Transition<T> mine = {now.c.at[w][0], now.x.at[w][0]};
#pragma unroll
            for (int i = 1; i < kPer; i++) mine = compose(mine, {now.c.at[w][i], now.x.at[w][i]});
            upto[w] = scan_lanes<32>(lane, mine);
        }
        Transition<T> all = {T(1), T(0)};  // of the pieces before
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
            const Transition<T> below = lane_up<32>(upto[w], 1);
            before[w] = lane > 0 ? compose(all, below) : all;
            all = compose(all, lane_at<32>(upto[w], 31));
        }
        if (lane == 0) warp_total = all;
    };
    const auto apply = [&](Walk tile, int slot, const Transition<T> (&before)[kVectors], T state) {
        const View view = view_at(tile);
        Loaded now = receive(tile, view, slot);
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
            T y = multiply_add(state, before[w].coeff, before[w].state);
#pragma unroll
            for (int i = 0; i < kPer; i++) {
                y = multiply_add(y, now.c.at[w][i], now.x.at[w][i]);
                now.x.at[w][i] = y;
            }
        }
        turn(reverse, now.x);
        store_vectors<kWhole>(outputs + tile.row * seq_len, outputs_aligned, view, now.x);
        const long long last = reverse ? 0 : seq_len - 1;
        if (final_state && first_of(tile) + steps >= seq_len) {
#pragma unroll
            for (int w = 0; w < kVectors; w++) {
                const int place = w * view.stride;
#pragma unroll
                for (int i = 0; i < kPer; i++) {
                    const bool exists = place + i >= view.begin && place + i < view.end;
                    if (exists && view.base + place + i == last) final_state[tile.row] = now.x.at[w][i];
                }
            }
        }
    };

    // For the warp that carries.
    Carrier<T> carrier;
    Walk told, due;
    if (!computes) {
        carrier.shared = (Shared*)workspace;
        carrier.notices = (Notice<T>*)(carrier.shared + 1);
        carrier.initial = initial;
        carrier.tiles_per_row = tiles_per_row;
        carrier.groups_per_row = (tiles_per_row + kGroup - 1) / kGroup;
        carrier.epoch = load_relaxed(&carrier.shared->epoch) + 1;
        carrier.gave_up = false;
        carrier.row = -1;
        told = due = Walk::begin(tiles_per_row);
    }
    const auto tell = [&](int wave, Transition<T> (&befores)[kWarps]) {
        if (wave >= waves) return;
        Transition<T> mine = {T(1), T(0)};
        if (lane < kWarps) mine = totals[wave % 2][lane];
        const Transition<T> upto = scan_lanes<32>(lane, mine), below = lane_up<32>(upto, 1);
        if (lane < kWarps) befores[lane] = lane > 0 ? below : Transition<T>{T(1), T(0)};
        if (lane == kWarps - 1) put_up(carrier.place(told.row, told.index), upto, carrier.epoch);
        told.advance(rows_on, tiles_on, tiles_per_row);
    };
    const auto carry = [&](int wave) {
        if (wave >= waves) return;
        const T state = carrier.state_before(due);
        if (lane == 0) states[wave % 2] = state;
        due.advance(rows_on, tiles_on, tiles_per_row);
    };

    Walk sent = Walk::begin(tiles_per_row), summarized = sent, applied = sent;
    int slot = 0, next_slot = kAhead % kSlots;  // of the tile that is due, and of the one to be summarized
    Transition<T> before[kAhead][kVectors];
    if (computes) {
#pragma unroll
        for (int wave = 0; wave < kSlots; wave++) {
            send(sent, wave, wave < waves);
            sent.advance(rows_on, tiles_on, tiles_per_row);
        }
    }
#pragma unroll
    for (int wave = 0; wave < kAhead; wave++) {
        if (computes) {
            await_groups_but(kSlots - 1 - wave);
            if (wave < waves) summarize(summarized, wave, before[wave], totals[wave % 2][warp]);
            summarized.advance(rows_on, tiles_on, tiles_per_row);
        } else if (wave > 0) {
            tell(wave - 1, befores[wave - 1]);
        }
        __syncthreads();
    }
    if (!computes) {
        tell(kAhead - 1, befores[kAhead - 1]);
        carry(0);
    }
    __syncthreads();
    for (int first = 0; first < waves; first += kAhead) {
#pragma unroll
        for (int part = 0; part < kAhead; part++) {
            const int wave = first + part;
            if (wave >= waves) break;
            if (computes) {
                const Transition<T> warps = befores[part][warp];
                apply(applied, slot, before[part], multiply_add(states[wave % 2], warps.coeff, warps.state));
                applied.advance(rows_on, tiles_on, tiles_per_row);
                send(sent, slot, wave + kSlots < waves);
                sent.advance(rows_on, tiles_on, tiles_per_row);
                slot = slot + 1 < kSlots ? slot + 1 : 0;
                await_groups<kInFlight>();
                if (wave + kAhead < waves) {
                    summarize(summarized, next_slot, before[part], totals[(wave + kAhead) % 2][warp]);
                }
                summarized.advance(rows_on, tiles_on, tiles_per_row);
                next_slot = next_slot + 1 < kSlots ? next_slot + 1 : 0;
            } else {
                if (wave > 0) tell(wave - 1 + kAhead, befores[(part + kAhead - 1) % kAhead]);
                carry(wave + 1);
            }
            __syncthreads();
        }
    }

    if (!computes && lane == 0) {
        if (carrier.gave_up) store_relaxed(&carrier.shared->failed, 1);
        finish(carrier.shared, carrier.epoch);
    }
}
// ANCHOR_END: forward
