// The fused selective scan in the common case: 8 or 16 states, B and C that vary, no restarts, and
// groups whose channels fill whole warps. The operations and their order are those of
// selective_scan_fwd, which has the explanations and takes all other cases: both give the same
// bits.
//
// As the wanted results are known, addresses stay in registers, and a helper sends the copies of a
// tile at once. And the warps of a block do not meet once a tile: they hand tiles over by
// mbarriers. What goes from warp to warp has two places, in turns. A walk that finds its tile ready
// goes on, and a helper may be ahead by as much as the places hold.
//
// A block has up to eight warps that compute and as many that help; a multiprocessor has one block.
//
// kAligned: all rows consist of vectors of 16 bytes. Otherwise elements are copied one by
// one, each to a place of 4 bytes. kWant: the results of the walk. For the ends of chunks
// those have whole tiles: only the end of a row is not whole, and its states are not needed.
#include "mbarrier.cuh"
#include "selective_scan_held.cuh"
#include "selective_scan_walk.cuh"

namespace plain {

// Not variables: the compiler would make symbols of them, whose names change.
enum : int { kMostWarps = 8, kPlaces = kMostWarps * kWarpChannels };

// ANCHOR: plain_shared
// The type of an element in shared memory.
template <typename Stored, bool kAligned>
struct HeldAs {
    using Type = Stored;
};
template <typename Stored>
struct HeldAs<Stored, false> {
    using Type = float;
};

template <typename Held, int kStates>
struct Shared {
    static constexpr int kCouplings = 2 * kLanes * kStates;
    using Part = Rows<Held, kWarpChannels>;
    Pair pairs[2][kTileSteps / 2][kPlaces];
    float couplings[2][kTileSteps][kCouplings];
    Part u[3][kMostWarps], delta[2][kMostWarps], z[2][kMostWarps];
    Rows<Held, kCouplings> rows[2];
    // mbarriers whose phases are tiles, two in turns: `ready`, pairs and couplings are there (from
    // all helpers); `read`, couplings have been read; `sums`, a warp's sums are ready (both from
    // those that compute).
    unsigned long long ready[2], read[2], sums[kMostWarps][2];
};
// ANCHOR_END: plain_shared

// ANCHOR: plain_given
// The kernel's arguments, and the block's part of them.
template <typename Stored>
struct Given {
    const Stored *u, *delta, *z, *B, *C;
    const float *D, *delta_bias;
    Stored* out;
    int batches, channels, groups, states, flags;
    long long seq_len;
    int batch, group, channel, pairs;  // the first channel; the number of warps that compute
    long long begin;
    int steps;  // of the chunk

    __device__ long long row(int channel) const { return ((long long)batch * channels + channel) * seq_len; }
    __device__ long long states_of(int channel) const { return ((long long)batch * channels + channel) * states; }
};
// ANCHOR_END: plain_given

// The mbarriers of a helper and its computing warp: for each the first place, and behind it the
// second.
struct Phases {
    unsigned ready, read, sums;
};

// ANCHOR: plain_helper
// A warp that helps: it has 16 of the block's channels.
template <typename Stored, int kStates, bool kAligned, Wanted kWanted, bool kExact>
struct Helper {
    using Held = typename HeldAs<Stored, kAligned>::Type;
    using AllShared = Shared<Held, kStates>;
    using Part = typename AllShared::Part;
    using Vectors = Numbers<Stored, kAligned>;
    static constexpr int kPer = Vectors::kPer, kVectors = kTileSteps / kPer;
    static constexpr int kCouplings = AllShared::kCouplings;
    static constexpr int kAtOnce = 32 / kCouplings;  // vectors of a row of B or C for a warp
    static constexpr int kApart = 32 / kVectors, kMine = kWarpChannels / kApart;
    static constexpr bool kSums = kWanted != kEnds;
    // The vectors that a lane computes with; the two halves of the warp take 16 bytes of the
    // stored row in turns, in the order of selective_scan_fwd, so that sums have the same bits.
    __device__ static constexpr int index_of(int half, int j) {
        constexpr int kRun = kPerVector<Stored> / kPer;
        return half * kRun + j % kRun + j / kRun * (2 * kRun);
    }
    // Bytes from one place to the next.
    static constexpr int kPart = kMostWarps * sizeof(Part);
    static constexpr int kDelta = 3 * kPart, kZ = 5 * kPart, kRows = sizeof(Rows<Held, kCouplings>);
    static constexpr int kPairs = sizeof(AllShared::pairs) / 2, kSteps = sizeof(AllShared::couplings) / 2;
    static constexpr int kStepsBytes = kPer * kCouplings * 4;  // of a vector of B or C

