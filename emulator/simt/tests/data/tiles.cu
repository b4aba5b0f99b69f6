// What tiles of several warps do by cooperative groups: sums, votes, shuffles, scans and meetings, in shared memory that CUDA keeps
// for itself in each block.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

template <unsigned SIZE>
__device__ void use(const cg::thread_block& block, const int* values, int* out, int* shared) {
    const auto tile = cg::tiled_partition<SIZE>(block);
    const int rank = tile.thread_rank(), size = tile.size(), thread = block.thread_rank();
    const int value = values[thread];
    // Threads of other warps of the tile read what is left in the kernel's own shared memory, and then it is written again.
    int around = 0;
    for (int round = 0; round < 3; ++round) {
        shared[thread] = value + round;
        tile.sync();
        around += shared[thread - rank + (rank + 33 * (round + 1)) % size];
        tile.sync();
    }
    out[0] = around;
    out[1] = cg::reduce(tile, value, cg::plus<int>());
    out[2] = cg::inclusive_scan(tile, value);
    out[3] = tile.any(value == 7) + 2 * tile.all(value < 100) + 4 * tile.shfl(value, size - 1);
}

extern "C" __global__ void tiles(const int* values, int* out) {
    __shared__ cg::block_tile_memory<512> room;
    __shared__ int shared[512];
    const auto block = cg::this_thread_block(room);
    out += 16 * (blockIdx.x * blockDim.x + threadIdx.x);
    values += blockIdx.x * blockDim.x;
    use<64>(block, values, out, shared);
    block.sync();
    use<128>(block, values, out + 4, shared);
    block.sync();
    use<256>(block, values, out + 8, shared);
    block.sync();
    use<512>(block, values, out + 12, shared);
}
