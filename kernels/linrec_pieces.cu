// Rows that are cut along their length: what each piece does to the state, the state
// before each piece, and the gradient of a piece.
//
// On one of several devices, arrays have shape [num_seqs, pieces, piece_len] row after row: a
// stretch of each row, in pieces of one length. A block computes a piece, in whole vectors; any
// length and alignment as in linrec_wide.cu. `reverse` is the direction of the recurrence in both
// passes.
#include "mail.cuh"
#include "wide.cuh"

// ANCHOR: fetch
// Thread 0 fetches the state for all threads; `found` is what it has seen in the mailbox.
template <typename T>
__device__ T fetch_for_all(const Mailbox<T>* mail, unsigned epoch, Mailbox<T> found) {
    __shared__ T came;
    if (threadIdx.x == 0) came = fetch(mail, blockIdx.x, epoch, found);
    __syncthreads();
    return came;
}
// ANCHOR_END: fetch

// ANCHOR: ends
// Returns what all of a tile's steps do, from what each warp's do. Calls take two `totals` in
// turns.
template <int kThreads, int kVectors, typename Stored, typename T>
__device__ Transition<T> total_of_tile(const Vectors<Stored, kVectors>& coeffs,
                                       const Vectors<Stored, kVectors>& inputs, Transition<T>* totals) {
    Transition<T> total;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        Transition<T> mine = {coeffs.at[w][0], inputs.at[w][0]};
#pragma unroll
        for (int i = 1; i < kPerVector<Stored>; i++) mine = compose(mine, {coeffs.at[w][i], inputs.at[w][i]});
        // In every round a lane takes twice as many behind it; in the end the first one has all.
#pragma unroll
        for (int lanes = 1; lanes < 32; lanes *= 2) mine = compose(mine, lane_down<32>(mine, lanes));
        total = w > 0 ? compose(total, mine) : mine;
    }
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = total;
    __syncthreads();
    total = totals[0];
#pragma unroll
    for (int w = 1; w < kThreads / 32; w++) total = compose(total, totals[w]);
    return total;
}

__device__ inline bool is_zero(float a) { return a == 0; }
__device__ inline bool is_zero(double a) { return a == 0; }
template <typename Real>
__device__ bool is_zero(complex<Real> a) {
    return a.re == 0 && a.im == 0;
}

// Composes transitions that come one before the other as a tree whose depth is the logarithm of
// their number, like carries of a binary counter. So no step is rounded once per tile behind it.
template <typename T>
struct Counter {
    Transition<T> at[40];  // of 2^i transitions, where their number has that bit

    __device__ void add(long long count, Transition<T> next) {
        int i = 0;
#pragma unroll 1
        for (; count >> i & 1; i++) next = compose(next, at[i]);
        at[i] = next;
    }
    __device__ Transition<T> all(long long count) const {
        Transition<T> all = {T(1), T(0)};
#pragma unroll 1
        for (int i = 0; count >> i; i++) {
            if (count >> i & 1) all = compose(all, at[i]);
        }
        return all;
    }
};