    const Stored *u, *delta, *z, *coupling;  // the lane's next elements
    Stored* out;
    long long stride;  // bytes from one row to the next
    const Given<Stored>& given;
    unsigned part, sent[2], mine[kMine], pairs;
    unsigned row, steps;  // of the lane's first vector of B or C: source, target
    int own_vector, first_vector;  // step of its copies; first vector of B or C
    int upper_u, upper_delta, upper_z, upper_coupling;
    float D, bias, size = 0.0f;
    bool soft, gated;
    int before = 0, now = kPart, next = 2 * kPart;  // u's places: every third tile has the same

    __device__ Helper(const Given<Stored>& given, AllShared& shared, int helper) : given(given) {
        const int lane = threadIdx.x % 32, first = given.channel + helper * kWarpChannels;
        const int own = lane % kWarpChannels, channel = first + own;
        own_vector = kAligned ? lane % kVectors * kPer : lane;
        const long long place = given.row(first) + given.begin + (kAligned ? lane / kVectors * given.seq_len : 0) + own_vector;
        u = given.u + place, delta = given.delta + place, z = given.z + place, out = given.out + place;
        stride = (kAligned ? kApart : 1) * given.seq_len * (long long)sizeof(Stored);
        part = shared_address(&shared.u[0][helper]);
        const int number = Part::number(lane / kVectors, lane % kVectors);
        if (kAligned) {
            sent[0] = held_back(part + 16 * number), sent[1] = held_back(part + 16 * Part::rows_on(number, 1));
        } else {
            sent[0] = lane * 4, sent[1] = 0;
        }
#pragma unroll
        for (int j = 0; j < kMine; j++) mine[j] = held_back(part + 16 * Part::number(own, index_of(lane / kWarpChannels, j)));
        pairs = held_back(
            shared_address(&shared.pairs[0][index_of(lane / kWarpChannels, 0) * kPer / 2][helper * kWarpChannels + own]));
        const int of = lane % kCouplings, half = kCouplings / 2, state = of % half;
        const long long group = (long long)given.batch * given.groups + given.group;
        first_vector = helper * kAtOnce + lane / kCouplings;
        coupling = (of < half ? given.B : given.C) + (group * given.states + state) * given.seq_len + given.begin +
                   first_vector * kPer;
        row = held_back(shared_address(&shared.rows[0]) + row_at(first_vector));
        const int column = kStates == 4 ? of : state / kStates * (2 * kStates) + of / half * kStates + of % kStates;
        steps = held_back(shared_address(&shared.couplings[0][0][column]) + first_vector * kStepsBytes);
        D = given.D ? given.D[channel] : 0.0f;
        bias = given.delta_bias ? given.delta_bias[channel] : 0.0f;
        soft = given.flags & kSoftplus, gated = given.z;
        if (!kAligned) {
            const long long own_row = given.row(channel) + given.begin;
            upper_u = half_of(given.u + own_row), upper_delta = half_of(given.delta + own_row);
            upper_z = half_of(given.z + own_row), upper_coupling = half_of(coupling);
        }
    }

