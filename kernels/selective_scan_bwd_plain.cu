// The gradient of the fused selective scan in the common case: 8 or 16 states, B and C
// that vary, no restarts, and groups whose channels fill whole blocks. The operations and
// their order are those of selective_scan_bwd, which has the explanations and takes all
// other cases: with as many quads, warps and states of a lane, both give the same bits.
//
// As the number of quads is known, a lane keeps in registers what belongs to the states of all
// four, and nothing branches. While the warp walks the tile of a quad, it prepares the steps of the
// next one. What goes from lane to lane has two places in shared memory, in turns: so the warp
// meets once for each quad, and the block once for each tile. Of the two or three blocks on a
// multiprocessor, one computes while another waits.
//
// kAligned: all rows consist of vectors of 16 bytes, and of whole tiles. Otherwise
// elements are copied one by one, and the last tile may have fewer steps.
#include "selective_scan_bwd.cuh"

namespace plain {

// Not variables: the compiler would make symbols of them, whose names change.
enum : int { kQuads = 4, kWarps = 4, kThreads = 32 * kWarps };
static_assert(kQuads == (int)kStages, "a quad has its stage");

// ANCHOR: plain_shared
// A warp's shared memory: for the ends of chunks, and for the gradient.
struct Ends {
    unsigned elems[kQuads][4][32];  // as in Stage
    float steps[2][3][32];          // delta, delta u, gradient of y: this quad, the next
};
template <int kPer>
struct Warp : Ends {
    static constexpr int kPitch = 72;
    float states[kQuads][4][8 * kPer];
    float across[2][3][4][kPitch];  // summands of the states of a channel, by steps
};

// Shared memory.
template <int kPer, typename Warp>
struct alignas(16) Shared {
    Rows<kPer> rows[4];
    float2 channels[kWarps][4 * kQuads];  // D and the bias
    Warp warps[kWarps];
};
template <int kPer>
struct AllShared : Shared<kPer, Warp<kPer>> {
    float sums[2][4 * kWarps][2 * 8 * kPer * kTile];  // what the lanes have added up for B and C
};

// What a chunk passes back for a lane's states: the gradient, and the product of the decays.
template <int kPer>
struct alignas(8 * kPer) Passed {
    float2 of[kPer];
};
// ANCHOR_END: plain_shared

// An address in shared memory that stays in a register. Otherwise the compiler computes it again in
// each use.
template <typename T>
__device__ __forceinline__ T* settled(T* pointer) {
    unsigned address = __cvta_generic_to_shared(pointer);
    asm volatile("" : "+r"(address));
    return (T*)__cvta_shared_to_generic(address);
}

// ANCHOR: plain_copies
// What a lane copies of each quad's elements, tile after tile from the last to the first.
template <typename Stored, bool kOnlyEnds, bool kAligned>
struct Elements {
    static constexpr int kPerVector = 16 / sizeof(Stored), kVectors = kTile / kPerVector;

    const Stored* from;
    char* to;
    long long to_next_quad, to_next_tile;
    bool copies;

    __device__ static Elements of(const Given<Stored>& given, const Place& at, Ends& mine) {
        const int which = at.lane / (4 * kVectors), row = at.lane / kVectors % 4, step = at.lane % kVectors * kPerVector;
        Elements all;
        all.copies = which == 0 ? !kOnlyEnds : which == 2 ? given.z != nullptr : which < 4;
        all.from = which == 0 ? given.u : which == 2 ? given.z : which == 3 ? given.d_out : given.delta;
        const long long first = (long long)at.sequence * given.channels + at.first + row;
        all.from += first * given.len + (at.end - 1) * (long long)kTile + step;
        all.to = settled((char*)mine.elems + which * 128 + (row * kTile + step) * (int)sizeof(Stored));
        all.to_next_quad = 4 * given.len, all.to_next_tile = -(kQuads - 1) * all.to_next_quad - kTile;
        return all;
    }
    __device__ void copy(const Given<Stored>&, int quad, bool exist) {
        if (copies) copy_vector(to + quad * sizeof(Ends::elems[0]), from, exist ? 16 : 0);
        from += quad + 1 == kQuads ? to_next_tile : to_next_quad;
    }
    // The lane's element of each array, within a quad's place.
    __device__ static int place(const Stored*, long long, int lane) { return lane; }
};

// One by one: each lane copies its own step.
template <typename Stored, bool kOnlyEnds>
struct Elements<Stored, kOnlyEnds, false> {
    long long element;
    char* to;
    bool copies;  // the step exists, and is not one behind the last one

