// tests/compile_fail/dispatch_two_results.cpp: the two functions of a dispatch return different types.
// must say: dispatch: the functions must return the same type

#include <tenon/tenon.hpp>

bool run(const tenon::tensor_ref& t) {
    const auto on_host = [](tenon::view<const float, 1>) { return 1; };
#ifdef CORRECT
    const auto on_device = [](tenon::device_view<const float, 1>) { return 2; };
#else
    const auto on_device = [](tenon::device_view<const float, 1>) { return 2.0; };
#endif
    return tenon::dispatch<const float, 1>(t, on_host, on_device).has_value();
}
