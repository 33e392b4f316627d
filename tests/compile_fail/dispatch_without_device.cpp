// tests/compile_fail/dispatch_without_device.cpp: dispatch has no function for accelerator memory.
// must say: dispatch: no function takes the device_view

#include <tenon/tenon.hpp>

bool run(const tenon::tensor_ref& t) {
    const auto on_host = [](tenon::view<const float, 1>) { return 1; };
#ifdef CORRECT
    const auto on_device = [](tenon::device_view<const float, 1>) { return 2; };
#else
    const auto on_device = [](int) { return 2; };
#endif
    return tenon::dispatch<const float, 1>(t, on_host, on_device).has_value();
}
