// Short sequences side by side: some lanes of a warp for each, which hold all of it in registers.
//
// Arrays and arguments as for linrec_ref.cu. Template parameters: the stored type; how many
// lanes share a sequence, 1, 2, 4, 8, 16 or 32; how many consecutive vectors of 16 bytes each
// holds; threads in a block; the direction; whether all rows consist of whole vectors and begin
// at multiples of 16 bytes. A sequence has at most kLanes * kVectors * kPerVector<Stored> steps.
#include "memio.cuh"
#include "scan.cuh"
#include "sub_warp.cuh"

// ANCHOR: load
// A lane's elements in the order of the recurrence, from step `first` on; `otherwise` beyond
// the row. With kWhole, rows consist of whole vectors of 16 bytes. Else, element by element.
template <bool kReverse, bool kWhole, int kElems, typename Stored>
__device__ void load_share(const Stored* row, int len, int first, Accum<Stored> otherwise,
                           Accum<Stored> (&elems)[kElems]) {
    constexpr int kPer = kPerVector<Stored>;
    const int lowest = kReverse ? len - first - kElems : first;
#pragma unroll
    for (int i = 0; i < kElems; i++) elems[i] = otherwise;
#pragma unroll
    for (int k = 0; k < kElems; k += kWhole ? kPer : 1) {
        if (lowest + k < 0 || lowest + k >= len) continue;
        if (kWhole) {
            const Vector<Stored> vector = *(const Vector<Stored>*)(row + lowest + k);
#pragma unroll
            for (int i = 0; i < kPer; i++) {
                elems[kReverse ? kElems - 1 - k - i : k + i] = widen(vector.elems[i]);
            }
        } else {
            elems[kReverse ? kElems - 1 - k : k] = widen(row[lowest + k]);
        }
    }
}

template <bool kReverse, bool kWhole, int kElems, typename Stored>
__device__ void store_share(Stored* row, int len, int first, const Accum<Stored> (&elems)[kElems]) {
    constexpr int kPer = kPerVector<Stored>;
    const int lowest = kReverse ? len - first - kElems : first;
#pragma unroll
    for (int k = 0; k < kElems; k += kWhole ? kPer : 1) {
        if (lowest + k < 0 || lowest + k >= len) continue;
        if (kWhole) {
            Vector<Stored> vector;
#pragma unroll
            for (int i = 0; i < kPer; i++) {
                vector.elems[i] = narrow<Stored>(elems[kReverse ? kElems - 1 - k - i : k + i]);
            }
            *(Vector<Stored>*)(row + lowest + k) = vector;
        } else {
            row[lowest + k] = narrow<Stored>(elems[kReverse ? kElems - 1 - k : k]);
        }
    }
}
// ANCHOR_END: load

// ANCHOR: scan
// Levels 1 and 2, over the lanes of a row. Returns the state after all of it, in the last lane.
template <int kLanes, int kElems, typename T>
__device__ T scan_row(int lane, T initial, T (&coeffs)[kElems], T (&states)[kElems]) {
    scan_thread(coeffs, states);
    const Transition<T> mine = {coeffs[kElems - 1], states[kElems - 1]};
    const Transition<T> upto = scan_lanes<kLanes>(lane, mine);
    const Transition<T> before = lane_up<kLanes>(upto, 1);
    const T state = lane > 0 ? multiply_add(initial, before.coeff, before.state) : initial;
#pragma unroll
    for (int i = 0; i < kElems; i++) states[i] = multiply_add(state, coeffs[i], states[i]);
    return multiply_add(initial, upto.coeff, upto.state);
}
// ANCHOR_END: scan