// The transition of each piece: the product of its coefficients, and its last state from a first
// one of zero. Tiles are taken from the piece's end to its beginning, and pieces from the last
// to the first: the next pass goes the other way, and finds in the cache what was read last.
//
// Coefficients may fade: once the product of the last ones is zero, nothing before them is
// left in the transition. If `tail` is positive, the walk stops there. Such a piece's state
// is known whatever comes before: if `to` is given it is posted, and the pass over the
// piece need not. Where `ends` is null, that is all, and at most `tail` steps are read.
//
// For the gradient, whose recurrence goes the other way, the state is what a step passes to
// the one before it: conj(c) (d_output + what came in). So a step's transition is (conj(c),
// conj(c) d_output), `inputs` are d_outputs, and `lasts`, if given, gets the last output of
// each piece in the order of the recurrence. Forward, `outputs` and `lasts` are null.
template <typename Stored, int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads)
    linrec_piece_ends(const Stored* inputs, const Stored* coeffs, const Stored* outputs,
                      Transition<Accum<Stored>>* ends, Accum<Stored>* lasts, long long tail,
                      const Mailbox<Accum<Stored>>*, Mailbox<Accum<Stored>>* to, unsigned epoch, long long piece_len,
                      int reverse) {
    using T = Accum<Stored>;
    constexpr int kSteps = kThreads * kVectors * kPerVector<Stored>;
    __shared__ Transition<T> totals[2][kThreads / 32];
    __shared__ Counter<T> counter;  // thread 0's
    const bool is_gradient = outputs, walks_back = is_gradient ? !reverse : reverse, may_fade = tail > 0;
    const long long piece = gridDim.x - 1 - blockIdx.x, begin = piece * piece_len;
    inputs += begin, coeffs += begin;
    const int skipped = head(inputs, piece_len, walks_back);
    const bool aligned = skew(coeffs) == skew(inputs);
    if (!ends && !to) return;

    struct Tile {
        Vectors<Stored, kVectors> x, c;
    };
    const auto load = [&](long long tile) -> Tile {
        const View at = view<kVectors, kThreads, Stored>(tile * kSteps - skipped, piece_len, walks_back);
        return {load_vectors<false, kVectors>(inputs, true, at, T(0)),
                load_vectors<false, kVectors>(coeffs, aligned, at, T(1))};
    };
    const long long tiles = (piece_len + skipped + kSteps - 1) / kSteps;
    const long long last = ends ? 0 : max(0ll, tiles - tail / kSteps);
    T product = T(1);
    bool has_faded = false;
    Tile now = {};
    // A tile is on its way while the one behind it is computed; but the first one may be all.
    long long tile = tiles - 1, loaded = tiles;
    for (int round = 0; tile >= last; round += round < 3) {
        const bool loads = round != 1 || !may_fade, computes = round > 0 && (round != 2 || !may_fade);
        Tile next = now;
        if (loads && loaded > last) next = load(--loaded);
        if (computes) {
            if (is_gradient) {
                conjugate_vectors(now.c);
                multiply_vectors(now.x, now.c);
            }
            turn(walks_back, now.x);
            turn(walks_back, now.c);
            const Transition<T> total = total_of_tile<kThreads>(now.c, now.x, totals[tile % 2]);
            if (threadIdx.x == 0) counter.add(tiles - 1 - tile, total);
            tile--;
            product = total.coeff * product;
            has_faded = may_fade && is_zero(product);
            if (has_faded) break;
        }
        now = next;
    }
    if (threadIdx.x != 0) return;
    Transition<T> all = counter.all(tiles - 1 - tile);
    if (has_faded) all.coeff = T(0);  // a product in another order may not be zero
    if (ends) ends[piece] = all;
    if (lasts) lasts[piece] = piece_len > 0 ? widen(outputs[begin + (reverse ? 0 : piece_len - 1)]) : T(0);
    if (to && has_faded) post(to + piece, epoch, all.state);
}
// ANCHOR_END: ends

