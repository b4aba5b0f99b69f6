// The recurrence and its gradient as fast as memory allows: words of 16 bytes, several short rows in a
// warp or one long row in a block, and kAhead tiles on their way while one is computed.
//
// Arrays are [num_seqs, seq_len], row after row; sequences may have any length, and rows may begin
// anywhere. Template parameters: what is stored (float, double, bf16, f16, complex); how many lanes share
// a row, 1, 2, 4, 8, 16 or 32, or all kThreads of a block; how many words each of them has; threads in a
// block; how many tiles to load ahead; whether all rows begin and end on 16-byte boundaries. `initial`, `final_state` and `d_initial` may be null.
#include "wide.cuh"

// ANCHOR: forward
template <typename Stored, int kLanes, int kWords, int kThreads, int kAhead,
          bool kWhole>
__global__ void __launch_bounds__(kThreads)
    linrec_wide_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                    const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                    long long seq_len, int reverse) {
    using T = Accum<Stored>;
    constexpr int kSteps = kTile<kLanes, kWords, Stored>, kTurns = kAhead > 0 ? kAhead : 1;
    __shared__ Transition<T> totals[2][kTeamWarps<kLanes>];  // taken in turns
    const Place me = place<kLanes>();
    const bool exists = me.row < num_seqs;
    inputs += me.row * seq_len, coeffs += me.row * seq_len, outputs += me.row * seq_len;
    const int before = kWhole ? 0 : head(inputs, seq_len, reverse);
    const bool coeffs_aligned = skew(coeffs) == skew(inputs);
    const bool outputs_aligned = skew(outputs) == skew(inputs);

    const auto view_at = [&](long long tile) {
        const long long first = tile * kSteps - before;
        return view<kLanes, kWords, Stored>(me, first, exists ? seq_len : 0, reverse);
    };
    struct Loaded {
        Words<Stored, kWords> x, c;
    };
    const auto load = [&](View view) -> Loaded {
        return {load_words<kWhole, kWords>(inputs, true, view, T(0)),
                load_words<kWhole, kWords>(coeffs, coeffs_aligned, view, T(1))};
    };
    extern __shared__ uint4 ahead[];
    constexpr int kSlots = kWords * kThreads;
    const auto send = [&](long long tile) {
        const View view = view_at(tile);
        uint4* slots = ahead + tile % kTurns * 2 * kSlots + threadIdx.x;
        send_words<kWords, kThreads>(slots, inputs, true, view);
        send_words<kWords, kThreads>(slots + kSlots, coeffs, coeffs_aligned, view);
        close_group();
    };
    const auto receive = [&](long long tile) -> Loaded {
        await_groups<kTurns - 1>();
        const View view = view_at(tile);
        const uint4* slots = ahead + tile % kTurns * 2 * kSlots + threadIdx.x;
        return {receive_words<kWhole, kWords, kThreads>(slots, inputs, true, view, T(0)),
                receive_words<kWhole, kWords, kThreads>(slots + kSlots, coeffs, coeffs_aligned, view,
                                                        T(1))};
    };

    T carry = initial && exists ? initial[me.row] : T(0);
    const long long tiles = num_tiles<kLanes, kWords, Stored>(seq_len, before);
#pragma unroll
    for (int tile = 0; tile < kAhead; tile++) send(tile);
    for (long long tile = 0; tile < tiles; tile++) {
        const View view = view_at(tile);
        Loaded now = kAhead > 0 ? receive(tile) : load(view);
        if (kAhead > 0) send(tile + kAhead);
        turn(reverse, now.x);
        turn(reverse, now.c);
        scan_words<kLanes>(me, now.c, now.x, totals[tile % 2], carry);
        turn(reverse, now.x);
        store_words<kWhole>(outputs, outputs_aligned, view, now.x);
    }
    if (final_state && exists && me.warp == 0 && me.lane == 0) final_state[me.row] = carry;
}
// ANCHOR_END: forward

// ANCHOR: backward
template <typename Stored, int kLanes, int kWords, int kThreads, int kAhead,
          bool kWhole>
