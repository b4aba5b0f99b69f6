// The gradient of the fused selective scan. `selective_scan.cuh` has the formulas. With
// g_t for the gradient of y_t, and a decay c_t = exp(d_t A), the gradient of a state is
//
//     dh_t = C_t g_t + c_{t+1} dh_{t+1}
//
// and all others follow from it and from the states: B_t gets dh_t d_t u_t, C_t gets
// g_t h_t, the exponent d_t A gets c_t h_{t-1} dh_t, and by the product rule so do A,
// d_t and u_t. So a step needs its state, and the gradient of the next one.
//
// Tiles of 8 steps are walked from the last to the first. States are not kept: each tile begins
// with a checkpoint of the forward pass, walks on from it, with all states and decays of the tile
// in registers, and then back with the gradient. Eight lanes share a channel, with kPer states
// each. What a step of a channel gets from all states (y for the gate, and the sums for u and
// delta) goes from lane to lane through shared memory, so that in the end each lane has one step.
// The gradients of B and C are added up in registers over the channels that a warp takes in turns,
// four times `quads`; then over the warps of the block, in shared memory; and
// selective_scan_bwd_sums adds up what the blocks wrote to `sums`. A, D and delta_bias get sums
// over the steps that stay with their lane, in shared memory, and are added up over sequences and
// chunks in the same way. There is no atomic operation: each sum has one order.
//
// More states than 8 * kPer are walked one block of states after the other, tile by tile. B and C
// that are constants are summed over the steps, as A is. Where there are few channels, sequences
// are cut into chunks of tiles and the kernel runs twice: with kEnds only for the gradient that
// each chunk passes back if none comes from behind it, and the product of its decays; then each
// chunk goes through the later ones to the gradient that it begins with.
//
// Memory comes in copies that are on their way while earlier tiles are computed: each
// warp has kStages stages for its channels, and the block four tiles of B and C.
#include "selective_scan_bwd.cuh"

