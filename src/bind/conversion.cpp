// src/bind/conversion.cpp: who is told of conversions.
#include <atomic>
#include <string>

#include <tenon/bind/conversion.hpp>
#include <tenon/detail/foreign_code.hpp>
#include "conversion.hpp"
#include "words.hpp"

namespace tenon {

namespace bind {
TENON_PRIVATE inline std::atomic<conversion_hook> conversion_reporter{nullptr};

inline bool report_conversion(PyObject* from, PyObject* to, const char* expected) {
    const conversion_hook hook = conversion_reporter.load();
    if (hook == nullptr) return true;
    hook({from, to, expected});
    return PyErr_Occurred() == nullptr;
}
}  // namespace bind

TENON_INLINE conversion_hook set_conversion_hook(conversion_hook hook) noexcept {
    return bind::conversion_reporter.exchange(hook);
}

TENON_INLINE void warn_of_conversion(const conversion& c) {
    const std::string text =
        "tenon: an argument of type " + bind::type_name(c.from) + " was copied to become " + c.expected;
    if (PyErr_Occurred() != nullptr) return;
    foreign_code([&] { return PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1); });
}

}  // namespace tenon
