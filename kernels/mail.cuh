// States on their way to another device, by mailboxes in the memory that both reach.
#pragma once

// ANCHOR: mail
// Where a state comes in from another device, and the launch in which it was told. It has a line of the cache for itself.
template <typename T>
struct alignas(128) Mailbox {
    T state;
    unsigned epoch;
};

// How often a thread asks before it gives up: some ten seconds.
constexpr int kMostAsked = 1 << 24;

// Of all devices of the system, as the mail lies in the memory of another one. Who finds the epoch also finds the state.
template <typename T>
__device__ void post(Mailbox<T>* to, unsigned epoch, T state) {
    to->state = state;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&to->epoch), "r"(epoch) : "memory");
}
template <typename T>
__device__ T fetch(const Mailbox<T>* from, unsigned epoch) {
#pragma unroll 1
    for (int asked = 0; asked < kMostAsked; asked++) {
        unsigned found;
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(&from->epoch) : "memory");
        if (found == epoch) return from->state;
    }
    asm volatile("trap;");
    return T(0);
}
// Whether a kernel before this one knew the state early, from the tail of its stretch, and has posted it. Launches in which that
// may be have odd epochs. In others nobody asks: the answer comes from the memory of another device, and takes a while.
template <typename T>
__device__ bool is_posted(const Mailbox<T>* to, unsigned epoch) {
    if (epoch % 2 == 0) return false;
    unsigned found;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(&to->epoch) : "memory");
    return found == epoch;
}
// ANCHOR_END: mail

// ANCHOR: rows
// Where the first state of each row comes from: the mail, where there is a device before this one, or else an array.
// Without either it is zero.
template <typename T>
struct Incoming {
    const T* states;
    const Mailbox<T>* mail;
    unsigned epoch;

    __device__ T operator()(long long row) const {
        if (mail) return fetch(mail + row, epoch);
        return states ? states[row] : T(0);
    }
};

// Where the last one goes to: either, both, or nowhere. What has been posted early stays, as it may have been read.
template <typename T>
struct Outgoing {
    T* states;
    Mailbox<T>* mail;
    unsigned epoch;

    __device__ bool wanted() const { return states || mail; }
    __device__ void operator()(long long row, T state) const {
        if (mail && !is_posted(mail + row, epoch)) post(mail + row, epoch, state);
        if (states) states[row] = state;
    }
};
// ANCHOR_END: rows
