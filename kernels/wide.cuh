// Long rows in vectors of 16 bytes, one block for each, straight from memory into
// registers and back; and the scan over them.
//
// A warp has kVectors pieces of a tile, one behind the other, and in each piece neighbouring
// lanes hold neighbouring vectors: so every request of a warp is one piece of memory.
#pragma once
#include "memio.cuh"
#include "scan.cuh"
#include "sub_warp.cuh"

// ANCHOR: head
// How many steps before its first one a row begins if vectors are to start at 16-byte boundaries.
template <typename Stored>
__device__ int head(const Stored* data, long long seq_len, bool reverse) {
    return reverse ? (kPerVector<Stored> - skew(data + seq_len)) % kPerVector<Stored> : skew(data);
}
// ANCHOR_END: head

// ANCHOR: tile
// The lane's view of a tile: where its first vector is in the row, the distance to the next one,
// and which places, counted from the first vector, are in the row: from `begin` to before `end`.
// In the order of memory; the recurrence goes the other way if `reverse`. Numbers count elements.
struct View {
    long long base;
    int stride, begin, end;
    bool reverse;
};

// Of the tile that begins with step `first` of the row, which is negative if the row has a head.
template <int kVectors, int kThreads, typename Stored>
__device__ View view(long long first, long long seq_len, bool reverse) {
    constexpr int kPer = kPerVector<Stored>, kSteps = kThreads * kVectors * kPer, kStride = 32 * kPer;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long step = first + warp * kVectors * kStride + lane * kPer;
    const long long base = reverse ? seq_len - step - kPer : step;
    const int begin = max(-kSteps - 1ll, -base), end = min(kSteps + 1ll, seq_len - base);
    return {base, reverse ? -kStride : kStride, begin, end, reverse};
}
// ANCHOR_END: tile

// ANCHOR: vector
// A lane's vectors of an array, in the order of memory.
template <typename Stored, int kVectors>
struct Vectors {
    Accum<Stored> at[kVectors][kPerVector<Stored>];
};

template <typename Stored>
__device__ void unpack(Vector<Stored> vector, Accum<Stored> (&elems)[kPerVector<Stored>]) {
#pragma unroll
    for (int i = 0; i < kPerVector<Stored>; i++) elems[i] = widen(vector.elems[i]);
}

// True if a vector at `place` can be moved at once: all of it is in the row.
template <typename Stored>
__device__ bool inside(View view, int place) {
    return place >= view.begin && place + kPerVector<Stored> <= view.end;
}

// True if one of the lane's vectors has the row's last step in the order of the recurrence.
template <int kVectors, typename Stored>
__device__ bool has_last(View view) {
    const int last = view.reverse ? view.begin : view.end - 1;
    bool found = false;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const int place = w * view.stride;
        found |= last >= place && last < place + kPerVector<Stored>;
    }
    return found;
}

// The elements of a vector that are in the row; `otherwise` replaces the others. With
// kWhole, a vector is all in its row or not at all, and here not at all.
template <bool kWhole, typename Stored>
__device__ void load_singly(const Stored* row, View view, int place, Accum<Stored> otherwise,
                            Accum<Stored> (&elems)[kPerVector<Stored>]) {
#pragma unroll
    for (int i = 0; i < kPerVector<Stored>; i++) {
        elems[i] = otherwise;
        const bool exists = place + i >= view.begin && place + i < view.end;
        if (!kWhole && exists) elems[i] = widen(row[view.base + place + i]);
    }
}

// Nothing here uses a loaded value, so that one load can follow the other at once.
template <bool kWhole, int kVectors, typename Stored>
__device__ Vectors<Stored, kVectors> load_vectors(const Stored* row, bool aligned, View view,
                                            Accum<Stored> otherwise) {
    Vectors<Stored, kVectors> vectors;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const int place = w * view.stride;
        if (aligned && inside<Stored>(view, place)) {
            unpack(*(const Vector<Stored>*)(row + view.base + place), vectors.at[w]);
        } else {
            load_singly<kWhole>(row, view, place, otherwise, vectors.at[w]);
        }
    }
    return vectors;
}

