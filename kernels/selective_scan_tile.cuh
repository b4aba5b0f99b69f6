// How a tile of the selective scan's forward pass comes from memory to the walk, and its outputs
// go back: the work of the warps that help. `selective_scan_fwd.cu` says which warp does what.
#pragma once
#include "selective_scan.cuh"

constexpr int kWarps = 4;          // of each kind, at most: computing and helping
constexpr int kWarpChannels = 16;  // of a warp of either kind
constexpr int kLanes = 4;          // of a channel
constexpr int kTileSteps = 32;
constexpr int kBlockChannels = kWarps * kWarpChannels;

// ANCHOR: operands
// The kernel's arguments, and the block's part of them.
template <typename Stored>
struct Operands {
    const Stored *u, *delta, *z;
    const void *B, *C;
    const float *A, *D, *delta_bias, *initial;
    const unsigned char* restarts;
    Stored* out;  // null if only the chunk's ends are wanted
    float *last, *checkpoints;
    long long seq_len;
    int channels, groups, states;
    int flags;
    bool vectors;  // all rows consist of whole vectors
    int batch, group, channel, end;  // the block's first channel, and the group's end
    long long begin, steps;          // of the chunk
    int tiles, passes;               // of the chunk, and over each tile

    // The first step of a tile of the chunk, and the number of steps from there on, at most a tile.
    __device__ long long first_step(int tile) const { return begin + (long long)tile * kTileSteps; }
    __device__ int left(int tile) const {
        return (int)min(steps - (long long)tile * kTileSteps, (long long)kTileSteps);
    }

    // Where a channel begins in [batch, channels, seq_len], and in [batch, channels, states].
    __device__ long long row(int channel) const { return ((long long)batch * channels + channel) * seq_len; }
    __device__ long long states_of(int channel) const { return ((long long)batch * channels + channel) * states; }
};
// ANCHOR_END: operands

// ANCHOR: shared
// Rows of kTileSteps steps as in memory, in vectors. The vectors of a row are
// permuted, so that the same steps of eight neighbouring rows are in different banks.
template <typename Stored, int kRows>
struct Rows {
    static constexpr int kVectors = kTileSteps / kPerVector<Stored>;
    Vector<Stored> vectors[kRows * kVectors];

    __device__ static int number(int row, int index) {
        return row * kVectors + (index ^ row / (8 / kVectors) % kVectors);
    }
    // From the number of the lane's first vector to its next ones: 32 vectors on,
    // where rows follow each other in the lanes; or two vectors on in the row.
    __device__ static int rows_on(int number, int k) { return (number ^ 4 * k % kVectors) + 32 * k; }
    __device__ static int vectors_on(int number, int k) { return number ^ 2 * k; }

    __device__ Vector<Stored>& at(int row, int index) { return vectors[number(row, index)]; }
    __device__ Stored& element(int row, int step) {
        return at(row, step / kPerVector<Stored>).elems[step % kPerVector<Stored>];
    }
};

// Two steps of a channel: d, d u, d, d u. Behind the walk the first two numbers are
// the steps' sums over the states; for channels 8 to 15 of a warp, the last two.
using Pair = float4;

template <typename Stored, int kStates>
struct Shared {
    static constexpr int kCouplings = 2 * kLanes * kStates;  // B and C of the states walked at once
    Rows<Stored, kWarpChannels> u[3][kWarps], delta[kWarps], z[kWarps];
    Rows<Stored, kCouplings> rows;  // of B, then of C
    Pair pairs[2][kTileSteps / 2][kBlockChannels];
    float couplings[2][kTileSteps][kCouplings];  // B and C again, step by step
    // Where only ends are wanted, the sums of d so far, over every other vector of a channel.
    float sizes[2][kBlockChannels];
    unsigned restarts[2];  // a bit for each step
    bool restarted;        // any so far, where only ends are wanted
};
// ANCHOR_END: shared

// A barrier that all warps of the block reach from different places. barrier.sync is for that:
// with bar.sync, as with __syncthreads, compute-sanitizer expects all of them at one place.
__device__ inline void meet() { asm volatile("barrier.sync 1;" ::: "memory"); }

