// The selective scan in one kernel: states stay in registers and decays are computed
// on the way, so memory moves three inputs and one output, none with a state's index.
//
// A block walks along the whole length with some channels of one batch, in tiles of kTileSteps
// steps. Half of its warps compute and hold the states: a lane has kStates states of two channels,
// and four lanes have all the states that are walked at once. The other half helps: each warp
// brings tiles of 16 channels to shared memory, applies softplus, and lays d and d u side by side,
// step by step; behind the walk it adds D u, applies the gate and stores the outputs. Both work at
// the same time, on different tiles, and meet at one barrier a tile, which they reach in loops of
// their own.
//
// Arrays: u, delta, z and out are [batch, channels, seq_len], B and C [batch, groups, states,
// seq_len] or, as constants, [channels, states], A [channels, states], D and delta_bias [channels],
// initial and last [batch, channels, states], restarts [batch, seq_len], checkpoints [batch,
// ceil(seq_len / 8), channels, states]: the states before each eighth step. D, z, delta_bias,
// initial, restarts, last and checkpoints may be null. Each channels / groups channels share B and
// C.
//
// Where channels are few, sequences are cut into chunks of chunk_steps steps, whole
// tiles, and each chunk has its blocks. Then there are three launches; the first one,
// with `sizes`, computes only the ends of chunks: see `selective_scan_ends.cuh`.
//
// Launch: a block has 64 * warps threads, up to kWarps warps that compute. For each chunk and
// batch, each group has a block for every 16 * warps of its channels; the last may have fewer.
// Dynamic shared memory: Shared and, with kMany, for each lane that computes 32 bytes for the
// states of each pass, and 64 for sums; then, if B or C is constant, 16 * kStates for each.
//
// Template parameters: the stored type; how many states a lane has of a channel; whether there are
// more than 4 * kStates states, so that they are walked 4 * kStates at a time; exact functions or
// not.
#include "selective_scan_ends.cuh"
#include "selective_scan_walk.cuh"

// ANCHOR: compute
// A warp that computes. With kMany, `kept` holds the states of each pass and the sums of a tile.
template <typename Stored, int kStates, bool kMany, bool kExact>
struct Computer {
    static constexpr int kPassStates = kLanes * kStates;
    const Operands<Stored>& operands;
    Shared<Stored, kStates>& shared;
    float4* kept;
    float* earlier;  // sums over the states of earlier passes
    int threads;
    Walk<kStates, kExact, kBlockChannels> walk;

    __device__ Computer(const Operands<Stored>& operands, Shared<Stored, kStates>& shared)
        : operands(operands), shared(shared), kept((float4*)(&shared + 1)), threads(blockDim.x / 2) {
        const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * kWarpChannels + lane % 8;
        walk.part = lane / 8;
        walk.channel[0] = first + 8 * (walk.part % 2);
        walk.channel[1] = first + 8 * (1 - walk.part % 2);
        earlier = (float*)(kept + operands.passes * 2 * threads) + threadIdx.x;
    }

