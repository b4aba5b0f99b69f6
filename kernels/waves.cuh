// Tiles of long rows, shared out among all blocks of a grid: where a tile is, how a block publishes
// what its tiles do to the state, and how the state before a tile is put together from that.
#pragma once
#include "mail.cuh"
#include "wide.cuh"

// ANCHOR: group
// A warp combines kGroup tiles at a time, kPerLane in each lane.
constexpr int kPerLane = 4, kGroup = 32 * kPerLane;
// How often a warp polls for a tile before it ends the kernel with an error. Where all blocks are
// on the GPU, or take tiles in the order in which they begin, it never gets near that number.
constexpr int kMaxPolls = 1 << 20;
// ANCHOR_END: group

// ANCHOR: walk
// A block's way through the tiles, which are numbered row after row: it takes every `blocks`-th.
struct Walk {
    int row, index;  // the tile's row, and its number in that row

    __device__ static Walk begin(int tiles_per_row) {
        return {(int)(blockIdx.x / tiles_per_row), (int)(blockIdx.x % tiles_per_row)};
    }
};

// What is the same for all of a block's tiles. A wave is one tile of each block.
struct Plan {
    int steps, tiles_per_row, waves;  // steps of a tile; waves in which the block has one
    int rows_on, tiles_on;            // from one of its tiles to the next

    template <typename Stored>
    __device__ static Plan of(long long num_seqs, long long seq_len, int tile_vectors, bool whole) {
        constexpr int kPer = kPerVector<Stored>;
        Plan plan;
        plan.steps = tile_vectors * kPer;
        plan.tiles_per_row = (seq_len + (whole ? 0 : kPer - 1) + plan.steps - 1) / plan.steps;
        const int left = (int)num_seqs * plan.tiles_per_row - (int)blockIdx.x;
        plan.waves = (left + (int)gridDim.x - 1) / (int)gridDim.x;
        plan.rows_on = gridDim.x / plan.tiles_per_row, plan.tiles_on = gridDim.x % plan.tiles_per_row;
        return plan;
    }
    __device__ void advance(Walk& tile) const {
        tile.row += rows_on, tile.index += tiles_on;
        if (tile.index >= tiles_per_row) tile.index -= tiles_per_row, tile.row++;
    }
};

// The lane's part of the tile of `steps` steps that begins with step `first` of the row: the lane's
// first step; where its first vector is in the row; where tile or row end; whether both contain all
// of the warp's vectors. `steps` may be fewer than the threads hold, but fills whole warps.
struct Part {
    long long first, step, base, end;
    bool complete;
};

template <int kVectors, bool kReverse, typename Stored>
__device__ Part part_of(long long first, int steps, long long seq_len) {
    constexpr int kPer = kPerVector<Stored>, kSteps = 32 * kVectors * kPer;
    const long long skipped = first + threadIdx.x / 32 * kSteps, step = skipped + threadIdx.x % 32 * kPer;
    const long long end = min(first + steps, seq_len);
    return {first, step, kReverse ? seq_len - step - kPer : step, end, skipped >= 0 && skipped + kSteps <= end};
}

// The warp's neighbour in the row: the step before its first, in one lane, or the step after
// its last. It is `otherwise` outside of the row, and for a warp that has no step of the tile.
template <int kVectors, bool kReverse, typename Stored>
__device__ Accum<Stored> load_neighbour(const Stored* row, Part part, long long seq_len, bool after,
                                        Accum<Stored> otherwise) {
    constexpr int kSteps = 32 * kVectors * kPerVector<Stored>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long step = part.first + (after ? (warp + 1) * kSteps : warp * kSteps - 1);
    const bool exists = step >= 0 && (after ? step < seq_len : step + 1 < part.end);
    if (lane != (after ? 31 : 0) || !exists) return otherwise;
    return widen(row[kReverse ? seq_len - 1 - step : step]);
}
// ANCHOR_END: walk

// ANCHOR: move
// The lane's vectors in a row are a constant apart. So are the thread's slots: kThreads.
template <bool kReverse, typename Stored>
constexpr int kStride = kReverse ? -32 * kPerVector<Stored> : 32 * kPerVector<Stored>;

// A part that is not complete, or an array aligned unlike the tile, moves element by
// element through the slots, so that one code computes both. It is rare, and kept small.
template <bool kReverse, typename Stored>
__device__ bool holds(Part part, long long seq_len, long long at) {
    const long long step = kReverse ? seq_len - 1 - at : at;
    return step >= 0 && step < part.end;
}

