// The barrier of a grid, as cooperative groups have it: what every thread writes the threads of other blocks read behind it.
// (Of the PTX, constants of the headers are left out, which nothing uses.)

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ int neighbour(const int* values, int i) {
    return values[(i + 33) % (int)(gridDim.x * gridDim.y * blockDim.x * blockDim.y)];
}

__device__ int rank() {
    const int block = blockIdx.y * gridDim.x + blockIdx.x, thread = threadIdx.y * blockDim.x + threadIdx.x;
    return block * (int)(blockDim.x * blockDim.y) + thread;
}

extern "C" __global__ void rounds(int* values, int* out, int count) {
    const cg::grid_group grid = cg::this_grid();
    const int i = rank();
    for (int round = 0; round < count; round++) {
        values[i] = i + round;
        grid.sync();
        out[i] = neighbour(values, i);
        grid.sync();
    }
}

// One block does not come.
extern "C" __global__ void skips(int* values, int* out, int who) {
    const int i = rank();
    values[i] = i;
    if ((int)blockIdx.x != who) cg::this_grid().sync();
    out[i] = i;
}

#if CUDART_VERSION >= 13000
extern "C" __global__ void halves(int* values, int* out) {
    cg::grid_group grid = cg::this_grid();
    const int i = rank();
    values[i] = i + (int)grid.is_valid();
    cg::grid_group::arrival_token token = grid.barrier_arrive();
    grid.barrier_wait(static_cast<cg::grid_group::arrival_token&&>(token));
    out[i] = neighbour(values, i);
}
#endif
