// What one load instruction of a warp asks of the memory.
//
// Memory is served in sectors of 32 bytes. One instruction of a warp is one request, and costs as
// many sectors as its 32 lanes touch: what counts is how the lanes' addresses relate. Each kernel
// here copies an array; the comment says how many sectors a full warp's request touches in arrays
// that begin at a sector. Nsight Compute calls the two l1tex__t_sectors and l1tex__t_requests.

// ANCHOR: coalesced
// Neighbouring lanes, neighbouring elements: 4 sectors for float, 8 for float2 and
// double, 16 for float4. Every byte that is fetched is used.
template <typename Pack>
__global__ void copy_coalesced(const Pack* from, Pack* to, long long num_packs) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i < num_packs) to[i] = from[i];
}
// ANCHOR_END: coalesced

// ANCHOR: shifted
// The same, a few elements further on, as in a row whose length is no multiple of 8: 5
// sectors in place of 4, because the 128 bytes begin in the middle of one.
__global__ void copy_shifted(const float* from, float* to, long long num_elems, int shift) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i < num_elems) to[i + shift] = from[i + shift];
}
// ANCHOR_END: shifted

// ANCHOR: strided
// Lane i takes element i * stride: 8 sectors for a stride of 2, 32 from a stride of 8
// on. Most bytes that are fetched go unused.
__global__ void copy_strided(const float* from, float* to, long long num_elems, int stride) {
    const long long i = ((long long)blockDim.x * blockIdx.x + threadIdx.x) * stride;
    if (i < num_elems) to[i] = from[i];
}
// ANCHOR_END: strided

// ANCHOR: rows
// One thread per row, as in linrec_ref.cu: 32 sectors in each request once rows have 8 elements
// or more. A sector's other 7 elements serve the next 7 steps, if a cache still holds them.
__global__ void copy_rows(const float* from, float* to, long long num_rows, long long row_len) {
    const long long row = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (row >= num_rows) return;
    for (long long i = 0; i < row_len; i++) to[row * row_len + i] = from[row * row_len + i];
}
// ANCHOR_END: rows

// ANCHOR: broadcast
// All lanes read the same element: 1 sector for the load, 4 for the store.
__global__ void copy_broadcast(const float* from, float* to, long long num_elems) {
    const long long i = (long long)blockDim.x * blockIdx.x + threadIdx.x;
    if (i < num_elems) to[i] = from[0];
}
// ANCHOR_END: broadcast
