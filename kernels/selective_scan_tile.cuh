// How a tile of the selective scan's forward pass comes from memory to where the states are walked, and its outputs
// back: the work of the warps that help. `selective_scan_fwd.cu` says who does what.
#pragma once
#include "selective_scan.cuh"

constexpr int kWarps = 4;          // that compute, at most, and as many that help
constexpr int kWarpChannels = 16;  // of a warp that computes, and of one that helps
constexpr int kLanes = 4;          // that share a channel
constexpr int kTileSteps = 32;
constexpr int kBlockChannels = kWarps * kWarpChannels;

// ANCHOR: operands
// What the kernel is given, and which part of it is the block's.
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
    bool vectors;  // whether all rows are made of whole vectors
    int batch, group, channel, end;  // the block's first channel, and where its group ends
    long long begin, steps;          // of the chunk
    int tiles, passes;               // of the chunk, and over each tile

    // The first step of a tile of the chunk, and how many there are from that on, if less than a tile.
    __device__ long long first_step(int tile) const { return begin + (long long)tile * kTileSteps; }
    __device__ int left(int tile) const {
        return (int)min(steps - (long long)tile * kTileSteps, (long long)kTileSteps);
    }

    // Where a channel's row begins in [batch, channels, seq_len], and its states in [batch, channels, states].
    __device__ long long row(int channel) const { return ((long long)batch * channels + channel) * seq_len; }
    __device__ long long states_of(int channel) const { return ((long long)batch * channels + channel) * states; }
};
// ANCHOR_END: operands

// ANCHOR: shared
// Rows of kTileSteps steps as they lie in memory, in vectors. The vectors of a row are permuted, so that those of the
// same steps in eight neighbouring rows lie in different banks.
template <typename Stored, int kRows>
struct Rows {
    static constexpr int kVectors = kTileSteps / kPerVector<Stored>;
    Vector<Stored> vectors[kRows * kVectors];

    __device__ Vector<Stored>& at(int row, int index) {
        return vectors[row * kVectors + (index ^ row / (8 / kVectors) % kVectors)];
    }
    __device__ Stored& element(int row, int step) {
        return at(row, step / kPerVector<Stored>).elems[step % kPerVector<Stored>];
    }
};

// Two steps of a channel: d, d u, d, d u. Behind the walk the first two numbers are the steps' sums over the states,
// or, of channels 8 to 15 of a warp, the last two.
using Pair = float4;

template <typename Stored, int kStates>
struct Shared {
    static constexpr int kCouplings = 2 * kLanes * kStates;  // B and C of the states that are walked at once
    Rows<Stored, kWarpChannels> u[3][kWarps], delta[kWarps], z[kWarps];
    Rows<Stored, kCouplings> rows;  // of B, then of C
    Pair pairs[2][kTileSteps / 2][kBlockChannels];
    float couplings[2][kTileSteps][kCouplings];  // B and C again, step by step
    // Where only ends are wanted, the sums of d so far: of the steps in every other vector of a channel.
    float sizes[2][kBlockChannels];
    unsigned restarts[2];  // a bit for each step
    bool restarted;        // whether there was any, where only ends are wanted
};
// ANCHOR_END: shared

// ANCHOR: helper
// A warp that helps: it has 16 of the block's channels.
template <typename Stored, int kStates, bool kExact>
struct Helper {
    static constexpr int kPer = kPerVector<Stored>, kVectors = kTileSteps / kPer;
    static constexpr int kCouplings = 2 * kLanes * kStates;
    const Operands<Stored>& operands;
    Shared<Stored, kStates>& shared;
    int helper, helpers, lane;
    int rows;        // how many of its channels there are
    long long base;  // where the first one's row begins
    // Of the channel that the lane computes with.
    float D, delta_bias;

