// Tiles of long rows shared out among all blocks of a grid: where a tile lies, what a block tells the others
// about its own, and how the state before a tile is put together from what they tell.
#pragma once
#include "wide.cuh"

// ANCHOR: group
// So many tiles are combined at a time: kGroup of them, kPerLane in each lane of a warp.
constexpr int kPerLane = 4, kGroup = 32 * kPerLane;
// How often a warp asks for what is not there yet, before it gives up.
constexpr int kMaxPolls = 1 << 20;
// ANCHOR_END: group

// ANCHOR: walk
// A block's way through the tiles, which are numbered row after row: every `blocks`-th is its own.
struct Walk {
    int row, index;  // of the tile: its row, and its number in it

    __device__ static Walk begin(int tiles_per_row) {
        return {(int)(blockIdx.x / tiles_per_row), (int)(blockIdx.x % tiles_per_row)};
    }
    __device__ void advance(int rows, int tiles, int tiles_per_row) {
        row += rows, index += tiles;
        if (index >= tiles_per_row) index -= tiles_per_row, row++;
    }
};

// The lane's view of the tile of `steps` steps that begins with step `first` of the row. `steps` may be fewer than
// the threads have room for.
template <int kVectors, int kThreads, typename Stored>
__device__ View view_of_tile(long long first, int steps, long long seq_len, bool reverse) {
    constexpr int kPer = kPerVector<Stored>;
    View lane = view<kVectors, kThreads, Stored>(first, seq_len, reverse);
    const int skipped = (threadIdx.x / 32 * kVectors * 32 + threadIdx.x % 32) * kPer;
    if (reverse) {
        lane.begin = max(lane.begin, skipped + kPer - steps);
    } else {
        lane.end = min(lane.end, steps - skipped);
    }
    return lane;
}
// ANCHOR_END: walk

// ANCHOR: await
// As await_groups, for a number that is a constant only when loops are unrolled.
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
// ANCHOR_END: await

// ANCHOR: notice
// What all blocks share. It is zero before the first launch, and each launch leaves it ready for the next: also a
// replayed one, to which the host adds nothing.
struct Shared {
    unsigned epoch;     // launches that have ended
    unsigned finished;  // blocks of this one that have
    unsigned failed;    // whether a block has ever waited in vain
    unsigned unused;
};

// What a tile does to the state, as other blocks read it: each word of 32 bits lies in 64 bits with the epoch
// of the launch that wrote it. Memory never tears 64 bits apart, so whoever finds the epoch has the word, and
// neither side needs a fence.
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
__device__ void put_up(Notice<T>* notice, Transition<T> transition, unsigned epoch) {
    Words<T> words;
    words.transition = transition;
#pragma unroll
    for (int i = 0; i < sizeof(Words<T>) / 4; i += 2) {
        const unsigned long long low = (unsigned long long)epoch << 32 | words.at[i];
        const unsigned long long high = (unsigned long long)epoch << 32 | words.at[i + 1];
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(notice->words + i), "l"(low), "l"(high)
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

// The last block to come here ends the epoch; that each has read it comes before.
__device__ inline void finish(Shared* shared, unsigned epoch) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(&shared->finished) : "memory");
    if (before == gridDim.x - 1) {
        store_relaxed(&shared->finished, 0);
        store_relaxed(&shared->epoch, epoch);
    }
}
// ANCHOR_END: control

// ANCHOR: carrier
// One warp of each block finds out the state before its tiles. A row's tiles form groups of kGroup, counted from
// its first tile. The state before a group comes from that before the one before it, by one multiply-add; that
// before a tile from that before its group. So the order is the same whatever the blocks are, and nothing of
// another row gets in.
template <typename T>
struct Carrier {
    Shared* shared;
    Notice<T>* notices;  // of each row's tiles, in whole groups
    const T* initial;
    int tiles_per_row, groups_per_row;
    unsigned epoch;
    bool gave_up;
    // The state `carry` before group `group` of row `row`.
    int row, group;
    T carry;

    struct Found {
        Notice<T> of[kPerLane];
    };

    // A group's tiles lie in turns: first the first one of each lane, then the second ones.
    __device__ Notice<T>* place(int row, int index) const {
        const int in_group = index % kGroup;
        return notices + ((long long)row * groups_per_row + index / kGroup) * kGroup +
               in_group % kPerLane * 32 + in_group / kPerLane;
    }

    // Asks for the first `count` tiles of a group, and does not wait.
    __device__ Found ask(int group, int count) const {
        const Notice<T>* mine = place(row, group * kGroup) + threadIdx.x % 32;
        Found found;
#pragma unroll
        for (int i = 0; i < kPerLane; i++) {
            if (threadIdx.x % 32 * kPerLane + i < count) found.of[i] = look_up(mine + 32 * i);
        }
        return found;
    }

    // Waits for what was asked for. The others count as if they did nothing to the state.
    __device__ void receive(Found& found, int group, int count, Transition<T> (&tiles)[kPerLane]) {
        const Notice<T>* mine = place(row, group * kGroup) + threadIdx.x % 32;
        int polls = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; i++) {
            tiles[i] = {T(1), T(0)};
            if (threadIdx.x % 32 * kPerLane + i < count) {
                while (!is_of(found.of[i], epoch) && !gave_up) {
                    found.of[i] = look_up(mine + 32 * i);
                    gave_up = ++polls == kMaxPolls;
                }
                tiles[i] = transition_of(found.of[i]);
            }
        }
        gave_up = __any_sync(kAllLanes, gave_up);
    }

    // From the lane's tiles to the transition of all up to its last.
    __device__ static Transition<T> scan(const Transition<T> (&tiles)[kPerLane]) {
        Transition<T> mine = tiles[0];
#pragma unroll
        for (int i = 1; i < kPerLane; i++) mine = compose(mine, tiles[i]);
        return scan_lanes<32>(threadIdx.x % 32, mine);
    }

    __device__ void pass(Transition<T> upto) {
        const Transition<T> all = lane_at<32>(upto, 31);
        carry = multiply_add(carry, all.coeff, all.state);
        group++;
    }

    // The state before a tile. Calls go forward.
    __device__ T state_before(Walk tile) {
        if (row != tile.row) {
            row = tile.row, group = 0;
            carry = initial ? initial[row] : T(0);
        }
        const int last_group = tile.index / kGroup, within = tile.index % kGroup;
        // With as many blocks as tiles in a group, the whole group is told by now or soon, and its end is
        // worth knowing for the next tile.
        const bool whole = gridDim.x >= kGroup;
        const int wanted = whole ? min(kGroup, tiles_per_row - last_group * kGroup) : within;

        Transition<T> tiles[kPerLane];
        Found found = ask(group, group < last_group ? kGroup : wanted);
        while (group < last_group) {
            const int count = group + 1 < last_group ? kGroup : wanted;
            Found next = ask(group + 1, count);
            receive(found, group, kGroup, tiles);
            pass(scan(tiles));
            found = next;
        }
        receive(found, group, wanted, tiles);
        const Transition<T> upto = scan(tiles), before = lane_up<32>(upto, 1);
        T state = threadIdx.x % 32 > 0 ? multiply_add(carry, before.coeff, before.state) : carry;
#pragma unroll
        for (int i = 0; i < kPerLane - 1; i++) {
            if (i < within % kPerLane) state = multiply_add(state, tiles[i].coeff, tiles[i].state);
        }
        state = lane_at<32>(state, within / kPerLane);
        if (whole) pass(upto);
        return state;
    }
};
// ANCHOR_END: carrier