// ANCHOR: states
// From the transitions of all ranks' pieces to the state before each piece of this rank. A block
// for each row. One thread walks over the pieces; or, with `grouped`, over groups of kTimes * 32
// pieces, which warps compose first and whose pieces they go through afterwards. So the result
// depends on the pieces, and where groups begin, alone.
//
// A rank's part of `published` holds `per_row` transitions for each row, whole groups if
// `grouped`; then, for the gradient, as many last outputs. The first `filled` pieces of a row
// have steps. Forward, `states` are the states before each piece. For the gradient they are what
// comes in at its last step, and `previous`, null forward, the outputs before its first one.
//
// By mail, `published` has this device's part alone, as if there were no other. `from`, if given,
// is where the state comes in, `to` where it goes on; `last_from` and `last_to` are the same for
// outputs.
template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    linrec_piece_states(const T* published, const T* initial, T* states, T* previous, long long num_seqs, int ranks,
                        int rank, int per_row, int filled, int grouped, const Mailbox<T>* from, Mailbox<T>* to,
                        unsigned epoch, const Mailbox<T>* last_from, Mailbox<T>* last_to, unsigned last_epoch,
                        int reverse) {
    constexpr int kTimes = 4, kAtATime = 8192 / sizeof(Transition<T>), kAtOnce = 64 / sizeof(Transition<T>);
    __shared__ Transition<T> brought[kAtATime];  // pieces or groups
    const long long row = blockIdx.x;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const bool is_gradient = previous, walks_back = is_gradient ? !reverse : reverse;
    const long long per_rank = num_seqs * per_row * (is_gradient ? 3 : 2);
    const int first = rank * per_row, pieces = ranks * per_row;
    const auto part = [&](int piece) { return published + piece / per_row * per_rank; };
    const auto place = [&](int piece) { return row * per_row + piece % per_row; };
    const auto last_of = [&](int piece) { return part(piece)[2 * num_seqs * per_row + place(piece)]; };
    if (last_to && threadIdx.x == 0) post(last_to + row, last_epoch, last_of(reverse ? 0 : per_row - 1));

    const auto piece_of = [&](int step) { return walks_back ? pieces - 1 - step : step; };
    const auto is_own = [&](int piece) { return piece >= first && piece < first + per_row; };
    // The transition of the piece `steps` pieces behind another one of the same rank.
    const auto behind = [&](int piece, int steps) {
        return ((const Transition<T>*)part(piece))[place(piece) + (walks_back ? -steps : steps)];
    };
    struct Group {
        Transition<T> upto[kTimes], all;
    };
    // What the pieces of the group from this one on do together: of each 32, up to each lane's.
    const auto group_at = [&](int piece) {
        Group found;
#pragma unroll
        for (int w = 0; w < kTimes; w++) found.upto[w] = behind(piece, w * 32 + lane);
#pragma unroll
        for (int w = 0; w < kTimes; w++) {
            found.upto[w] = scan_lanes<32>(lane, found.upto[w]);
            const Transition<T> total = lane_at<32>(found.upto[w], 31);
            found.all = w > 0 ? compose(found.all, total) : total;
        }
        return found;
    };

    const Incoming<T> comes = {is_gradient ? nullptr : initial, from, epoch};
    T state(0);  // thread 0's
    const int walked = (walks_back ? pieces - first : first + per_row) / (grouped ? 32 * kTimes : 1);
#pragma unroll 1
    for (long long begun = 0; begun < walked; begun += kAtATime) {
        const int count = min((long long)kAtATime, walked - begun);
#pragma unroll 1
        for (int turn = 0; turn < 2; turn++) {
            const bool is_known = turn > 0;  // the state before each group
#pragma unroll 1
            for (int i = warp; grouped && i < count; i += warps) {
                const int piece = piece_of((begun + i) * 32 * kTimes);
                if (is_known && !is_own(piece)) continue;
                const Group group = group_at(piece);
                T before = is_known ? brought[i].state : T(0);
#pragma unroll
                for (int w = 0; w < kTimes; w++) {
                    const Transition<T> left = lane_up<32>(group.upto[w], 1), total = lane_at<32>(group.upto[w], 31);
                    const int steps = w * 32 + lane;
                    T& mine = states[place(piece) + (walks_back ? -steps : steps)];
                    if (is_known) mine = lane > 0 ? multiply_add(before, left.coeff, left.state) : before;
                    before = multiply_add(before, total.coeff, total.state);
                }
                if (!is_known && lane == 0) brought[i] = group.all;
            }
#pragma unroll 1
            for (int i = threadIdx.x; !grouped && i < count; i += blockDim.x) {
                const int piece = piece_of(begun + i);
                if (!is_known) brought[i] = behind(piece, 0);
                if (is_known && is_own(piece)) states[place(piece)] = brought[i].state;
            }
            __syncthreads();
            if (!is_known && threadIdx.x == 0) {
                if (begun == 0) state = comes(row);
                const auto pass = [&](int i, Transition<T> transition) {
                    brought[i].state = state;  // the state before it
                    state = multiply_add(state, transition.coeff, transition.state);
                };
                int i = 0;
                // Loads some together, as the compiler must assume that a store changes what it
                // loads next.
#pragma unroll 1
                for (; i + kAtOnce <= count; i += kAtOnce) {
                    Transition<T> some[kAtOnce];
#pragma unroll
                    for (int j = 0; j < kAtOnce; j++) some[j] = brought[i + j];
#pragma unroll
                    for (int j = 0; j < kAtOnce; j++) pass(i + j, some[j]);
                }
#pragma unroll 1
                for (; i < count; i++) pass(i, brought[i]);
                if (to && begun + count == walked) post(to + row, epoch, state, from);
            }
            __syncthreads();
        }
    }
    const Incoming<T> before_all = {initial, last_from, last_epoch};
#pragma unroll 1
    for (int piece = first + threadIdx.x; is_gradient && piece < first + per_row; piece += blockDim.x) {
        const int before = reverse ? piece + 1 : piece - 1;
        const bool exists = before >= 0 && before < filled;
        previous[place(piece)] = exists ? last_of(before) : before_all(row);
    }
}

