// The parts of the fused selective scan's gradient: a lane's place, how its numbers
// come from memory, and one tile of a channel's states.
//
// A tile is kTile steps, from one checkpoint of the forward pass to the next. A warp takes four
// channels at a time, a quad, and for B and C kStates of their states, a block of states. A lane
// has kPer states of one of the channels and, for values without a state's index, one step: its
// number among the eight lanes of its channel.
#pragma once
#include "selective_scan.cuh"

constexpr int kTile = kCheckpointSteps;
constexpr unsigned kStages = 4;  // of a warp's copies: one is read, the others are on their way
constexpr float kLn2 = 0x1.62e430p-1f;

// kWhole: all rows consist of vectors of 16 bytes. kEnds: only what a chunk passes back is wanted.
enum : int { kWhole = 8, kEnds = 16 };

// ANCHOR: operands
template <typename Stored>
struct Given {
    const Stored *u, *delta, *z, *d_out;
    const void *b, *c;
    const float *a, *d, *bias;
    const unsigned char* restarts;
    const float* checkpoints;
    int batch, channels, groups, states;
    long long len;
    int flags;

    // kWhole: all rows consist of vectors of 16 bytes.
    __device__ bool whole() const { return flags & kWhole; }
    __device__ int tiles() const { return (int)((len + kTile - 1) / kTile); }
};
// ANCHOR_END: operands

// ANCHOR: place
// What a block, a warp and a lane work on. A block has `quads` quads of one group for each of its
// warps, and a chunk of the tiles. Blocks that differ only in their channels are neighbours, as
// they read the same B and C.
struct Place {
    int lane, own, row;  // in the warp; of a channel's eight lanes; the channel in the quad
    int part, parts, group, sequence, chunk, chunks;
    int first;           // channel of the warp
    int left;            // channels of the group from that one on
    int begin, end;      // the tiles

    template <typename Stored>
    __device__ static Place of(const Given<Stored>& given, int quads, int chunk_tiles) {
        const int per_block = blockDim.x / 8 * quads, per_group = given.channels / given.groups, tiles = given.tiles();
        Place at;
        at.lane = threadIdx.x % 32, at.own = at.lane % 8, at.row = at.lane / 8;
        at.parts = (per_group + per_block - 1) / per_block;
        int block = blockIdx.x;
        at.part = block % at.parts, block /= at.parts;
        at.group = block % given.groups, block /= given.groups;
        at.sequence = block % given.batch, block /= given.batch;
        at.chunk = block + (given.flags & kEnds ? 1 : 0);  // nobody needs what chunk 0 passes back
        at.chunks = max((tiles + chunk_tiles - 1) / chunk_tiles, 1);
        const int ahead = at.part * per_block + threadIdx.x / 32 * (4 * quads);
        at.left = per_group - ahead;
        at.first = at.group * per_group + ahead;
        at.begin = at.chunk * chunk_tiles;
        at.end = min(at.begin + chunk_tiles, tiles);
        return at;
    }
    __device__ bool exists(int quad) const { return 4 * quad + row < left; }
    // The lane's channel.
    __device__ int channel(int quad) const { return first + 4 * quad + row; }
};
// ANCHOR_END: place

// ANCHOR: stage
// What a warp reads for one tile of four channels, and kPer * 8 of their states.
template <int kPer>
struct alignas(16) Stage {
    unsigned elems[4][32];  // of u, delta, z, d_out: packed, or each in its place
    float states[4][8 * kPer];
};

// The rows of B and C for one tile. State n is in row n % kPer * 8 + n / kPer, so that
// the eight lanes of a channel read neighbouring rows.
template <int kPer>
struct alignas(16) Rows {
    unsigned elems[2][8 * kPer][kTile];
};

// What a lane keeps from tile to tile for its states of a channel: the gradient that
// comes from later steps, and A log2 e.
template <int kPer>
struct alignas(8 * kPer) Kept {
    float carry[kPer], rate[kPer];
};

