/* bench/bound.h: the function that every binder binds, with the constraint as its parameter type. */

#ifndef TENON_BENCH_BOUND_H
#define TENON_BENCH_BOUND_H

#include <cstdint>

#include <tenon/bind/array.hpp>

#include "sink.h"

inline void take_matrix(tenon::array<const float, 2> a) {
    sink(a.data(), a.ndim(), a.shape(0), a.stride(0), a.dtype().code + a.dtype().bits + a.device().type);
}
inline std::uint64_t last_address() { return static_cast<std::uint64_t>(sink_data); }

#endif
