// How a tile comes from memory into the registers of a block, and back.
//
// A kernel counts steps of the recurrence; `Row`
// knows where in memory a step is. `Share` says
// which steps of a tile are a thread's. Between
// the two there are three ways, chosen by
// `kMemcode`:
#pragma once
#include "element.cuh"

// ANCHOR: share
// A thread's part of a tile: `count` steps from `begin` on. In a full tile each has kMaxElems.
// If the steps cannot be dealt out evenly, the last threads, the tail, have one step less.
struct Share {
    int begin, count;

    // Which of the thread's steps is the tile's last; -1 in all other threads.
    __device__ int last(int tile_len) const { return begin + count == tile_len ? count - 1 : -1; }
};

template <int kMaxElems>
__device__ Share share(int tile_len) {
    const int num_threads = blockDim.x, thread = threadIdx.x;
    if (tile_len == kMaxElems * num_threads) return {thread * kMaxElems, kMaxElems};
    const int most = (tile_len + num_threads - 1) / num_threads;
    const int first_of_tail = num_threads - (most * num_threads - tile_len);
    if (thread < first_of_tail) return {thread * most, most};
    return {thread * most - (thread - first_of_tail), most - 1};
}
// ANCHOR_END: share

// ANCHOR: row
// One sequence in memory. With `reverse`, the recurrence walks from its last element to its first.
template <typename Stored>
struct Row {
    Stored* data;
    long long seq_len;
    bool reverse;

    // Where a step of the recurrence is.
    __device__ long long position(long long step) const {
        return reverse ? seq_len - 1 - step : step;
    }
};

// The block's row of an array [num_seqs, seq_len], which may have more than 2^31 elements.
template <typename Stored>
__device__ Row<Stored> row_of(Stored* array, long long seq_len, bool reverse) {
    return {array + seq_len * blockIdx.x, seq_len, reverse};
}
// ANCHOR_END: row

// ANCHOR: existing
// The steps of a row that exist among some: from number `begin`, which is 0 or 1, to before `end`.
struct Range {
    int begin, end;
    __device__ bool contains(int i) const { return i < end && (i > 0 || begin == 0); }
};

// Of `count` steps from `first` on, where `first` is at least -1.
template <typename Stored>
__device__ Range existing(Row<Stored> row, long long first, int count) {
    return {first < 0 ? 1 : 0, (int)min((long long)count, row.seq_len - first)};
}
// ANCHOR_END: existing

// ANCHOR: elements
// The thread's elements, each kStride after the one before. A stride that the compiler
// knows leaves one address for all of them, and each a constant distance from it. In a
// full tile there is nothing to test between one element and the next.
template <int kStride, int kMaxElems, typename Stored>
__device__ void read_strided(const Stored* data, Range existing, Accum<Stored> otherwise,
                             Accum<Stored> (&elems)[kMaxElems]) {
    if (existing.begin == 0 && existing.end == kMaxElems) {
#pragma unroll
        for (int i = 0; i < kMaxElems; i++) elems[i] = widen(data[i * kStride]);
        return;
    }
#pragma unroll
    for (int i = 0; i < kMaxElems; i++) {
        elems[i] = otherwise;
        if (existing.contains(i)) elems[i] = widen(data[i * kStride]);
    }
}

// Reads from the thread's first element on, in the direction of the recurrence.
// Elements that do not exist become `otherwise`.
template <int kMaxElems, typename Stored>
__device__ void read(const Stored* data, bool reverse, Range existing, Accum<Stored> otherwise,
                     Accum<Stored> (&elems)[kMaxElems]) {
    if (reverse) {
        read_strided<-1>(data, existing, otherwise, elems);
    } else {
        read_strided<1>(data, existing, otherwise, elems);
    }
}

// Writes in the same way. A full share is put into the order of memory first, so that in both
// directions the stores follow each other directly: then most stores to one sector reach L2 as one.
template <int kMaxElems, typename Stored>
__device__ void write(Stored* data, bool reverse, int count,
                      const Accum<Stored> (&elems)[kMaxElems]) {
    if (count == kMaxElems) {
        Stored* lowest = reverse ? data - (kMaxElems - 1) : data;
        Stored in_memory[kMaxElems];
#pragma unroll
        for (int i = 0; i < kMaxElems; i++) {
            in_memory[i] = narrow<Stored>(reverse ? elems[kMaxElems - 1 - i] : elems[i]);
        }
#pragma unroll
        for (int i = 0; i < kMaxElems; i++) lowest[i] = in_memory[i];
        return;
    }
    const int stride = reverse ? -1 : 1;
#pragma unroll
    for (int i = 0; i < kMaxElems; i++) {
        if (i < count) data[i * stride] = narrow<Stored>(elems[i]);
    }
}
// ANCHOR_END: elements

// ANCHOR: span
// Where the existing ones of the steps [first, first + len) are: `count` consecutive
// elements, of which the first in memory is `position` elements into the row.
struct Span {
    long long position;
    int count;
};

