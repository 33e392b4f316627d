// tenon/bind/refusal.hpp: why an object does not fit a parameter, in one sentence with the way out.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tenon/bind/phrase.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/dtype_names.hpp>
#include "../../../src/py/library/remedies.hpp"

namespace tenon::bind {

/// Borrows `obj` as `wanted` would have it, without checking that it is so. False with an exception set.
[[nodiscard]] inline bool reach(PyObject* obj, bool writable, py::acquired& out) noexcept {
    return py::detail::borrow_numpy(obj, out) || py::detail::acquire(obj, writable, out);
}

/// The pending exception ends the call whatever other overloads there are: it is no answer to the question
/// whether the object is such an array (Ctrl-C, an exit, no memory, too deep).
[[nodiscard]] inline bool is_call_over() noexcept { return py::is_no_answer_pending(); }

/// A sentence, and the exception it has the reason from, if any.
struct refusal {
    std::string text;  ///< empty when the object fits
    py::ref cause;
    bool other_type = false;   ///< it is an array, and its element type is what is wrong with it
    bool is_no_array = false;  ///< the object is no array at all, and may be what other casters take
};

namespace detail {

/// "numpy.ndarray", "list": the type as Python shows it. An exception is left only if it ends the call.
[[nodiscard]] inline std::string type_name(PyObject* obj) {
    const py::ref type = py::class_of(obj);
    const std::string full = py::as_type(type)->tp_name;  // a copy: what is asked may give it another
    if (full.find('.') != std::string::npos || (py::as_type(type)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0)
        return full;
    const py::ref module = py::ref::take(py::call::attr(type.get(), "__module__"));
    const char* const text =
        module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
    (void)py::forget_answer();
    const std::string prefix = text != nullptr ? text : "";
    return prefix.empty() || prefix == "builtins" ? full : prefix + "." + full;
}

inline void write_list(std::string& out, extents numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (i != 0) out += ", ";
        out += std::to_string(numbers[i]);
    }
}

/// "float64[10, 3] with strides (3, 1), writable, on cpu (numpy.ndarray)".
[[nodiscard]] inline std::string describe_tensor(const tensor_ref& t, PyObject* obj) {
    std::string out = name(t.dtype()) + "[";
    write_list(out, t.shape());
    out += ']';
    if (t.ndim() > 0) {
        out += " with strides (";
        write_list(out, t.strides());
        out += t.ndim() == 1 ? ",)" : ")";
    }
    out += t.is_read_only() ? ", read-only" : ", writable";
    return out + ", on " + name(t.device()) + " (" + type_name(obj) + ")";
}

/// What is wrong with the argument, by the field that `check` found at fault.
[[nodiscard]] inline std::string complaint(const error& e, const request& wanted) {
    const std::string_view field = e.field;
    if (field == "dtype") return "has the wrong dtype";
    if (field == "ndim") return "has the wrong number of axes";
    if (field == "shape") return "has the wrong extent on axis " + std::to_string(e.axis);
    if (field == "device") return "is on the wrong device";
    if (field == "flags") return "is read-only";
    if (field == "data") return "is not aligned";
    if (field == "strides" && wanted.order == memory_order::any) return "has elements that share memory";
    if (field == "strides") return "has the wrong memory order";
    return "does not fit";
}

/// Without a library's own word for it: what the array should become.
[[nodiscard]] inline std::string plain_advice(const error& e, const request& wanted, std::string_view array) {
    const std::string_view field = e.field;
    if (field == "dtype" && wanted.type) return "convert it to " + name(*wanted.type);
    if (field == "ndim") return "reshape it";
    if (field == "shape") return "pass one of that shape";
    if (field == "device")
        return wanted.kind > abi::device_code::cpu ? "move it to that device" : "move it to the CPU";
    if (field == "strides" && wanted.order != memory_order::any)
        return wanted.order == memory_order::c ? "make it row-major" : "make it column-major";
    if (field == "data") return "try tenon.asdlpack(" + std::string(array) + ", copy=True)";
    return "pass a writable copy";
}

/// An exception is left only if it ends the call.
[[nodiscard]] inline std::string text_of_exception(PyObject* exception) {
    const py::ref text = py::ref::take(foreign_code([&] { return PyObject_Str(exception); }));
    const char* const utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    std::string out = utf8 != nullptr ? utf8 : "an exception that cannot be shown";
    (void)py::forget_answer();
    return out;
}

}  // namespace detail

/// Asks again why `obj` is not what a parameter wants. `who` is what the sentence begins with ("argument
/// 'x'"), `name` what the advice calls the array, `expected` the parameter in words. Empty text when it does
/// fit. An exception is left pending, and no text, when `is_call_over`. Where it is converted, what differs
/// in element type or order is at fault only if nothing else is: the library was asked for a conversion and
/// refused, or it would have lost a part of the values.
[[nodiscard]] inline refusal why_not(PyObject* obj, request wanted, conversions how, std::string_view who,
                                     std::string_view name, std::string_view expected) {
    refusal out;
    const bool converts = how != conversions::none;
    const auto begin = [&](std::string_view problem) {
        return std::string(who) + " " + std::string(problem) + ": expected " + std::string(expected);
    };
    if (obj == Py_None) {
        out.text = begin("is None") + "; pass an array";
        out.is_no_array = true;
        return out;
    }
    py::acquired got;
    got.looking = true;
    if (!reach(obj, wanted.writable, got)) {
        if (is_call_over()) return out;
        const bool is_foreign = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
        out.cause = py::pending_exception();
        const std::string told = detail::text_of_exception(out.cause.get());
        if (PyErr_Occurred() != nullptr) return {};
        if (is_foreign && told.find("speaks no tensor protocol") != std::string::npos) {
            out.text = begin("is not an array") + ", got " + detail::type_name(obj) + "; try numpy.asarray(" +
                       std::string(name) + (wanted.type ? ", '" + tenon::name(*wanted.type) + "')" : ")");
            out.cause = {};
            out.is_no_array = true;
        } else {
            out.text = begin("was refused") + ", got " + detail::type_name(obj) + ": " + told;
        }
        if (PyErr_Occurred() != nullptr) return {};
        return out;
    }
    if (converts) {
        request without = wanted;
        without.type.reset();
        without.order = memory_order::any;
        if (!check(got, without)) wanted = without;
    }
    const auto met = check(got, wanted);
    if (met) return out;
    const std::string_view field = met.error().field;
    out.other_type = field == "dtype";
    out.text = begin(detail::complaint(met.error(), wanted));
    if (field == "device" && wanted.space == memory_space::host)
        out.text += converts ? ", in host memory" : " in host memory";
    out.text += ", got " + detail::describe_tensor(got, obj);
    if (PyErr_Occurred() != nullptr) return {};
    if (field == "data") {
        out.text += " at " + std::to_string(met.error().got) + " bytes past a multiple of " +
                    std::to_string(wanted.alignment);
    }
    // A conversion would drop the imaginary part without a word: whoever means it says so.
    const bool has_imaginary =
        field == "dtype" && got.dtype().is_complex() && wanted.type && !wanted.type->is_complex();
    const std::string array = std::string(name) + (has_imaginary ? ".real" : "");
    const bool is_real_part = has_imaginary && wanted.type->code == abi::type_code::float_ &&
                              got.dtype().bits == 2U * wanted.type->bits;
    const std::string way = is_real_part ? array : py::remedy_for(obj, array, wanted, met.error());
    out.text += way.empty() ? "; " + detail::plain_advice(met.error(), wanted, name) : "; try " + way;
    return out;
}

}  // namespace tenon::bind