template <int kVectors, int kThreads, bool kReverse, typename Stored>
__device__ void send_singly(uint4* slots, const Stored* row, Part part, long long seq_len, Stored otherwise) {
#pragma unroll 1
    for (int w = 0; w < kVectors; w++) {
        Vector<Stored> vector;
#pragma unroll
        for (int i = 0; i < kPerVector<Stored>; i++) {
            const long long at = part.base + w * kStride<kReverse, Stored> + i;
            vector.elems[i] = holds<kReverse, Stored>(part, seq_len, at) ? row[at] : otherwise;
        }
        *(Vector<Stored>*)(slots + w * kThreads) = vector;
    }
}

template <int kVectors, int kThreads, bool kReverse, typename Stored>
__device__ void store_singly(Stored* row, const uint4* slots, Part part, long long seq_len) {
#pragma unroll 1
    for (int w = 0; w < kVectors; w++) {
        const Vector<Stored> vector = *(const Vector<Stored>*)(slots + w * kThreads);
#pragma unroll
        for (int i = 0; i < kPerVector<Stored>; i++) {
            const long long at = part.base + w * kStride<kReverse, Stored> + i;
            if (holds<kReverse, Stored>(part, seq_len, at)) row[at] = vector.elems[i];
        }
    }
}

// Copies into the slots; elements outside of the tile or the row become `otherwise`.
template <int kVectors, int kThreads, bool kReverse, typename Stored>
__device__ void send(uint4* slots, const Stored* row, bool aligned, Part part, long long seq_len,
                     Accum<Stored> otherwise) {
    if (part.complete && aligned) {
#pragma unroll
        for (int w = 0; w < kVectors; w++) {
            copy_vector(slots + w * kThreads, row + part.base + w * kStride<kReverse, Stored>);
        }
    } else {
        send_singly<kVectors, kThreads, kReverse>(slots, row, part, seq_len, narrow<Stored>(otherwise));
    }
}

// From the slots, in the order of the recurrence.
template <int kVectors, int kThreads, bool kReverse, typename Stored>
__device__ Vectors<Stored, kVectors> receive(const uint4* slots) {
    Vectors<Stored, kVectors> vectors;
#pragma unroll
    for (int w = 0; w < kVectors; w++) unpack(*(const Vector<Stored>*)(slots + w * kThreads), vectors.at[w]);
    turn(kReverse, vectors);
    return vectors;
}

// Sends and receives at once; only a part that is not complete passes through the slots.
template <int kVectors, int kThreads, bool kReverse, typename Stored>
__device__ Vectors<Stored, kVectors> load(uint4* slots, const Stored* row, bool aligned, Part part,
                                          long long seq_len, Accum<Stored> otherwise) {
    if (!part.complete || !aligned) {
        send_singly<kVectors, kThreads, kReverse>(slots, row, part, seq_len, narrow<Stored>(otherwise));
        return receive<kVectors, kThreads, kReverse, Stored>(slots);
    }
    Vectors<Stored, kVectors> vectors;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        const Stored* data = row + part.base + w * kStride<kReverse, Stored>;
        unpack(*(const Vector<Stored>*)data, vectors.at[w]);
    }
    turn(kReverse, vectors);
    return vectors;
}

// Stores into the row, from the order of the recurrence. The slots hold vectors no longer needed.
template <int kThreads, bool kReverse, int kVectors, typename Stored>
__device__ void store(Stored* row, bool aligned, uint4* slots, Part part, long long seq_len,
                      Vectors<Stored, kVectors> vectors) {
    const bool direct = part.complete && aligned;
    turn(kReverse, vectors);
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        Vector<Stored> vector;
#pragma unroll
        for (int i = 0; i < kPerVector<Stored>; i++) vector.elems[i] = narrow<Stored>(vectors.at[w][i]);
        if (direct) {
            *(Vector<Stored>*)(row + part.base + w * kStride<kReverse, Stored>) = vector;
        } else {
            *(Vector<Stored>*)(slots + w * kThreads) = vector;
        }
    }
    if (!direct) store_singly<kVectors, kThreads, kReverse>(row, slots, part, seq_len);
}