template <typename Stored>
__device__ Span span(Row<Stored> row, long long first, int len) {
    const Range exist = existing(row, first, len);
    if (exist.begin >= exist.end) return {0, 0};
    const long long one_end = row.position(first + exist.begin);
    const long long other_end = row.position(first + exist.end - 1);
    return {min(one_end, other_end), exist.end - exist.begin};
}
// ANCHOR_END: span

// ANCHOR: vectors
// The number of elements in 16 bytes.
template <typename Stored>
constexpr int kPerVector = 16 / sizeof(Stored);

// How many elements are between `data` and the 16-byte boundary before it.
template <typename Stored>
__device__ int skew(const Stored* data) {
    return (unsigned long long)data / sizeof(Stored) % kPerVector<Stored>;
}

// Copies `count` elements by the whole block, neighbouring threads neighbouring
// elements. With kMemcode 2 and both places equally skewed, elements between the first
// and the last boundary go in vectors of 16 bytes, the others singly.
template <int kMemcode, typename Stored>
__device__ void copy(Stored* to, const Stored* from, int count) {
    int begin = 0, end = 0;  // of the vectors
    if (kMemcode == 2) {
        begin = min((kPerVector<Stored> - skew(from)) % kPerVector<Stored>, count);
        const int vectors = (count - begin) / kPerVector<Stored>;
        end = begin + vectors * kPerVector<Stored>;
        for (int k = threadIdx.x; k < vectors; k += blockDim.x) {
            ((uint4*)(to + begin))[k] = ((const uint4*)(from + begin))[k];
        }
        for (int k = threadIdx.x; k < begin; k += blockDim.x) to[k] = from[k];
    }
    for (int k = end + threadIdx.x; k < count; k += blockDim.x) to[k] = from[k];
}
// ANCHOR_END: vectors

// ANCHOR: staged
// memcode 1 and 2. The block copies the tile into shared memory in the order of the
// row; there every thread picks its steps.
template <int kMemcode, int kMaxElems, typename Stored>
__device__ void load_staged(Row<const Stored> row, long long first, int tile_len, Share mine,
                            Accum<Stored> otherwise, Stored* staging,
                            Accum<Stored> (&elems)[kMaxElems]) {
    const Span tile = span(row, first, tile_len);
    const Stored* data = row.data + tile.position;
    if (kMemcode == 2) staging += skew(data);
    copy<kMemcode>(staging, data, tile.count);
    __syncthreads();  // all of it has arrived
    const Stored* mine_first = staging + (row.position(first + mine.begin) - tile.position);
    read(mine_first, row.reverse, existing(row, first + mine.begin, mine.count), otherwise, elems);
    __syncthreads();  // all of it is taken: the next may come
}

template <int kMemcode, int kMaxElems, typename Stored>
__device__ void store_staged(Row<Stored> row, long long first, int tile_len, Share mine,
                             Stored* staging, const Accum<Stored> (&elems)[kMaxElems]) {
    const Span tile = span(row, first, tile_len);
    Stored* data = row.data + tile.position;
    if (kMemcode == 2) staging += skew(data);
    write(staging + (row.position(first + mine.begin) - tile.position), row.reverse, mine.count, elems);
    __syncthreads();
    copy<kMemcode>(data, staging, tile.count);
    __syncthreads();
}
// ANCHOR_END: staged

// ANCHOR: memio
// The steps [first, first + tile_len) of a row, of which the thread's are `mine`. A `first` of
// one less or one more than the tile's shifts the row by a step, so that every thread gets the
// neighbours of its steps. Steps outside of the thread's share or the row become `otherwise`.
//
// With kMemcode 0 the tile is blocked: a thread's elements are consecutive, and
// neighbouring lanes' are far apart.
template <int kMemcode, int kMaxElems, typename Stored>
__device__ void load_tile(Row<const Stored> row, long long first, int tile_len, Share mine,
                          Accum<Stored> otherwise, Stored* staging,
                          Accum<Stored> (&elems)[kMaxElems]) {
    if (kMemcode == 0) {
        const Range exist = existing(row, first + mine.begin, mine.count);
        read(row.data + row.position(first + mine.begin), row.reverse, exist, otherwise, elems);
    } else {
        load_staged<kMemcode>(row, first, tile_len, mine, otherwise, staging, elems);
    }
}

template <int kMemcode, int kMaxElems, typename Stored>
__device__ void store_tile(Row<Stored> row, long long first, int tile_len, Share mine,
                           Stored* staging, const Accum<Stored> (&elems)[kMaxElems]) {
    if (kMemcode == 0) {
        write(row.data + row.position(first + mine.begin), row.reverse, mine.count, elems);
    } else {
        store_staged<kMemcode>(row, first, tile_len, mine, staging, elems);
    }
}
// ANCHOR_END: memio
