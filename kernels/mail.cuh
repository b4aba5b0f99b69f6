// States on their way to another device, through mailboxes in memory that both devices reach.
#pragma once

// ANCHOR: mail
// The state that another device posts. Each word has 32 bits of the state, and the epoch of the
// launch that posted it in its upper half. So a word is right by itself, and no release is needed:
// that would wait until all that the thread has written before has reached memory.
template <typename T>
struct Mailbox {
    static constexpr int kWords = sizeof(T) / sizeof(unsigned);
    unsigned long long words[kWords];
};

// How often a thread polls before it gives up: some ten seconds.
constexpr int kMostPolls = 1 << 24;

// System scope: the mailbox is in another device's memory.
template <typename T>
__device__ void post(Mailbox<T>* to, unsigned epoch, T state) {
    unsigned parts[Mailbox<T>::kWords];
    memcpy(parts, &state, sizeof(T));
#pragma unroll
    for (int i = 0; i < Mailbox<T>::kWords; i++) {
        const unsigned long long word = (unsigned long long)epoch << 32 | parts[i];
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(&to->words[i]), "l"(word) : "memory");
    }
}
inline __device__ unsigned long long load_word(const unsigned long long* from) {
    unsigned long long word;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
// Returns what is in a mailbox now. The answer takes a microsecond: ask before other loads.
template <typename T>
__device__ Mailbox<T> peek(const Mailbox<T>* from) {
    Mailbox<T> found;
#pragma unroll
    for (int i = 0; i < Mailbox<T>::kWords; i++) found.words[i] = load_word(&from->words[i]);
    return found;
}
// Waits for the mail of an epoch, of which `found` is what a thread has seen before.
template <typename T>
__device__ T fetch(const Mailbox<T>* from, unsigned epoch, Mailbox<T> found) {
    unsigned parts[Mailbox<T>::kWords];
    int polls = 0;
#pragma unroll
    for (int i = 0; i < Mailbox<T>::kWords; i++) {
#pragma unroll 1
        for (; found.words[i] >> 32 != epoch; found.words[i] = load_word(&from->words[i])) {
            if (++polls == kMostPolls) asm volatile("trap;");
        }
        parts[i] = (unsigned)found.words[i];
    }
    T state;
    memcpy(&state, parts, sizeof(T));
    return state;
}
template <typename T>
__device__ T fetch(const Mailbox<T>* from, unsigned epoch) {
    return fetch(from, epoch, peek(from));
}
// Returns true if an earlier kernel knew the state early, from the tail of its stretch, and posted
// it. Only launches with odd epochs ask: the answer comes from another device, which takes long.
template <typename T>
__device__ bool is_posted(const Mailbox<T>* to, unsigned epoch) {
    return epoch % 2 == 1 && load_word(&to->words[0]) >> 32 == epoch;
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
