// tenon/detail/config.hpp: what compilers are told: of their flags, of our functions, of kernels.
#pragma once

// With flags that cannot work, one sentence: a file that is not there stops GCC and Clang, which would go on
// to thousands of lines. What is compiled for a GPU has no exceptions, and needs none.
// clang-format off
#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "Tenon needs C++20: compile with -std=c++20 (or later); by CMake, link a target of Tenon's, which asks for it"
#include "the flags that Tenon needs"
#elif !defined(__cpp_exceptions) && !defined(_CPPUNWIND) && !defined(__CUDACC__) && !defined(__HIPCC__)
#error "Tenon needs C++ exceptions: compile without -fno-exceptions (with MSVC: with /EHsc)"
#include "the flags that Tenon needs"
#endif
// clang-format on

// The headers declare, and the engine, `src/`, does: it is compiled once and linked, or, with
// TENON_HEADER_ONLY, included at the end of the headers.
#if defined(TENON_HEADER_ONLY)
#define TENON_INLINE inline
#else
#define TENON_INLINE
#endif

#if defined(__GNUC__)
/// Rarely run: kept out of line, so that what is often run stays small. Not `gnu::cold`: GCC takes whatever
/// follows a call of a cold function for never run, and compiles it for size. What follows ours, once they
/// are inlined, is a bound function's own loop.
#define TENON_COLD [[gnu::noinline]]
/// Inlined whatever the compiler thinks: a few instructions on the path of every argument.
#define TENON_HOT [[gnu::always_inline]]
/// Compiled for speed, with what is inlined into it: see src/python.cpp.
#if defined(__OPTIMIZE__) && !defined(__clang__)
#define TENON_FAST __attribute__((optimize("O3")))
#else
#define TENON_FAST
#endif
/// The same for a lambda, after its parameters.
#define TENON_HOT_LAMBDA __attribute__((always_inline))
/// State and tables that must belong to one extension module alone: two modules built against different
/// versions of these headers may live in one process, and GNU linkers merge inline variables otherwise.
#define TENON_PRIVATE __attribute__((visibility("hidden")))
/// A function of the engine: declared here, defined in `src/` as TENON_INLINE, and no other module's.
#define TENON_API __attribute__((visibility("hidden")))
#else
#define TENON_COLD
#define TENON_HOT
#define TENON_FAST
#define TENON_HOT_LAMBDA
#define TENON_PRIVATE
#define TENON_API
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

/// `void f(...) const TENON_DELETED("why, and what to do");` stands where nothing can be called: a `requires`
/// finds nothing there, and whoever calls it is told. C++26 compilers print the words; others quote the line
/// of the function's name, so the words must stand on it.
#if defined(__cpp_deleted_function) && __cplusplus > 202302L  // Clang has it earlier, and warns
#define TENON_DELETED(why) = delete (why)
#else
#define TENON_DELETED(why) = delete
#endif
