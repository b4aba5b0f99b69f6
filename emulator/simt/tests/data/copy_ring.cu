// Asynchronous copies into a ring of tiles in dynamic shared memory, parameters in a struct, and
// pointers that may lie in any state space.

struct Task {
    const float4* inputs;
    float4* outputs;
    int tiles;
    float scale[5];
    unsigned char shift;
    double gain;
};

__device__ void copy(unsigned to, const float4* from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

extern "C" __global__ void copy_ring(Task task) {
    constexpr int kSlots = 4;
    extern __shared__ __align__(128) float4 ring[];
    const unsigned place = (unsigned)__cvta_generic_to_shared(ring) + threadIdx.x * 16;
    const unsigned tile_bytes = blockDim.x * 16;
    for (int tile = 0; tile < kSlots - 1; tile++) {
        copy(place + tile * tile_bytes, task.inputs + tile * blockDim.x + threadIdx.x, tile < task.tiles ? 16 : 0);
        asm volatile("cp.async.commit_group;");
    }
    for (int tile = 0; tile < task.tiles; tile++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(kSlots - 2));
        __syncthreads();
        const int ahead = tile + kSlots - 1;
        const int from = ahead < task.tiles ? ahead : 0;
        copy(place + ahead % kSlots * tile_bytes, task.inputs + from * blockDim.x + threadIdx.x, ahead < task.tiles ? 16 : 0);
        asm volatile("cp.async.commit_group;");
        float4 value = ring[tile % kSlots * blockDim.x + blockDim.x - 1 - threadIdx.x];
        value.x *= task.scale[tile % 5];
        value.y += (float)task.gain + task.shift;
        task.outputs[tile * blockDim.x + threadIdx.x] = value;
    }
    asm volatile("cp.async.wait_all;");
}

extern "C" __global__ void any_space(float* global, int where) {
    __shared__ float shared[64];
    float local[4] = {1, 2, 3, 4};
    float* target = where == 0 ? global : where == 1 ? shared : local;
    shared[threadIdx.x] = 1;
    __syncthreads();
    target[where & 3] = 7;
    atomicAdd(target, 1.0f);
    global[threadIdx.x] = shared[threadIdx.x] + local[where & 3];
}