// Calls `to` with the state after the row's last step, times a factor if given, in one lane.
template <int kVectors, typename Stored, typename To>
__device__ void with_last(To to, Part part, long long seq_len, const Vectors<Stored, kVectors>& states,
                          const Stored* factor = nullptr) {
    const long long last = seq_len - 1 - part.step;
    bool found = false;
    Accum<Stored> state;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
#pragma unroll
        for (int i = 0; i < kPerVector<Stored>; i++) {
            if (w * 32 * kPerVector<Stored> + i == last) found = true, state = states.at[w][i];
        }
    }
    if (found) to(factor ? state * conjugate(widen(*factor)) : state);
}

// Replaces the row's last step by `next`, which comes after it.
template <int kVectors, typename Stored>
__device__ void end_with(Vectors<Stored, kVectors>& vectors, Part part, long long seq_len, Accum<Stored> next) {
    const long long last = seq_len - 1 - part.step;
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
#pragma unroll
        for (int i = 0; i < kPerVector<Stored>; i++) {
            if (w * 32 * kPerVector<Stored> + i == last) vectors.at[w][i] = next;
        }
    }
}
// ANCHOR_END: move

// ANCHOR: scan
// Returns what the warp's steps do to the state, and in `before` what the steps before
// each of the lane's vectors do.
template <int kVectors, typename Stored, typename T>
__device__ Transition<T> summarize_vectors(const Vectors<Stored, kVectors>& coeffs,
                                           const Vectors<Stored, kVectors>& inputs,
                                           Transition<T> (&before)[kVectors]) {
    const int lane = threadIdx.x % 32;
    Transition<T> upto[kVectors];
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        Transition<T> mine = {coeffs.at[w][0], inputs.at[w][0]};
#pragma unroll
        for (int i = 1; i < kPerVector<Stored>; i++) mine = compose(mine, {coeffs.at[w][i], inputs.at[w][i]});
        upto[w] = scan_lanes<32>(lane, mine);
    }
    Transition<T> all;  // the pieces so far
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        before[w] = lane_up<32>(upto[w], 1);
        if (lane == 0) before[w] = {T(1), T(0)};
        if (w > 0) before[w] = compose(all, before[w]);
        const Transition<T> piece = lane_at<32>(upto[w], 31);
        all = w > 0 ? compose(all, piece) : piece;
    }
    return all;
}

// How many transitions the carrying warp loads from shared memory at a time, as
// registers permit; and whether it polls for others' tiles before it publishes its own.
template <typename T>
constexpr int kAtOnce = sizeof(T) > 8 ? 1 : sizeof(T) > 4 ? 8 : 32;
template <typename T>
constexpr bool kPollsFirst = sizeof(T) <= 8;

// The same over the warps, by one of them, for every lane. Each lane walks over all warps: while
// others keep shared memory busy, a shuffle takes 200 cycles, and a scan is a chain of seven.
template <int kWarps, typename T>
__device__ Transition<T> scan_warps(const Transition<T>* totals, Transition<T>* befores) {
    const int lane = threadIdx.x % 32;
    Transition<T> before = {T(1), T(0)}, all = totals[0];
#pragma unroll(kAtOnce<T>)
    for (int warp = 1; warp < kWarps; warp++) {
        if (warp == lane) before = all;
        all = compose(all, totals[warp]);
    }
    if (lane < kWarps) befores[lane] = before;
    return all;
}

// From the state before the warp's steps to the state after each. `states` begins as the inputs.
template <int kVectors, typename Stored, typename T>
__device__ void walk_vectors(const Vectors<Stored, kVectors>& coeffs, Vectors<Stored, kVectors>& states,
                             const Transition<T> (&before)[kVectors], T state) {
#pragma unroll
    for (int w = 0; w < kVectors; w++) {
        T y = multiply_add(state, before[w].coeff, before[w].state);
#pragma unroll
        for (int i = 0; i < kPerVector<Stored>; i++) {
            y = multiply_add(y, coeffs.at[w][i], states.at[w][i]);
            states.at[w][i] = y;
        }
    }
}

// Moves up what is held for later tiles when a tile is done, so that the loop over the
// waves need not be unrolled: the code would not fit into the instruction cache.
template <int kAhead, typename Held>
__device__ void move_up(Held (&held)[kAhead]) {
#pragma unroll
    for (int i = 1; i < kAhead; i++) held[i - 1] = held[i];
}
template <int kAhead, int kVectors, typename T>
__device__ void move_up(Transition<T> (&held)[kAhead][kVectors]) {
#pragma unroll
    for (int i = 1; i < kAhead; i++) {
#pragma unroll
        for (int w = 0; w < kVectors; w++) held[i - 1][w] = held[i][w];
    }
}
// ANCHOR_END: scan