    // Calls act(state, rate, its channel, its number) for each of the lane's states in a pass.
    template <typename Act>
    __device__ void each_state(int pass, Act&& act) {
        int first = operands.channel;
        // Keeps the compiler from holding what follows in registers from tile to tile, where these
        // are scarce.
        if constexpr (!kMany || !kExact) asm volatile("" : "+r"(first));
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const int channel = first + walk.channel[c];
#pragma unroll
            for (int n = 0; n < kStates; n++) {
                const int state = pass * kPassStates + walk.part * kStates + n;
                if (channel < operands.end && state < operands.states) {
                    act(walk.states[c][n], walk.rates[c][n], channel, state);
                }
            }
        }
    }
    // States that do not exist begin as zero and stay zero.
    __device__ void set_states(int pass) {
#pragma unroll
        for (int i = 0; i < 2 * kStates; i++) walk.states[i / kStates][i % kStates] = 0;
        if (!operands.initial) return;
        each_state(pass, [&](float& state, float&, int channel, int n) {
            state = operands.initial[operands.states_of(channel) + n];
        });
    }
    __device__ void read_rates(int pass) {
#pragma unroll
        for (int i = 0; i < 2 * kStates; i++) walk.rates[i / kStates][i % kStates] = 0;
        each_state(pass, [&](float&, float& rate, int channel, int n) {
            rate = operands.A[(long long)channel * operands.states + n] * kLog2E;
        });
    }
    // The lane's constants: B and C of its first channel, then of its second one.
    __device__ float* constants() const {
        const int before = kMany ? (operands.passes * 8 + kTileSteps / 2) * threads : 0;
        return (float*)kept + before + threadIdx.x * kStates;
    }
    __device__ bool has_constants() const {
        return (operands.flags & (kVaryingB | kVaryingC)) != (kVaryingB | kVaryingC);
    }
    __device__ void read_constants(int pass) {
        if (!has_constants()) return;
#pragma unroll 1
        for (int i = 0; i < 4 * kStates; i++) {
            const int n = i % kStates, which = i / kStates % 2, c = i / kStates / 2;
            const int channel = operands.channel + (walk.channel[0] ^ c * 8);
            const int state = pass * kPassStates + walk.part * kStates + n;
            const bool exists = channel < operands.end && state < operands.states;
            if (operands.flags & (which ? kVaryingC : kVaryingB)) continue;
            const float* from = (const float*)(which ? operands.C : operands.B);
            constants()[(c * 2 + which) * threads * kStates + n] =
                exists ? from[(long long)channel * operands.states + state] : 0.0f;
        }
    }
    __device__ void write(int pass, float* to) {
        each_state(pass, [&](float& state, float&, int channel, int n) {
            to[(long long)channel * operands.states + n] = state;
        });
    }
    __device__ void put_away(int pass) {
#pragma unroll
        for (int c = 0; c < 2; c++) {
            float4 all = {walk.states[c][0], walk.states[c][1], 0, 0};
            if constexpr (kStates == 4) all.z = walk.states[c][2], all.w = walk.states[c][3];
            kept[(pass * 2 + c) * threads + threadIdx.x] = all;
        }
    }
    __device__ void take_back(int pass) {
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const float4 all = kept[(pass * 2 + c) * threads + threadIdx.x];
            walk.states[c][0] = all.x, walk.states[c][1] = all.y;
            if constexpr (kStates == 4) walk.states[c][2] = all.z, walk.states[c][3] = all.w;
        }
    }

    template <int kBlock, bool kGeneral, Wanted kWanted>
    __device__ void walk_tile(int turn, int tile, int pass, unsigned restarts) {
        Pair* pairs = shared.pairs[tile % 2][0];
        float* sums_to = (float*)(pairs + walk.channel[0]) + walk.part % 2 * 2 + walk.part / 2;
        const auto at_checkpoint = [&](int step) {
            if (!operands.checkpoints || step >= operands.left(tile)) return;
            const long long row = operands.batch * ((operands.seq_len + kCheckpointSteps - 1) / kCheckpointSteps) +
                                  (operands.first_step(tile) + step) / kCheckpointSteps;
            float* to = operands.checkpoints + row * operands.channels * operands.states;
            const bool vectors = kStates == 4 && operands.states % 4 == 0 && (size_t)operands.checkpoints % 16 == 0;
            if (!vectors) return write(pass, to);
            const int state = pass * kPassStates + walk.part * kStates;
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const int channel = operands.channel + walk.channel[c];
                if (channel >= operands.end || state >= operands.states) continue;
                const float(&all)[kStates] = walk.states[c];
                *(float4*)(to + (long long)channel * operands.states + state) =
                    make_float4(all[0], all[1], all[kStates / 2], all[kStates - 1]);
            }
        };
        const auto keep = [&](int block, const float (&sums)[kBlock / 2]) {
#pragma unroll
            for (int i = 0; i < kBlock / 2; i++) {
                const int pair = block * (kBlock / 2) + i;
                float sum = sums[i];
                if (kMany && pass > 0) sum += earlier[pair * threads];
                if (kMany && pass < operands.passes - 1) {
                    earlier[pair * threads] = sum;
                } else {
                    sums_to[pair * (4 * kBlockChannels)] = sum;
                }
            }
        };
        int flags = operands.flags, apart = threads * kStates;
        asm volatile("" : "+r"(flags), "+r"(apart));  // as in each_state
        const typename Walk<kStates, kExact, kBlockChannels>::Constants given = {flags & kVaryingB ? nullptr : constants(),
                                                                 flags & kVaryingC ? nullptr : constants() + apart,
                                                                 2 * apart};
        walk.template tile<kBlock, kGeneral, kWanted>(pairs, shared.couplings[turn % 2][0], given, restarts, at_checkpoint,
                                                       keep);
    }

    __device__ void begin() {
        if constexpr (kMany) {
            for (int pass = 0; pass < operands.passes; pass++) {
                set_states(pass);
                put_away(pass);
            }
        } else {
            set_states(0);
            read_rates(0);
            read_constants(0);
        }
    }
    // A pass over a tile.
    __device__ void run(int turn, int tile, int pass) {
        if constexpr (kMany) {
            read_rates(pass);
            read_constants(pass);
            take_back(pass);
        }
        const unsigned restarts = shared.restarts[tile % 2];
        // The common case has one walk for each wanted result, in long blocks of steps. Others have
        // fewer, to be smaller: where exponentials take most of the time, it gains little to leave
        // out unused sums.
        constexpr bool kCommon = !kExact && !kMany;
        if (restarts != 0 || has_constants()) {
            walk_tile<4, true, kOutputsAndStates>(turn, tile, pass, restarts);
        } else if (kExact || (operands.out && (!kCommon || operands.checkpoints))) {
            walk_tile<kExact ? 4 : 8, false, kOutputsAndStates>(turn, tile, pass, 0);
        } else if (operands.out) {
            if constexpr (kCommon) walk_tile<16, false, kOutputs>(turn, tile, pass, 0);
        } else {
            if constexpr (!kExact) walk_tile<4, false, kEnds>(turn, tile, pass, 0);
        }
        if constexpr (kMany) put_away(pass);
    }
    __device__ void end() {
        if (!operands.last) return;
        for (int pass = 0; pass < operands.passes; pass++) {
            if constexpr (kMany) take_back(pass);
            write(pass, operands.last + operands.states_of(0));
        }
    }
};
// ANCHOR_END: compute

