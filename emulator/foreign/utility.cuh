// The header <utility>, which NVIDIA's own headers include. NVRTC has no standard library.
#pragma once
namespace std {
template <typename T> struct simt_value { typedef T type; };
template <typename T> struct simt_value<T &> { typedef T type; };
template <typename T> struct simt_value<T &&> { typedef T type; };
template <typename T> constexpr typename simt_value<T>::type &&move(T &&value) {
    return static_cast<typename simt_value<T>::type &&>(value);
}
}
