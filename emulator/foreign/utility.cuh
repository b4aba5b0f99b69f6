// What NVIDIA's own headers include as <utility>; NVRTC has none of the standard library's.
#pragma once
namespace std {
template <typename T> struct simt_value { typedef T type; };
template <typename T> struct simt_value<T &> { typedef T type; };
template <typename T> struct simt_value<T &&> { typedef T type; };
template <typename T> constexpr typename simt_value<T>::type &&move(T &&value) {
    return static_cast<typename simt_value<T>::type &&>(value);
}
}