    __device__ static Elements of(const Given<Stored>& given, const Place& at, Ends& mine) {
        const long long step = (at.end - 1) * (long long)kTile + at.own;
        Elements all;
        all.element = ((long long)at.sequence * given.channels + at.first + at.row) * given.len + step;
        all.to = settled((char*)mine.elems + at.lane * 4);
        all.copies = step < given.len;
        return all;
    }
    __device__ void copy(const Given<Stored>& given, int quad, bool exist) {
        const bool exists = exist && copies;
        const bool last = sizeof(Stored) < 4 && element + 1 == (long long)given.batch * given.channels * given.len;
        unsigned* const place = (unsigned*)(to + quad * sizeof(Ends::elems[0]));
        if (!kOnlyEnds) copy_single(place, given.u + element, exists, last);
        copy_single(place + 32, given.delta + element, exists, last);
        if (given.z) copy_single(place + 64, given.z + element, exists, last);
        copy_single(place + 96, given.d_out + element, exists, last);
        element += 4 * given.len;
        if (quad + 1 == kQuads) element -= 4 * kQuads * given.len + kTile, copies = true;
    }
    __device__ static int place(const Stored* array, long long element, int lane) {
        return place_of(array + element, false, lane);
    }
};

// The same for the checkpoints: the first lanes copy a vector each.
template <int kPer>
struct Checkpoints {
    static constexpr int kStates = 8 * kPer;

    const float* from;
    char* to;
    long long to_next_tile;
    bool copies;

    template <typename Stored>
    __device__ static Checkpoints of(const Given<Stored>& given, const Place& at, Warp<kPer>& mine) {
        const long long tile = (long long)at.sequence * given.tiles() + at.end - 1;
        Checkpoints all;
        all.copies = at.lane < kStates;
        all.from = given.checkpoints + (tile * given.channels + at.first) * kStates + at.lane * 4;
        all.to = settled((char*)mine.states + at.lane * 16);
        all.to_next_tile = -(long long)given.channels * kStates;
        return all;
    }
    __device__ void copy(int quad, bool exist) {
        constexpr int kQuadStates = 4 * kStates;
        if (copies) copy_vector(to + quad * kQuadStates * sizeof(float), from + quad * kQuadStates, exist ? 16 : 0);
        if (quad + 1 == kQuads) from += to_next_tile;
    }
};

// What a thread copies of the rows of B and C. Where a row has two vectors, they change
// places in half of the rows: so the eight lanes of a channel read from all banks.
template <typename Stored, int kPer, bool kOnlyEnds, bool kAligned>
struct BothRows {
    static constexpr int kStates = 8 * kPer, kPerVector = 16 / sizeof(Stored), kVectors = kTile / kPerVector;

    const Rows<kPer>* all_rows;
    const Stored* from;
    char* to;
    bool copies;

    __device__ static int place(int vector, int own) { return vector ^ (kVectors == 2 ? own / 4 : 0); }