template <bool kWhole, int kVectors, typename Stored>
__device__ void store_vectors(Stored* row, bool aligned, View view, Vectors<Stored, kVectors> vectors) {
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const int place = w * view.stride;
        Stored* data = row + view.base + place;
        if (aligned && inside<Stored>(view, place)) {
            Vector<Stored> vector;
#pragma unroll
            for (int i = 0; i < kPerVector<Stored>; i++) vector.elems[i] = narrow<Stored>(vectors.at[w][i]);
            *(Vector<Stored>*)data = vector;
        } else if (!kWhole) {
#pragma unroll
            for (int i = 0; i < kPerVector<Stored>; i++) {
                const bool exists = place + i >= view.begin && place + i < view.end;
                if (exists) data[i] = narrow<Stored>(vectors.at[w][i]);
            }
        }
    }
}
// ANCHOR_END: vector

// ANCHOR: ahead
// Vectors in flight: they are copied into shared memory, where every thread has its own places,
// and no thread waits for another. `slots` are the thread's, one a vector, kThreads apart.
__device__ inline void copy_vector(uint4* to, const void* from) {
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

__device__ inline void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all groups but the last kBut have arrived.
template <int kBut>
__device__ void await_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kBut) : "memory");
}

template <int kVectors, int kThreads, typename Stored>
__device__ void send_vectors(uint4* slots, const Stored* row, bool aligned, View view) {
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const int place = w * view.stride;
        if (aligned && inside<Stored>(view, place)) {
            copy_vector(slots + w * kThreads, row + view.base + place);
        }
    }
}

template <bool kWhole, int kVectors, int kThreads, typename Stored>
__device__ Vectors<Stored, kVectors> receive_vectors(const uint4* slots, const Stored* row, bool aligned,
                                               View view, Accum<Stored> otherwise) {
    Vectors<Stored, kVectors> vectors;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const int place = w * view.stride;
        if (aligned && inside<Stored>(view, place)) {
            unpack(*(const Vector<Stored>*)(slots + w * kThreads), vectors.at[w]);
        } else {
            load_singly<kWhole>(row, view, place, otherwise, vectors.at[w]);
        }
    }
    return vectors;
}
// ANCHOR_END: ahead

// ANCHOR: turn
// From the order of memory to the order of the recurrence, and back.
template <int kVectors, typename Stored>
__device__ void turn(bool reverse, Vectors<Stored, kVectors>& vectors) {
    constexpr int kLast = kPerVector<Stored> - 1;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
#pragma unroll
        for (int i = 0; i < kPerVector<Stored> / 2; i++) {
            const Accum<Stored> low = vectors.at[w][i], high = vectors.at[w][kLast - i];
            vectors.at[w][i] = reverse ? high : low;
            vectors.at[w][kLast - i] = reverse ? low : high;
        }
    }
}
// ANCHOR_END: turn

// ANCHOR: edges
// The element beside the lane's vectors: of the step before the first, or of the step
// after the last. Only the first and the last lane load it; `shift` gets the others'.
template <int kVectors, typename Stored>
__device__ Accum<Stored> load_edge(const Stored* row, View view, bool after, bool wanted,
                                   Accum<Stored> otherwise) {
    const int vector = after ? (kVectors - 1) * view.stride : 0;
    const int place = vector + (after == view.reverse ? -1 : kPerVector<Stored>);
    const bool exists = place >= view.begin && place < view.end;
    return wanted && exists ? widen(row[view.base + place]) : otherwise;
}

// Replaces every element by the element of the step before it.
template <int kVectors, typename Stored>
__device__ void take_previous(Vectors<Stored, kVectors>& vectors, Accum<Stored> edge) {
    constexpr int kLast = kPerVector<Stored> - 1;
#pragma unroll
    for (int w = kVectors - 1; w >= 0; w--) {
        Accum<Stored> first = lane_up<32>(vectors.at[w][kLast], 1);
        const Accum<Stored> vector_before = lane_at<32>(vectors.at[w > 0 ? w - 1 : 0][kLast], 31);
        if (threadIdx.x % 32 == 0) first = w > 0 ? vector_before : edge;
#pragma unroll
        for (int i = kLast; i > 0; i--) vectors.at[w][i] = vectors.at[w][i - 1];
        vectors.at[w][0] = first;
    }
}

