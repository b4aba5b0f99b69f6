// Few long sequences as fast as memory allows: all blocks share each of them.
//
// The tiles of all rows are numbered row after row, and block b of B takes the tiles b, b + B,
// b + 2B and so on: a wave is a tile of each block. As soon as a tile has arrived, its block
// computes what it does to the state and publishes that, kAhead waves before its outputs are
// due: so blocks hardly ever wait for each other. Until then the tile stays in shared memory.
//
// Tiles and their order depend on the shape and the configuration alone, so every
// number of blocks gives the same bits. All blocks must be on the GPU at once.
//
// Arrays and arguments as for linrec_wide.cu, but for the direction, and five more: `tile_vectors`,
// the vectors of a tile, a multiple of 32 * kVectors up to kThreads * kVectors; `workspace`, zero
// before the first launch: Shared, and a Notice for each tile, each row's rounded up to whole
// groups; and where rows go on on other devices, `from` for the state before each row, `to` for the
// state behind it, and the epoch of both. Either may be null. There are fewer than 2^31 tiles.
//
// Template parameters: the stored type; vectors of a thread; threads in a block, beside a
// warp that carries the state; how many waves ahead a tile is published, at least two; how
// many more are in flight before; whether all rows are whole, aligned vectors; the direction.
#include "waves.cuh"

