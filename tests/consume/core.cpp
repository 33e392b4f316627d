// tests/consume/core.cpp: uses tenon::core, and says by which version and compiler.
#include <cstdio>
#include <vector>

#include <tenon/tenon.hpp>

static_assert(__cplusplus >= 202002L, "the target asks for C++20");

#ifdef __clang__
constexpr char compiler[] = "clang++";
#else
constexpr char compiler[] = "g++";
#endif

int main() {
    const auto owned = tenon::tensor::own(std::vector<float>{1, 2, 3});
    if (!owned) return 1;
    const auto x = tenon::view<const float, 1>::from(*owned);
    if (!x) return 2;
    float total = 0;
    for (const float value : *x) total += value;
    std::printf("tenon %s by %s: %g\n", tenon::version, compiler, total);
}