// ANCHOR: helper
// A warp that helps: it has 16 of the block's channels.
template <typename Stored, int kStates, bool kExact>
struct Helper {
    static constexpr int kPer = kPerVector<Stored>, kVectors = kTileSteps / kPer;
    static constexpr int kCouplings = 2 * kLanes * kStates;
    const Operands<Stored>& operands;
    Shared<Stored, kStates>& shared;
    int helper, helpers, lane;
    int rows;        // how many of its channels exist
    long long base;  // where the first one's row begins
    // Where rows are whole vectors: the first vector of a tile that the lane copies,
    // from the beginning of the chunk; the next ones are kApart rows apart.
    static constexpr int kApart = 32 / kVectors, kMine = kWarpChannels / kApart;
    long long place;
    // The numbers in Rows of the first vector that the lane copies and of the first that it
    // computes with.
    int sent, mine;
    // The row of B or C that the lane copies in the first pass, from the beginning of the chunk;
    // null if it does not vary.
    const Stored* coupling;
    // Of the channel that the lane computes with.
    float D, delta_bias;

    __device__ Helper(const Operands<Stored>& operands, Shared<Stored, kStates>& shared, int helper, int helpers)
        : operands(operands), shared(shared), helper(helper), helpers(helpers), lane(threadIdx.x % 32) {
        const int first = operands.channel + helper * kWarpChannels, channel = first + lane % kWarpChannels;
        rows = min(operands.end - first, kWarpChannels);
        base = operands.row(first) + operands.begin;
        place = base + lane / kVectors * operands.seq_len + step(lane % kVectors);
        sent = Rows<Stored, kWarpChannels>::number(lane / kVectors, lane % kVectors);
        mine = Rows<Stored, kWarpChannels>::number(lane % kWarpChannels, lane / kWarpChannels);
        const int row = lane % kCouplings, state = row % (kCouplings / 2);
        const bool of_B = row < kCouplings / 2;
        const long long group = (long long)operands.batch * operands.groups + operands.group;
        coupling = (const Stored*)(of_B ? operands.B : operands.C);
        if (operands.flags & (of_B ? kVaryingB : kVaryingC)) {
            coupling += (group * operands.states + state) * operands.seq_len + operands.begin;
        } else {
            coupling = nullptr;
        }
        D = operands.D && channel < operands.end ? operands.D[channel] : 0.0f;
        delta_bias = operands.delta_bias && channel < operands.end ? operands.delta_bias[channel] : 0.0f;
    }

    __device__ int step(int index) const { return index * kPer; }
    __device__ int vectors_on(int k) const { return Rows<Stored, kWarpChannels>::vectors_on(mine, k); }

    // Sends the warp's part of a tile to shared memory, with zeros beyond the channels
    // and the length. A whole part needs no test.
    __device__ void send(const Stored* array, Rows<Stored, kWarpChannels>& to, int tile) {
        const long long first = (long long)tile * kTileSteps;
        const int left = operands.left(tile), row = lane / kVectors, index = lane % kVectors;
        if (operands.vectors) {
            const Stored* from = array + (place + first);
            if (rows == kWarpChannels && left == kTileSteps) {
#pragma unroll
                for (int k = 0; k < kMine; k++, from += kApart * operands.seq_len) {
                    copy_vector(&to.vectors[to.rows_on(sent, k)], from);
                }
            } else {
#pragma unroll 1
                for (int k = 0; k < kMine; k++, from += kApart * operands.seq_len) {
                    const bool exists = step(index) < left && row + k * kApart < rows;
                    copy_vector(&to.vectors[to.rows_on(sent, k)], exists ? from : array, exists ? 16 : 0);
                }
            }
        } else {
            copy_elements<kWarpChannels>(
                array, [&](int row) { return &to.element(row, lane); },
                [&](int row) { return base + row * operands.seq_len + first + lane; },
                [&](int row) { return row < rows && lane < left; });
        }
    }