// Replaces every element by the element of the step after it.
template <int kVectors, typename Stored>
__device__ void take_next(Vectors<Stored, kVectors>& vectors, Accum<Stored> edge) {
    constexpr int kLast = kPerVector<Stored> - 1;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        Accum<Stored> last = lane_down<32>(vectors.at[w][0], 1);
        const Accum<Stored> vector_after = lane_at<32>(vectors.at[w < kVectors - 1 ? w + 1 : w][0], 0);
        if (threadIdx.x % 32 == 31) last = w < kVectors - 1 ? vector_after : edge;
#pragma unroll
        for (int i = 0; i < kLast; i++) vectors.at[w][i] = vectors.at[w][i + 1];
        vectors.at[w][kLast] = last;
    }
}

// The first step after a sequence: its coefficient would be the last one's, but must
// leave the state as it is.
template <int kVectors, typename Stored>
__device__ void end_with_one(Vectors<Stored, kVectors>& coeffs, View view) {
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const int place = w * view.stride;
        const int steps =
            view.reverse ? place + kPerVector<Stored> - view.begin : view.end - place;
#pragma unroll
        for (int i = 0; i < kPerVector<Stored>; i++) {
            if (i == steps) coeffs.at[w][i] = Accum<Stored>(1);
        }
    }
}

template <int kVectors, typename Stored>
__device__ void conjugate_vectors(Vectors<Stored, kVectors>& vectors) {
#pragma unroll
    for (int w = 0; w < kVectors; w++) conjugate_all(vectors.at[w]);
}

template <int kVectors, typename Stored>
__device__ void multiply_vectors(Vectors<Stored, kVectors>& vectors, const Vectors<Stored, kVectors>& by) {
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
#pragma unroll
        for (int i = 0; i < kPerVector<Stored>; i++) vectors.at[w][i] = by.at[w][i] * vectors.at[w][i];
    }
}
// ANCHOR_END: edges

// ANCHOR: scan
// The recurrence over a tile: `states` begins as the inputs and ends as the outputs; `carry`
// is the state before and becomes the state after. Calls take two `totals` in turns.
template <int kThreads, int kVectors, typename Stored, typename T>
__device__ void scan_vectors(Vectors<Stored, kVectors>& coeffs, Vectors<Stored, kVectors>& states,
                           Transition<T>* totals, T& carry) {
    constexpr int kPer = kPerVector<Stored>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    // Levels 1 and 2, for each piece of the warp by itself.
    Transition<T> before[kVectors], total[kVectors];
#pragma unroll
    for (int w = 0; w < kVectors; w++) scan_thread(coeffs.at[w], states.at[w]);
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const Transition<T> mine = {coeffs.at[w][kPer - 1], states.at[w][kPer - 1]};
        const Transition<T> upto = scan_lanes<32>(lane, mine);
        before[w] = lane_up<32>(upto, 1);
        total[w] = lane_at<32>(upto, 31);
    }

    // Level 3.
    Transition<T> warp_total = total[0];
#pragma unroll
    for (int w = 1; w < kVectors; w++) warp_total = compose(warp_total, total[w]);
    if (lane == 0) totals[warp] = warp_total;
    __syncthreads();
    T state = carry;  // before the warp, then before each of its pieces
#pragma unroll
    for (int w = 0; w < kThreads / 32; w++) {
        if (w == warp) state = carry;
        carry = multiply_add(carry, totals[w].coeff, totals[w].state);
    }

#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const T mine = lane > 0 ? multiply_add(state, before[w].coeff, before[w].state) : state;
        state = multiply_add(state, total[w].coeff, total[w].state);
#pragma unroll
        for (int i = 0; i < kPer; i++) {
            states.at[w][i] = multiply_add(mine, coeffs.at[w][i], states.at[w][i]);
        }
    }
}
// ANCHOR_END: scan