// ANCHOR: await
// As await_groups, for a number that is known only at run time.
__device__ inline void await_groups_but(int but) {
    switch (but) {
        case 0: return await_groups<0>();
        case 1: return await_groups<1>();
        case 2: return await_groups<2>();
        case 3: return await_groups<3>();
        case 4: return await_groups<4>();
        case 5: return await_groups<5>();
        case 6: return await_groups<6>();
        default: return await_groups<7>();
    }
}

// A barrier that the block's warps reach from different places. barrier.sync is for that:
// with bar.sync, as with __syncthreads, compute-sanitizer expects all of them at one place.
__device__ inline void meet() { asm volatile("barrier.sync 1;" ::: "memory"); }
// ANCHOR_END: await

// ANCHOR: notice
// What all blocks share. It is zero before the first launch, and each launch leaves it
// ready for the next one, also when a graph replays it without the host.
struct Shared {
    unsigned epoch;    // launches before this one
    unsigned arrived;  // blocks of this launch that have read its number
    unsigned dealt;    // tiles that blocks of this launch have taken
    unsigned unused;   // notices begin at a multiple of 16 bytes
};

// What a tile does to the state, as other blocks read it: each word of 32 bits shares a
// word of 64 with the epoch of the launch that wrote it. Memory never tears 64 bits
// apart, so a reader that finds the epoch has the word, and neither side needs a fence.
template <typename T>
struct alignas(16) Notice {
    unsigned long long words[sizeof(Transition<T>) / 4];
};

template <typename T>
union Words {
    Transition<T> transition;
    unsigned at[sizeof(Transition<T>) / 4];
    __device__ Words() {}
};

template <typename T>
__device__ Notice<T> notice_of(Transition<T> transition, unsigned epoch) {
    Words<T> words;
    words.transition = transition;
    Notice<T> notice;
#pragma unroll
    for (int i = 0; i < sizeof(Words<T>) / 4; i++) {
        notice.words[i] = (unsigned long long)epoch << 32 | words.at[i];
    }
    return notice;
}

template <typename T>
__device__ void put_up(Notice<T>* to, Notice<T> notice) {
#pragma unroll
    for (int i = 0; i < sizeof(Words<T>) / 4; i += 2) {
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to->words + i), "l"(notice.words[i]),
                     "l"(notice.words[i + 1])
                     : "memory");
    }
}

template <typename T>
__device__ Notice<T> look_up(const Notice<T>* notice) {
    Notice<T> found;
#pragma unroll
    for (int i = 0; i < sizeof(Words<T>) / 4; i += 2) {
        asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(found.words[i]), "=l"(found.words[i + 1])
                     : "l"(notice->words + i)
                     : "memory");
    }
    return found;
}

template <typename T>
__device__ bool is_of(const Notice<T>& notice, unsigned epoch) {
    bool all = true;
#pragma unroll
    for (int i = 0; i < sizeof(Words<T>) / 4; i++) all &= (unsigned)(notice.words[i] >> 32) == epoch;
    return all;
}

template <typename T>
__device__ Transition<T> transition_of(const Notice<T>& notice) {
    Words<T> words;
#pragma unroll
    for (int i = 0; i < sizeof(Words<T>) / 4; i++) words.at[i] = (unsigned)notice.words[i];
    return words.transition;
}
// ANCHOR_END: notice

// ANCHOR: control
__device__ inline unsigned load_relaxed(const unsigned* from) {
    unsigned value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}
__device__ inline void store_relaxed(unsigned* to, unsigned value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

// Called once by each block. Returns the number of this launch, from 1 on, and in
// `dealt`, if given, the number of a tile that no other block takes. The last block to
// arrive prepares the next launch: by then every block has read what it changes.
__device__ inline unsigned arrive(Shared* shared, unsigned* dealt = nullptr) {
    const unsigned epoch = load_relaxed(&shared->epoch) + 1;
    if (dealt) *dealt = atomicAdd(&shared->dealt, 1);
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(&shared->arrived) : "memory");
    if (before == gridDim.x - 1) {
        store_relaxed(&shared->arrived, 0);
        store_relaxed(&shared->dealt, 0);
        store_relaxed(&shared->epoch, epoch);
    }
    return epoch;
}
// ANCHOR_END: control

