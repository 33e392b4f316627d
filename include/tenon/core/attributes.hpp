// tenon/core/attributes.hpp: what compilers are told: which paths everybody takes, and what kernels may call.
#pragma once

#if defined(__GNUC__)
/// Rarely run: kept out of line, so that what is often run stays small. Not `gnu::cold`: GCC takes whatever
/// follows a call of a cold function for never run, and compiles it for size. What follows ours, once they
/// are inlined, is a bound function's own loop.
#define TENON_COLD [[gnu::noinline]]
/// Inlined whatever the compiler thinks: a few instructions on the path of every argument.
#define TENON_HOT [[gnu::always_inline]]
/// The same for a lambda, after its parameters.
#define TENON_HOT_LAMBDA __attribute__((always_inline))
/// State and tables that must belong to one extension module alone: two modules built against different
/// versions of these headers may live in one process, and GNU linkers merge inline variables otherwise.
#define TENON_PRIVATE __attribute__((visibility("hidden")))
#else
#define TENON_COLD
#define TENON_HOT
#define TENON_HOT_LAMBDA
#define TENON_PRIVATE
#endif

/// What the function returns refers to nothing in its arguments: for compilers that warn of it otherwise.
#if __has_cpp_attribute(gnu::no_dangling)
#define TENON_NO_DANGLING [[gnu::no_dangling]]
#else
#define TENON_NO_DANGLING
#endif

/// For the host and the device: kernels may call it too.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define TENON_HD __host__ __device__
#else
#define TENON_HD
#endif
