// tenon/core/attributes.hpp: what compilers are told: which paths everybody takes, and what kernels may call.
#pragma once

#if defined(__GNUC__)
/// Rarely run: kept out of line, so that what is often run stays small.
#define TENON_COLD [[gnu::noinline, gnu::cold]]
/// Out of line, and for all the compiler knows as often run as anything: what goes on after it is no colder
/// for it.
#define TENON_APART [[gnu::noinline]]
/// Inlined whatever the compiler thinks: a few instructions on the path of every argument.
#define TENON_HOT [[gnu::always_inline]]
/// State and tables that must belong to one extension module alone: two modules built against different
/// versions of these headers may live in one process, and GNU linkers merge inline variables otherwise.
#define TENON_PRIVATE __attribute__((visibility("hidden")))
#else
#define TENON_COLD
#define TENON_APART
#define TENON_HOT
#define TENON_PRIVATE
#endif

/// For the host and the device: kernels may call it too.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define TENON_HD __host__ __device__
#else
#define TENON_HD
#endif