    __device__ Helper(const Operands<Stored>& operands, Shared<Stored, kStates>& shared, int helper, int helpers)
        : operands(operands), shared(shared), helper(helper), helpers(helpers), lane(threadIdx.x % 32) {
        const int first = operands.channel + helper * kWarpChannels, mine = first + lane % kWarpChannels;
        rows = min(operands.end - first, kWarpChannels);
        base = operands.row(first) + operands.begin;
        // Places that follow from these are not to be kept in registers while the other warps need all they have.
        asm volatile("" : "+l"(base), "+r"(this->helper));
        D = operands.D && mine < operands.end ? operands.D[mine] : 0.0f;
        delta_bias = operands.delta_bias && mine < operands.end ? operands.delta_bias[mine] : 0.0f;
    }

    __device__ int step(int index) const { return index * kPer; }

    // Sends the warp's part of a tile to shared memory; beyond the channels and the length it is zero.
    __device__ void send(const Stored* array, Rows<Stored, kWarpChannels>& to, int tile) {
        const long long first = (long long)tile * kTileSteps;
        const int left = operands.left(tile);
        if (operands.vectors) {
#pragma unroll
            for (int k = 0; k < kWarpChannels * kVectors / 32; k++) {
                const int row = (lane + 32 * k) / kVectors, index = lane % kVectors;
                const bool exists = row < rows && step(index) < left;
                const Stored* from = array + (exists ? base + row * operands.seq_len + first + step(index) : 0);
                copy_vector(&to.at(row, index), from, exists ? 16 : 0);
            }
        } else {
#pragma unroll 4
            for (int row = 0; row < kWarpChannels; row++) {
                const bool exists = row < rows && lane < left;
                copy_element(&to.element(row, lane), array + (exists ? base + row * operands.seq_len + first + lane : 0),
                             exists);
            }
        }
    }