    __device__ static BothRows of(const Given<Stored>& given, const Place& at, Rows<kPer> (&rows)[4]) {
        const int vector = threadIdx.x % kVectors, row = threadIdx.x / kVectors % kStates, own = row % 8;
        const int which = kOnlyEnds ? 1 : threadIdx.x / kVectors / kStates, n = own * kPer + row / 8;
        BothRows all;
        constexpr int kCount = (kOnlyEnds ? 1 : 2) * kStates * kVectors;
        static_assert(kCount <= kThreads);
        all.all_rows = rows;
        all.copies = threadIdx.x < kCount;
        const long long group = (long long)at.sequence * given.groups + at.group;
        all.from = (const Stored*)(which ? given.c : given.b) + (group * kStates + n) * given.len +
                   (at.end - 1) * (long long)kTile + vector * kPerVector;
        all.to = (char*)rows + (which * kStates + row) * sizeof(Rows<kPer>::elems[0][0]) + place(vector, own) * 16;
        return all;
    }
    __device__ void copy(const Given<Stored>&, const Place& at, int tile) {
        if (copies && tile >= at.begin) copy_vector(to + tile % 4u * sizeof(Rows<kPer>), from, 16);
        from -= kTile;
    }
    // Reads B or C of the lane's states for a tile.
    __device__ void read(const Given<Stored>&, const Place& at, int tile, int which, float (&values)[kTile][kPer]) const {
        const auto& rows = all_rows[tile & 3].elems[which];
#pragma unroll
        for (int n = 0; n < kPer; n++) {
#pragma unroll
            for (int v = 0; v < kVectors; v++) {
                const Vector<Stored> vector = *(const Vector<Stored>*)&rows[n * 8 + at.own][place(v, at.own) * 4];
#pragma unroll
                for (int t = 0; t < kPerVector; t++) values[v * kPerVector + t][n] = widen(vector.elems[t]);
            }
        }
    }
};

template <typename Stored, int kPer, bool kOnlyEnds>
struct BothRows<Stored, kPer, kOnlyEnds, false> {
    Rows<kPer>* rows;

    __device__ static BothRows of(const Given<Stored>&, const Place&, Rows<kPer> (&rows)[4]) { return {rows}; }
    __device__ void copy(const Given<Stored>& given, const Place& at, int tile) {
        if (tile >= at.begin) copy_pieces<kPer, kTile>(rows[tile & 3], given, at, tile, 0);
    }
    __device__ void read(const Given<Stored>& given, const Place& at, int tile, int which, float (&values)[kTile][kPer]) const {
        const long long group = (long long)at.sequence * given.groups + at.group;
        const long long row = (group * (8 * kPer) + at.own * kPer) * given.len + tile * (long long)kTile;
        const Stored* from = (const Stored*)(which ? given.c : given.b) + row;
        read_rows(rows[tile & 3].elems[which], false, from, given.len, at.own, values);
    }
};
// ANCHOR_END: plain_copies

// ANCHOR: plain_steps
// A lane's step: its values in memory, and what is computed from them.
struct Raw {
    float u, delta, z, d_out;
    float2 channel;
};
struct Known {
    float u, size, slope, d_y, d_gate, skip;
};

// Where a quad has the lane's elements.
struct Where {
    int u, delta, z, d_out;

    template <typename Copies, typename Stored>
    __device__ static Where of(const Given<Stored>& given, const Place& at) {
        const long long row = (long long)at.sequence * given.channels + at.channel(0);
        const long long element = row * given.len + (at.end - 1) * (long long)kTile + at.own;
        return {Copies::place(given.u, element, at.lane), Copies::place(given.delta, element, at.lane),
                Copies::place(given.z, element, at.lane), Copies::place(given.d_out, element, at.lane)};
    }
};

template <typename Stored, bool kOnlyEnds>
__device__ Raw fetch(const Ends& mine, const float2 (&channels)[4 * kQuads], const Where& where, const Place& at, int quad,
                     bool gated) {
    const auto& elems = mine.elems[quad];
    return {kOnlyEnds ? 0.0f : element_of<Stored>(elems[0], where.u), element_of<Stored>(elems[1], where.delta),
            gated ? element_of<Stored>(elems[2], where.z) : 0.0f, element_of<Stored>(elems[3], where.d_out),
            channels[4 * quad + at.row]};
}

// Leaves what the warp needs of all steps of a quad in one of the two halves. A step that does not
// exist has size zero.
template <bool kOnlyEnds, bool kExact>
__device__ Known prepare(Ends& mine, const Raw& raw, const Place& at, int half, bool gated, bool soft, bool exists) {
    Step step = step_of<kExact>(raw.delta + raw.channel.y, soft);
    if (!exists) step.size = 0.0f;
    const float s = sigmoid<kExact>(raw.z);
    const float d_y = gated ? raw.d_out * (raw.z * s) : raw.d_out;
    const float d_gate = raw.d_out * s * multiply_add(raw.z, 1.0f - s, 1.0f);
    mine.steps[half][0][at.lane] = step.size;
    if (!kOnlyEnds) mine.steps[half][1][at.lane] = step.size * raw.u;
    mine.steps[half][2][at.lane] = d_y;
    return {raw.u, step.size, step.slope, d_y, d_gate, raw.channel.x};
}

__device__ inline void read_eight(const float* from, float (&values)[kTile]) {
#pragma unroll
    for (int t = 0; t < kTile; t += 4) *(float4*)&values[t] = *(const float4*)&from[t];
}
// ANCHOR_END: plain_steps

}  // namespace plain