// ANCHOR: fold
// What a group's tiles do to the state: all of them, and the tiles of the lanes before one lane.
template <typename T>
struct Folded {
    Transition<T> all, before;
};

// From the tiles of all lanes, in their order. `pieces` has one entry for each lane:
// through shared memory the data makes a single trip there and back.
template <typename T>
__device__ Folded<T> fold(const Transition<T> (&tiles)[kPerLane], Transition<T>* pieces, int until) {
    Transition<T> mine = tiles[0];
#pragma unroll
    for (int i = 1; i < kPerLane; i++) mine = compose(mine, tiles[i]);
    pieces[threadIdx.x % 32] = mine;
    __syncwarp();
    Folded<T> folded = {pieces[0], {T(1), T(0)}};
#pragma unroll(kAtOnce<T>)
    for (int lane = 1; lane < 32; lane++) {
        if (lane == until) folded.before = folded.all;
        folded.all = compose(folded.all, pieces[lane]);
    }
    __syncwarp();
    return folded;
}
// ANCHOR_END: fold

// ANCHOR: carrier
// One warp of each block finds the state before its tiles. A row's tiles form groups
// of kGroup, counted from the first. One multiply-add leads from the state before a
// group to that before the next, and from there to a tile. So the order of operations
// does not depend on the number of blocks, and no row affects another.
template <typename T>
struct Carrier {
    Shared* shared;
    Notice<T>* notices;  // of each row's tiles, in whole groups
    Incoming<T> comes;
    int tiles_per_row, groups_per_row;
    unsigned epoch;
    // The state `carry` before group `group` of row `row`.
    int row, group;
    T carry;
    struct Found {
        Notice<T> of[kPerLane];
    };

    __device__ static Carrier begin(void* workspace, unsigned epoch, Incoming<T> comes, int tiles_per_row) {
        Carrier carrier;
        carrier.shared = (Shared*)workspace;
        carrier.notices = (Notice<T>*)(carrier.shared + 1);
        carrier.comes = comes;
        carrier.tiles_per_row = tiles_per_row;
        carrier.groups_per_row = (tiles_per_row + kGroup - 1) / kGroup;
        carrier.epoch = epoch;
        carrier.row = -1;
        return carrier;
    }

    __device__ void publish(Walk tile, Transition<T> does) const {
        put_up(place(tile.row, tile.index), notice_of(does, epoch));
    }

    // A group's tiles are interleaved: the first one of each lane, then the second ones.
    __device__ Notice<T>* place(int row, int index) const {
        const int in_group = index % kGroup;
        return notices + ((long long)row * groups_per_row + index / kGroup) * kGroup +
               in_group % kPerLane * 32 + in_group / kPerLane;
    }

    // Loads the notices of the first `count` tiles of a group, and does not wait for the tiles.
    __device__ Found ask(int group, int count) const {
        const Notice<T>* mine = place(row, group * kGroup) + threadIdx.x % 32;
        Found found;
#pragma unroll
        for (int i = 0; i < kPerLane; i++) {
            if (threadIdx.x % 32 * kPerLane + i < count) found.of[i] = look_up(mine + 32 * i);
        }
        return found;
    }

    // Polls until these tiles are published. The others count as if they left the state alone.
    __device__ void receive(Found& found, int group, int count, Transition<T> (&tiles)[kPerLane]) const {
        const Notice<T>* mine = place(row, group * kGroup) + threadIdx.x % 32;
        const int asked = count - threadIdx.x % 32 * kPerLane;
        for (int polls = 0;; polls += !comes.mail) {  // with mail, waits are bounded there
            bool all = true;
#pragma unroll
            for (int i = 0; i < kPerLane; i++) all &= i >= asked || is_of(found.of[i], epoch);
            if (all) break;
            if (polls == kMaxPolls) asm volatile("trap;");
#pragma unroll
            for (int i = 0; i < kPerLane; i++) {
                if (i < asked) found.of[i] = look_up(mine + 32 * i);
            }
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kPerLane; i++) {
            tiles[i] = {T(1), T(0)};
            if (i < asked) tiles[i] = transition_of(found.of[i]);
        }
    }

    __device__ void pass(Transition<T> all) {
        carry = multiply_add(carry, all.coeff, all.state);
        group++;
    }

