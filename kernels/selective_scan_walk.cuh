// A warp that computes in the selective scan's forward pass: its walk over a tile.
#pragma once
#include "selective_scan_tile.cuh"

// The results of a walk: only the states at the end; outputs; or outputs and, if there is a place
// for them, states for the backward pass. A test for that place would separate the steps, for which
// the compiler otherwise finds one order.
enum Wanted { kEnds, kOutputs, kOutputsAndStates };

// ANCHOR: walk
// A lane that computes. Of its two channels, 8 apart, lanes with an odd part of the states
// have the upper one first: so each lane can give away the sums of its second channel, and
// no lane has to choose. kPairStride: the channels that have a place in shared memory.
template <int kStates, bool kExact, int kPairStride>
struct Walk {
    static constexpr int kStepStride = 2 * kLanes * kStates;
    float states[2][kStates], rates[2][kStates];  // h, and A log2(e)
    int part;                                     // the lane's states: from part * kStates on
    int channel[2];                               // in the block

    struct Coupling {
        float B[kStates], C[kStates];
    };
    template <bool kBoth>
    __device__ static Coupling coupling_at(const float* place) {
        Coupling coupling;
        const float4 first = *(const float4*)place;
        coupling.B[0] = first.x, coupling.B[1] = first.y;
        if constexpr (kStates == 4) {
            coupling.B[2] = first.z, coupling.B[3] = first.w;
            if constexpr (!kBoth) return coupling;
            const float4 second = *(const float4*)(place + 4 * kLanes);
            coupling.C[0] = second.x, coupling.C[1] = second.y, coupling.C[2] = second.z, coupling.C[3] = second.w;
        } else {
            coupling.C[0] = first.z, coupling.C[1] = first.w;
        }
        return coupling;
    }

    __device__ void decays(float (&decay)[2][kStates], const float (&d)[2]) const {
#pragma unroll
        for (int c = 0; c < 2; c++) {
#pragma unroll
            for (int n = 0; n < kStates; n++) decay[c][n] = Functions<kExact>::power_of_two(d[c] * rates[c][n]);
        }
    }

    // The lane's constants: B and C of the first channel, and `apart` behind them
    // those of the second one; null for what varies.
    struct Constants {
        const float *B, *C;
        int apart;
    };
    __device__ static void read(float (&elems)[kStates], const float* place) {
        if constexpr (kStates == 4) {
            const float4 all = *(const float4*)place;
            elems[0] = all.x, elems[1] = all.y, elems[2] = all.z, elems[3] = all.w;
        } else {
            const float2 all = *(const float2*)place;
            elems[0] = all.x, elems[1] = all.y;
        }
    }