template <int kPer>
struct alignas(4 * kPer) Total {
    float of[kPer];
};

// The parts of a block's shared memory. A part marked (thread) has a place for each thread: number
// (block * quads + quad) * blockDim.x + threadIdx.x or, for values without a state's index, quad *
// blockDim.x + threadIdx.x.
template <int kPer>
struct Shared {
    static constexpr int kStates = 8 * kPer, kSums = 2 * kStates * kTile;
    static constexpr int kPitch = 72;  // of a channel's values: the next has other banks

    struct Warp {
        Stage<kPer> stages[kStages];
        float steps[3][32];          // delta, delta u and the gradient of y, by steps
        float across[3][4][kPitch];  // summands of a channel's states, by steps
    };

    char* raw;
    int warps, quads, blocks;  // blocks of states
    __device__ Rows<kPer>& rows(unsigned number) const { return ((Rows<kPer>*)raw)[number % 4]; }
    __device__ Warp& warp(int w) const { return ((Warp*)(raw + 4 * sizeof(Rows<kPer>)))[w]; }
    // What the lanes have added up for B and C: a row for each channel of a quad. Two
    // in turns, or one where shared memory is short.
    __device__ int turns() const { return blocks <= 2 ? 2 : 1; }
    __device__ float* sums(int turn) const { return (float*)&warp(warps) + turn * warps * 4 * kSums; }
    // D and the bias of a channel.
    __device__ float2* channels() const { return (float2*)sums(turns()); }
    // (thread) Sums over the steps for D and the bias.
    __device__ float2* pointwise() const { return channels() + 4 * quads * warps; }
    // (thread) For a block of states and a quad: what is kept; and sums over the steps
    // for A, and for B and C that do not vary.
    __device__ Kept<kPer>* kept() const { return (Kept<kPer>*)(channels() + 36 * quads * warps); }
    __device__ Total<kPer>* totals(int which) const {
        const int each = blocks * quads * blockDim.x;
        return (Total<kPer>*)(kept() + each) + which * each;
    }
    // (thread) Sums over the blocks of states, if there are several; they follow `kinds` totals.
    __device__ float4* across_blocks(int kinds) const { return (float4*)totals(kinds); }
};
// ANCHOR_END: stage

// ANCHOR: ahead
// What is to be copied next: quad after quad, block of states after block of states, and tiles from
// the last to the first.
template <typename Stored, int kPer>
struct Ahead {
    static constexpr int kStates = 8 * kPer, kPerVector = 16 / sizeof(Stored), kVectors = kTile / kPerVector;

    int tile, limit;           // the number of steps in the tile
    int quad;
    unsigned number;
    int row, step, to;         // of the lane's elements; the place in the stage, or -1
    int state_row, state_n;    // the same for the checkpoints
    long long element, state;  // places in the arrays, and in the checkpoints
    const Stored* array;       // whole vectors: the array that the lane copies

    __device__ static Ahead begin(const Given<Stored>& given, const Place& at) {
        Ahead ahead;
        ahead.tile = at.end - 1, ahead.quad = ahead.number = 0;
        const long long first_step = ahead.tile * (long long)kTile;
        ahead.limit = at.begin < at.end ? (int)min((long long)kTile, given.len - first_step) : 0;
        ahead.row = at.row, ahead.step = at.own, ahead.to = 4 * at.lane, ahead.array = given.delta;
        if (given.whole()) {
            const int which = at.lane / (4 * kVectors);
            const bool exists = which == 0 ? !(given.flags & kEnds) : which == 2 ? given.z != nullptr : which < 4;
            ahead.array = which == 0 ? given.u : which == 2 ? given.z : which == 3 ? given.d_out : given.delta;
            ahead.row = at.lane / kVectors % 4, ahead.step = at.lane % kVectors * kPerVector;
            ahead.to = exists ? which * 128 + (ahead.row * kTile + ahead.step) * (int)sizeof(Stored) : -1;
        }
        const long long channel = (long long)at.sequence * given.channels + at.first;
        ahead.element = (channel + ahead.row) * given.len + first_step + ahead.step;
        const int lane = given.states % 4 == 0 ? 4 * at.lane : at.lane;
        ahead.state_row = lane / kStates, ahead.state_n = lane % kStates;
        const long long tile = (long long)at.sequence * given.tiles() + ahead.tile;
        ahead.state = (tile * given.channels + at.first + ahead.state_row) * given.states + ahead.state_n;
        return ahead;
    }