    // Loads what the state before a tile depends on. Calls go forward, and each is
    // followed by a call of `find`, which waits for what was not published yet.
    __device__ Found ask_for(Walk tile) {
        if (row != tile.row) {
            row = tile.row, group = 0;
            carry = comes(row);
        }
        return ask(group, wanted(tile, group));
    }

    // With as many blocks as tiles in a group, the tile's whole group is published by
    // now or soon, and the state after it serves the next tile.
    __device__ bool takes_whole() const { return gridDim.x >= kGroup; }
    __device__ int wanted(Walk tile, int group) const {
        if (group < tile.index / kGroup) return kGroup;
        return takes_whole() ? min(kGroup, tiles_per_row - group * kGroup) : tile.index % kGroup;
    }

    // Finds the state before the tile; the lane that knows it stores it.
    __device__ void find(Walk tile, Found found, Transition<T>* pieces, T* state_before) {
        Transition<T> tiles[kPerLane];
        while (group < tile.index / kGroup) {
            Found next = ask(group + 1, wanted(tile, group + 1));
            receive(found, group, kGroup, tiles);
            pass(fold(tiles, pieces, 0).all);
            found = next;
        }
        receive(found, group, wanted(tile, group), tiles);
        const int within = tile.index % kGroup, knows = within / kPerLane;
        const Folded<T> folded = fold(tiles, pieces, knows);
        if (threadIdx.x % 32 == knows) {
            T state = knows > 0 ? multiply_add(carry, folded.before.coeff, folded.before.state) : carry;
#pragma unroll
            for (int i = 0; i < kPerLane - 1; i++) {
                if (i < within % kPerLane) state = multiply_add(state, tiles[i].coeff, tiles[i].state);
            }
            *state_before = state;
        }
        if (takes_whole()) pass(folded.all);
    }
};
// ANCHOR_END: carrier

// ANCHOR: carry
// What the carrying warp does, wave by wave, while the others compute. It loads what
// leads to the state before the next tile; publishes, while that is on its way, what
// the tile that was summarized last does to the state; and finds the state.
template <int kWarps, int kAhead, typename T>
__device__ void carry_along(void* workspace, Incoming<T> comes, Plan plan, Transition<T> (&totals)[2][kWarps],
                            Transition<T> (&befores)[kAhead][kWarps], T (&states)[2]) {
    static_assert(kAhead >= 2, "a block would wait for tiles that are published only after it goes on");
    __shared__ Transition<T> pieces[32];
    const int lane = threadIdx.x % 32;
    unsigned epoch = 0;
    if (lane == 0) epoch = arrive((Shared*)workspace);
    epoch = __shfl_sync(kAllLanes, epoch, 0);
    Carrier<T> carrier = Carrier<T>::begin(workspace, epoch, comes, plan.tiles_per_row);
    Walk published = Walk::begin(plan.tiles_per_row), due = published;
    for (int wave = -kAhead; wave < plan.waves; wave++) {
        const bool is_due = wave >= -1 && wave + 1 < plan.waves;
        typename Carrier<T>::Found found;
        if (is_due && kPollsFirst<T>) found = carrier.ask_for(due);
        const int summarized = wave - 1 + kAhead;
        if (summarized >= 0 && summarized < plan.waves) {
            const Transition<T> all = scan_warps<kWarps>(totals[summarized % 2], befores[summarized % kAhead]);
            if (lane == 0) carrier.publish(published, all);
            plan.advance(published);
        }
        if (is_due) {
            if (!kPollsFirst<T>) found = carrier.ask_for(due);
            carrier.find(due, found, pieces, &states[(wave + 1) % 2]);
            plan.advance(due);
        }
        meet();
    }
}

// Rows without steps: the state that comes in goes on.
template <typename T>
__device__ void hand_over(Incoming<T> comes, Outgoing<T> goes, long long num_seqs) {
    for (long long row = blockIdx.x; row < num_seqs; row += gridDim.x) {
        if (goes.wanted() && threadIdx.x == 0) goes(row, comes(row));
    }
}

// What a warp does when the tile is too short to give it a step.
template <int kAhead, int kWarps, typename T>
__device__ void stand_by(Transition<T> (&totals)[2][kWarps], int waves) {
    if (threadIdx.x % 32 == 0) {
        totals[0][threadIdx.x / 32] = totals[1][threadIdx.x / 32] = {T(1), T(0)};
    }
    for (int wave = -kAhead; wave < waves; wave++) meet();
}
// ANCHOR_END: carry