// ANCHOR: forward
template <typename Stored, int kLanes, int kVectors, int kThreads, bool kReverse, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    linrec_rows_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                    const Accum<Stored>* initial, Accum<Stored>* final_state, long long num_seqs,
                    long long seq_len) {
    using T = Accum<Stored>;
    constexpr int kElems = kVectors * kPerVector<Stored>;
    const long long row = ((long long)kThreads * blockIdx.x + threadIdx.x) / kLanes;
    const bool exists = row < num_seqs;
    const int lane = threadIdx.x % kLanes, first = lane * kElems, len = exists ? seq_len : 0;

    T x[kElems], c[kElems];
    load_share<kReverse, kWhole>(inputs + row * seq_len, len, first, T(0), x);
    load_share<kReverse, kWhole>(coeffs + row * seq_len, len, first, T(1), c);
    const T after = scan_row<kLanes>(lane, initial && exists ? initial[row] : T(0), c, x);
    store_share<kReverse, kWhole>(outputs + row * seq_len, len, first, x);
    // The final state has the last output's bits: its lane reads that again. A 16-bit output
    // is rounded; then the state is what the lanes' transitions make of the initial state.
    const bool is_output = sizeof(T) == sizeof(Stored) && seq_len > 0;
    const bool is_mine = is_output ? first < len && first + kElems >= len : lane == kLanes - 1;
    if (final_state && exists && is_mine) {
        final_state[row] = is_output ? widen(outputs[row * seq_len + (kReverse ? 0 : len - 1)]) : after;
    }
}
// ANCHOR_END: forward

// ANCHOR: backward
template <typename Stored, int kLanes, int kVectors, int kThreads, bool kReverse, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    linrec_rows_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                    const Accum<Stored>* initial, Stored* d_inputs, Stored* d_coeffs,
                    Accum<Stored>* d_initial, long long num_seqs, long long seq_len) {
    using T = Accum<Stored>;
    constexpr int kElems = kVectors * kPerVector<Stored>;
    constexpr bool kBack = !kReverse;
    const long long row = ((long long)kThreads * blockIdx.x + threadIdx.x) / kLanes;
    const bool exists = row < num_seqs;
    const int lane = threadIdx.x % kLanes, first = lane * kElems, len = exists ? seq_len : 0;
    const T start = initial && exists ? initial[row] : T(0);

    T delta[kElems], c[kElems], previous[kElems];
    load_share<kBack, kWhole>(d_outputs + row * seq_len, len, first, T(0), delta);
    load_share<kBack, kWhole>(coeffs + row * seq_len, len, first, T(1), c);
    load_share<kBack, kWhole>(outputs + row * seq_len, len, first, start, previous);
    conjugate_all(c);
    conjugate_all(previous);

    // The same scan over d_outputs, with the coefficient of the step before.
    T last_coeff = c[0];  // the last step's: leads on to the initial state
#pragma unroll
    for (int i = 1; i < kElems; i++) last_coeff = first + i < len ? c[i] : last_coeff;
    const T from_below = lane_up<kLanes>(c[kElems - 1], 1);
#pragma unroll
    for (int i = kElems - 1; i > 0; i--) c[i] = c[i - 1];
    c[0] = lane > 0 ? from_below : T(1);
    scan_row<kLanes>(lane, T(0), c, delta);
    store_share<kBack, kWhole>(d_inputs + row * seq_len, len, first, delta);

    // Times the output of the step after.
    const T from_above = lane_down<kLanes>(previous[0], 1);
    T last_delta = delta[0];
#pragma unroll
    for (int i = 0; i < kElems; i++) {
        const T next = i + 1 < kElems ? previous[i + 1 < kElems ? i + 1 : i]
                                      : (lane < kLanes - 1 ? from_above : conjugate(start));
        last_delta = first + i < len ? delta[i] : last_delta;
        delta[i] = delta[i] * next;
    }
    store_share<kBack, kWhole>(d_coeffs + row * seq_len, len, first, delta);
    const bool is_last = first < len ? first + kElems >= len : len == 0 && lane == 0;
    if (d_initial && exists && is_last) d_initial[row] = len > 0 ? last_delta * last_coeff : T(0);
}
// ANCHOR_END: backward