template <typename Stored, int kPer, bool kExact>
__global__ void __launch_bounds__(256, 1)
    selective_scan_bwd(const Stored* u, const Stored* delta, const Stored* z, const Stored* d_out, const void* b,
                       const void* c, const float* a, const float* d, const float* bias, const unsigned char* restarts,
                       const float* checkpoints, const float* d_last, float2* ends, Stored* d_u, Stored* d_delta,
                       Stored* d_z, float* d_initial, float* sums, float* totals, int batch, int channels, int groups,
                       int states, long long len, int quads, int chunk_tiles, int flags) {
    constexpr int kStates = 8 * kPer, kSums = Shared<kPer>::kSums;
    const Given<Stored> given = {u,        delta,  z,        d_out,  b,      c,   a,    d, bias, restarts,
                                 checkpoints, batch, channels, groups, states, len, flags};
    const Place at = Place::of(given, quads, chunk_tiles);
    const int blocks = (states + kStates - 1) / kStates;
    extern __shared__ uint4 raw[];
    const Shared<kPer> shared = {(char*)raw, (int)blockDim.x / 32, quads, blocks};
    auto& mine = shared.warp(threadIdx.x / 32);
    float2* const my_channels = shared.channels() + threadIdx.x / 32 * 4 * quads;
    const bool whole = given.whole(), soft = flags & kSoftplus, only_ends = flags & kEnds;
    const bool vary_b = flags & kVaryingB, vary_c = flags & kVaryingC, vary = vary_b && vary_c;

    Kept<kPer>* const all_kept = shared.kept();
    Total<kPer>* const all_totals = shared.totals(0);
    Total<kPer>*const all_b = shared.totals(1), *const all_c = shared.totals(2);
    float2* const all_pointwise = shared.pointwise();
    const int threads = blockDim.x;

    // The gradient behind the last tile: what later chunks pass back, the last of them first.
    for (int quad = 0; quad < quads; quad++) {
        const bool exists = at.exists(quad);
        for (int block = 0; block < blocks; block++) {
            const int slot = (block * quads + quad) * threads + threadIdx.x;
            Kept<kPer>& kept = all_kept[slot];
#pragma unroll
            for (int i = 0; i < kPer; i++) {
                const int n = block * kStates + at.own * kPer + i;
                kept.carry[i] = kept.rate[i] = 0.0f;
                all_totals[slot].of[i] = 0.0f;
                if (!vary) all_b[slot].of[i] = all_c[slot].of[i] = 0.0f;
                if (!exists || n >= states) continue;
                kept.rate[i] = a[(long long)at.channel(quad) * states + n] * kLog2E;
                if (only_ends) continue;
                const long long state = ((long long)at.sequence * channels + at.channel(quad)) * states + n;
                float carry = d_last ? d_last[state] : 0.0f;
                for (int later = at.chunks - 1; later > at.chunk; later--) {
                    const float2 end = ends[(long long)later * batch * channels * states + state];
                    carry = multiply_add(end.y, carry, end.x);
                }
                kept.carry[i] = carry;
            }
        }
        if (at.own == 0) {
            const int channel = at.channel(quad);
            my_channels[4 * quad + at.row] = {exists && d ? d[channel] : 0.0f, exists && bias ? bias[channel] : 0.0f};
        }
        all_pointwise[quad * threads + threadIdx.x] = {0.0f, 0.0f};
    }

    int rows_tile = at.end - 1, rows_state = 0;
    unsigned rows_sent = 0;
    const auto send_rows = [&]() {
        if (rows_tile < at.begin) return;
        copy_rows(shared.rows(rows_sent++), given, at, rows_tile, rows_state);
        rows_state += kStates;
        if (rows_state >= states) rows_state = 0, rows_tile--;
    };
#pragma unroll 1
    for (int i = 0; i < 3; i++) send_rows();
    close_group();
    auto ahead = Ahead<Stored, kPer>::begin(given, at);
#pragma unroll 1
    for (int i = 0; i < kStages - 1; i++) ahead.copy(mine.stages, given, at, quads);
    // The lane's step of quad 0.
    long long place = ((long long)at.sequence * channels + at.channel(0)) * len + (at.end - 1) * (long long)kTile + at.own;
    const int place_u = place_of(u + place, whole, at.lane), place_delta = place_of(delta + place, whole, at.lane);
    const int place_z = place_of(z + place, whole, at.lane), place_out = place_of(d_out + place, whole, at.lane);
    // Takes a quad from a stage: each lane its step, and leaves there what the warp needs of all.
    const auto take = [&](unsigned number, int quad, bool exists) {
        const Stage<kPer>& stage = mine.stages[number % kStages];
        Own<kPer> own;
        own.u = only_ends ? 0.0f : element_of<Stored>(stage.elems[0], place_u);
        const float x = element_of<Stored>(stage.elems[1], place_delta), d_out = element_of<Stored>(stage.elems[3], place_out);
#pragma unroll
        for (int n = 0; n < kPer; n++) own.before[n] = only_ends ? 0.0f : stage.states[at.row][at.own * kPer + n];
        const Step step = step_of<kExact>(x + my_channels[4 * quad + at.row].y, soft);
        own.size = exists ? step.size : 0.0f, own.slope = step.slope;
        const float gate = z ? element_of<Stored>(stage.elems[2], place_z) : 0.0f, s = sigmoid<kExact>(gate);
        own.d_y = z ? d_out * (gate * s) : d_out;
        own.d_gate = d_out * s * multiply_add(gate, 1.0f - s, 1.0f);
        mine.steps[0][at.lane] = own.size;
        mine.steps[1][at.lane] = own.size * own.u;
        mine.steps[2][at.lane] = own.d_y;
        return own;
    };
    await_groups<kStages - 2>();
    __syncthreads();
    Own<kPer> own = take(0, 0, (at.end - 1) * (long long)kTile + at.own < len);

    const int turned = at.own / 4 * 4;  // lanes four apart use other banks
    const long long group = (long long)at.sequence * groups + at.group;
    unsigned number = 0, rows_now = 0;  // stages and rows so far
#pragma unroll 1
    for (int index = at.end - 1; index >= at.begin; index--, place -= kTile) {
        const long long first = index * (long long)kTile;
        const bool step_exists = first + at.own < len;
        unsigned starts = 0;
        if (restarts) {
            const bool start = step_exists && restarts[at.sequence * len + first + at.own];
            starts = __ballot_sync(~0u, start) & 0xff;
        }
        int slot = threadIdx.x;
#pragma unroll 1
        for (int block = 0; block < blocks; block++, rows_now++) {
            Tile<kPer> tile;
            const int n0 = block * kStates + at.own * kPer;
            const long long row = (group * states + n0) * len + first;
            const Rows<kPer>& rows = shared.rows(rows_now);
            if (vary_b) read_rows(rows.elems[0], whole, (const Stored*)b + row, len, at.own, tile.b);
            if (vary_c) read_rows(rows.elems[1], whole, (const Stored*)c + row, len, at.own, tile.c);
#pragma unroll
            for (int t = 0; t < kTile; t++) {
#pragma unroll
                for (int n = 0; n < kPer; n++) tile.d_b[t][n] = tile.d_c[t][n] = 0.0f;
            }
            long long element = place;
#pragma unroll 1
            for (int quad = 0; quad < quads; quad++, element += 4 * len, slot += threads) {
                __syncwarp();
                Steps steps;
                read_steps(mine.steps[0], at.row, steps.size);
                read_steps(mine.steps[1], at.row, steps.input);
                read_steps(mine.steps[2], at.row, steps.d_y);
                ahead.copy(mine.stages, given, at, quads);
                // The next quad is taken behind the walk, while sums of this one are on their way.
                const bool last_quad = quad + 1 == quads, last_block = block + 1 == blocks;
                const auto take_next = [&]() {
                    await_groups<kStages - 2>();
                    __syncwarp();
                    // All steps of the tile before exist.
                    return take(++number, last_quad ? 0 : quad + 1, step_exists || (last_quad && last_block));
                };
                if (!vary) {
                    const long long constants = (long long)at.channel(quad) * states + n0;
                    const int exist = at.exists(quad) ? states - n0 : 0;
                    if (!vary_b) read_constants((const float*)b + constants, exist, tile.b);
                    if (!vary_c) read_constants((const float*)c + constants, exist, tile.c);
                }

                Kept<kPer> kept = all_kept[slot];
                if (only_ends) {
                    walk_back<kExact>(steps, kept.rate, starts, tile.c, kept.carry);
                    all_kept[slot] = kept;
                    own = take_next();
                    if (block > 0) continue;
                    float size = steps.size[0];
#pragma unroll
                    for (int t = 1; t < kTile; t++) size += steps.size[t];
                    float2& seen = all_pointwise[slot];
                    seen = {seen.x + size, starts ? 1.0f : seen.y};
                    continue;
                }
                Total<kPer> total = all_totals[slot];
                const Across across =
                    starts ? walk<true, kExact>(steps, kept.rate, own.before, starts, tile, kept.carry, total.of)
                           : walk<false, kExact>(steps, kept.rate, own.before, starts, tile, kept.carry, total.of);
                all_totals[slot] = total;
                all_kept[slot] = kept;

                float* to = &mine.across[0][at.row][at.own * kTile];
                constexpr int kNext = 4 * Shared<kPer>::kPitch;
#pragma unroll
                for (int t = 0; t < kTile; t += 4) {
                    *(float4*)(to + (t ^ turned)) = *(const float4*)&across.y[t];
                    *(float4*)(to + kNext + (t ^ turned)) = *(const float4*)&across.by_input[t];
                    *(float4*)(to + 2 * kNext + (t ^ turned)) = *(const float4*)&across.by_decay[t];
                }
                const Own<kPer> next = take_next();
                const float* from = &mine.across[0][at.row][at.own];
                float y = from[0], by_input = from[kNext], by_decay = from[2 * kNext];
#pragma unroll
                for (int n = 1; n < 8; n++) {
                    from = &mine.across[0][at.row][n * kTile + (at.own ^ n / 4 * 4)];
                    y += from[0];
                    by_input += from[kNext];
                    by_decay += from[2 * kNext];
                }
                if (blocks > 1) {
                    float4& all = shared.across_blocks(vary ? 1 : 3)[quad * threads + threadIdx.x];
                    if (block > 0) y += all.x, by_input += all.y, by_decay += all.z;
                    all = {y, by_input, by_decay, 0.0f};
                }
                if (last_block && step_exists && at.exists(quad)) {
                    const float skip = my_channels[4 * quad + at.row].x;
                    const float d_step = multiply_add(own.u, by_input, kLn2 * by_decay) * own.slope;
                    if (d_z) d_z[element] = narrow<Stored>(own.d_gate * multiply_add(skip, own.u, y));
                    d_delta[element] = narrow<Stored>(d_step);
                    d_u[element] = narrow<Stored>(multiply_add(own.size, by_input, skip * own.d_y));
                    float2& all = all_pointwise[quad * threads + threadIdx.x];
                    all = {multiply_add(own.d_y, own.u, all.x), all.y + d_step};
                }
                own = next;
                if (!vary) {
#pragma unroll
                    for (int n = 0; n < kPer; n++) {
#pragma unroll
                        for (int t = 0; t < kTile; t++) {
                            if (!vary_b) all_b[slot].of[n] += tile.d_b[t][n], tile.d_b[t][n] = 0.0f;
                            if (!vary_c) all_c[slot].of[n] += tile.d_c[t][n], tile.d_c[t][n] = 0.0f;
                        }
                    }
                }
            }
            // Adds up the block's channels.
            float* const parts = shared.sums(rows_now % shared.turns());
            if (shared.turns() == 1) __syncthreads();
            if (!only_ends) {
                float* to = parts + threadIdx.x / 8 * kSums + at.own * kTile;
#pragma unroll
                for (int n = 0; n < kPer; n++) {
#pragma unroll
                    for (int t = 0; t < kTile; t += 4) {
                        *(float4*)(to + n * 64 + (t ^ turned)) = {tile.d_b[t][n], tile.d_b[t + 1][n], tile.d_b[t + 2][n], tile.d_b[t + 3][n]};
                        *(float4*)(to + kSums / 2 + n * 64 + (t ^ turned)) = {tile.d_c[t][n], tile.d_c[t + 1][n], tile.d_c[t + 2][n], tile.d_c[t + 3][n]};
                    }
                }
            }
            if (quads == 1) {
                await_groups<1>();
            } else {
                await_groups<kStages - 1>();
            }
            __syncthreads();
            send_rows();
            if (!(vary_b || vary_c) || only_ends) continue;
            float* all = sums + (((group * given.tiles() + index) * blocks + block) * at.parts + at.part) * kSums;
#pragma unroll 1
            for (unsigned i = threadIdx.x; i < kSums; i += threads) {
                float sum = parts[i];
#pragma unroll
                for (int k = 1; k < 4; k++) sum += parts[k * kSums + i];
                for (int warp = 1; warp < shared.warps; warp++) {
#pragma unroll
                    for (int k = 0; k < 4; k++) sum += parts[(4 * warp + k) * kSums + i];
                }
                const unsigned lane = i / 8 % 8, which = i / (kSums / 2), n = lane * kPer + i / 64 % kPer;
                all[(which * kStates + n) * kTile + (i % 8 ^ lane / 4 * 4)] = sum;
            }
        }
    }

    const long long slots = (long long)batch * at.chunks, slot = (long long)at.chunk * batch + at.sequence;
    const long long kind = slots * channels * states;
    for (int quad = 0; quad < quads; quad++) {
        float2 sum = all_pointwise[quad * threads + threadIdx.x];
        const long long channel = slot * channels + at.channel(quad);
        for (int block = 0; block < blocks && at.exists(quad); block++) {
            const int slot = (block * quads + quad) * threads + threadIdx.x;
            const Kept<kPer> kept = all_kept[slot];
#pragma unroll
            for (int i = 0; i < kPer; i++) {
                const int n = block * kStates + at.own * kPer + i;
                if (n >= states) continue;
                const long long to = channel * states + n;
                if (only_ends) {
                    ends[to] = {kept.carry[i], sum.y > 0.0f ? 0.0f : Functions<kExact>::power_of_two(kept.rate[i] * sum.x)};
                    continue;
                }
                totals[to] = all_totals[slot].of[i];
                if (!vary_b) totals[kind + to] = all_b[slot].of[i];
                if (!vary_c) totals[2 * kind + to] = all_c[slot].of[i];
                const long long state = ((long long)at.sequence * channels + at.channel(quad)) * states + n;
                if (at.chunk == 0 && d_initial) d_initial[state] = kept.carry[i];
            }
        }
        if (only_ends) continue;
#pragma unroll
        for (int lanes = 1; lanes < 8; lanes *= 2) {
            sum.x += __shfl_xor_sync(~0u, sum.x, lanes);
            sum.y += __shfl_xor_sync(~0u, sum.y, lanes);
        }
        if (at.own == 0 && at.exists(quad)) {
            totals[3 * kind + channel] = sum.x;
            totals[3 * kind + slots * channels + channel] = sum.y;
        }
    }
}

