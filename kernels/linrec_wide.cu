// Long sequences as fast as memory allows: one block for each, vectors of 16 bytes,
// and kAhead tiles in flight while one is computed.
//
// Arrays and arguments as for linrec_pipe.cu; rows may have any length and begin anywhere.
// Template parameters: the stored type; vectors of a thread; threads in a block; how many tiles
// to load ahead; whether all rows consist of whole vectors and begin at multiples of 16 bytes.
#include "wide.cuh"

// ANCHOR: forward
template <typename Stored, int kVectors, int kThreads, int kAhead,
          bool kWhole>
__global__ void __launch_bounds__(kThreads)
    linrec_wide_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                    const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                    long long seq_len, int reverse) {
    using T = Accum<Stored>;
    constexpr int kSteps = kThreads * kVectors * kPerVector<Stored>, kTurns = kAhead > 0 ? kAhead : 1;
    __shared__ Transition<T> totals[2][kThreads / 32];  // taken in turns
    const long long row = blockIdx.x * seq_len;
    inputs += row, coeffs += row, outputs += row;
    const int before = kWhole ? 0 : head(inputs, seq_len, reverse);
    const bool coeffs_aligned = skew(coeffs) == skew(inputs);
    const bool outputs_aligned = skew(outputs) == skew(inputs);

    const auto view_at = [&](long long tile) {
        const long long first = tile * kSteps - before;
        return view<kVectors, kThreads, Stored>(first, seq_len, reverse);
    };
    struct Loaded {
        Vectors<Stored, kVectors> x, c;
    };
    const auto load = [&](View view) -> Loaded {
        return {load_vectors<kWhole, kVectors>(inputs, true, view, T(0)),
                load_vectors<kWhole, kVectors>(coeffs, coeffs_aligned, view, T(1))};
    };
    extern __shared__ uint4 ahead[];
    constexpr int kSlots = kVectors * kThreads;
    const auto send = [&](long long tile) {
        const View view = view_at(tile);
        uint4* slots = ahead + tile % kTurns * 2 * kSlots + threadIdx.x;
        send_vectors<kVectors, kThreads>(slots, inputs, true, view);
        send_vectors<kVectors, kThreads>(slots + kSlots, coeffs, coeffs_aligned, view);
        close_group();
    };
    const auto receive = [&](long long tile) -> Loaded {
        await_groups<kTurns - 1>();
        const View view = view_at(tile);
        const uint4* slots = ahead + tile % kTurns * 2 * kSlots + threadIdx.x;
        return {receive_vectors<kWhole, kVectors, kThreads>(slots, inputs, true, view, T(0)),
                receive_vectors<kWhole, kVectors, kThreads>(slots + kSlots, coeffs, coeffs_aligned, view,
                                                        T(1))};
    };

    T carry = initial ? initial[blockIdx.x] : T(0);
    const long long tiles = (seq_len + before + kSteps - 1) / kSteps;
#pragma unroll
    for (int tile = 0; tile < kAhead; tile++) send(tile);
    for (long long tile = 0; tile < tiles; tile++) {
        const View view = view_at(tile);
        Loaded now = kAhead > 0 ? receive(tile) : load(view);
        if (kAhead > 0) send(tile + kAhead);
        turn(reverse, now.x);
        turn(reverse, now.c);
        scan_vectors<kThreads>(now.c, now.x, totals[tile % 2], carry);
        turn(reverse, now.x);
        store_vectors<kWhole>(outputs, outputs_aligned, view, now.x);
    }
    // The carry was computed in another order than the outputs. The final state has the last
    // output's bits: its lane reads that again, as selecting it would take more registers.
    const bool is_output = sizeof(T) == sizeof(Stored) && tiles > 0;
    const bool is_mine = is_output ? has_last<kVectors, Stored>(view_at(tiles - 1)) : threadIdx.x == 0;
    if (final_state && is_mine) {
        final_state[blockIdx.x] = is_output ? widen(outputs[reverse ? 0 : seq_len - 1]) : carry;
    }
}
// ANCHOR_END: forward

// ANCHOR: backward
template <typename Stored, int kVectors, int kThreads, int kAhead,
          bool kWhole>