    __device__ static unsigned row_at(int vector) {
        return Rows<Held, kCouplings>::number(threadIdx.x % 32 % kCouplings, vector) * 16;
    }
    // Calls act(vectors behind the first, bytes in the row, bytes in the steps) for each of the
    // lane's vectors of B or C. In a block of few warps there are several; only the first one's
    // address is kept.
    template <typename Act>
    __device__ void each_coupling(const Act& act) const {
        if (first_vector >= kVectors) return;
        act(0, 0, 0);
        const int apart = given.pairs * kAtOnce;
#pragma unroll 1
        for (int v = first_vector + apart; v < kVectors; v += apart) {
            act(v - first_vector, row_at(v) - row_at(first_vector), (v - first_vector) * kStepsBytes);
        }
    }

    __device__ const Stored* next_row(const Stored* row) const { return (const Stored*)((const char*)row + stride); }
    __device__ Stored* next_row(Stored* row) const { return (Stored*)((char*)row + stride); }

    // Copies the warp's part of a tile of an array, of which `left` steps exist, to the place of
    // u[0] or `behind` bytes behind it.
    template <bool kSteady>
    __device__ void send(int behind, const Stored* from, int left, const Stored* array) const {
        if constexpr (kAligned) {
            const bool exists = kSteady || own_vector < left;
#pragma unroll
            for (int k = 0; k < kMine; k++, from = next_row(from)) {
                copy_16(sent[k % 2] + behind + k / 2 * 1024, from, exists);
            }
        } else {
            const Stored* end = array + (long long)given.batches * given.channels * given.seq_len;
#pragma unroll
            for (int row = 0; row < kWarpChannels; row++, from = next_row(from)) {
                copy_element(part + behind + row * 128 + (sent[0] ^ row % 8 * 16), from, kSteady || own_vector < left, end);
            }
        }
    }
    // Copies all of a tile but z: u into its third of places, and the rest in turns.
    template <bool kSteady>
    __device__ void send_tile(int stage, int turn, int left) {
        send<kSteady>(stage, u, left, given.u);
        send<kSteady>(kDelta + turn * kPart, delta, left, given.delta);
        each_coupling([&](int behind, unsigned in_row, unsigned) {
            const unsigned to = row + turn * kRows + in_row;
            const Stored* from = coupling + behind * kPer;
            const int first = (first_vector + behind) * kPer;
            if constexpr (kAligned) {
                copy_16(to, from, kSteady || first < left);
            } else {
                const bool of_B = threadIdx.x % 32 % kCouplings < kCouplings / 2;
                const Stored* end = (of_B ? given.B : given.C) +
                                    (long long)given.batches * given.groups * given.states * given.seq_len;
#pragma unroll
                for (int i = 0; i < kPer; i++) copy_element(to + 4 * i, from + i, kSteady || first + i < left, end);
            }
        });
        u += kTileSteps, delta += kTileSteps, coupling += kTileSteps;
    }
    template <bool kSteady>
    __device__ void send_gate(int turn, int left) {
        if (!kSums || !(kSteady || gated)) return;
        send<kSteady>(kZ + turn * kPart, z, left, given.z);
        z += kTileSteps;
    }

