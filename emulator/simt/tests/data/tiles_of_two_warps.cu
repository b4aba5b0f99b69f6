// Sums of a block's tiles of 64 threads by cooperative groups. Such tiles meet in shared memory that CUDA keeps for itself in each
// block. Compiled with and without optimisation (`-G`, the sections for a debugger left out).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void sums_of_tiles(const int* values, int* sums) {
    __shared__ cg::block_tile_memory<256> room;
    const auto block = cg::this_thread_block(room);
    const auto tile = cg::tiled_partition<64>(block);
    const int sum = cg::reduce(tile, values[blockIdx.x * blockDim.x + threadIdx.x], cg::plus<int>());
    if (tile.thread_rank() == 0) sums[blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()] = sum;
}
