// The lanes of a warp that share a row, and the vectors of 16 bytes that they hold.
#pragma once
#include "memio.cuh"
#include "transition.cuh"

// ANCHOR: vector
template <typename Stored>
struct alignas(16) Vector {
    Stored elems[kPerVector<Stored>];
};

template <typename Stored>
__device__ bool aligned(const Stored* data) {
    return (unsigned long long)data % 16 == 0;
}
// ANCHOR_END: vector

// ANCHOR: lanes
// The value of another lane of the sub-warp: `lanes` below or above, or a given one. A
// complex number takes two shuffles.
template <int kLanes, typename Real>
__device__ Real lane_up(Real mine, int lanes) {
    return __shfl_up_sync(kAllLanes, mine, lanes, kLanes);
}
template <int kLanes, typename Real>
__device__ Real lane_down(Real mine, int lanes) {
    return __shfl_down_sync(kAllLanes, mine, lanes, kLanes);
}
template <int kLanes, typename Real>
__device__ Real lane_at(Real mine, int lane) {
    return __shfl_sync(kAllLanes, mine, lane, kLanes);
}
template <int kLanes, typename Real>
__device__ complex<Real> lane_up(complex<Real> mine, int lanes) {
    return {lane_up<kLanes>(mine.re, lanes), lane_up<kLanes>(mine.im, lanes)};
}
template <int kLanes, typename Real>
__device__ complex<Real> lane_down(complex<Real> mine, int lanes) {
    return {lane_down<kLanes>(mine.re, lanes), lane_down<kLanes>(mine.im, lanes)};
}
template <int kLanes, typename Real>
__device__ complex<Real> lane_at(complex<Real> mine, int lane) {
    return {lane_at<kLanes>(mine.re, lane), lane_at<kLanes>(mine.im, lane)};
}
template <int kLanes, typename T>
__device__ Transition<T> lane_up(Transition<T> mine, int lanes) {
    return {lane_up<kLanes>(mine.coeff, lanes), lane_up<kLanes>(mine.state, lanes)};
}
template <int kLanes, typename T>
__device__ Transition<T> lane_down(Transition<T> mine, int lanes) {
    return {lane_down<kLanes>(mine.coeff, lanes), lane_down<kLanes>(mine.state, lanes)};
}
template <int kLanes, typename T>
__device__ Transition<T> lane_at(Transition<T> mine, int lane) {
    return {lane_at<kLanes>(mine.coeff, lane), lane_at<kLanes>(mine.state, lane)};
}
// ANCHOR_END: lanes

// ANCHOR: scan
// Level 2 over kLanes lanes: from each lane's transition to that of all lanes up to it.
template <int kLanes, typename T>
__device__ Transition<T> scan_lanes(int lane, Transition<T> mine) {
#pragma unroll
    for (int lanes = 1; lanes < kLanes; lanes *= 2) {
        const Transition<T> below = lane_up<kLanes>(mine, lanes);
        if (lane >= lanes) mine = compose(below, mine);
    }
    return mine;
}
// ANCHOR_END: scan