    // Walks a tile, in blocks of kBlock steps. Couplings and decays are loaded for the next step,
    // and pairs of steps for the next pair, while a step is computed. `at_checkpoint` is called
    // before each step whose states are to be kept; `keep` gets, for each pair of steps, the lane's
    // share of the sums over the states: those of channel[0], and of step part / 2. Without outputs
    // there are no sums. kGeneral: restarts may occur, and B and C may be constants, and are read
    // channel by channel.
    template <int kBlock, bool kGeneral, Wanted kWanted, typename AtCheckpoint, typename Keep>
    __device__ void tile(const Pair* pairs, const float* couplings, Constants constants, unsigned restarts,
                         AtCheckpoint&& at_checkpoint, Keep&& keep) {
        constexpr bool kSums = kWanted != kEnds;
        const Pair* from[2] = {pairs + channel[0], pairs + channel[1]};
        const float* place = couplings + part * (kStates == 4 ? 4 : 2 * kStates);
        Pair pair[2][2];
        Coupling coupling[2];
        float decay[2][2][kStates];
        pair[0][0] = *from[0], pair[0][1] = *from[1];
        const float* place_B = constants.B ? constants.B : place;
        const float* place_C = constants.C ? constants.C : place + (kStates == 4 ? 4 * kLanes : kStates);
        const int apart_B = constants.B ? constants.apart : 0, stride_B = constants.B ? 0 : kStepStride;
        const int apart_C = constants.C ? constants.apart : 0, stride_C = constants.C ? 0 : kStepStride;
        if constexpr (!kGeneral) coupling[0] = coupling_at<kSums>(place);
        decays(decay[0], {pair[0][0].x, pair[0][1].x});
#pragma unroll 1
        for (int block = 0; block < kTileSteps / kBlock; block++) {
            // Behind the last block, the next block is the same again; its result is not used.
            const bool more = block + 1 < kTileSteps / kBlock;
            const int next_pairs = more ? kBlock / 2 * kPairStride : 0, next_steps = more ? kBlock * kStepStride : 0;
            float sums[kBlock / 2], partial[2][2];
#pragma unroll
            for (int k = 0; k < kBlock; k++) {
                const int now = k % 2, next = 1 - now, this_pair = k / 2 % 2, next_pair = 1 - this_pair;
                if (kWanted == kOutputsAndStates && k % kCheckpointSteps == 0) {
                    const int step = block * kBlock + k;
                    if (kBlock >= kCheckpointSteps || step % kCheckpointSteps == 0) at_checkpoint(step);
                }
                // What comes next: behind a tile in one block, nothing.
                const bool none = kBlock == kTileSteps && k + 1 == kBlock;
                if (now == 0 && !(kBlock == kTileSteps && k + 2 == kBlock)) {
                    const int ahead = k + 2 < kBlock ? (k / 2 + 1) * kPairStride : next_pairs;
                    pair[next_pair][0] = from[0][ahead], pair[next_pair][1] = from[1][ahead];
                }
                if (!kGeneral && !none) {
                    const int ahead = k + 1 < kBlock ? (k + 1) * kStepStride : next_steps;
                    coupling[next] = coupling_at<kSums>(place + ahead);
                }
                if (none) {
                } else if (now == 0) {
                    decays(decay[next], {pair[this_pair][0].z, pair[this_pair][1].z});
                } else {
                    decays(decay[next], {pair[next_pair][0].x, pair[next_pair][1].x});
                }
                // The step.
                const bool begins = kGeneral && (restarts >> k & 1);
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    if constexpr (kGeneral) {
                        read(coupling[now].B, place_B + c * apart_B + k * stride_B);
                        read(coupling[now].C, place_C + c * apart_C + k * stride_C);
                    }
                    const float du = now == 0 ? pair[this_pair][c].y : pair[this_pair][c].w;
#pragma unroll
                    for (int n = 0; n < kStates; n++) {
                        const float input = du * coupling[now].B[n];
                        const float state = multiply_add(decay[now][c][n], states[c][n], input);
                        states[c][n] = begins ? input : state;
                        if constexpr (!kSums) continue;
                        partial[c][now] = n == 0 ? coupling[now].C[n] * states[c][n]
                                                 : multiply_add(coupling[now].C[n], states[c][n], partial[c][now]);
                    }
                }
                if (kSums && now == 1) sums[k / 2] = sum(partial);
            }
            if constexpr (kSums) {
                __syncwarp();  // all have read the pairs that the sums replace
                keep(block, sums);
            }
            from[0] += kBlock / 2 * kPairStride, from[1] += kBlock / 2 * kPairStride;
            place += kBlock * kStepStride;
            place_B += kBlock * stride_B, place_C += kBlock * stride_C;
            if constexpr (kGeneral) restarts >>= kBlock;
        }
    }

    // The sums over the four lanes of a channel: of the lane's first channel, and of step part / 2
    // of a pair.
    __device__ float sum(const float (&partial)[2][2]) const {
        constexpr int kApart = 32 / kLanes;
        const float first = partial[0][0] + __shfl_xor_sync(kAllLanes, partial[1][0], kApart);
        const float second = partial[0][1] + __shfl_xor_sync(kAllLanes, partial[1][1], kApart);
        const float mine = part < 2 ? first : second, other = part < 2 ? second : first;
        return mine + __shfl_xor_sync(kAllLanes, other, 2 * kApart);
    }
};
// ANCHOR_END: walk
