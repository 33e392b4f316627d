// python/src/from_pointer.cpp: memory that is known by its address alone becomes a Tensor.
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tenon/py/arguments.hpp>
#include <tenon/py/export.hpp>

#include "functions.hpp"

namespace tenon::module {

namespace {

namespace argument = py::argument;

constexpr long long lowest = std::numeric_limits<std::int64_t>::min();
constexpr long long highest = std::numeric_limits<std::int64_t>::max();

/// A tuple of integers: extents or strides.
[[nodiscard]] bool read_axes(const char* name, const char* wanted, PyObject* value,
                             std::vector<std::int64_t>& out) {
    if (!PyTuple_Check(value)) return argument::wrong(name, wanted, value);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
        long long number = 0;
        if (!argument::read_integer(name, wanted, PyTuple_GET_ITEM(value, i), lowest, highest, number))
            return false;
        out.push_back(number);
    }
    return true;
}

[[nodiscard]] bool read_address(PyObject* value, void*& out) noexcept {
    static constexpr const char* wanted = "an address: an integer that is not negative";
    const py::ref number =
        PyIndex_Check(value) != 0 && !PyBool_Check(value) ? py::ref::take(py::call::index(value)) : py::ref();
    if (!number) return PyErr_Occurred() != nullptr ? false : argument::wrong("ptr", wanted, value);
    out = PyLong_AsVoidPtr(number.get());
    if (out != nullptr || PyErr_Occurred() == nullptr) {
        // AsVoidPtr takes negative numbers for large ones.
        int overflow = 0;
        if (PyLong_AsLongLongAndOverflow(number.get(), &overflow) >= 0 || overflow > 0) return true;
    }
    PyErr_Clear();
    return argument::wrong("ptr", wanted, value);
}

[[nodiscard]] bool read_dtype(PyObject* value, dtype& out) {
    static constexpr const char* wanted = "a (code, bits, lanes) triple";
    std::vector<std::int64_t> triple;
    if (!read_axes("dtype", wanted, value, triple)) return false;
    if (triple.size() != 3 || triple[0] < 0 || triple[0] > 255 || triple[1] < 1 || triple[1] > 255 ||
        triple[2] < 1 || triple[2] > 65535)
        return argument::wrong("dtype", wanted, value);
    out = dtype(static_cast<std::uint8_t>(triple[0]), static_cast<std::uint8_t>(triple[1]),
                static_cast<std::uint16_t>(triple[2]));
    return true;
}

}  // namespace

/// `(ptr, shape, strides or None, dtype triple, device, readonly, padded, keeper)`: the package's
/// from_pointer has read what people write. The keeper lives as long as anybody looks at the memory.
PyObject* from_pointer(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept try {
    if (count != 8) {
        PyErr_Format(PyExc_TypeError, "_core.from_pointer() takes 8 arguments (%zd given)", count);
        return nullptr;
    }
    void* address = nullptr;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    dtype type;
    std::optional<device> where;
    bool readonly = false;
    bool padded = false;
    if (!read_address(args[0], address) || !read_axes("shape", "a tuple of integers", args[1], shape) ||
        !(args[2] == Py_None ||
          read_axes("strides", "None or a tuple of integers, counted in elements", args[2], strides)) ||
        !read_dtype(args[3], type) || !read_any_device(args[4], where) ||
        !argument::read_flag("readonly", args[5], readonly) ||
        !argument::read_flag("padded", args[6], padded))
        return nullptr;
    const device place = where.value_or(device{});
    tensor_info info = args[2] == Py_None ? tensor_info::contiguous(address, type, shape, place)
                                          : tensor_info::strided(address, type, shape, strides, place);
    if (readonly) info = info.read_only();
    if (padded) info = info.padded();
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return nullptr;
    auto made = tensor::own(info, py::detail::keep_object(args[7], here));
    if (!made) return py::raise(made.error(), "tenon: from_pointer(): ");
    return py::to_python(std::move(made));
} catch (...) {
    py::raise_caught();
    return nullptr;
}

}  // namespace tenon::module
