// src/py/library/numpy_abi.hpp: NumPy's public structs and type numbers, and its C functions as found at run
// time.
#pragma once

#include <tenon/py/numpy_struct.hpp>
#include "../runtime/all.hpp"

namespace tenon::py::numpy_abi {

inline constexpr int flags_c_contiguous_aligned = 0x0101;

/// Type numbers that DLPack has no word for.
enum inexpressible_type : int {
    long_double_type = 13,
    complex_long_double_type = 16,
    object_type = 17,
    bytes_type = 18,
    text_type = 19,
    void_type = 20,
    time_type = 21,
    duration_type = 22,
    string_type = 2056,
};

/// The type number of an element type; nullopt when NumPy has none of its own.
[[nodiscard]] inline std::optional<int> number_of(dtype type) noexcept {
    for (std::size_t i = 0; i < type_numbers.size(); ++i)
        if (type_numbers[i].type == type) return static_cast<int>(i);
    return std::nullopt;
}

/// Types that modules have registered with NumPy are numbered from here on.
inline constexpr int first_user_type = 256;

/// The element type of a descriptor that is called as one of ml_dtypes'.
[[nodiscard]] inline std::optional<dtype> type_by_name(const descriptor* d) noexcept {
    if (d->type_num < first_user_type || d->scalar_type == nullptr || d->scalar_type->tp_name == nullptr)
        return std::nullopt;
    if (d->byteorder != '=' && d->byteorder != '|') return std::nullopt;
    std::string_view name = d->scalar_type->tp_name;
    if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
    return dtype_from_name(name);
}

/// The functions of NumPy's C table that we call. Their places are part of NumPy's ABI, the same in 1 and 2.
class functions {
public:
    /// Those of the running NumPy; null with an exception set when it cannot be imported or is one we do not
    /// know.
    [[nodiscard]] static std::optional<functions> find(interpreter& here) noexcept {
        void** table = here.numpy_functions.load(std::memory_order_acquire);
        if (table == nullptr) {
            table = look();
            if (table == nullptr) return std::nullopt;
            here.numpy_functions.store(table, std::memory_order_release);
        }
        return functions(table);
    }

    [[nodiscard]] PyTypeObject* ndarray() const noexcept { return static_cast<PyTypeObject*>(table_[2]); }
    /// The object as a descriptor, borrowed; null when it is none.
    [[nodiscard]] const descriptor* as_descriptor(PyObject* obj) const noexcept {
        return PyObject_TypeCheck(obj, static_cast<PyTypeObject*>(table_[3])) != 0
                   ? reinterpret_cast<const descriptor*>(obj)
                   : nullptr;
    }
    [[nodiscard]] PyObject* descriptor_from_number(int number) const noexcept {
        return at<PyObject* (*)(int)>(45)(number);
    }
    /// Steals `descr`; copies the arrays.
    [[nodiscard]] PyObject* new_array(PyObject* descr, int rank, const Py_ssize_t* shape,
                                      const Py_ssize_t* strides, void* data, int flags) const noexcept {
        using function = PyObject* (*)(PyTypeObject*, PyObject*, int, const Py_ssize_t*, const Py_ssize_t*,
                                       void*, int, PyObject*);
        return foreign_code(
            [&] { return at<function>(94)(ndarray(), descr, rank, shape, strides, data, flags, nullptr); });
    }
    /// Steals `base`, whatever the outcome.
    [[nodiscard]] int set_base(PyObject* array, PyObject* base) const noexcept {
        return at<int (*)(PyObject*, PyObject*)>(282)(array, base);
    }

private:
    explicit functions(void** table) noexcept : table_(table) {}

    template <class Function>
    [[nodiscard]] Function at(std::size_t place) const noexcept {
        return reinterpret_cast<Function>(table_[place]);
    }

    [[nodiscard]] TENON_COLD static void** look() noexcept {
        // NumPy 2 keeps it in `_core`, NumPy 1 in `core`.
        ref module = ref::take(call::import_module("numpy._core._multiarray_umath"));
        if (!module && PyErr_ExceptionMatches(PyExc_ModuleNotFoundError) != 0) {
            PyErr_Clear();
            module = ref::take(call::import_module("numpy.core._multiarray_umath"));
        }
        const ref capsule = module ? ref::take(call::attr(module.get(), "_ARRAY_API")) : ref();
        if (!capsule) return nullptr;
        auto** const table = static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr));
        if (table == nullptr) return nullptr;
        // Capsules of NumPy have no names: the table with the array type in it is the one.
        const ref package = ref::take(call::import_module("numpy"));
        const ref type = package ? ref::take(call::attr(package.get(), "ndarray")) : ref();
        if (!type) return nullptr;
        if (table[2] != type.get()) {
            PyErr_SetString(PyExc_BufferError, "tenon: NumPy's C interface is not where it should be");
            return nullptr;
        }
        const unsigned version = reinterpret_cast<unsigned (*)()>(table[0])();
        if (version >> 24U == 1 || version >> 24U == 2) return table;
        PyErr_Format(PyExc_BufferError, "tenon: NumPy's C interface has version %x, and 1 and 2 are known",
                     version);
        return nullptr;
    }

    void** table_;
};

}  // namespace tenon::py::numpy_abi
