// tenon/core/deleted.hpp: overloads that stand where nothing can be called, to say why and what to do
// instead.
#pragma once

/// `void f(...) const TENON_DELETED("why, and what to do");`: a `requires` finds nothing to call, and whoever
/// calls it is told. C++26 compilers print the words; others quote the line of the function's name, so
/// the words must stand on it.
#if defined(__cpp_deleted_function) && __cplusplus > 202302L  // Clang has it earlier, and warns
#define TENON_DELETED(why) = delete (why)
#else
#define TENON_DELETED(why) = delete
#endif