// ANCHOR: kernel
template <typename Stored, int kStates, bool kMany, bool kExact>
__global__ void __launch_bounds__(2 * 32 * kWarps, 2)
    selective_scan_fwd(const Stored* u, const Stored* delta, const float* A, const void* B, const void* C,
                       const float* D, const Stored* z, const float* delta_bias, const float* initial,
                       const unsigned char* restarts, Stored* out, float* last, float* checkpoints, float* carries,
                       float* sizes, int batches, int channels, int groups, int states, long long seq_len,
                       long long chunk_steps, int flags) {
    extern __shared__ uint4 memory[];
    Shared<Stored, kStates>& shared = *(Shared<Stored, kStates>*)memory;
    const int warps = blockDim.x / 64, warp = __shfl_sync(kAllLanes, threadIdx.x / 32, 0);
    const int per_group = channels / groups, per_block = warps * kWarpChannels;
    const int blocks_per_group = (per_group + per_block - 1) / per_block;
    const int block_of_group = blockIdx.x % blocks_per_group, chunk_group = blockIdx.x / blocks_per_group;
    const int batch_group = chunk_group % (batches * groups);
    const auto whole = [&](const void* array) { return (unsigned long long)array % 16 == 0; };
    Operands<Stored> operands = {u, delta, z, B, C, A, D, delta_bias, initial, restarts, out, last, checkpoints,
                                 seq_len, channels, groups, states, flags};
    operands.vectors = seq_len % kPerVector<Stored> == 0 && whole(u) && whole(delta) && whole(B) && whole(C) &&
                       whole(z) && whole(out);
    operands.batch = batch_group / groups, operands.group = batch_group % groups;
    operands.channel = operands.group * per_group + block_of_group * per_block;
    operands.end = (operands.group + 1) * per_group;

    const int chunk = chunk_group / (batches * groups);
    operands.begin = chunk * chunk_steps;
    operands.steps = min(chunk_steps, seq_len - operands.begin);
    operands.tiles = (operands.steps + kTileSteps - 1) / kTileSteps;
    const long long all_states = (long long)batches * channels * states;
    if (chunk > 0) operands.initial = sizes ? nullptr : carries + (chunk - 1) * all_states;
    if (sizes) {
        operands.z = nullptr, operands.out = nullptr, operands.checkpoints = nullptr;
        operands.last = carries + chunk * all_states;
    } else if (operands.begin + operands.steps < seq_len) {
        operands.last = nullptr;
    }
    operands.passes = kMany ? (states + kLanes * kStates - 1) / (kLanes * kStates) : 1;

    if (threadIdx.x < kBlockChannels) shared.sizes[0][threadIdx.x] = shared.sizes[1][threadIdx.x] = 0.0f;
    if (threadIdx.x == 0) shared.restarted = false;
    // The helpers begin two turns ahead of the walk, and end one behind it.
    const long long turns = (long long)operands.tiles * operands.passes;
    int tile = -2, pass = 0;
    if (warp < warps) {
        Computer<Stored, kStates, kMany, kExact> computer(operands, shared);
        computer.begin();
        meet();
        meet();
        tile = 0;
        for (long long turn = 0; turn < turns; turn++) {
            computer.run(turn % 2, tile, pass);
            meet();
            if (++pass == operands.passes) tile++, pass = 0;
        }
        computer.end();
        meet();
    } else {
        Helper<Stored, kStates, kExact> helper(operands, shared, warp - warps, warps);
        for (long long turn = -2; turn <= turns; turn++) {
            helper.run(turn, tile, pass);
            meet();
            if (turn < 0 || ++pass == operands.passes) tile++, pass = 0;
        }
    }
    if (sizes && threadIdx.x < min(per_block, operands.end - operands.channel)) {
        const float size = shared.sizes[0][threadIdx.x] + shared.sizes[1][threadIdx.x];
        sizes[((long long)chunk * batches + operands.batch) * channels + operands.channel + threadIdx.x] =
            shared.restarted ? kCutOff : size;
    }
}
// ANCHOR_END: kernel
