// bf16, f16 and integers of 8 and 16 bits, complex numbers, and bits moved between them.

typedef unsigned short half;

struct __align__(8) complex32 {
    float re, im;
};

__device__ complex32 operator*(complex32 a, complex32 b) {
    return {fmaf(a.re, b.re, -(a.im * b.im)), fmaf(a.re, b.im, a.im * b.re)};
}

__device__ float from_half(half bits) {
    float value;
    asm("{ .reg .f16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(value) : "h"(bits));
    return value;
}

__device__ half to_half(float value) {
    half bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ unsigned to_bf16x2(float high, float low) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

extern "C" __global__ void halves(const half* inputs, half* outputs, uint2* pairs, ushort4* fours) {
    const int i = threadIdx.x;
    outputs[i] = to_half(from_half(inputs[i]) * 2.0f);
    uint2 pair = pairs[i];
    pair.x = to_bf16x2(__uint_as_float(pair.x << 16), __uint_as_float(pair.x & 0xffff0000u));
    pairs[i] = pair;
    ushort4 four = fours[i];
    four.x = to_half(from_half(four.y) + from_half(four.z) * from_half(four.w));
    fours[i] = four;
}

extern "C" __global__ void bytes(signed char* a, unsigned char* b, short* c, bool* d, long long* e, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    a[i] = a[i] + b[i];
    b[i] = b[i] >> 1;
    c[i] = max(c[i], (short)a[i]);
    d[i] = !d[i];
    e[i] = e[i] / (d[i] ? c[i] : a[i] | 1) + (signed char)e[i + 1] + (short)e[i + 2];
    uchar4 four = ((uchar4*)b)[i];
    four.w = four.x + four.z;
    ((uchar4*)b)[i] = four;
}

extern "C" __global__ void complex_scan(complex32* values) {
    complex32 value = values[threadIdx.x];
    for (int distance = 1; distance < 32; distance *= 2) {
        complex32 other;
        other.re = __shfl_up_sync(~0u, value.re, distance);
        other.im = __shfl_up_sync(~0u, value.im, distance);
        if ((threadIdx.x & 31) >= distance) value = other * value;
    }
    values[threadIdx.x] = value;
}