// ANCHOR: plain
template <typename Stored, int kPer, bool kAligned, bool kExact>
__global__ void __launch_bounds__(plain::kThreads, kPer == 1 ? 3 : 2)
    selective_scan_bwd_plain(const Stored* u, const Stored* delta, const Stored* z, const Stored* d_out, const void* b,
                             const void* c, const float* a, const float* d, const float* bias, const unsigned char* restarts,
                             const float* checkpoints, const float* d_last, const float2* ends, Stored* d_u, Stored* d_delta,
                             Stored* d_z, float* d_initial, float* sums, float* totals, int batch, int channels, int groups,
                             int states, long long len, int quads, int chunk_tiles, int flags) {
    using namespace plain;
    constexpr int kStates = 8 * kPer;
    using Copies = Elements<Stored, false, kAligned>;
    using CopiesOfRows = BothRows<Stored, kPer, false, kAligned>;
    const Given<Stored> given = {u,        delta,  z,        d_out,  b,      c,   a,    d, bias, restarts,
                                 checkpoints, batch, channels, groups, kStates, len, flags};
    const Place at = Place::of(given, kQuads, chunk_tiles);
    extern __shared__ uint4 raw[];
    constexpr int kSums = 2 * kStates * kTile;
    AllShared<kPer>& shared = *(AllShared<kPer>*)raw;
    const int warp = threadIdx.x / 32;
    plain::Warp<kPer>& mine = shared.warps[warp];
    float2(&my_channels)[4 * kQuads] = shared.channels[warp];
    const bool gated = z, soft = flags & kSoftplus;

    float carry[kQuads][kPer], rate[kQuads][kPer], d_rate[kQuads][kPer];
    float2 pointwise[kQuads];
#pragma unroll
    for (int quad = 0; quad < kQuads; quad++) {
        const int channel = at.channel(quad);
#pragma unroll
        for (int i = 0; i < kPer; i++) {
            const long long parameter = (long long)channel * kStates + at.own * kPer + i;
            rate[quad][i] = a[parameter] * kLog2E;
            d_rate[quad][i] = 0.0f;
            const long long state = (long long)at.sequence * channels * kStates + parameter;
            carry[quad][i] = d_last ? d_last[state] : 0.0f;
        }
        if (at.own == 0) my_channels[4 * quad + at.row] = {d ? d[channel] : 0.0f, bias ? bias[channel] : 0.0f};
        pointwise[quad] = {0.0f, 0.0f};
    }
    // What later chunks pass back, the last of them first.
    const long long all_states = (long long)batch * channels * kStates;
    const float2* end = ends + (at.chunks - 1) * all_states;
    end += ((long long)at.sequence * channels + at.channel(0)) * kStates + at.own * kPer;
#pragma unroll 2
    for (int later = at.chunks - 1; later > at.chunk; later--, end -= all_states) {
#pragma unroll
        for (int quad = 0; quad < kQuads; quad++) {
            const auto passed = *(const Passed<kPer>*)(end + quad * 4 * kStates);
#pragma unroll
            for (int i = 0; i < kPer; i++) carry[quad][i] = multiply_add(passed.of[i].y, carry[quad][i], passed.of[i].x);
        }
    }

    auto rows = CopiesOfRows::of(given, at, shared.rows);
    auto elements = Copies::of(given, at, mine);
    auto checks = Checkpoints<kPer>::of(given, at, mine);
    const auto where = Where::of<Copies>(given, at);
    for (int i = 1; i <= 4; i++) rows.copy(given, at, at.end - i);
    close_group();
#pragma unroll
    for (int quad = 0; quad < kQuads; quad++) {
        elements.copy(given, quad, true);
        checks.copy(quad, true);
        close_group();
    }

    const int turned = at.own / 4 * 4;  // lanes four apart use other banks
    constexpr int kNext = 4 * plain::Warp<kPer>::kPitch, kHalf = 3 * kNext;
    float* const across_to = &mine.across[0][0][at.row][at.own * kTile];
    float* const across_low = settled(across_to + turned);
    float* const across_high = settled(across_to + (4 ^ turned));
    const float* const across_near = settled(&mine.across[0][0][at.row][at.own]);
    const float* const across_far = settled(&mine.across[0][0][at.row][at.own ^ 4]);
    const float* const steps_from = settled(&mine.steps[0][0][at.row * kTile]);
    const auto* const states_from = (const Total<kPer>*)&mine.states[0][at.row][at.own * kPer];

    // Places of the lane's steps, in bytes behind the block's first one.
    const int block_first = at.first - warp * (4 * kQuads);
    const long long block_place = ((long long)at.sequence * channels + block_first) * len;
    char *const block_d_u = (char*)(d_u + block_place), *const block_d_delta = (char*)(d_delta + block_place);
    char* const block_d_z = (char*)(d_z + block_place);
    const unsigned quad_bytes = 4 * (unsigned)len * sizeof(Stored);
    unsigned place = ((warp * (4 * kQuads) + at.row) * (unsigned)len + (at.end - 1) * (unsigned)kTile + at.own) * sizeof(Stored);

    // What is left to do for the lane's step when the quad is walked.
    const auto finish = [&](int quad, const Known& known, bool exists) {
        const int half = quad % 2 * kHalf;
        float y = across_near[half], by_input = across_near[half + kNext], by_decay = across_near[half + 2 * kNext];
#pragma unroll
        for (int n = 1; n < 8; n++) {
            const float* from = (n < 4 ? across_near : across_far) + half + n * kTile;
            y += from[0];
            by_input += from[kNext];
            by_decay += from[2 * kNext];
        }
        if (!exists) return;
        const float d_step = multiply_add(known.u, by_input, kLn2 * by_decay) * known.slope;
        const unsigned to = place + quad * quad_bytes;
        if (d_z) *(Stored*)(block_d_z + to) = narrow<Stored>(known.d_gate * multiply_add(known.skip, known.u, y));
        *(Stored*)(block_d_delta + to) = narrow<Stored>(d_step);
        *(Stored*)(block_d_u + to) = narrow<Stored>(multiply_add(known.size, by_input, known.skip * known.d_y));
        pointwise[quad] = {multiply_add(known.d_y, known.u, pointwise[quad].x), pointwise[quad].y + d_step};
    };

    // Adds up the block's channels, some of kSums places in each thread.
    const long long group = (long long)at.sequence * groups + at.group;
    float* all = sums + ((group * given.tiles() + at.end - 1) * at.parts + at.part) * kSums;
    const auto add_up = [&](const float* from, unsigned i) {
        float sum = from[i];
#pragma unroll
        for (int k = 1; k < 4 * kWarps; k++) sum += from[k * kSums + i];
        const unsigned lane = i / 8 % 8, which = i / (kSums / 2), n = lane * kPer + i / 64 % kPer;
        all[(which * kStates + n) * kTile + (i % 8 ^ lane / 4 * 4)] = sum;
    };

    await_groups<2>();
    __syncthreads();
    // True if the lane's step of a tile exists.
    const auto has = [&](int index) { return kAligned || index * (long long)kTile + at.own < len; };
    const Raw first_raw = fetch<Stored, false>(mine, my_channels, where, at, 0, gated);
    Known known = prepare<false, kExact>(mine, first_raw, at, 0, gated, soft, has(at.end - 1));
    Total<kPer> before = states_from[0];
    __syncwarp();

#pragma unroll 1
    for (int index = at.end - 1; index >= at.begin; index--) {
        Tile<kPer> tile;
        const bool exists = has(index);
        rows.read(given, at, index, 0, tile.b);
        rows.read(given, at, index, 1, tile.c);
#pragma unroll
        for (int t = 0; t < kTile; t++) {
#pragma unroll
            for (int n = 0; n < kPer; n++) tile.d_b[t][n] = tile.d_c[t][n] = 0.0f;
        }
#pragma unroll
        for (int quad = 0; quad < kQuads; quad++) {
            const int half = quad % 2, next_quad = (quad + 1) % kQuads;
            Steps steps;
            read_eight(steps_from + half * 96, steps.size);
            read_eight(steps_from + half * 96 + 32, steps.input);
            read_eight(steps_from + half * 96 + 64, steps.d_y);
            const Raw next_raw = fetch<Stored, false>(mine, my_channels, where, at, next_quad, gated);
            const Total<kPer> next_before = states_from[next_quad * 4 * 8];
            elements.copy(given, quad, index > at.begin);
            checks.copy(quad, index > at.begin);
            close_group();
            const Across across = walk<false, kExact>(steps, rate[quad], before.of, 0, tile, carry[quad], d_rate[quad]);
#pragma unroll
            for (int t = 0; t < kTile; t += 4) {
                float* to = (t ? across_high : across_low) + half * kHalf;
                *(float4*)to = *(const float4*)&across.y[t];
                *(float4*)(to + kNext) = *(const float4*)&across.by_input[t];
                *(float4*)(to + 2 * kNext) = *(const float4*)&across.by_decay[t];
            }
            // All steps of the tile before exist.
            const Known next = prepare<false, kExact>(mine, next_raw, at, half ^ 1, gated, soft, exists || next_quad == 0);
            await_groups<2>();
            if (quad + 1 < kQuads) {
                __syncwarp();
            } else {
                float* to = &shared.sums[index & 1][threadIdx.x / 8][at.own * kTile];
#pragma unroll
                for (int n = 0; n < kPer; n++) {
#pragma unroll
                    for (int t = 0; t < kTile; t += 4) {
                        const auto &d_b = tile.d_b, &d_c = tile.d_c;
                        float* const there = to + n * 64 + (t ^ turned);
                        *(float4*)there = {d_b[t][n], d_b[t + 1][n], d_b[t + 2][n], d_b[t + 3][n]};
                        *(float4*)(there + kSums / 2) = {d_c[t][n], d_c[t + 1][n], d_c[t + 2][n], d_c[t + 3][n]};
                    }
                }
                __syncthreads();
            }
            finish(quad, known, exists);
            known = next, before = next_before;
        }
        place -= kTile * (unsigned)sizeof(Stored);
        rows.copy(given, at, index - 4);
#pragma unroll
        for (unsigned i = 0; i < kSums; i += kThreads) add_up(shared.sums[index & 1][0], i + threadIdx.x);
        all -= at.parts * kSums;
    }

    const long long slots = (long long)batch * at.chunks, slot = (long long)at.chunk * batch + at.sequence;
    const long long kind = slots * channels * kStates;
#pragma unroll
    for (int quad = 0; quad < kQuads; quad++) {
        const long long of_slot = slot * channels + at.channel(quad);
        const long long of_sequence = (long long)at.sequence * channels + at.channel(quad);
#pragma unroll
        for (int i = 0; i < kPer; i++) {
            const int n = at.own * kPer + i;
            totals[of_slot * kStates + n] = d_rate[quad][i];
            if (at.chunk == 0 && d_initial) d_initial[of_sequence * kStates + n] = carry[quad][i];
        }
        float2 sum = pointwise[quad];
#pragma unroll
        for (int lanes = 1; lanes < 8; lanes *= 2) {
            sum.x += __shfl_xor_sync(~0u, sum.x, lanes);
            sum.y += __shfl_xor_sync(~0u, sum.y, lanes);
        }
        if (at.own == 0) {
            totals[3 * kind + of_slot] = sum.x;
            totals[3 * kind + slots * channels + of_slot] = sum.y;
        }
    }
}
// ANCHOR_END: plain

