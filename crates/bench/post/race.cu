// Races this repository's pipe against the post's and the element-wise roof, in the post's twelve
// sizes, both directions and both passes. All of them take turns in every round, and 256 MB are
// written between two launches to clear the L2 cache. Checks first that both sides agree, and
// writes medians.
//
// usage: race CSV DATE ROUNDS
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "contest.cuh"
#include "elementwise.cu"

static void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(2);
}

// Fills with numbers in [low, high), the same at every call.
__global__ void fill(float* to, long long len, unsigned seed, float low, float high) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= len) return;
    unsigned hash = (unsigned)i * 2654435761u ^ seed;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    to[i] = low + (high - low) * ((hash ^ hash >> 16) >> 8) / 16777216.0f;
}

// The largest difference, and the largest number. Positive floats have the order of their bits,
// and NaN is above all.
__global__ void compare(const float* a, const float* b, long long len, unsigned* extremes) {
    unsigned worst = 0, largest = 0;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < len; i += step) {
        worst = max(worst, __float_as_uint(fabsf(a[i] - b[i])));
        largest = max(largest, __float_as_uint(fabsf(b[i])));
    }
    atomicMax(&extremes[0], worst);
    atomicMax(&extremes[1], largest);
}

struct Racer {
    std::string name;
    Launch launch;
    std::vector<float> ms;
};

int main(int argc, char** argv) {
    if (argc != 4) return std::fputs("usage: race CSV DATE ROUNDS\n", stderr), 2;
    const long long num_seqs = 13200;
    const long long lengths[] = {16, 32, 64, 128, 256, 512, 1000, 1024, 2048, 4093, 4096, 8192, 16384, 32768, 65536};
    const long long most = num_seqs * 65536;
    const int rounds = std::atoi(argv[3]);
    FILE* csv = std::fopen(argv[1], "wx");
    if (!csv) return std::perror(argv[1]), 2;

    float* arrays[7];
    for (float*& array : arrays) check(cudaMalloc(&array, most * sizeof(float)), "no room");
    float* carry;
    char* flush;
    unsigned* extremes;
    check(cudaMalloc(&carry, num_seqs * sizeof(float)), "no room");
    check(cudaMalloc(&flush, 256 << 20), "no room");
    check(cudaMalloc(&extremes, 2 * sizeof(unsigned)), "no room");
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "events");
    check(cudaEventCreate(&end), "events");
    cudaDeviceProp machine;
    check(cudaGetDeviceProperties(&machine, 0), "the machine");
    std::fputs("date,machine,element,pass,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio\n", csv);

    for (const long long seq_len : lengths) {
        const long long len = num_seqs * seq_len, blocks = (len + 255) / 256;
        fill<<<blocks, 256>>>(arrays[0], len, 1, -1, 1);
        fill<<<blocks, 256>>>(arrays[1], len, 2, 0.9f, 1);
        fill<<<blocks, 256>>>(arrays[2], len, 3, -1, 1);
        for (const bool backward : {false, true}) for (const bool reverse : {false, true}) {
            std::vector<Racer> racers = {{"roof", nullptr, {}}};
            auto add = [&](const char* side, Launch (*of)(int, int, bool)) {
#define RACER(E, T) racers.push_back({std::string(side) + ":" #E "x" #T ":0", of(E, T, backward), {}});
                FOR_EACH_SIZE(RACER)
            };
            add("pipe", ours);
            add("post", theirs);
            auto launch = [&](const Racer& racer, float* first, float* second) {
                const Arrays given = {arrays[0], arrays[1], arrays[2], first, second, carry};
                if (racer.launch) return racer.launch(given, num_seqs, seq_len, reverse);
                const long long packs = len / 4;
                auto pack = [](const float* array) { return (float4*)array; };
                if (backward) {
                    elementwise_bwd<float4><<<(packs + 255) / 256, 256>>>(pack(arrays[0]), pack(arrays[1]), pack(arrays[2]), pack(first), pack(second), packs);
                } else {
                    elementwise_fwd<float4><<<(packs + 255) / 256, 256>>>(pack(arrays[0]), pack(arrays[1]), pack(first), packs);
                }
            };
            const size_t sizes = (racers.size() - 1) / 2;
            for (size_t i = 1; i <= sizes; i++) {
                for (int k = 3; k < 7; k++) check(cudaMemset(arrays[k], 255, len * sizeof(float)), "poison");
                launch(racers[i], arrays[3], arrays[4]);
                launch(racers[i + sizes], arrays[5], arrays[6]);
                for (int k = 0; k < (backward ? 2 : 1); k++) {
                    unsigned found[2];
                    check(cudaMemset(extremes, 0, sizeof found), "extremes");
                    compare<<<1056, 256>>>(arrays[3 + k], arrays[5 + k], len, extremes);
                    check(cudaMemcpy(found, extremes, sizeof found, cudaMemcpyDeviceToHost), racers[i].name.c_str());
                    float worst, largest;
                    std::memcpy(&worst, found, 4);
                    std::memcpy(&largest, found + 1, 4);
                    if (!(worst <= 1e-4f * largest)) {
                        std::fprintf(stderr, "%s and %s differ by %g of %g at %lld\n", racers[i].name.c_str(), racers[i + sizes].name.c_str(), worst, largest, seq_len);
                    }
                }
            }
            for (int round = -1; round < rounds; round++) {
                for (Racer& racer : racers) {
                    cudaMemsetAsync(flush, round, 256 << 20);
                    cudaEventRecord(begin);
                    launch(racer, arrays[3], arrays[4]);
                    cudaEventRecord(end);
                    check(cudaEventSynchronize(end), racer.name.c_str());
                    float ms;
                    cudaEventElapsedTime(&ms, begin, end);
                    if (round >= 0) racer.ms.push_back(ms);
                }
            }
            auto median = [](std::vector<float> ms) {
                std::nth_element(ms.begin(), ms.begin() + ms.size() / 2, ms.end());
                return ms[ms.size() / 2];
            };
            const double roof = median(racers[0].ms);
            for (const Racer& racer : racers) {
                const double ms = median(racer.ms);
                std::fprintf(csv, "%s,%s,f32,%s,%s,%s,%lld,%lld,%.6f,%.1f,%.4f\n", argv[2], machine.name,
                             backward ? "backward" : "forward", reverse ? "reverse" : "standard",
                             racer.name.c_str(), num_seqs, seq_len, ms,
                             len * (backward ? 20 : 12) / ms / 1e6, roof / ms);
            }
        }
    }
    return std::fclose(csv) ? (std::perror(argv[1]), 2) : 0;
}
