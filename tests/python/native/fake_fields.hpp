// tests/python/native/fake_fields.hpp: reading the fields a test gives to a fake producer, lies included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>

#include "../../../src/py/runtime/exceptions.hpp"

namespace fakes {

using tenon::py::ref;

/// Something in the arguments is not what a test can mean: the Python error is set.
struct bad_argument {};

inline void require(bool ok) {
    if (!ok) throw bad_argument{};
}

inline std::int64_t to_int(PyObject* value) {
    const long long n = PyLong_AsLongLong(value);
    require(PyErr_Occurred() == nullptr);
    return n;
}

/// 64 bits, taken as they are: 2**63 and above too.
inline std::uint64_t to_bits(PyObject* value) {
    const unsigned long long n = PyLong_AsUnsignedLongLongMask(value);
    require(PyErr_Occurred() == nullptr);
    return n;
}

inline std::string to_text(PyObject* value) {
    const char* const text = PyUnicode_AsUTF8(value);
    require(text != nullptr);
    return text;
}

inline void* to_address(PyObject* value) { return reinterpret_cast<void*>(to_bits(value)); }

inline std::vector<std::int64_t> to_ints(PyObject* value) {
    const ref items = ref::take(PySequence_Tuple(value));
    require(static_cast<bool>(items));
    std::vector<std::int64_t> out;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
        out.push_back(to_int(PyTuple_GET_ITEM(items.get(), i)));
    return out;
}

/// The keyword arguments of a constructor, each taken out once; what is left over is a test's typo.
class fields {
public:
    fields(PyObject* args, PyObject* keywords) {
        if (PyTuple_GET_SIZE(args) != 0) {
            PyErr_SetString(PyExc_TypeError, "keyword arguments only");
            throw bad_argument{};
        }
        left_ = ref::take(keywords != nullptr ? PyDict_Copy(keywords) : PyDict_New());
        require(static_cast<bool>(left_));
    }

    /// The value, or null when it was not given.
    [[nodiscard]] ref take(const char* name) {
        PyObject* const found = PyDict_GetItemString(left_.get(), name);
        ref value = ref::borrow(found);
        if (found != nullptr) require(PyDict_DelItemString(left_.get(), name) == 0);
        return value;
    }
    void expect_none_left() const {
        if (PyDict_GET_SIZE(left_.get()) == 0) return;
        PyErr_Format(PyExc_TypeError, "unknown fields: %R", left_.get());
        throw bad_argument{};
    }

private:
    ref left_;
};

/// An array a struct points to: a sequence of numbers, an address that may be any lie, or null.
struct array_field {
    std::vector<std::int64_t> values;
    void* address = nullptr;
    bool owned = false;

    static array_field read(const ref& value) {
        array_field out;
        if (!value || value.get() == Py_None) return out;
        if (PyLong_Check(value.get())) {
            out.address = to_address(value.get());
            return out;
        }
        out.values = to_ints(value.get());
        out.values.reserve(out.values.size() + 1);  // an empty array still has an address
        out.owned = true;
        return out;
    }
    [[nodiscard]] std::int64_t* get() { return owned ? values.data() : static_cast<std::int64_t*>(address); }
};

/// The memory a fake shows: the bytes of a buffer (copied), an address that may be any lie, null, or by
/// default the floats 0, 1, 2, ... 1023.
class data_field {
public:
    static constexpr std::size_t default_count = 1024;

    void read(const ref& value) {
        if (!value) {
            allocate(default_count * sizeof(float));
            for (std::size_t i = 0; i < default_count; ++i) {
                const auto number = static_cast<float>(i);
                std::memcpy(static_cast<std::byte*>(address_) + i * sizeof(float), &number, sizeof number);
            }
        } else if (PyObject_CheckBuffer(value.get()) != 0) {
            Py_buffer source;
            require(PyObject_GetBuffer(value.get(), &source, PyBUF_SIMPLE) == 0);
            allocate(static_cast<std::size_t>(source.len));
            if (source.len > 0) std::memcpy(address_, source.buf, static_cast<std::size_t>(source.len));
            PyBuffer_Release(&source);
        } else if (value.get() != Py_None) {
            address_ = to_address(value.get());
        }
    }
    [[nodiscard]] void* get() const { return address_; }
    [[nodiscard]] std::size_t size() const { return size_; }

private:
    struct alignas(64) line {
        std::byte bytes[64];
    };
    void allocate(std::size_t bytes) {
        memory_.resize(bytes / sizeof(line) + 1);
        address_ = memory_.data();
        size_ = bytes;
    }
    std::vector<line> memory_;
    void* address_ = nullptr;
    std::size_t size_ = 0;
};

/// What every release does first. To be called without the GIL is beyond a test's means to report: it ends
/// the process. Returns whether an exception was pending.
inline bool enter_release() {
    if (PyGILState_Check() == 0) {
        std::fputs("fakes: a release was called without the GIL\n", stderr);
        std::abort();
    }
    return PyErr_Occurred() != nullptr;
}

/// Calls a test's callback, whose exception is its own affair.
inline void call_back(PyObject* callback) {
    if (callback == nullptr) return;
    const tenon::py::error_guard guard;
    const ref kept = ref::borrow(callback);
    const ref done = ref::take(PyObject_CallNoArgs(kept.get()));
}

/// Importing a module that does not say so switches the GIL on again, on builds without it.
inline void run_without_gil([[maybe_unused]] PyObject* module) {
#if defined(Py_GIL_DISABLED)
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
}

/// Turns what went wrong into `failed` and a Python exception.
template <class Fn>
auto guarded(Fn&& fn, decltype(fn()) failed) noexcept -> decltype(fn()) {
    try {
        return fn();
    } catch (const bad_argument&) {
    } catch (const std::exception& e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
    return failed;
}

}  // namespace fakes