// ANCHOR: plain_ends
// What each chunk but the first passes back if no gradient comes from behind it, and the product of
// its decays.
template <typename Stored, int kPer, bool kAligned, bool kExact>
__global__ void __launch_bounds__(plain::kThreads, 4)
    selective_scan_bwd_plain_ends(const Stored* u, const Stored* delta, const Stored* z, const Stored* d_out, const void* b,
                                  const void* c, const float* a, const float* d, const float* bias,
                                  const unsigned char* restarts, const float* checkpoints, const float* d_last, float2* ends,
                                  Stored* d_u, Stored* d_delta, Stored* d_z, float* d_initial, float* sums, float* totals,
                                  int batch, int channels, int groups, int states, long long len, int quads, int chunk_tiles,
                                  int flags) {
    using namespace plain;
    constexpr int kStates = 8 * kPer;
    using Copies = Elements<Stored, true, kAligned>;
    using CopiesOfRows = BothRows<Stored, kPer, true, kAligned>;
    const Given<Stored> given = {u,        delta,  z,        d_out,  b,      c,   a,    d, bias, restarts,
                                 checkpoints, batch, channels, groups, kStates, len, flags};
    const Place at = Place::of(given, kQuads, chunk_tiles);
    extern __shared__ uint4 raw[];
    plain::Shared<kPer, Ends>& shared = *(plain::Shared<kPer, Ends>*)raw;
    Ends& mine = shared.warps[threadIdx.x / 32];
    float2(&my_channels)[4 * kQuads] = shared.channels[threadIdx.x / 32];
    const bool gated = z, soft = flags & kSoftplus;

    float carry[kQuads][kPer], rate[kQuads][kPer], size[kQuads];
#pragma unroll
    for (int quad = 0; quad < kQuads; quad++) {
        const int channel = at.channel(quad);
#pragma unroll
        for (int i = 0; i < kPer; i++) {
            rate[quad][i] = a[(long long)channel * kStates + at.own * kPer + i] * kLog2E;
            carry[quad][i] = 0.0f;
        }
        size[quad] = 0.0f;
        if (at.own == 0) my_channels[4 * quad + at.row] = {0.0f, bias ? bias[channel] : 0.0f};
    }

    auto rows = CopiesOfRows::of(given, at, shared.rows);
    auto elements = Copies::of(given, at, mine);
    for (int i = 1; i <= 4; i++) rows.copy(given, at, at.end - i);
    close_group();
#pragma unroll
    for (int quad = 0; quad < kQuads; quad++) {
        elements.copy(given, quad, true);
        close_group();
    }
    await_groups<2>();
    __syncthreads();
    const auto has = [&](int index) { return kAligned || index * (long long)kTile + at.own < len; };
    const auto where = Where::of<Copies>(given, at);
    const Raw first_raw = fetch<Stored, true>(mine, my_channels, where, at, 0, gated);
    prepare<true, kExact>(mine, first_raw, at, 0, gated, soft, has(at.end - 1));
    __syncwarp();

#pragma unroll 1
    for (int index = at.end - 1; index >= at.begin; index--) {
        float c_rows[kTile][kPer];
        rows.read(given, at, index, 1, c_rows);
        const bool exists = has(index);
#pragma unroll
        for (int quad = 0; quad < kQuads; quad++) {
            const int half = quad % 2, next_quad = (quad + 1) % kQuads;
            Steps steps;
            read_eight(&mine.steps[half][0][at.row * kTile], steps.size);
            read_eight(&mine.steps[half][2][at.row * kTile], steps.d_y);
            const Raw next_raw = fetch<Stored, true>(mine, my_channels, where, at, next_quad, gated);
            elements.copy(given, quad, index > at.begin);
            close_group();
            walk_back<kExact>(steps, rate[quad], 0, c_rows, carry[quad]);
            float of_tile = steps.size[0];
#pragma unroll
            for (int t = 1; t < kTile; t++) of_tile += steps.size[t];
            size[quad] += of_tile;
            prepare<true, kExact>(mine, next_raw, at, half ^ 1, gated, soft, exists || next_quad == 0);
            await_groups<2>();
            if (quad + 1 < kQuads) {
                __syncwarp();
            } else {
                __syncthreads();
            }
        }
        rows.copy(given, at, index - 4);
    }

    const long long sequence = (long long)at.chunk * batch + at.sequence;
#pragma unroll
    for (int quad = 0; quad < kQuads; quad++) {
        float decay[kPer];
#pragma unroll
        for (int i = 0; i < kPer; i++) decay[i] = Functions<kExact>::power_of_two(rate[quad][i] * size[quad]);
        Passed<kPer> passed;
#pragma unroll
        for (int i = 0; i < kPer; i++) passed.of[i] = {carry[quad][i], decay[i]};
        const long long to = (sequence * channels + at.channel(quad)) * kStates + at.own * kPer;
        *(Passed<kPer>*)(ends + to) = passed;
    }
}
// ANCHOR_END: plain_ends
