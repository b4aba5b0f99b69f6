// What both passes of the selective scan share: its functions, and how tiles come to
// shared memory.
//
// For each batch, channel c and state n, with B and C of the channel's group:
//
//     d_t = softplus(delta_t + delta_bias_c)               (or without the softplus)
//     h_t = exp(d_t A_cn) h_{t-1} + (d_t u_t) B_tn
//     y_t = sum over n of C_tn h_t  +  D_c u_t
//     out_t = y_t z_t sigmoid(z_t)                         (or y_t, without a gate)
//
// Where a sequence begins inside a row (restarts), h_{t-1} counts as zero.
#pragma once
#include "sub_warp.cuh"

// ANCHOR: functions
// The functions of a step. kExact: from additions, multiplications and multiply-adds, with the same
// bits everywhere. Else by the instructions ex2 and rcp, whose last bits NVIDIA does not define.
template <bool kExact>
struct Functions {
    // 2^x; zero below 2^-126.
    __device__ static float power_of_two(float x) {
        float power;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
        return power;
    }
    __device__ static float reciprocal(float x) {
        float inverse;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
        return inverse;
    }
};

// x is a whole number n and a rest of at most 1/2, whose power is a polynomial that is
// exactly 1 at zero: a decay near one must not be off in each step. Adding 1.5 * 2^23
// + 127 rounds to a whole number, left in the lowest bits, where 2^n has its exponent.
template <>
struct Functions<true> {
    __device__ static float power_of_two(float x) {
        x = x > 128.0f ? 128.0f : x;
        x = x < -127.0f ? -127.0f : x;
        const float to_whole = 12583039.0f;
        const float rounded = x + to_whole;
        const float rest = x - (rounded - to_whole);
        float power = 0.00015353361959569156f;
        power = multiply_add(power, rest, 0.0013398873852565885f);
        power = multiply_add(power, rest, 0.00961843691766262f);
        power = multiply_add(power, rest, 0.055503323674201965f);
        power = multiply_add(power, rest, 0.24022647738456726f);
        power = multiply_add(power, rest, 0.6931471824645996f);
        power = multiply_add(power, rest, 1.0f);
        return power * __int_as_float(__float_as_int(rounded) << 23);
    }
    __device__ static float reciprocal(float x) { return 1.0f / x; }
};

constexpr float kLog2E = 0x1.715476p+0f;

// ln(1 + e^x) = max(x, 0) + ln(1 + e), with e = e^-|x| in [0, 1]. The polynomial is ln(1
// + e) / e to 3.4e-8, and exactly 1 at zero, so that small results keep all their digits.
template <bool kExact>
__device__ float softplus(float x) {
    const float e = Functions<kExact>::power_of_two(-fabsf(x) * kLog2E);
    float part = 0.005364822689443827f;
    part = multiply_add(part, e, -0.030065786093473434f);
    part = multiply_add(part, e, 0.07920452952384949f);
    part = multiply_add(part, e, -0.13753801584243774f);
    part = multiply_add(part, e, 0.191536545753479f);
    part = multiply_add(part, e, -0.24857163429260254f);
    part = multiply_add(part, e, 0.3332132399082184f);
    part = multiply_add(part, e, -0.49999648332595825f);
    part = multiply_add(part, e, 1.0f);
    return multiply_add(e, part, fmaxf(x, 0.0f));
}

template <bool kExact>
__device__ float sigmoid(float x) {
    return Functions<kExact>::reciprocal(1.0f + Functions<kExact>::power_of_two(-x * kLog2E));
}
// ANCHOR_END: functions

// ANCHOR: vector
// 16 bytes of an array as numbers to compute with, and back.
template <typename Stored>
__device__ void unpack(const Vector<Stored>& vector, float (&elems)[kPerVector<Stored>]) {
#pragma unroll
    for (int i = 0; i < kPerVector<Stored>; i++) elems[i] = widen(vector.elems[i]);
}

template <typename Stored>
__device__ Vector<Stored> pack(const float (&elems)[kPerVector<Stored>]) {
    Vector<Stored> vector;
#pragma unroll
    for (int i = 0; i < kPerVector<Stored>; i++) vector.elems[i] = narrow<Stored>(elems[i]);
    return vector;
}
// ANCHOR_END: vector

// ANCHOR: copies
// Asynchronous copies to shared memory. Of the 16 or 4 bytes, the first `exist` come
// from memory, and the others become zero.
__device__ inline void copy_vector(void* to, const void* from, int exist) {
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(exist)
                 : "memory");
}
__device__ inline void copy_vector(void* to, const void* from) {
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ inline void copy_word(void* to, const void* from, int exist) {
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(exist) : "memory");
}
__device__ inline void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all groups of copies but the last kBut have arrived.
template <int kBut>
__device__ void await_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kBut) : "memory");
}

// Copies one element to a place of 4 bytes. Of a 16-bit element the aligned word is
// copied that contains it; `last` says that the array ends with the element.
__device__ inline void copy_single(unsigned* to, const float* from, bool exists, bool) {
    copy_word(to, from, exists ? 4 : 0);
}
template <typename Half>
__device__ void copy_single(unsigned* to, const Half* from, bool exists, bool last) {
    const size_t upper = (size_t)from & 2;
    copy_word(to, (const char*)from - upper, !exists ? 0 : last && !upper ? 2 : 4);
}
// Which half of its place an element is in after copy_single.
__device__ inline int half_of(const float*) { return 0; }
template <typename Half>
__device__ int half_of(const Half* from) {
    return (int)((size_t)from >> 1 & 1);
}

// Copies kCount single elements of an array: the i-th is from(i) elements from its beginning if it
// exists(i), else zero. Elements of less than 4 bytes pass through registers: all are read, then
// written.
template <int kCount, typename Stored, typename To, typename From, typename Exists>
__device__ void copy_elements(const Stored* array, To&& to, From&& from, Exists&& exists) {
    if constexpr (sizeof(Stored) == 4) {
#pragma unroll 4
        for (int i = 0; i < kCount; i++) copy_word(to(i), array + (exists(i) ? from(i) : 0), exists(i) ? 4 : 0);
    } else {
        Stored elems[kCount];
#pragma unroll
        for (int i = 0; i < kCount; i++) elems[i] = exists(i) ? array[from(i)] : Stored{0};
#pragma unroll
        for (int i = 0; i < kCount; i++) *to(i) = elems[i];
    }
}
// ANCHOR_END: copies

// The flags of a launch. kVaryingB, kVaryingC: B or C vary along the sequence, and are [batch,
// groups, states, seq_len] of the stored type; otherwise constants, [channels, states] of float.
enum : int { kSoftplus = 1, kVaryingB = 2, kVaryingC = 4 };

// The states before every eighth step are kept for the backward pass.
constexpr int kCheckpointSteps = 8;
