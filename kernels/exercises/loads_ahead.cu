// linrec_pipe.cu, forward, with memcode 1 done another way: a thread loads all of its elements
// of both arrays before it stores the first into shared memory. Chapter 9 measures it.
//
// Arguments and launch as for linrec_pipe_fwd<float, ...>, all levels; dynamic shared memory
// for two tiles, and with kFree bank words left free after every 32 for those as well.
#include "../memio.cuh"
#include "../scan.cuh"

// ANCHOR: place
// Where element k of a tile is in shared memory.
template <int kFree>
__device__ int place(int k) {
    return k + k / 32 * kFree;
}
// ANCHOR_END: place

template <int kMaxElemsPerThread, int kMaxThreadsPerBlock, int kFree>
__global__ void __launch_bounds__(kMaxThreadsPerBlock)
    linrec_ahead(const float* inputs, const float* coeffs, float* outputs, const float* initial,
                 float* final_state, long long num_seqs, long long seq_len, int reverse) {
    extern __shared__ float staging[];
    __shared__ Transition<float> totals[2][kMaxWarps];
    const int max_len = kMaxElemsPerThread * blockDim.x;
    float* staged_inputs = staging;
    float* staged_coeffs = staging + place<kFree>(max_len);
    const Row<float> row = row_of(outputs, seq_len, reverse);

    float carry = initial ? initial[blockIdx.x] : 0.0f;
    int turn = 0;
    for (long long first = 0; first < seq_len; first += max_len) {
        const int len = min((long long)max_len, seq_len - first);
        const Span tile = span(row, first, len);
        const long long offset = seq_len * blockIdx.x + tile.position;
        float x[kMaxElemsPerThread], c[kMaxElemsPerThread];
        // ANCHOR: ahead
        // Neighbouring threads, neighbouring elements: all that the tile needs is requested.
#pragma unroll
        for (int i = 0; i < kMaxElemsPerThread; i++) {
            const int k = threadIdx.x + i * blockDim.x;
            if (k < len) {
                x[i] = inputs[offset + k];
                c[i] = coeffs[offset + k];
            }
        }
#pragma unroll
        for (int i = 0; i < kMaxElemsPerThread; i++) {
            const int k = threadIdx.x + i * blockDim.x;
            if (k < len) {
                staged_inputs[place<kFree>(k)] = x[i];
                staged_coeffs[place<kFree>(k)] = c[i];
            }
        }
        __syncthreads();  // both arrays have arrived
        // ANCHOR_END: ahead
        const Share mine = share<kMaxElemsPerThread>(len);
        const int begin = row.position(first + mine.begin) - tile.position;
#pragma unroll
        for (int i = 0; i < kMaxElemsPerThread; i++) {
            const int k = place<kFree>(reverse ? begin - i : begin + i);
            x[i] = i < mine.count ? staged_inputs[k] : 0.0f;
            c[i] = i < mine.count ? staged_coeffs[k] : 1.0f;
        }
        // Its barrier comes after everybody has taken its elements.
        scan_tile<kBlock>(mine.last(len), c, x, totals[turn], carry);
#pragma unroll
        for (int i = 0; i < kMaxElemsPerThread; i++) {
            const int k = place<kFree>(reverse ? begin - i : begin + i);
            if (i < mine.count) staged_inputs[k] = x[i];
        }
        __syncthreads();  // all outputs are there
#pragma unroll
        for (int i = 0; i < kMaxElemsPerThread; i++) {
            const int k = threadIdx.x + i * blockDim.x;
            if (k < len) outputs[offset + k] = staged_inputs[place<kFree>(k)];
        }
        __syncthreads();  // all of them are taken: the next tile may come
        turn = 1 - turn;
    }
    if (final_state && threadIdx.x == 0) final_state[blockIdx.x] = carry;
}
