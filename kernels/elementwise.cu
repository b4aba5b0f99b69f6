// The roof: the speed of a kernel that only reads and writes, element by element.
//
// A kernel for the recurrence can be no faster than one that moves the same bytes and
// does nothing else. `elementwise_fwd` reads two arrays and writes one, as the forward
// pass does; `elementwise_bwd` reads three and writes two, as the backward pass does.
// A thread moves a `Pack`: float, or float4 for a quarter of the instructions.
// `num_packs` counts packs, and arrays of float4 begin at a multiple of 16 bytes.

__device__ inline float add(float a, float b) { return a + b; }
__device__ inline float4 add(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// ANCHOR: roof
template <typename Pack>
__global__ void elementwise_fwd(const Pack* a, const Pack* b, Pack* sum, long long num_packs) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i < num_packs) sum[i] = add(a[i], b[i]);
}

template <typename Pack>
__global__ void elementwise_bwd(const Pack* a, const Pack* b, const Pack* c, Pack* sum_ab,
                                Pack* sum_bc, long long num_packs) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= num_packs) return;
    const Pack shared = b[i];
    sum_ab[i] = add(a[i], shared);
    sum_bc[i] = add(shared, c[i]);
}
// ANCHOR_END: roof
