// tenon/detail/foreign_code.hpp: running code of others on a thread that may be ended in the middle of it.
#pragma once

#include <utility>
#if defined(__GLIBC__) && defined(__cpp_exceptions)
#include <cxxabi.h>
#include <unistd.h>
#endif

#include <tenon/detail/config.hpp>

/// What tests put at every such point: there anything may change that is not held. It stands before the call,
/// so that whatever was looked at earlier, and is used later, is out of date; what the call itself answers is
/// not.
#if !defined(TENON_FOREIGN_CODE_POINT)
#define TENON_FOREIGN_CODE_POINT() ((void)0)
#endif

namespace tenon {

/// Runs the function of a module's author, who may let go of the GIL and want it back. When the interpreter
/// is being finalized, CPython before 3.14 ends a thread that does, by an unwinding `pthread_exit`: our
/// frames would be taken down without the GIL, and the first `noexcept` among them would end the process. The
/// thread is held here for good instead, which is what CPython 3.14 does. Costs nothing when nothing happens.
template <class Fn>
TENON_HOT inline decltype(auto) authors_code(Fn&& fn) {
#if defined(__GLIBC__) && defined(__cpp_exceptions)
    try {
        return std::forward<Fn>(fn)();
    } catch (const ::abi::__forced_unwind&) {
        for (;;) pause();
    }
#else
    return std::forward<Fn>(fn)();
#endif
}

/// Runs code of others, who may do the same, and change everything besides: whoever calls this holds what is
/// needed afterwards, or looks at it again.
template <class Fn>
TENON_HOT inline decltype(auto) foreign_code(Fn&& fn) {
    TENON_FOREIGN_CODE_POINT();
    return authors_code(std::forward<Fn>(fn));
}

}  // namespace tenon
