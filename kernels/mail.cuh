// States on their way to another device, through mailboxes in memory that both devices reach.
#pragma once

// ANCHOR: mail
// The state that another device posts, and the launch that posted it. Fills one line of the cache.
template <typename T>
struct alignas(128) Mailbox {
    T state;
    unsigned epoch;
};

// How often a thread polls before it gives up: some ten seconds.
constexpr int kMostAsked = 1 << 24;

// System scope: the mailbox is in another device's memory. A reader of the epoch sees the state.
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
// Returns true if an earlier kernel knew the state early, from the tail of its stretch, and posted
// it. Only launches with odd epochs ask: the answer comes from another device, which takes long.
template <typename T>
__device__ bool is_posted(const Mailbox<T>* to, unsigned epoch) {
    if (epoch % 2 == 0) return false;
    unsigned found;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(&to->epoch) : "memory");
    return found == epoch;
}
// ANCHOR_END: mail

// ANCHOR: rows
// Where the state before each row comes from: the mail, where a device comes before
// this one, or else an array. Without either it is zero.
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

// Where the state behind a row goes: either, both, or nowhere. Mail posted early stays.
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
