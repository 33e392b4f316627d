// tests/cpp/allocations.hpp: allocations of this thread, counted and made to fail; the functions behind it
// are in out_of_memory_test.cpp.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TENON_TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENON_TEST_SANITIZED 1
#endif

// `malloc` itself can be stood in for where no sanitizer does it already.
#if defined(__GLIBC__) && !defined(TENON_TEST_SANITIZED)
#define TENON_TEST_SEES_MALLOC 1
#else
#define TENON_TEST_SEES_MALLOC 0
#endif

namespace tenon_test {

/// How many more allocations of this thread succeed; negative: all. They are the non-throwing `new` and,
/// where `malloc` can be seen, everything that ends there: leave no test code in between.
inline constinit thread_local int allocations_left = -1;
/// Calls of `malloc` and its like by this thread so far, through `new` or not.
inline constinit thread_local int allocations_made = 0;

/// Lets `n` allocations succeed, and none after, for as long as it lives.
class only_allocations {
public:
    explicit only_allocations(int n) { allocations_left = n; }
    ~only_allocations() { allocations_left = -1; }
    only_allocations(const only_allocations&) = delete;
    only_allocations& operator=(const only_allocations&) = delete;
};

}  // namespace tenon_test