    // Computes d and d u of a tile, and lays out B and C step by step.
    template <bool kSteady>
    __device__ void prepare(int stage, int turn, int left) {
        float d[kMine][kPer];
#pragma unroll
        for (int j = 0; j < kMine; j++) {
            Vectors::read(mine[j] + kDelta + turn * kPart, upper_delta, d[j]);
#pragma unroll
            for (int i = 0; i < kPer; i++) d[j][i] += bias;
        }
        if (kSteady || soft) {
#pragma unroll
            for (int i = 0; i < kMine * kPer; i++) d[i / kPer][i % kPer] = softplus<kExact>(d[i / kPer][i % kPer]);
        }
        if constexpr (!kSums) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < kMine * kPer; i++) sum += d[i / kPer][i % kPer];
            size += sum;
        }
#pragma unroll
        for (int j = 0; j < kMine; j++) {
            float x[kPer];
            Vectors::read(mine[j] + stage, upper_u, x);
#pragma unroll
            for (int i = 0; i < kPer; i += 2) {
                store_vector(pairs + turn * kPairs + (index_of(0, j) * kPer / 2 + i / 2) * kPlaces * 16,
                             make_float4(d[j][i], d[j][i] * x[i], d[j][i + 1], d[j][i + 1] * x[i + 1]));
            }
        }
        if (!kSteady && kSums && left < kTileSteps) {
            // Steps behind the end change nothing. Cleared in memory, as a test in each number
            // would cost in each tile.
            __syncwarp();
            const int half = threadIdx.x % 32 / kWarpChannels;
            const unsigned column = pairs + turn * kPairs - index_of(half, 0) * kPer / 2 * (kPlaces * 16);
#pragma unroll 1
            for (int step = left + half; step < kTileSteps; step += 2) {
                store_two(column + step / 2 * (kPlaces * 16) + step % 2 * 8, make_float2(0.0f, 0.0f));
            }
        }
        each_coupling([&](int, unsigned in_row, unsigned in_steps) {
            float elems[kPer];
            Vectors::read(row + turn * kRows + in_row, upper_coupling, elems);
#pragma unroll
            for (int i = 0; i < kPer; i++) store_one(steps + turn * kSteps + in_steps + i * kCouplings * 4, elems[i]);
        });
    }

    // From the sums over the states to the outputs, through the places of u.
    template <bool kSteady>
    __device__ void finish(int stage, int turn, int left) {
        const int half = threadIdx.x % kWarpChannels / 8 * 8;
        float y[kMine][kPer];
#pragma unroll
        for (int j = 0; j < kMine; j++) {
            float x[kPer];
            Vectors::read(mine[j] + stage, upper_u, x);
#pragma unroll
            for (int i = 0; i < kPer; i += 2) {
                const float2 sums = load_two(pairs + half + turn * kPairs + (index_of(0, j) * kPer / 2 + i / 2) * kPlaces * 16);
                y[j][i] = multiply_add(D, x[i], sums.x);
                y[j][i + 1] = multiply_add(D, x[i + 1], sums.y);
            }
        }
        if (kSteady || gated) {
#pragma unroll
            for (int j = 0; j < kMine; j++) {
                float gate[kPer];
                Vectors::read(mine[j] + kZ + turn * kPart, upper_z, gate);
#pragma unroll
                for (int i = 0; i < kPer; i++) y[j][i] *= gate[i] * sigmoid<kExact>(gate[i]);
            }
        }
#pragma unroll
        for (int j = 0; j < kMine; j++) store_vector(mine[j] + stage, Vectors::held(y[j]));
        __syncwarp();
        Stored* to = out;
        out += kTileSteps;
        if (!kSteady && own_vector >= left) return;
        if constexpr (kAligned) {
#pragma unroll
            for (int k = 0; k < kMine; k++, to = next_row(to)) {
                *(uint4*)to = load_vector(sent[k % 2] + stage + k / 2 * 1024);
            }
        } else {
#pragma unroll
            for (int row = 0; row < kWarpChannels; row++, to = next_row(to)) {
                const unsigned word = load_word(part + stage + row * 128 + (sent[0] ^ row % 8 * 16));
                if constexpr (sizeof(Stored) == 4) {
                    *to = __uint_as_float(word);
                } else {
                    *to = Stored{(unsigned short)word};
                }
            }
        }
    }

    // Alongside a tile of the walk: outputs of the tile before, copies for the one after the
    // next, and preparation of the next. kSteady: all these tiles exist and are whole, with
    // softplus and gate. Then nothing is tested, and the compiler interleaves the three parts.
    template <bool kSteady>
    __device__ void beside(int tile, int tiles, const Phases& phases) {
        const int turn = tile & 1, other = 1 - turn, parity = (tile - 1) >> 1 & 1;
        const bool prepares = kSteady || (tile >= -1 && tile + 1 < tiles);
        const int left = given.steps - tile * kTileSteps;
        if (kSums && (kSteady || tile > 0)) {
            await_phase(phases.sums + 8 * other, parity);
            finish<kSteady>(before, other, left + kTileSteps);
        }
        if (kSteady || tile + 2 < tiles) send_tile<kSteady>(before, turn, left - 2 * kTileSteps);
        if (prepares) send_gate<kSteady>(other, left - kTileSteps);
        close_group();
        await_groups<1>();
        __syncwarp();
        if (prepares) {
            if (kSteady || tile > 0) await_phase(phases.read + 8 * other, parity);
            prepare<kSteady>(next, other, left - kTileSteps);
            arrive(phases.ready + 8 * other);
        }
        const int was = before;
        before = now, now = next, next = was;
    }
};
// ANCHOR_END: plain_helper

}  // namespace plain

