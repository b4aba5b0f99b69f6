// Shared memory by addresses held in registers, and elements there: as vectors of the
// stored type, or each in a place of 4 bytes.
#pragma once
#include "selective_scan_tile.cuh"

namespace plain {

// ANCHOR: plain_access
// Shared memory by addresses that stay in registers.
__device__ inline uint4 load_vector(unsigned from) {
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from)
                 : "memory");
    return v;
}
__device__ inline float2 load_two(unsigned from) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(from) : "memory");
    return v;
}
__device__ inline unsigned load_word(unsigned from) {
    unsigned word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    return word;
}
__device__ inline void store_vector(unsigned to, uint4 v) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ inline void store_vector(unsigned to, float4 v) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
// Keeps a number in its register. The compiler would compute it again in each tile.
__device__ inline unsigned held_back(unsigned number) {
    asm volatile("mov.b32 %0, %0;" : "+r"(number));
    return number;
}
__device__ inline void store_two(unsigned to, float2 v) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(v.x), "f"(v.y) : "memory");
}
__device__ inline void store_one(unsigned to, float value) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}
__device__ inline void copy_16(unsigned to, const void* from, bool exists) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0)
                 : "memory");
}
// The word that contains an element; at the end of an array, its existing half.
template <typename Stored>
__device__ void copy_element(unsigned to, const Stored* from, bool exists, const Stored* end) {
    const size_t upper = sizeof(Stored) == 4 ? 0 : (size_t)from & 2;
    const int bytes = !exists ? 0 : sizeof(Stored) < 4 && from + 1 == end && !upper ? 2 : 4;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"((const char*)from - upper), "r"(bytes)
                 : "memory");
}

// A vector as numbers. `upper`: of elements copied one by one, the half of its word
// that the first is in; the next ones are in the two halves in turns.
template <typename Stored, bool kAligned>
struct Numbers;
template <typename Stored>
struct Numbers<Stored, true> {
    static constexpr int kPer = kPerVector<Stored>;
    __device__ static void read(unsigned from, int, float (&elems)[kPer]) {
        const uint4 raw = load_vector(from);
        if constexpr (sizeof(Stored) == 4) {
            unpack(*(const Vector<Stored>*)&raw, elems);
        } else {
            const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
            for (int i = 0; i < kPer; i++) elems[i] = widen(Stored{(unsigned short)(words[i / 2] >> i % 2 * 16)});
        }
    }
    __device__ static uint4 held(const float (&elems)[kPer]) {
        const Vector<Stored> vector = pack<Stored>(elems);
        return *(const uint4*)&vector;
    }
};
template <typename Stored>
struct Numbers<Stored, false> {
    static constexpr int kPer = 4;
    __device__ static void read(unsigned from, int upper, float (&elems)[kPer]) {
        const uint4 raw = load_vector(from);
        const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < kPer; i++) {
            if constexpr (sizeof(Stored) == 4) {
                elems[i] = __uint_as_float(words[i]);
            } else {
                elems[i] = widen(Stored{(unsigned short)(words[i] >> (upper ^ i % 2) * 16)});
            }
        }
    }
    __device__ static unsigned bits(float elem) {
        if constexpr (sizeof(Stored) == 4) {
            return __float_as_uint(elem);
        } else {
            return narrow<Stored>(elem).bits;
        }
    }
    __device__ static uint4 held(const float (&elems)[kPer]) {
        return {bits(elems[0]), bits(elems[1]), bits(elems[2]), bits(elems[3])};
    }
};
// ANCHOR_END: plain_access

}  // namespace plain
