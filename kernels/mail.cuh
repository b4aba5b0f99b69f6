// States on their way to another device, through mailboxes in memory that both devices reach.
#pragma once
#include "element.cuh"

// ANCHOR: mail
// The state that another device posts. Each word has 32 bits of the state, and the epoch of the
// launch that posted it in its upper half. So a word is right by itself, and no release is needed:
// that would wait until all that the thread has written before has reached memory.
template <typename T>
struct Mailbox {
    static constexpr int kWords = sizeof(T) / sizeof(unsigned);
    unsigned long long words[kWords];
};

// What precedes each set of a device's mailboxes. Of every two passes that follow each other, each
// has a set for states and a set for last outputs.
struct MailHead {
    unsigned long long failed;   // not zero once a thread of this device has given up
    unsigned long long most_ns;  // the time that a thread waits for a state
    long long to_next;           // the bytes to the next set's head; from the last to the first
};
template <typename T>
__device__ MailHead* head_of(const Mailbox<T>* mail) {
    return (MailHead*)mail - 1;
}

// The epoch of mail from a device that has given up; no launch has it.
constexpr unsigned kFailed = ~0u;

__device__ inline bool is_nan(float a) { return a != a; }
__device__ inline bool is_nan(double a) { return a != a; }
template <typename Real>
__device__ bool is_nan(complex<Real> a) {
    return is_nan(a.re) || is_nan(a.im);
}

// System scope: the mailbox is in another device's memory.
inline __device__ void store_word(unsigned long long* to, unsigned long long word) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
inline __device__ unsigned long long load_word(const unsigned long long* from) {
    unsigned long long word;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}

// Posts a state that depends on mail `from` another device, if that is given. A state that did not
// come is NaN, and so is what follows from it: then the next device gives up as well.
template <typename T>
__device__ void post(Mailbox<T>* to, unsigned epoch, T state, const Mailbox<T>* from = nullptr) {
    if (from && is_nan(state) && load_word(&head_of(from)->failed)) epoch = kFailed;
    unsigned parts[Mailbox<T>::kWords];
    memcpy(parts, &state, sizeof(T));
#pragma unroll
    for (int i = 0; i < Mailbox<T>::kWords; i++) {
        store_word(&to->words[i], (unsigned long long)epoch << 32 | parts[i]);
    }
}

// Returns true if another thread has given up, or if this one has waited for too long.
inline __device__ bool is_over(const MailHead* head, unsigned long long& begun) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (begun == 0) begun = now;
    return load_word(&head->failed) || now - begun > load_word(&head->most_ns);
}

// Returns what is in a mailbox now. The answer takes a microsecond: ask before other loads.
template <typename T>
__device__ Mailbox<T> peek(const Mailbox<T>* from) {
    Mailbox<T> found;
#pragma unroll
    for (int i = 0; i < Mailbox<T>::kWords; i++) found.words[i] = load_word(&from->words[i]);
    return found;
}

// Waits for the state before a row, in whose mailbox a thread has seen `found` before. If the state
// does not come, the launch goes on with NaN to its end and the host finds the word `failed`: a
// trap would cost the process all that it has on the device.
template <typename T>
__device__ T fetch(const Mailbox<T>* mail, long long row, unsigned epoch, Mailbox<T> found) {
    unsigned parts[Mailbox<T>::kWords];
    unsigned long long begun = 0;
    bool has_failed = false;
#pragma unroll
    for (int i = 0; i < Mailbox<T>::kWords; i++) {
        unsigned long long& word = found.words[i];
#pragma unroll 1
        for (unsigned polls = 1; word >> 32 != epoch && !has_failed; polls++) {
            has_failed = word >> 32 == kFailed || (polls % 64 == 0 && is_over(head_of(mail), begun));
            word = load_word(&mail[row].words[i]);
        }
        parts[i] = (unsigned)found.words[i];
    }
    if (has_failed) {
        MailHead* head = head_of(mail);
        do {
            store_word(&head->failed, 1);
            head = (MailHead*)((char*)head + head->to_next);
        } while (head != head_of(mail));
#pragma unroll
        for (unsigned& part : parts) part = 0x7fffffff;
    }
    T state;
    memcpy(&state, parts, sizeof(T));
    return state;
}
template <typename T>
__device__ T fetch(const Mailbox<T>* mail, long long row, unsigned epoch) {
    return fetch(mail, row, epoch, peek(mail + row));
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
        if (mail) return fetch(mail, row, epoch);
        return states ? states[row] : T(0);
    }
};

// Where the state behind a row goes: either, both, or nowhere. Mail posted early stays. It depends
// on mail `from` another device, if that is given.
template <typename T>
struct Outgoing {
    T* states;
    Mailbox<T>* mail;
    unsigned epoch;
    const Mailbox<T>* from;

    __device__ bool wanted() const { return states || mail; }
    __device__ void operator()(long long row, T state) const {
        if (mail && !is_posted(mail + row, epoch)) post(mail + row, epoch, state, from);
        if (states) states[row] = state;
    }
};
// ANCHOR_END: rows