// ANCHOR: plain
template <typename Stored, int kStates, bool kAligned, int kWant, bool kExact>
__global__ void __launch_bounds__(2 * 32 * plain::kMostWarps, 1)
    selective_scan_fwd_plain(const Stored* u, const Stored* delta, const float* A, const void* B, const void* C,
                             const float* D, const Stored* z, const float* delta_bias, const float* initial,
                             const unsigned char* restarts, Stored* out, float* last, float* checkpoints, float* carries,
                             float* sizes, int batches, int channels, int groups, int states, long long seq_len,
                             long long chunk_steps, int flags) {
    using namespace plain;
    constexpr Wanted kWanted = (Wanted)kWant;
    constexpr bool kSums = kWanted != kEnds;
    using AHelper = plain::Helper<Stored, kStates, kAligned, kWanted, kExact>;
    using AllShared = typename AHelper::AllShared;
    extern __shared__ uint4 memory[];
    AllShared& shared = *(AllShared*)memory;
    const int warps = blockDim.x / 64, warp = __shfl_sync(kAllLanes, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int per_group = channels / groups, per_block = warps * kWarpChannels;
    const int blocks_per_group = (per_group + per_block - 1) / per_block;
    const int block_of_group = blockIdx.x % blocks_per_group, chunk_group = blockIdx.x / blocks_per_group;
    const int batch_group = chunk_group % (batches * groups), chunk = chunk_group / (batches * groups);
    Given<Stored> given = {u, delta, z, (const Stored*)B, (const Stored*)C, D, delta_bias, out, batches, channels, groups,
                           kLanes * kStates, flags, seq_len};
    given.batch = batch_group / groups, given.group = batch_group % groups;
    given.channel = given.group * per_group + block_of_group * per_block;
    given.pairs = min(warps, per_group / kWarpChannels - block_of_group * warps);
    given.begin = chunk * chunk_steps;
    given.steps = (int)min(chunk_steps, seq_len - given.begin);
    const int tiles = (given.steps + kTileSteps - 1) / kTileSteps;
    const long long all_states = (long long)batches * channels * (kLanes * kStates);
    if (chunk > 0) initial = kSums ? carries + (chunk - 1) * all_states : nullptr;
    if (!kSums) last = carries + chunk * all_states;
    if (kSums && given.begin + given.steps < seq_len) last = nullptr;

    const unsigned ready = shared_address(shared.ready), read = shared_address(shared.read);
    if (threadIdx.x < 2) {
        begin_phases(ready + 8 * threadIdx.x, given.pairs);
        begin_phases(read + 8 * threadIdx.x, given.pairs);
        for (int i = 0; i < given.pairs; i++) begin_phases(shared_address(&shared.sums[i][threadIdx.x]), 1);
    }
    __syncthreads();
    const int pair = warp < warps ? warp : warp - warps;
    if (pair >= given.pairs) return;
    const unsigned sums = shared_address(shared.sums[pair]);

    if (warp < warps) {
        // The number of unrolled steps, as measured: the code of both kinds of warps shares the
        // instruction cache.
        constexpr int kBlock = !kAligned ? 8 : kWanted == kEnds ? 32 : 16;
        const int kept_steps = kWanted == kOutputsAndStates && checkpoints ? given.steps : 0;
        Walk<kStates, kExact, kPlaces> walk;
        const int first = warp * kWarpChannels + lane % 8;
        walk.part = lane / 8;
        walk.channel[0] = first + 8 * (walk.part % 2);
        walk.channel[1] = first + 8 * (1 - walk.part % 2);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const int channel = given.channel + walk.channel[c];
#pragma unroll
            for (int n = 0; n < kStates; n++) {
                const int state = walk.part * kStates + n;
                walk.states[c][n] = initial ? initial[given.states_of(channel) + state] : 0.0f;
                walk.rates[c][n] = A[(long long)channel * (kLanes * kStates) + state] * kLog2E;
            }
        }
#pragma unroll 1
        for (int tile = 0; tile < tiles; tile++) {
            const int turn = tile % 2, parity = tile / 2 % 2;
            await_phase(ready + 8 * turn, parity);
            Pair* pairs = shared.pairs[turn][0];
            float* sums_to = (float*)(pairs + walk.channel[0]) + walk.part % 2 * 2 + walk.part / 2;
            const auto at_checkpoint = [&](int step) {
                const int from_begin = tile * kTileSteps + step;
                if (from_begin >= kept_steps) return;
                const long long row = given.batch * ((seq_len + kCheckpointSteps - 1) / kCheckpointSteps) +
                                      (given.begin + from_begin) / kCheckpointSteps;
                float* to = checkpoints + row * channels * (kLanes * kStates) + walk.part * kStates;
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    const float(&h)[kStates] = walk.states[c];
                    float* place = to + (long long)(given.channel + walk.channel[c]) * (kLanes * kStates);
                    if constexpr (kStates == 4) {
                        *(float4*)place = make_float4(h[0], h[1], h[2], h[3]);
                    } else {
                        *(float2*)place = make_float2(h[0], h[1]);
                    }
                }
            };
            walk.template tile<kBlock, false, kWanted>(
                pairs, shared.couplings[turn][0], {nullptr, nullptr, 0}, 0, at_checkpoint,
                [&](int block, const float(&of)[kBlock / 2]) {
#pragma unroll
                    for (int i = 0; i < kBlock / 2; i++) sums_to[(block * (kBlock / 2) + i) * (4 * kPlaces)] = of[i];
                });
            if constexpr (kSums) {
                arrive(read + 8 * turn, sums + 8 * turn);
            } else {
                arrive(read + 8 * turn);
            }
        }
        if (last) {
#pragma unroll
            for (int c = 0; c < 2; c++) {
#pragma unroll
                for (int n = 0; n < kStates; n++) {
                    last[given.states_of(given.channel + walk.channel[c]) + walk.part * kStates + n] = walk.states[c][n];
                }
            }
        }
    } else {
        AHelper helper(given, shared, pair);
        const Phases phases = {ready, read, sums};
        // As measured: for ends of chunks with 16 states, and for rows of any length,
        // which are mostly copies, twice the code gains nothing.
        constexpr bool kHasSteady = kAligned && (kWanted == kOutputs || kStates == 2);
        const int steady = helper.soft && (helper.gated || !kSums) ? given.steps / kTileSteps - 2 : 0;
#pragma unroll 1
        for (int tile = -2; tile <= tiles; tile++) {
            if (kHasSteady && tile == 1) {
#pragma unroll 1
                for (; tile < steady; tile++) helper.template beside<true>(tile, tiles, phases);
            }
            helper.template beside<false>(tile, tiles, phases);
        }
        if constexpr (!kSums) {
            const float of_others = __shfl_down_sync(kAllLanes, helper.size, kWarpChannels);
            const int channel = given.channel + pair * kWarpChannels + lane;
            const long long row = ((long long)chunk * batches + given.batch) * channels;
            if (lane < kWarpChannels) sizes[row + channel] = helper.size + of_others;
        }
    }
}
// ANCHOR_END: plain
