// Barriers as objects in shared memory. An mbarrier counts the arrivals of its phase; the last
// one ends the phase, and the next begins. A thread arrives or waits, not both: so one warp
// can hand data to another and go on, and one of two places is filled while the other is read.
#pragma once

// ANCHOR: mbarrier
// An address in shared memory, in 32 bits.
__device__ inline unsigned shared_address(const void* pointer) { return __cvta_generic_to_shared(pointer); }

// Sets the arrivals of each phase. A barrier of the block must follow before others use it.
__device__ inline void begin_phases(unsigned mbarrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(mbarrier), "r"(arrivals) : "memory");
}

// One arrival.
__device__ inline void arrive_once(unsigned mbarrier) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(mbarrier) : "memory");
}

// Arrives for the warp at one mbarrier, or at several: who waits sees what all its lanes have done.
template <typename... Mbarriers>
__device__ void arrive(Mbarriers... mbarriers) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) (arrive_once(mbarriers), ...);
}

// Waits until a phase is over, the current one or the one before, by its number's lowest bit.
__device__ inline void await_phase(unsigned mbarrier, unsigned parity) {
    unsigned over;
    do {
        asm volatile(
            "{\n\t.reg .pred over;\n\t"
            "mbarrier.test_wait.parity.shared.b64 over, [%1], %2;\n\t"
            "selp.u32 %0, 1, 0, over;\n\t}"
            : "=r"(over)
            : "r"(mbarrier), "r"(parity)
            : "memory");
    } while (!over);
}
// ANCHOR_END: mbarrier