    // The helper's share of the rows of B and C, which it later turns. Row r is state
    // r of the pass, first of B, then of C.
    static constexpr int kAtOnce = 32 / kCouplings > 0 ? 32 / kCouplings : 1;
    template <typename Do>
    __device__ void each_coupling(Do&& act) {
        for (int index = helper * kAtOnce + lane / kCouplings; index < kVectors; index += helpers * kAtOnce) {
            act(lane % kCouplings, index);
        }
    }
    __device__ void send_couplings(int tile, int pass) {
        const int half = kCouplings / 2, left = operands.left(tile);
        const bool known = coupling && lane % half + pass * half < operands.states;
        const long long first = (long long)tile * kTileSteps + (long long)pass * half * operands.seq_len;
        const Stored* from = known ? coupling + first : operands.u;
        each_coupling([&](int row, int index) {
            if (operands.vectors) {
                const bool exists = known && step(index) < left;
                copy_vector(&shared.rows.at(row, index), exists ? from + step(index) : from, exists ? 16 : 0);
            } else {
                copy_elements<kPer>(
                    from, [&](int i) { return &shared.rows.element(row, step(index) + i); },
                    [&](int i) { return step(index) + i; }, [&](int i) { return known && step(index) + i < left; });
            }
        });
    }
    // A lane of the walk reads its states' B and C of a step in vectors.
    __device__ void turn_couplings(int turn) {
        each_coupling([&](int row, int index) {
            float elems[kPer];
            unpack(shared.rows.at(row, index), elems);
            const int half = kCouplings / 2, place = kStates == 4
                ? row : row % half / kStates * (2 * kStates) + row / half * kStates + row % kStates;
#pragma unroll
            for (int i = 0; i < kPer; i++) shared.couplings[turn][step(index) + i][place] = elems[i];
        });
    }

    // True where a sequence begins at the lane's step; and all lanes' answers as bits.
    __device__ bool restart(int tile) const {
        return operands.restarts && lane < operands.left(tile) &&
               operands.restarts[operands.batch * operands.seq_len + operands.first_step(tile) + lane] != 0;
    }
    __device__ void keep_restarts(int tile, bool restart) {
        const unsigned bits = __ballot_sync(kAllLanes, restart);
        if (helper == 0 && lane == 0) {
            shared.restarts[tile % 2] = bits;
            if (bits != 0) shared.restarted = true;
        }
    }

    // Computes d and d u of a tile. Steps behind the last have d = 0 and change no state.
    __device__ void prepare(int tile) {
        const int channel = helper * kWarpChannels + lane % kWarpChannels;
        const int left = operands.left(tile);
        float size = 0.0f;
        float d[kMine][kPer];
        const auto index_of = [&](int j) { return lane / kWarpChannels + j * (32 / kWarpChannels); };
#pragma unroll
        for (int j = 0; j < kMine; j++) {
            unpack(shared.delta[helper].vectors[vectors_on(j)], d[j]);
#pragma unroll
            for (int i = 0; i < kPer; i++) d[j][i] += delta_bias;
        }
        if (operands.flags & kSoftplus) {
#pragma unroll
            for (int i = 0; i < kMine * kPer; i++) d[i / kPer][i % kPer] = softplus<kExact>(d[i / kPer][i % kPer]);
        }
        if (left < kTileSteps) {
#pragma unroll
            for (int i = 0; i < kMine * kPer; i++) {
                if (step(index_of(i / kPer)) + i % kPer >= left) d[i / kPer][i % kPer] = 0.0f;
            }
        }
        if (!operands.out) {
#pragma unroll
            for (int i = 0; i < kMine * kPer; i++) size += d[i / kPer][i % kPer];
        }
#pragma unroll
        for (int j = 0; j < kMine; j++) {
            float u[kPer];
            unpack(shared.u[tile % 3][helper].vectors[vectors_on(j)], u);
            Pair* to = &shared.pairs[tile % 2][step(index_of(j)) / 2][channel];
#pragma unroll
            for (int i = 0; i < kPer; i += 2) {
                to[i / 2 * kBlockChannels] = make_float4(d[j][i], d[j][i] * u[i], d[j][i + 1], d[j][i + 1] * u[i + 1]);
            }
        }
        if (!operands.out) shared.sizes[lane / kWarpChannels][channel] += size;
    }

