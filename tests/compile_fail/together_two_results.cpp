// tests/compile_fail/together_two_results.cpp: the two functions of a dispatch over two tensors return
// different types.
// must say: dispatch: the functions must return the same type

#include <tenon/tenon.hpp>

bool run(const tenon::tensor_ref& x, const tenon::tensor_ref& y) {
    using wanted = tenon::typed<const float, 1>;
    using on_host = tenon::view<const float, 1>;
    using on_device = tenon::device_view<const float, 1>;
#ifdef CORRECT
    const auto launch = [](on_device, on_device) { return 2; };
#else
    const auto launch = [](on_device, on_device) { return 2.0; };
#endif
    const auto both = tenon::together(wanted(x), wanted(y));
    return tenon::dispatch(both, [](on_host, on_host) { return 1; }, launch).has_value();
}
