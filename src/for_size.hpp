// src/for_size.hpp: from here on code is compiled for size, up to for_size_end.hpp: most of the engine runs
// seldom.
//
// What every argument goes through is marked TENON_FAST. Nothing compiled for size is inlined into it, unless
// it is TENON_HOT: the headers it needs are included before this one. Only where the compiler optimizes at
// all, and only GCC: others are not told.

#include <tenon/detail/config.hpp>

#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("Os")
#undef TENON_FAST
#define TENON_FAST __attribute__((optimize("O3")))
#endif
