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

float total(const tenon::tensor& t);  // of the other file

int main() {
    const auto owned = tenon::tensor::own(std::vector<float>{1, 2, 3});
    if (!owned) return 1;
    std::printf("tenon %s by %s: %g\n", tenon::version, compiler, double{total(*owned)});
}