__global__ void __launch_bounds__(kThreads)
    linrec_wide_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                    const Accum<Stored>* initial, Stored* d_inputs, Stored* d_coeffs,
                    Accum<Stored>* d_initial, long long num_seqs, long long seq_len, int reverse) {
    using T = Accum<Stored>;
    constexpr int kSteps = kThreads * kVectors * kPerVector<Stored>, kTurns = kAhead > 0 ? kAhead : 1;
    __shared__ Transition<T> totals[2][kThreads / 32];
    const bool back = !reverse;
    const long long row = blockIdx.x * seq_len;
    d_outputs += row, coeffs += row, outputs += row;
    d_inputs += row, d_coeffs += row;
    const int before = kWhole ? 0 : head(d_outputs, seq_len, back);
    const bool coeffs_aligned = skew(coeffs) == skew(d_outputs);
    const bool outputs_aligned = skew(outputs) == skew(d_outputs);
    const bool d_inputs_aligned = skew(d_inputs) == skew(d_outputs);
    const bool d_coeffs_aligned = skew(d_coeffs) == skew(d_outputs);
    const T start = initial ? initial[blockIdx.x] : T(0);

    const auto view_at = [&](long long tile) {
        const long long first = tile * kSteps - before;
        return view<kVectors, kThreads, Stored>(first, seq_len, back);
    };
    struct Loaded {
        Vectors<Stored, kVectors> delta, c, previous;
    };
    const auto load = [&](View view) -> Loaded {
        return {load_vectors<kWhole, kVectors>(d_outputs, true, view, T(0)),
                load_vectors<kWhole, kVectors>(coeffs, coeffs_aligned, view, T(1)),
                load_vectors<kWhole, kVectors>(outputs, outputs_aligned, view, start)};
    };
    extern __shared__ uint4 ahead[];
    constexpr int kSlots = kVectors * kThreads;
    const auto send = [&](long long tile) {
        const View view = view_at(tile);
        uint4* slots = ahead + tile % kTurns * 3 * kSlots + threadIdx.x;
        send_vectors<kVectors, kThreads>(slots, d_outputs, true, view);
        send_vectors<kVectors, kThreads>(slots + kSlots, coeffs, coeffs_aligned, view);
        send_vectors<kVectors, kThreads>(slots + 2 * kSlots, outputs, outputs_aligned, view);
        close_group();
    };
    const auto receive = [&](long long tile) -> Loaded {
        await_groups<kTurns - 1>();
        const View view = view_at(tile);
        const uint4* slots = ahead + tile % kTurns * 3 * kSlots + threadIdx.x;
        return {receive_vectors<kWhole, kVectors, kThreads>(slots, d_outputs, true, view, T(0)),
                receive_vectors<kWhole, kVectors, kThreads>(slots + kSlots, coeffs, coeffs_aligned, view,
                                                        T(1)),
                receive_vectors<kWhole, kVectors, kThreads>(slots + 2 * kSlots, outputs, outputs_aligned,
                                                        view, start)};
    };

    T carry(0);
    const long long tiles = (seq_len + before + kSteps - 1) / kSteps;
#pragma unroll
    for (int tile = 0; tile < kAhead; tile++) send(tile);
    for (long long tile = 0; tile < tiles; tile++) {
        const View view = view_at(tile);
        const T c_edge = load_edge<kVectors>(coeffs, view, false, threadIdx.x % 32 == 0, T(1));
        const T previous_edge =
            load_edge<kVectors>(outputs, view, true, threadIdx.x % 32 == 31, start);
        Loaded now = kAhead > 0 ? receive(tile) : load(view);
        if (kAhead > 0) send(tile + kAhead);
        // The same scan over d_outputs, with the coefficient of the step before.
        turn(back, now.delta);
        turn(back, now.c);
        take_previous(now.c, c_edge);
        end_with_one(now.c, view);
        conjugate_vectors(now.c);
        scan_vectors<kThreads>(now.c, now.delta, totals[tile % 2], carry);

        turn(back, now.previous);
        take_next(now.previous, previous_edge);
        conjugate_vectors(now.previous);
        multiply_vectors(now.previous, now.delta);
        turn(back, now.delta);
        turn(back, now.previous);
        store_vectors<kWhole>(d_inputs, d_inputs_aligned, view, now.delta);
        store_vectors<kWhole>(d_coeffs, d_coeffs_aligned, view, now.previous);
    }

    if (d_initial && threadIdx.x == 0) {
        const T coeff = seq_len > 0 ? widen(coeffs[reverse ? seq_len - 1 : 0]) : T(0);
        d_initial[blockIdx.x] = carry * conjugate(coeff);
    }
}
// ANCHOR_END: backward