// ANCHOR: forward
template <typename Stored, int kVectors, int kThreads, int kAhead, int kInFlight, bool kWhole, bool kReverse>
__global__ void __launch_bounds__(kThreads + 32, kThreads + 32 < 512 ? 512 / (kThreads + 32) : 1)
    linrec_waves_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                     const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                     long long seq_len, int tile_vectors, void* workspace, const Mailbox<Accum<Stored>>* from,
                     Mailbox<Accum<Stored>>* to, unsigned mail_epoch) {
    using T = Accum<Stored>;
    constexpr int kWarps = kThreads / 32, kSlots = kAhead + kInFlight, kTile = kVectors * kThreads;
    __shared__ Transition<T> totals[2][kWarps];        // of each warp, for two waves in turns
    __shared__ Transition<T> befores[kAhead][kWarps];  // of the warps before it, for each tile
    __shared__ T states[2];                            // before this wave's tile and the next one's
    extern __shared__ uint4 ring[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const Incoming<T> comes = {initial, from, mail_epoch};
    const Outgoing<T> goes = {final_state, to, mail_epoch, from};
    if (seq_len == 0) return hand_over(comes, goes, num_seqs);
    const Plan plan = Plan::of<Stored>(num_seqs, seq_len, tile_vectors, kWhole);
    if (warp == kWarps) return carry_along(workspace, comes, plan, totals, befores, states);
    if (warp * 32 * kVectors >= tile_vectors) return stand_by<kAhead>(totals, plan.waves);

    const int steps = plan.steps, waves = plan.waves;
    const bool coeffs_aligned = kWhole || skew(coeffs) == skew(inputs);
    const bool outputs_aligned = kWhole || skew(outputs) == skew(inputs);
    const auto part_at = [&](Walk tile) {
        const int before = kWhole ? 0 : head(inputs + tile.row * seq_len, seq_len, kReverse);
        return part_of<kVectors, kReverse, Stored>((long long)tile.index * steps - before, steps, seq_len);
    };
    const auto slots_of = [&](int slot) { return ring + slot * 2 * kTile + threadIdx.x; };
    const auto send_tile = [&](Walk tile, int slot) {
        const Part part = part_at(tile);
        const long long row = tile.row * seq_len;
        uint4* slots = slots_of(slot);
        send<kVectors, kThreads, kReverse>(slots, inputs + row, true, part, seq_len, T(0));
        send<kVectors, kThreads, kReverse>(slots + kTile, coeffs + row, coeffs_aligned, part, seq_len, T(1));
    };
    struct Loaded {
        Vectors<Stored, kVectors> x, c;
    };
    const auto receive_tile = [&](int slot) -> Loaded {
        const uint4* slots = slots_of(slot);
        return {receive<kVectors, kThreads, kReverse, Stored>(slots),
                receive<kVectors, kThreads, kReverse, Stored>(slots + kTile)};
    };
    const auto apply = [&](Walk tile, int slot, const Transition<T> (&before)[kVectors], T state) {
        const Part part = part_at(tile);
        Loaded now = receive_tile(slot);
        walk_vectors(now.c, now.x, before, state);
        if (goes.wanted() && part.end == seq_len) {
            with_last([&](T last) { goes(tile.row, last); }, part, seq_len, now.x);
        }
        Stored* row = outputs + tile.row * seq_len;
        store<kThreads, kReverse>(row, outputs_aligned, slots_of(slot), part, seq_len, now.x);
    };

    Walk sent = Walk::begin(plan.tiles_per_row), summarized = sent, applied = sent;
#pragma unroll 1
    for (int wave = 0; wave < kSlots; wave++) {
        if (wave < waves) send_tile(sent, wave);
        plan.advance(sent);
        close_group();
    }
    int slot = 0, next_slot = 0, turn_of = 0;  // the tile that is due, the next one
    Transition<T> before[kAhead][kVectors];     // of the tile that is due and of the next ones
#pragma unroll 1
    for (int wave = -kAhead; wave < waves; wave++) {
        if (wave >= 0) {
            const Transition<T> warps = befores[turn_of][warp];
            apply(applied, slot, before[0], multiply_add(states[wave % 2], warps.coeff, warps.state));
            plan.advance(applied);
            if (wave + kSlots < waves) send_tile(sent, slot);
            plan.advance(sent);
            close_group();
            slot = slot + 1 < kSlots ? slot + 1 : 0;
            turn_of = turn_of + 1 < kAhead ? turn_of + 1 : 0;
            await_groups<kInFlight>();
        } else {
            await_groups_but(kInFlight - 1 - wave);
        }
        move_up(before);
        if (wave + kAhead < waves) {
            const Loaded now = receive_tile(next_slot);
            const Transition<T> total = summarize_vectors(now.c, now.x, before[kAhead - 1]);
            if (lane == 0) totals[(wave + kAhead) % 2][warp] = total;
            plan.advance(summarized);
            next_slot = next_slot + 1 < kSlots ? next_slot + 1 : 0;
        }
        meet();
    }
}
// ANCHOR_END: forward

// ANCHOR: backward
// The ring holds two arrays of kAhead + kInFlight tiles, d_outputs and coeffs, and one
// of kInFlight + 1, outputs, which are needed only when a tile is due.
template <typename Stored, int kVectors, int kThreads, int kAhead, int kInFlight, bool kWhole, bool kReverse>
__global__ void __launch_bounds__(kThreads + 32, kThreads + 32 < 512 ? 512 / (kThreads + 32) : 1)
    linrec_waves_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                     const Accum<Stored>* initial, Stored* d_inputs, Stored* d_coeffs, Accum<Stored>* d_initial,
                     long long num_seqs, long long seq_len, int tile_vectors, void* workspace,
                     const Mailbox<Accum<Stored>>* from, Mailbox<Accum<Stored>>* to, unsigned mail_epoch) {
    using T = Accum<Stored>;
    constexpr int kWarps = kThreads / 32, kSlots = kAhead + kInFlight, kLate = kInFlight + 1;
    constexpr int kTile = kVectors * kThreads;
    constexpr bool kBack = !kReverse;
    __shared__ Transition<T> totals[2][kWarps];
    __shared__ Transition<T> befores[kAhead][kWarps];
    __shared__ T states[2];
    extern __shared__ uint4 ring[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const Incoming<T> comes = {nullptr, from, mail_epoch};
    const Outgoing<T> goes = {d_initial, to, mail_epoch, from};
    if (seq_len == 0) return hand_over(comes, goes, num_seqs);
    const Plan plan = Plan::of<Stored>(num_seqs, seq_len, tile_vectors, kWhole);
    if (warp == kWarps) return carry_along(workspace, comes, plan, totals, befores, states);
    if (warp * 32 * kVectors >= tile_vectors) return stand_by<kAhead>(totals, plan.waves);

    const int steps = plan.steps, waves = plan.waves;
    const bool coeffs_aligned = kWhole || skew(coeffs) == skew(d_outputs);
    const bool outputs_aligned = kWhole || skew(outputs) == skew(d_outputs);
    const bool d_inputs_aligned = kWhole || skew(d_inputs) == skew(d_outputs);
    const bool d_coeffs_aligned = kWhole || skew(d_coeffs) == skew(d_outputs);
    const auto part_at = [&](Walk tile) {
        const int before = kWhole ? 0 : head(d_outputs + tile.row * seq_len, seq_len, kBack);
        return part_of<kVectors, kBack, Stored>((long long)tile.index * steps - before, steps, seq_len);
    };
    uint4* late_ring = ring + kSlots * 2 * kTile;
    const auto slots_of = [&](int slot) { return ring + slot * 2 * kTile + threadIdx.x; };
    const auto late_slots_of = [&](int slot) { return late_ring + slot * kTile + threadIdx.x; };
    const auto send_tile = [&](Walk tile, int slot) {
        const Part part = part_at(tile);
        const long long row = tile.row * seq_len;
        uint4* slots = slots_of(slot);
        send<kVectors, kThreads, kBack>(slots, d_outputs + row, true, part, seq_len, T(0));
        send<kVectors, kThreads, kBack>(slots + kTile, coeffs + row, coeffs_aligned, part, seq_len, T(1));
    };
    const auto send_late = [&](Walk tile, int slot) {
        const Stored* row = outputs + tile.row * seq_len;
        send<kVectors, kThreads, kBack>(late_slots_of(slot), row, outputs_aligned, part_at(tile), seq_len, T(0));
    };
    struct Loaded {
        Vectors<Stored, kVectors> delta, c;
    };
    // d_outputs, and for each the coefficient of the step before. After the row's last
    // step there is no step, yet a coefficient: no result depends on it.
    const auto receive_tile = [&](int slot, T c_edge) -> Loaded {
        const uint4* slots = slots_of(slot);
        Loaded now = {receive<kVectors, kThreads, kBack, Stored>(slots),
                      receive<kVectors, kThreads, kBack, Stored>(slots + kTile)};
        take_previous(now.c, c_edge);
        conjugate_vectors(now.c);
        return now;
    };
    const auto start_of = [&](Walk tile) { return initial ? initial[tile.row] : T(0); };
    const auto c_edge_of = [&](Walk tile) {
        const Stored* row = coeffs + tile.row * seq_len;
        return load_neighbour<kVectors, kBack>(row, part_at(tile), seq_len, false, T(1));
    };
    const auto previous_edge_of = [&](Walk tile) {
        const Stored* row = outputs + tile.row * seq_len;
        return load_neighbour<kVectors, kBack>(row, part_at(tile), seq_len, true, start_of(tile));
    };
    const auto apply = [&](Walk tile, int slot, int late_slot, const Transition<T> (&before)[kVectors], T c_edge,
                           T previous_edge, T state) {
        const Part part = part_at(tile);
        const long long row = tile.row * seq_len;
        Loaded now = receive_tile(slot, c_edge);
        walk_vectors(now.c, now.delta, before, state);
        Vectors<Stored, kVectors> previous = receive<kVectors, kThreads, kBack, Stored>(late_slots_of(late_slot));
        take_next(previous, previous_edge);
        if (part.end == seq_len) {
            end_with(previous, part, seq_len, start_of(tile));
            const Stored* first_coeff = coeffs + row + (kReverse ? seq_len - 1 : 0);
            const auto store_last = [&](T last) { goes(tile.row, last); };
            if (goes.wanted()) with_last(store_last, part, seq_len, now.delta, first_coeff);
        }
        conjugate_vectors(previous);
        multiply_vectors(previous, now.delta);
        uint4* slots = slots_of(slot);
        store<kThreads, kBack>(d_inputs + row, d_inputs_aligned, slots, part, seq_len, now.delta);
        store<kThreads, kBack>(d_coeffs + row, d_coeffs_aligned, slots, part, seq_len, previous);
    };

    Walk sent = Walk::begin(plan.tiles_per_row), sent_late = sent, summarized = sent, applied = sent;
#pragma unroll 1
    for (int wave = 0; wave < kSlots; wave++) {
        if (wave < waves) send_tile(sent, wave);
        plan.advance(sent);
        if (wave < kLate) {
            if (wave < waves) send_late(sent_late, wave);
            plan.advance(sent_late);
        }
        close_group();
    }
    int slot = 0, next_slot = 0, late_slot = 0, turn_of = 0;
    Transition<T> before[kAhead][kVectors];
    T c_edges[kAhead];
    // The neighbours of the next tiles, on their way.
    T next_c_edge = waves > 0 ? c_edge_of(summarized) : T(1);
    T previous_edge = waves > 0 ? previous_edge_of(applied) : T(0);
#pragma unroll 1
    for (int wave = -kAhead; wave < waves; wave++) {
        if (wave >= 0) {
            const Transition<T> warps = befores[turn_of][warp];
            const T state = multiply_add(states[wave % 2], warps.coeff, warps.state);
            apply(applied, slot, late_slot, before[0], c_edges[0], previous_edge, state);
            plan.advance(applied);
            if (wave + 1 < waves) previous_edge = previous_edge_of(applied);
            if (wave + kSlots < waves) send_tile(sent, slot);
            plan.advance(sent);
            if (wave + kLate < waves) send_late(sent_late, late_slot);
            plan.advance(sent_late);
            close_group();
            slot = slot + 1 < kSlots ? slot + 1 : 0;
            late_slot = late_slot + 1 < kLate ? late_slot + 1 : 0;
            turn_of = turn_of + 1 < kAhead ? turn_of + 1 : 0;
            await_groups<kInFlight>();
        } else {
            await_groups_but(kInFlight - 1 - wave);
        }
        move_up(before);
        move_up(c_edges);
        if (wave + kAhead < waves) {
            c_edges[kAhead - 1] = next_c_edge;
            const Loaded now = receive_tile(next_slot, next_c_edge);
            const Transition<T> total = summarize_vectors(now.c, now.delta, before[kAhead - 1]);
            if (lane == 0) totals[(wave + kAhead) % 2][warp] = total;
            plan.advance(summarized);
            if (wave + kAhead + 1 < waves) next_c_edge = c_edge_of(summarized);
            next_slot = next_slot + 1 < kSlots ? next_slot + 1 : 0;
        }
        meet();
    }
}
// ANCHOR_END: backward
