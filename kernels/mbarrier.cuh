// Barriers that are objects in shared memory. An mbarrier counts the arrivals of its phase; with the last one the phase
// is over, and the next begins. Who waits does not arrive, and who arrives does not wait: so one warp can hand something to
// another and go on, and of two places one is filled while the other is read.
#pragma once

// ANCHOR: mbarrier
// An address in shared memory, in 32 bits.
__device__ inline unsigned shared_address(const void* pointer) { return __cvta_generic_to_shared(pointer); }

// From here on each phase takes so many arrivals. To be seen by the block before others use it.
__device__ inline void begin_phases(unsigned mbarrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(mbarrier), "r"(arrivals) : "memory");
}

// One arrival.
__device__ inline void arrive_once(unsigned mbarrier) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(mbarrier) : "memory");
}

// An arrival of the whole warp at one mbarrier, or at each of some: what its lanes have done is seen by who waits for the phase.
template <typename... Mbarriers>
__device__ void arrive(Mbarriers... mbarriers) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) (arrive_once(mbarriers), ...);
}

// Until a phase is over: the current one or the one before, by its number's lowest bit.
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
