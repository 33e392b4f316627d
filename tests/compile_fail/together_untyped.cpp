// tests/compile_fail/together_untyped.cpp: tensors that do not say what they are are dispatched together.
// must say: together takes arrays, and tensors as tenon::typed<T, Rank>(t)

#include <tenon/tenon.hpp>

bool run(const tenon::tensor_ref& x, const tenon::tensor_ref& y) {
    const auto count = [](const auto& a, const auto& b) { return a.size() + b.size(); };
#ifdef CORRECT
    using wanted = tenon::typed<const float, 1>;
    return tenon::dispatch(tenon::together(wanted(x), wanted(y)), count).has_value();
#else
    return tenon::dispatch(tenon::together(x, y), count).has_value();
#endif
}