    // Copies zeros behind the last one.
    __device__ void copy(Stage<kPer> (&stages)[kStages], const Given<Stored>& given, const Place& at, int quads) {
        Stage<kPer>& stage = stages[number++ % kStages];
        const int left = limit > 0 ? at.left - 4 * quad : 0;
        const bool exists = row < left && step < limit;
        if (given.whole()) {
            if (to >= 0) copy_vector((char*)&stage + to, array + element, exists ? 16 : 0);
        } else {
            const bool last = element + 1 == (long long)given.batch * given.channels * given.len;
            if (!(given.flags & kEnds)) copy_single(stage, 0, given.u, exists, last);
            copy_single(stage, 1, given.delta, exists, last);
            if (given.z) copy_single(stage, 2, given.z, exists, last);
            copy_single(stage, 3, given.d_out, exists, last);
        }
        if (!(given.flags & kEnds)) copy_states(stage, given, left);
        close_group();
        advance(given, at, quads);
    }
    __device__ void copy_single(Stage<kPer>& stage, int which, const Stored* from, bool exists, bool last) const {
        ::copy_single((unsigned*)((char*)&stage.elems[which] + to), from + element, exists, last);
    }

    __device__ void copy_states(Stage<kPer>& stage, const Given<Stored>& given, int left) const {
        const bool known = state_n < given.states;
        const float* from = given.checkpoints + state;
        float* place = &stage.states[state_row][state_n % kStates];
        if (given.states % 4 == 0) {
            if (state_row < 4) copy_vector(place, from, known && state_row < left ? 16 : 0);
        } else {
            constexpr int kRows = 32 / kStates;  // at once
#pragma unroll
            for (int j = 0; j < kPer; j++) {
                const bool exists = known && state_row + j * kRows < left;
                copy_word(place + j * kRows * kStates, from + j * kRows * given.states, exists ? 4 : 0);
            }
        }
    }

    __device__ void advance(const Given<Stored>& given, const Place& at, int quads) {
        element += 4 * given.len, state += 4 * given.states;
        if (++quad < quads) return;
        quad = 0;
        element -= 4 * quads * given.len;
        state += kStates - 4 * quads * (long long)given.states;
        state_n += kStates;
        if (state_n - state_n % kStates < given.states) return;
        const int blocks_on = state_n - state_n % kStates;
        state_n -= blocks_on;
        state -= blocks_on + (long long)given.channels * given.states;
        element -= kTile;
        tile--, limit = tile >= at.begin ? kTile : 0;
    }
};