    // From the sums over the states to the outputs, through the places of u.
    __device__ void finish(int tile) {
        const int channel = helper * kWarpChannels + lane % kWarpChannels, half = channel / 8 % 2;
        Rows<Stored, kWarpChannels>& staged = shared.u[tile % 3][helper];
        float out[kMine][kPer];
        const auto index_of = [&](int j) { return lane / kWarpChannels + j * (32 / kWarpChannels); };
#pragma unroll
        for (int j = 0; j < kMine; j++) {
            float u[kPer];
            unpack(staged.vectors[vectors_on(j)], u);
            const float2* pair = (const float2*)&shared.pairs[tile % 2][step(index_of(j)) / 2][channel] + half;
#pragma unroll
            for (int i = 0; i < kPer; i += 2) {
                const float2 sums = pair[i / 2 * (2 * kBlockChannels)];
                out[j][i] = multiply_add(D, u[i], sums.x);
                out[j][i + 1] = multiply_add(D, u[i + 1], sums.y);
            }
        }
        if (operands.z) {
#pragma unroll
            for (int j = 0; j < kMine; j++) {
                float z[kPer];
                unpack(shared.z[helper].vectors[vectors_on(j)], z);
#pragma unroll
                for (int i = 0; i < kPer; i++) out[j][i] *= z[i] * sigmoid<kExact>(z[i]);
            }
        }
#pragma unroll
        for (int j = 0; j < kMine; j++) staged.vectors[vectors_on(j)] = pack<Stored>(out[j]);
        __syncwarp();
        const long long first = (long long)tile * kTileSteps;
        const int left = operands.left(tile);
        if (operands.vectors) {
            const int row = lane / kVectors, index = lane % kVectors, exist = step(index) < left ? rows - row : 0;
            Stored* to = operands.out + (place + first);
#pragma unroll
            for (int k = 0; k < kMine; k++, to += kApart * operands.seq_len) {
                if (k * kApart < exist) *(Vector<Stored>*)to = staged.vectors[staged.rows_on(sent, k)];
            }
        } else if (lane < left) {
            for (int row = 0; row < rows; row++) {
                operands.out[base + row * operands.seq_len + first + lane] = staged.element(row, lane);
            }
        }
    }

    // Alongside a turn of the walk, which is a pass over a tile: each tile is prepared while the
    // walk is in the one before, and finished while it is in the next. A copy is used a turn later;
    // of u, up to three tiles.
    __device__ void run(long long turn, int tile, int pass) {
        const long long turns = (long long)operands.tiles * operands.passes;
        const int tiles = operands.tiles;
        const bool begins = pass == 0, ready = begins && tile + 1 >= 0 && tile + 1 < tiles;
        const bool restarts = ready && restart(tile + 1), sends = begins && tile + 2 < tiles;
        // Each turn sends two groups of copies. The one before the last has arrived.
        await_groups<1>();
        __syncwarp();
        if (begins && tile > 0 && operands.out) {
            finish(tile - 1);
            __syncwarp();
        }
        if (sends) send(operands.u, shared.u[(tile + 2) % 3][helper], tile + 2);
        if (begins && tile >= 0 && tile < tiles && operands.z) send(operands.z, shared.z[helper], tile);
        close_group();
        await_groups<1>();
        __syncwarp();
        if (ready) {
            prepare(tile + 1);
            keep_restarts(tile + 1, restarts);
        }
        if (turn + 1 >= 0 && turn + 1 < turns) turn_couplings((turn + 1) % 2);
        __syncwarp();
        if (sends) send(operands.delta, shared.delta[helper], tile + 2);
        if (turn + 2 < turns) send_couplings((turn + 2) / operands.passes, (turn + 2) % operands.passes);
        close_group();
    }
};
// ANCHOR_END: helper