// Posts the last output of each row's stretch `to` the device behind, and fills `previous`
// with that of the device before, or with the initial state. A thread for each row.
template <typename Stored>
__global__ void linrec_piece_previous(const Stored* outputs, const Accum<Stored>* initial, Accum<Stored>* previous,
                                      long long num_seqs, const Mailbox<Accum<Stored>>* from, Mailbox<Accum<Stored>>* to,
                                      unsigned epoch, long long piece_len, int reverse) {
    const long long row = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (row >= num_seqs) return;
    if (to) post(to + row, epoch, widen(outputs[row * piece_len + (reverse ? 0 : piece_len - 1)]));
    const Incoming<Accum<Stored>> comes = {initial, from, epoch};
    previous[row] = comes(row);
}

// Copies number `column` of the `per_row` numbers of each row.
template <typename T>
__global__ void linrec_piece_column(const T* from, T* to, long long num_seqs, int per_row, int column) {
    const long long row = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (row < num_seqs) to[row] = from[row * per_row + column];
}
// ANCHOR_END: states

// ANCHOR: forward
// The outputs of each row's stretch; `from`, if given, is where its first state comes in, `to`
// where its last one goes. Blocks take one row each, in one order on all devices. Else as
// linrec_wide_fwd.
//
// A device begins when the first rows have arrived, so fewer at a time are better: an SM holds two
// blocks, which hide each other's beginning and end, and each has the next tile on its way while
// it computes one.
template <typename Stored, int kVectors, int kThreads>
__global__ void __launch_bounds__(kThreads, 2)
    linrec_piece_fwd(const Stored* inputs, const Stored* coeffs, Stored* outputs, const Accum<Stored>* initial,
                     Accum<Stored>* final_state, const Mailbox<Accum<Stored>>* from, Mailbox<Accum<Stored>>* to,
                     unsigned epoch, long long piece_len, int reverse) {
    using T = Accum<Stored>;
    constexpr int kSteps = kThreads * kVectors * kPerVector<Stored>;
    __shared__ Transition<T> totals[2][kThreads / 32];
    const long long piece = blockIdx.x * piece_len;
    inputs += piece, coeffs += piece, outputs += piece;
    const int skipped = head(inputs, piece_len, reverse), place = skew(inputs);
    const bool coeffs_aligned = skew(coeffs) == place;
    struct Tile {
        View at;
        Vectors<Stored, kVectors> x, c;
    };
    const auto load = [&](long long tile) -> Tile {
        const View at = view<kVectors, kThreads, Stored>(tile * kSteps - skipped, piece_len, reverse);
        return {at, load_vectors<false, kVectors>(inputs, true, at, T(0)),
                load_vectors<false, kVectors>(coeffs, coeffs_aligned, at, T(1))};
    };

    // The mailbox is asked before the tiles are.
    const Mailbox<T> found = from && threadIdx.x == 0 ? peek(from + blockIdx.x) : Mailbox<T>{};
    T carry = initial ? initial[blockIdx.x] : T(0);
    const Outgoing<T> goes = {nullptr, to, epoch, from};
    const long long tiles = (piece_len + skipped + kSteps - 1) / kSteps;
    if (tiles == 0 && from) carry = fetch_for_all(from, epoch, found);
    Tile now = {};
    for (long long tile = -1; tile < tiles; tile++) {
        const Tile next = load(tile + 1);  // behind the last tile nothing exists
        if (tile >= 0) {
            turn(reverse, now.x);
            turn(reverse, now.c);
            // By now the first two tiles are on their way.
            if (tile == 0 && from) carry = fetch_for_all(from, epoch, found);
            scan_vectors<kThreads>(now.c, now.x, totals[tile % 2], carry);
            // Posted before the outputs are written: others wait for it.
            if (tile + 1 == tiles && threadIdx.x == 0) goes(blockIdx.x, carry);
            turn(reverse, now.x);
            store_vectors<false>(outputs, skew(outputs) == place, now.at, now.x);
        }
        now = next;
    }
    if (tiles == 0 && threadIdx.x == 0) goes(blockIdx.x, carry);
    // The final state has the bits of the last output: its lane reads that again.
    const bool is_output = sizeof(T) == sizeof(Stored) && tiles > 0;
    const View last = view<kVectors, kThreads, Stored>((tiles - 1) * kSteps - skipped, piece_len, reverse);
    const bool is_mine = is_output ? has_last<kVectors, Stored>(last) : threadIdx.x == 0;
    if (final_state && is_mine) {
        final_state[blockIdx.x] = is_output ? widen(outputs[reverse ? 0 : piece_len - 1]) : carry;
    }
}
// ANCHOR_END: forward

