// tests/compile_fail/device_view_bool.cpp: accelerator memory is viewed as C++ bools.
// must say: foreign memory may hold a 2 where C++ expects a bool: use tenon::bool8

#include <tenon/tenon.hpp>

#ifdef CORRECT
using truth = tenon::bool8;
#else
using truth = bool;
#endif

const void* start(const tenon::device_view<const truth, 1>& w) { return w.data(); }