// Four numbers as they are stored.
template <typename Stored>
struct alignas(4 * sizeof(Stored)) Four {
    Stored of[4];
};

// Adds up the sums of the blocks, `kStates` states at a time: over the `parts` of a group's
// channels for B and C, and over `slots` sequences and chunks for what does not vary. Each in the
// order of memory.
template <typename Stored>
__global__ void __launch_bounds__(256)
    selective_scan_bwd_sums(const float* sums, const float* totals, void* d_b, void* d_c, float* d_a, float* d_d,
                            float* d_bias, int batch, int channels, int groups, int states, long long len,
                            int block_states, int parts, int slots, int flags) {
    const int tiles = (int)((len + kTile - 1) / kTile), blocks = (states + block_states - 1) / block_states;
    const int fours = 2 * block_states * (kTile / 4);
    const bool vary_b = flags & kVaryingB, vary_c = flags & kVaryingC;
    const long long rows = vary_b || vary_c ? (long long)batch * groups * tiles * blocks * fours : 0;
    const long long kind = (long long)channels * states, all = rows + 3 * kind + 2 * (long long)channels;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (long long)gridDim.x * blockDim.x) {
        if (i < rows) {
            const long long unit = i / fours;
            const int four = (int)(i % fours), which = four / (fours / 2), step = four % 2 * 4;
            const int n = (int)(unit % blocks) * block_states + four / 2 % block_states;
            const long long tile = unit / blocks % tiles, first = tile * kTile + step;
            if (n >= states || first >= len || !(which ? vary_c : vary_b)) continue;
            const float4* from = (const float4*)sums + unit * parts * fours + four;
            float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 8
            for (int part = 0; part < parts; part++) {
                const float4 more = from[(long long)part * fours];
                sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
            }
            const Four<Stored> values = {narrow<Stored>(sum.x), narrow<Stored>(sum.y), narrow<Stored>(sum.z), narrow<Stored>(sum.w)};
            Stored* to = (Stored*)(which ? d_c : d_b) + (unit / blocks / tiles * states + n) * len + first;
            if (flags & kWhole) {
                *(Four<Stored>*)to = values;
            } else {
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    if (first + k < len) to[k] = values.of[k];
                }
            }
        } else {
            const long long j = i - rows;
            const bool of_states = j < 3 * kind;
            const int which = of_states ? (int)(j / kind) : (int)((j - 3 * kind) / channels);
            const long long size = of_states ? kind : channels, place = of_states ? j % kind : (j - 3 * kind) % channels;
            float* const to = of_states ? (which == 0 ? d_a : which == 1 ? (vary_b ? nullptr : (float*)d_b) : (vary_c ? nullptr : (float*)d_c))
                                        : (which == 0 ? d_d : d_bias);
            if (!to) continue;
            const float* from = totals + (of_states ? which * kind * slots : (3 * kind + which * (long long)channels) * slots) + place;
            float sum = 0.0f;
#pragma unroll 4
            for (int slot = 0; slot < slots; slot++) sum += from[slot * size];
            to[place] = sum;
        }
    }
}