// The block copies the rows of B and C for some states and a tile, as vectors or elements.
template <int kPer, int kPieces, typename Stored>
__device__ void copy_pieces(Rows<kPer>& rows, const Given<Stored>& given, const Place& at, int tile, int first_state) {
    constexpr int kStates = 8 * kPer, kSteps = kTile / kPieces;
    const long long group = (long long)at.sequence * given.groups + at.group, first_step = tile * (long long)kTile;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < 2 * kStates * kPieces; i += blockDim.x) {
        const unsigned piece = i % kPieces, r = i / kPieces % kStates, which = i / kPieces / kStates;
        if (!(given.flags & (which ? kVaryingC : kVaryingB))) continue;
        const int n = first_state + r % 8 * kPer + r / 8, step = piece * kSteps;
        const bool exists = n < given.states && first_step + step < given.len;
        const long long place = (group * given.states + n) * given.len + first_step + step;
        const Stored* from = (const Stored*)(which ? given.c : given.b) + place;
        if (kPieces < kTile) {
            copy_vector((char*)rows.elems[which][r] + piece * 16, from, exists ? 16 : 0);
        } else {
            const bool last = place + 1 == (long long)given.batch * given.groups * given.states * given.len;
            copy_single(&rows.elems[which][r][step], from, exists, last);
        }
    }
}
template <int kPer, typename Stored>
__device__ void copy_rows(Rows<kPer>& rows, const Given<Stored>& given, const Place& at, int tile, int first_state) {
    if (given.whole()) {
        copy_pieces<kPer, kTile * sizeof(Stored) / 16>(rows, given, at, tile, first_state);
    } else {
        copy_pieces<kPer, kTile>(rows, given, at, tile, first_state);
    }
}
// ANCHOR_END: ahead

// ANCHOR: take
// Which place of `elems` has the lane's element. Elements that were copied singly are 8 steps or a
// multiple of four rows apart, so that for each array they are all in the same half of their
// places.
template <typename Stored>
__device__ int place_of(const Stored* from, bool whole, int lane) {
    return sizeof(Stored) == 4 || whole ? lane : 2 * lane + half_of(from);
}
template <typename Stored>
__device__ float element_of(const unsigned (&elems)[32], int place) {
    return widen(((const Stored*)elems)[place]);
}

// Reads the eight elements of a row; `from` is the address that the first was copied from.
__device__ inline void read_row(const unsigned (&row)[kTile], bool, const float*, float (&values)[kTile]) {
#pragma unroll
    for (int t = 0; t < kTile; t += 4) *(float4*)&values[t] = *(const float4*)&row[t];
}
template <typename Half>
__device__ void read_row(const unsigned (&row)[kTile], bool whole, const Half* from, float (&values)[kTile]) {
    if (whole) {
        const uint4 v = *(const uint4*)row;
        const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int t = 0; t < kTile; t++) values[t] = widen(Half{(unsigned short)(words[t / 2] >> t % 2 * 16)});
    } else {
#pragma unroll
        for (int t = 0; t < kTile; t++) values[t] = widen(Half{(unsigned short)(row[t] >> half_of(from + t) * 16)});
    }
}

// Reads B or C of the lane's states, for a tile; `from` is the address that the first step of the
// first state was copied from.
template <int kPer, typename Stored>
__device__ __forceinline__ void read_rows(const unsigned (&rows)[8 * kPer][kTile], bool whole, const Stored* from, long long len, int own,
                          float (&values)[kTile][kPer]) {
#pragma unroll
    for (int n = 0; n < kPer; n++) {
        float row[kTile];
        read_row(rows[n * 8 + own], whole, from + n * len, row);
#pragma unroll
        for (int t = 0; t < kTile; t++) values[t][n] = row[t];
    }
}

// The same where they do not vary.
template <int kPer>
__device__ void read_constants(const float* from, int exist, float (&values)[kTile][kPer]) {
#pragma unroll
    for (int n = 0; n < kPer; n++) {
        const float value = n < exist ? from[n] : 0.0f;
#pragma unroll
        for (int t = 0; t < kTile; t++) values[t][n] = value;
    }
}
// ANCHOR_END: take

// ANCHOR: pointwise
// A lane's values for its step: u; the step's size and the slope of its softplus; the
// gradients with respect to y and to the gate; and its states before the tile.
template <int kPer>
struct Own {
    float u, size, slope, d_y, d_gate, before[kPer];
};

struct Step {
    float size, slope;
};
// Computes both cases always, so that no branch separates what can be computed at the same time.
template <bool kExact>
__device__ Step step_of(float x, bool soft) {
    const float e = Functions<kExact>::power_of_two(-fabsf(x) * kLog2E);
    const float r = Functions<kExact>::reciprocal(1.0f + e), size = softplus<kExact>(x);
    return {soft ? size : x, !soft ? 1.0f : x >= 0.0f ? r : e * r};
}
// ANCHOR_END: pointwise

