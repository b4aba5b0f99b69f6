// The reference kernel: one thread walks along one sequence, as the loop of chapter 1 does.
//
// Arrays of shape [num_seqs, seq_len] are stored row after row, one sequence a row.
// `initial`, `final_state` and `d_initial` have one entry per sequence; each may be
// null, for a start from zero and for results that are not wanted. Launch at least as
// many threads as there are sequences, in blocks of any size.
#include "element.cuh"

// ANCHOR: position
// Where in a row a step of the recurrence is: from the first element to the last, or reversed.
template <bool kReverse>
__device__ inline long long position(long long step, long long seq_len) {
    return kReverse ? seq_len - 1 - step : step;
}
// ANCHOR_END: position

// ANCHOR: forward
template <typename Stored, bool kReverse>
__global__ void linrec_ref_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs,
                               const Accum<Stored>* initial, Accum<Stored>* final_state,
                               long long num_seqs, long long seq_len) {
    // ANCHOR: row
    // 64-bit numbers: an array of 2^31 elements has only 8 GiB.
    const long long sequence = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (sequence >= num_seqs) return;
    const long long row = seq_len * sequence;
    // ANCHOR_END: row

    Accum<Stored> state = initial ? initial[sequence] : Accum<Stored>(0);
    for (long long step = 0; step < seq_len; step++) {
        const long long l = row + position<kReverse>(step, seq_len);
        state = multiply_add(state, widen(coeffs[l]), widen(inputs[l]));
        outputs[l] = narrow<Stored>(state);
    }
    if (final_state) final_state[sequence] = state;
}
// ANCHOR_END: forward

// ANCHOR: backward
// From the gradient of a loss with respect to the outputs to its gradients with respect to
// all inputs. The gradient flows against the recurrence: from the last step to the first.
template <typename Stored, bool kReverse>
__global__ void linrec_ref_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                               const Accum<Stored>* initial, Stored* d_inputs, Stored* d_coeffs,
                               Accum<Stored>* d_initial, long long num_seqs, long long seq_len) {
    const long long sequence = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (sequence >= num_seqs) return;
    const long long row = seq_len * sequence;

    const Accum<Stored> first = initial ? initial[sequence] : Accum<Stored>(0);
    Accum<Stored> delta(0);  // the gradient of the state one step later ...
    Accum<Stored> coeff(0);  // ... and the coefficient that carried our state into it
    for (long long step = seq_len - 1; step >= 0; step--) {
        const long long l = row + position<kReverse>(step, seq_len);
        delta = multiply_add(delta, coeff, widen(d_outputs[l]));
        Accum<Stored> previous = first;
        if (step > 0) previous = widen(outputs[row + position<kReverse>(step - 1, seq_len)]);
        d_inputs[l] = narrow<Stored>(delta);
        d_coeffs[l] = narrow<Stored>(delta * conjugate(previous));
        coeff = conjugate(widen(coeffs[l]));
    }
    if (d_initial) d_initial[sequence] = delta * coeff;
}
// ANCHOR_END: backward