__global__ void __launch_bounds__(kThreads)
    linrec_wide_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                    const Accum<Stored>* initial, Stored* d_inputs, Stored* d_coeffs,
                    Accum<Stored>* d_initial, long long num_seqs, long long seq_len, int reverse) {
    using T = Accum<Stored>;
    constexpr int kSteps = kTile<kLanes, kWords, Stored>, kTurns = kAhead > 0 ? kAhead : 1;
    __shared__ Transition<T> totals[2][kTeamWarps<kLanes>];
    const bool back = !reverse;
    const Place me = place<kLanes>();
    const bool exists = me.row < num_seqs;
    d_outputs += me.row * seq_len, coeffs += me.row * seq_len, outputs += me.row * seq_len;
    d_inputs += me.row * seq_len, d_coeffs += me.row * seq_len;
    const int before = kWhole ? 0 : head(d_outputs, seq_len, back);
    const bool coeffs_aligned = skew(coeffs) == skew(d_outputs);
    const bool outputs_aligned = skew(outputs) == skew(d_outputs);
    const bool d_inputs_aligned = skew(d_inputs) == skew(d_outputs);
    const bool d_coeffs_aligned = skew(d_coeffs) == skew(d_outputs);
    const T start = initial && exists ? initial[me.row] : T(0);

    const auto view_at = [&](long long tile) {
        const long long first = tile * kSteps - before;
        return view<kLanes, kWords, Stored>(me, first, exists ? seq_len : 0, back);
    };
    struct Loaded {
        Words<Stored, kWords> delta, c, previous;
    };
    const auto load = [&](View view) -> Loaded {
        return {load_words<kWhole, kWords>(d_outputs, true, view, T(0)),
                load_words<kWhole, kWords>(coeffs, coeffs_aligned, view, T(1)),
                load_words<kWhole, kWords>(outputs, outputs_aligned, view, start)};
    };
    extern __shared__ uint4 ahead[];
    constexpr int kSlots = kWords * kThreads;
    const auto send = [&](long long tile) {
        const View view = view_at(tile);
        uint4* slots = ahead + tile % kTurns * 3 * kSlots + threadIdx.x;
        send_words<kWords, kThreads>(slots, d_outputs, true, view);
        send_words<kWords, kThreads>(slots + kSlots, coeffs, coeffs_aligned, view);
        send_words<kWords, kThreads>(slots + 2 * kSlots, outputs, outputs_aligned, view);
        close_group();
    };
    const auto receive = [&](long long tile) -> Loaded {
        await_groups<kTurns - 1>();
        const View view = view_at(tile);
        const uint4* slots = ahead + tile % kTurns * 3 * kSlots + threadIdx.x;
        return {receive_words<kWhole, kWords, kThreads>(slots, d_outputs, true, view, T(0)),
                receive_words<kWhole, kWords, kThreads>(slots + kSlots, coeffs, coeffs_aligned, view,
                                                        T(1)),
                receive_words<kWhole, kWords, kThreads>(slots + 2 * kSlots, outputs, outputs_aligned,
                                                        view, start)};
    };

    T carry(0);
    const long long tiles = num_tiles<kLanes, kWords, Stored>(seq_len, before);
#pragma unroll
    for (int tile = 0; tile < kAhead; tile++) send(tile);
    for (long long tile = 0; tile < tiles; tile++) {
        const View view = view_at(tile);
        const T c_edge = load_edge<kWords>(coeffs, view, false, me.lane == 0, T(1));
        const T previous_edge =
            load_edge<kWords>(outputs, view, true, me.lane == kWidth<kLanes> - 1, start);
        Loaded now = kAhead > 0 ? receive(tile) : load(view);
        if (kAhead > 0) send(tile + kAhead);
        // The same scan over d_outputs, with the coefficient of the step before.
        turn(back, now.delta);
        turn(back, now.c);
        take_previous<kLanes>(me, now.c, c_edge);
        end_with_one(now.c, view);
        conjugate_words(now.c);
        scan_words<kLanes>(me, now.c, now.delta, totals[tile % 2], carry);

        turn(back, now.previous);
        take_next<kLanes>(me, now.previous, previous_edge);
        conjugate_words(now.previous);
        multiply_words(now.previous, now.delta);
        turn(back, now.delta);
        turn(back, now.previous);
        store_words<kWhole>(d_inputs, d_inputs_aligned, view, now.delta);
        store_words<kWhole>(d_coeffs, d_coeffs_aligned, view, now.previous);
    }

    if (d_initial && exists && me.warp == 0 && me.lane == 0) {
        const T coeff = seq_len > 0 ? widen(coeffs[reverse ? seq_len - 1 : 0]) : T(0);
        d_initial[me.row] = carry * conjugate(coeff);
    }
}
// ANCHOR_END: backward