// ANCHOR: walk
// A tile of one channel for the lane's states.
template <int kPer>
struct Tile {
    float b[kTile][kPer], c[kTile][kPer], d_b[kTile][kPer], d_c[kTile][kPer];
};

struct Steps {
    float size[kTile], input[kTile], d_y[kTile];  // delta, delta u, and the gradient of y
};

// Sums over the lane's states: of C h; of what B passes back; of what the decays pass back, times
// log2 e.
struct Across {
    float y[kTile], by_input[kTile], by_decay[kTile];
};

__device__ inline void read_steps(const float (&from)[32], int row, float (&values)[kTile]) {
#pragma unroll
    for (int t = 0; t < kTile; t += 4) *(float4*)&values[t] = *(const float4*)&from[row * kTile + t];
}

// From the state before the tile and the gradient behind it, `carry`, to the gradient
// before it. A restart drops the state before its step, and no gradient passes it.
template <bool kRestarts, bool kExact, int kPer>
__device__ __forceinline__ Across walk(const Steps& steps, const float (&rate)[kPer], const float (&before)[kPer], unsigned restarts,
                       Tile<kPer>& tile, float (&carry)[kPer], float (&d_rate)[kPer]) {
    Across sums;
    float h[kTile][kPer], decay[kTile][kPer];  // the state before each step
    float now[kPer];
#pragma unroll
    for (int n = 0; n < kPer; n++) now[n] = before[n];
#pragma unroll
    for (int t = 0; t < kTile; t++) {
#pragma unroll
        for (int n = 0; n < kPer; n++) {
            if (kRestarts && restarts >> t & 1) now[n] = 0.0f;
            h[t][n] = now[n];
            decay[t][n] = Functions<kExact>::power_of_two(steps.size[t] * rate[n]);
            now[n] = multiply_add(decay[t][n], now[n], steps.input[t] * tile.b[t][n]);
            sums.y[t] = n ? multiply_add(tile.c[t][n], now[n], sums.y[t]) : tile.c[t][n] * now[n];
            tile.d_c[t][n] = multiply_add(steps.d_y[t], now[n], tile.d_c[t][n]);
        }
    }
#pragma unroll
    for (int t = kTile - 1; t >= 0; t--) {
#pragma unroll
        for (int n = 0; n < kPer; n++) {
            const float d_h = multiply_add(tile.c[t][n], steps.d_y[t], carry[n]);
            sums.by_input[t] = n ? multiply_add(d_h, tile.b[t][n], sums.by_input[t]) : d_h * tile.b[t][n];
            tile.d_b[t][n] = multiply_add(d_h, steps.input[t], tile.d_b[t][n]);
            carry[n] = decay[t][n] * d_h;
            if (kRestarts && restarts >> t & 1) carry[n] = 0.0f;
            const float d_log = carry[n] * h[t][n];
            sums.by_decay[t] = n ? multiply_add(rate[n], d_log, sums.by_decay[t]) : rate[n] * d_log;
            d_rate[n] = multiply_add(steps.size[t], d_log, d_rate[n]);
        }
    }
    return sums;
}

// Walks back with the gradient only.
template <bool kExact, int kPer>
__device__ __forceinline__ void walk_back(const Steps& steps, const float (&rate)[kPer], unsigned restarts, const float (&c)[kTile][kPer],
                          float (&carry)[kPer]) {
#pragma unroll
    for (int t = kTile - 1; t >= 0; t--) {
#pragma unroll
        for (int n = 0; n < kPer; n++) {
            const float decay = Functions<kExact>::power_of_two(steps.size[t] * rate[n]);
            carry[n] = decay * multiply_add(c[t][n], steps.d_y[t], carry[n]);
            if (restarts >> t & 1) carry[n] = 0.0f;
        }
    }
}
// ANCHOR_END: walk