    // The helper's share of the rows of B and C: what it sends it also turns. Row r is state r of the pass, first of
    // B, then of C.
    static constexpr int kAtOnce = 32 / kCouplings > 0 ? 32 / kCouplings : 1;
    template <typename Do>
    __device__ void each_coupling(Do&& act) {
        for (int index = helper * kAtOnce + lane / kCouplings; index < kVectors; index += helpers * kAtOnce) {
            act(lane % kCouplings, index);
        }
    }
    __device__ void send_couplings(int tile, int pass) {
        each_coupling([&](int row, int index) {
            const int state = row % (kCouplings / 2) + pass * (kCouplings / 2);
            const long long first = operands.first_step(tile) + step(index);
            const int left = operands.left(tile) - step(index);
            const Stored* array = (const Stored*)(row < kCouplings / 2 ? operands.B : operands.C);
            const long long group = (long long)operands.batch * operands.groups + operands.group;
            const long long at = (group * operands.states + state) * operands.seq_len + first;
            const bool known = state < operands.states &&
                               (operands.flags & (row < kCouplings / 2 ? kVaryingB : kVaryingC)) != 0;
            if (operands.vectors) {
                const bool exists = known && left > 0;
                copy_vector(&shared.rows.at(row, index), array + (exists ? at : 0), exists ? 16 : 0);
            } else {
                for (int i = 0; i < kPer; i++) {
                    const bool exists = known && i < left;
                    copy_element(&shared.rows.element(row, step(index) + i), array + (exists ? at + i : 0), exists);
                }
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

    // Whether a sequence begins at the lane's step of a tile; and that of all lanes as bits.
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

    // d and d u of a tile. Steps behind the last one have d = 0: they leave every state as it is.
    __device__ void prepare(int tile) {
        const int channel = helper * kWarpChannels + lane % kWarpChannels;
        const int left = operands.left(tile);
        float size = 0.0f;
#pragma unroll 2
        for (int index = lane / kWarpChannels; index < kVectors; index += 32 / kWarpChannels) {
            float u[kPer], d[kPer];
            unpack(shared.u[tile % 3][helper].at(lane % kWarpChannels, index), u);
            unpack(shared.delta[helper].at(lane % kWarpChannels, index), d);
#pragma unroll
            for (int i = 0; i < kPer; i++) d[i] += delta_bias;
            if (operands.flags & kSoftplus) {
#pragma unroll
                for (int i = 0; i < kPer; i++) d[i] = softplus<kExact>(d[i]);
            }
            if (left < kTileSteps) {
#pragma unroll
                for (int i = 0; i < kPer; i++) d[i] = step(index) + i < left ? d[i] : 0.0f;
            }
            if (!operands.out) {
#pragma unroll
                for (int i = 0; i < kPer; i++) size += d[i];
            }
#pragma unroll
            for (int i = 0; i < kPer; i += 2) {
                shared.pairs[tile % 2][(step(index) + i) / 2][channel] =
                    make_float4(d[i], d[i] * u[i], d[i + 1], d[i + 1] * u[i + 1]);
            }
        }
        if (!operands.out) shared.sizes[lane / kWarpChannels][channel] += size;
    }

    // From the sums over the states to the outputs, by way of where u was.
    __device__ void finish(int tile) {
        const int channel = helper * kWarpChannels + lane % kWarpChannels, half = channel / 8 % 2;
        Rows<Stored, kWarpChannels>& staged = shared.u[tile % 3][helper];
#pragma unroll 2
        for (int index = lane / kWarpChannels; index < kVectors; index += 32 / kWarpChannels) {
            Vector<Stored>& vector = staged.at(lane % kWarpChannels, index);
            float u[kPer], out[kPer];
            unpack(vector, u);
#pragma unroll
            for (int i = 0; i < kPer; i += 2) {
                const Pair* pair = &shared.pairs[tile % 2][(step(index) + i) / 2][channel];
                const float2 sums = ((const float2*)pair)[half];
                out[i] = multiply_add(D, u[i], sums.x);
                out[i + 1] = multiply_add(D, u[i + 1], sums.y);
            }
            if (operands.z) {
                float z[kPer];
                unpack(shared.z[helper].at(lane % kWarpChannels, index), z);
#pragma unroll
                for (int i = 0; i < kPer; i++) out[i] *= z[i] * sigmoid<kExact>(z[i]);
            }
            vector = pack<Stored>(out);
        }
        __syncwarp();
        const long long first = (long long)tile * kTileSteps;
        const int left = operands.left(tile);
        if (operands.vectors) {
#pragma unroll
            for (int k = 0; k < kWarpChannels * kVectors / 32; k++) {
                const int row = (lane + 32 * k) / kVectors, index = lane % kVectors;
                if (row < rows && step(index) < left) {
                    *(Vector<Stored>*)(operands.out + base + row * operands.seq_len + first + step(index)) =
                        staged.at(row, index);
                }
            }
        } else if (lane < left) {
            for (int row = 0; row < rows; row++) {
                operands.out[base + row * operands.seq_len + first + lane] = staged.element(row, lane);
            }
        }
    }

    // Beside a turn of the walk, which is a pass over a tile: each tile is made ready while the walk is in the one
    // before, and finished while it is in the next. What is sent is used a turn later or, of u, up to three tiles.
    __device__ void run(long long turn, int tile, int pass) {
        const long long turns = (long long)operands.tiles * operands.passes;
        const int tiles = operands.tiles;
        const bool begins = pass == 0, ready = begins && tile + 1 >= 0 && tile + 1 < tiles;
        const bool restarts = ready && restart(tile + 1);
        await_copies();
        __syncwarp();
        if (begins && tile > 0 && operands.out) finish(tile - 1);
        if (ready) {
            prepare(tile + 1);
            keep_restarts(tile + 1, restarts);
        }
        if (turn + 1 >= 0 && turn + 1 < turns) turn_couplings((turn + 1) % 2);
        __syncwarp();
        if (begins && tile + 2 < tiles) {
            send(operands.u, shared.u[(tile + 2) % 3][helper], tile + 2);
            send(operands.delta, shared.delta[helper], tile + 2);
        }
        if (begins && tile >= 0 && tile < tiles && operands.z) send(operands.z, shared.z[helper], tile);
        if (turn + 2 < turns) send_couplings((turn + 2) / operands.passes, (turn + 2) % operands.passes);
    }
};
// ANCHOR_END: helper