// ANCHOR: backward
// The gradient of each piece. `after` is what comes into its last step, `previous` the output
// before its first, `before` receives what leaves it. Otherwise as linrec_wide_bwd, which starts
// from zero. With kByMail, `from`, if given, is where it comes in, and `to` where it goes. Without,
// no block waits.
template <typename Stored, int kVectors, int kThreads, bool kByMail>
__global__ void __launch_bounds__(kThreads, 2)
    linrec_piece_bwd(const Stored* d_outputs, const Stored* coeffs, const Stored* outputs,
                     const Accum<Stored>* after, const Accum<Stored>* previous, Stored* d_inputs, Stored* d_coeffs,
                     Accum<Stored>* before, const Mailbox<Accum<Stored>>* from, Mailbox<Accum<Stored>>* to, unsigned epoch,
                     long long piece_len, int reverse) {
    using T = Accum<Stored>;
    constexpr int kSteps = kThreads * kVectors * kPerVector<Stored>;
    __shared__ Transition<T> totals[2][kThreads / 32];
    const bool back = !reverse;
    const long long piece = blockIdx.x * piece_len;
    d_outputs += piece, coeffs += piece, outputs += piece;
    d_inputs += piece, d_coeffs += piece;
    const int skipped = head(d_outputs, piece_len, back), place = skew(d_outputs);
    const T start = previous[blockIdx.x];

    const bool fetches = kByMail && from && threadIdx.x == 0;
    const Mailbox<T> found = fetches ? peek(from + blockIdx.x) : Mailbox<T>{};
    T carry = after ? after[blockIdx.x] : T(0);
    const Outgoing<T> goes = {before, kByMail ? to : nullptr, epoch, from};
    if (kByMail && from) carry = fetch_for_all(from, epoch, found);
    const long long tiles = (piece_len + skipped + kSteps - 1) / kSteps;
    for (long long tile = 0; tile < tiles; tile++) {
        const View at = view<kVectors, kThreads, Stored>(tile * kSteps - skipped, piece_len, back);
        const T c_edge = load_edge<kVectors>(coeffs, at, false, threadIdx.x % 32 == 0, T(1));
        const T output_edge = load_edge<kVectors>(outputs, at, true, threadIdx.x % 32 == 31, start);
        auto delta = load_vectors<false, kVectors>(d_outputs, true, at, T(0));
        auto c = load_vectors<false, kVectors>(coeffs, skew(coeffs) == place, at, T(1));
        auto y = load_vectors<false, kVectors>(outputs, skew(outputs) == place, at, start);
        turn(back, delta);
        turn(back, c);
        // What comes in has been multiplied already: a coefficient of one takes its place.
        take_previous(c, c_edge);
        end_with_one(c, at);
        conjugate_vectors(c);
        scan_vectors<kThreads>(c, delta, totals[tile % 2], carry);

        turn(back, y);
        take_next(y, output_edge);
        conjugate_vectors(y);
        multiply_vectors(y, delta);
        turn(back, delta);
        turn(back, y);
        store_vectors<false>(d_inputs, skew(d_inputs) == place, at, delta);
        store_vectors<false>(d_coeffs, skew(d_coeffs) == place, at, y);
    }
    if (goes.wanted() && threadIdx.x == 0) {
        // Nothing is there to multiply with where the piece is empty: what comes in goes on.
        const bool is_empty = piece_len == 0;
        const T coeff = is_empty ? T(1) : widen(coeffs[reverse ? piece_len - 1 : 0]);
        goes(blockIdx.x, is_empty ? carry : carry * conjugate(coeff));
    }
}
// ANCHOR_END: backward
