// src/py/export/protocols.hpp: every protocol of a producer as the tables CPython wants, for any type whose
// objects can be read as a tensor.
#pragma once

#include <cstddef>
#include <utility>

#include <tenon/py/acquired.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/tensor_ref.hpp>
#include "../runtime/arguments.hpp"
#include "../runtime/copy.hpp"
#include "../runtime/interpreter.hpp"
#include "array_interface.hpp"
#include "arrow.hpp"
#include "buffer.hpp"
#include "dlpack.hpp"
#include "exchange_table.hpp"
#include "number.hpp"
#include "numpy.hpp"

namespace tenon::py {

namespace detail {

/// A function of whatever signature, as a method table has it.
template <class Function>
[[nodiscard]] PyCFunction as_method(Function function) noexcept {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

/// The keywords of `__array__`.
struct array_keywords {
    ref type;
    std::optional<bool> copy;

    [[nodiscard]] bool read(PyObject* const* args, Py_ssize_t positional, PyObject* names,
                            const interpreter& known) noexcept {
        if (positional > 2) {
            PyErr_Format(PyExc_TypeError, "__array__() takes at most 2 arguments (%zd given)", positional);
            return false;
        }
        if (positional > 0) type = ref::borrow(args[0]);
        if (positional > 1 && !argument::read_optional_flag("copy", args[1], copy)) return false;
        const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* const name = PyTuple_GET_ITEM(names, i);
            PyObject* const value = args[positional + i];
            if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0)
                type = ref::borrow(value);
            else if (!argument::is_named(name, known.copy, "copy"))
                return argument::unexpected("__array__", name);
            else if (!argument::read_optional_flag("copy", value, copy))
                return false;
        }
        if (type && type.get() == Py_None) type = ref();
        return true;
    }
};

/// `keeper.__array__(dtype=None, copy=None)`, for what NumPy cannot have by a buffer (bfloat16, fp8).
[[nodiscard]] inline PyObject* answer_array(const tensor_ref& t, PyObject* keeper,
                                            const array_keywords& asked, interpreter& here) noexcept {
    const ref view = ref::take(numpy::to_array(t, keeper, here));
    if (!view) return nullptr;
    // astype without copying gives the very array back when the type is the one it has.
    ref made = asked.type ? ref::take(call::method(view.get(), "astype", "OssOO", asked.type.get(), "K",
                                                   "unsafe", Py_True, Py_False))
                          : ref::borrow(view.get());
    const bool converted = made && made.get() != view.get();
    if (converted && asked.copy == false) {
        PyErr_SetString(PyExc_ValueError, "tenon: another dtype needs a copy, and copy=False forbids it");
        return nullptr;
    }
    if (made && !converted && asked.copy == true) return call::method(made.get(), "copy", nullptr);
    return made.release();
}

}  // namespace detail

namespace detail {

/// When the memory of an object is ready, for sources that know it better than by a stream.
template <class Source>
[[nodiscard]] const gpu::ready_event& ready_of(PyObject* self) noexcept {
    if constexpr (requires { Source::ready(self); }) {
        return Source::ready(self);
    } else {
        static const gpu::ready_event none;
        return none;
    }
}

}  // namespace detail

/// The functions of a producer type. `Source` reads its objects, as for `exchange_table`.
template <class Source>
struct TENON_PRIVATE protocols {
    static PyObject* dlpack(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                            PyObject* names) noexcept {
        interpreter* const here = interpreter::current();
        dlpack_keywords asked;
        if (here == nullptr || !read_dlpack_keywords(*here, args, positional, names, asked)) return nullptr;
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr
                   ? answer_dlpack(*t, self, Source::lends, detail::ready_of<Source>(self), asked, here)
                   : nullptr;
    }
    static PyObject* array(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                           PyObject* names) noexcept {
        interpreter* const here = interpreter::current();
        detail::array_keywords asked;
        // NumPy is looked for first, too: importing it runs anything.
        if (here == nullptr || !asked.read(args, positional, names, *here) ||
            !numpy_abi::functions::find(*here))
            return nullptr;
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        if (t == nullptr || !detail::finish_device_work(t->device(), Source::lends)) return nullptr;
        return detail::answer_array(*t, self, asked, *here);
    }
    static PyObject* dlpack_device(PyObject* self, PyObject*) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_dlpack_device(*t) : nullptr;
    }
    static PyObject* array_interface(PyObject* self, void*) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_array_interface(*t, Source::lends) : nullptr;
    }
    static PyObject* cuda_array_interface(PyObject* self, void*) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_cuda_array_interface(*t, Source::lends, detail::ready_of<Source>(self))
                            : nullptr;
    }
    static PyObject* arrow_schema(PyObject* self, PyObject*) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_arrow_schema(*t) : nullptr;
    }
    static PyObject* arrow_array(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                                 PyObject* names) noexcept {
        interpreter* const here = interpreter::current();
        if (here == nullptr || !arrow_keywords::read("__arrow_c_array__", false, args, positional, names))
            return nullptr;
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_arrow_array(*t, self, Source::lends, here) : nullptr;
    }
    static PyObject* arrow_device_array(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                                        PyObject* names) noexcept {
        interpreter* const here = interpreter::current();
        if (here == nullptr ||
            !arrow_keywords::read("__arrow_c_device_array__", true, args, positional, names))
            return nullptr;
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_arrow_device_array(*t, self, Source::lends, here) : nullptr;
    }
    static int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
        acquired room;
        if (view == nullptr) {
            PyErr_SetString(PyExc_BufferError, "tenon: there is no place for the buffer");
            return -1;
        }
        view->obj = nullptr;
        const tensor_ref* const t = Source::read(self, room);
        if (t == nullptr || !detail::finish_device_work(t->device(), Source::lends)) return -1;
        return answer_get_buffer(*t, self, view, flags);
    }
    static void release_buffer(PyObject*, Py_buffer* view) noexcept { answer_release_buffer(view); }

    static PyObject* as_int(PyObject* self) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_int(*t, Source::lends) : nullptr;
    }
    static PyObject* as_float(PyObject* self) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_float(*t, Source::lends) : nullptr;
    }
    static PyObject* as_complex(PyObject* self, PyObject*) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_complex(*t, Source::lends) : nullptr;
    }
    static int as_bool(PyObject* self) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_bool(*t, Source::lends) : -1;
    }
    static PyObject* as_index(PyObject* self) noexcept {
        acquired room;
        const tensor_ref* const t = Source::read(self, room);
        return t != nullptr ? answer_index(*t, Source::lends) : nullptr;
    }
    /// Python would take an index for a length.
    static PyObject* as_bytes(PyObject* self, PyObject*) noexcept {
        return foreign_code([&] { return PyBytes_FromObject(self); });
    }

    /// Ending with an empty entry, as everything here that CPython reads.
    static constexpr std::size_t method_count = 6;
    static PyMethodDef* methods() noexcept {
        static PyMethodDef table[method_count + 1] = {
            {"__dlpack__", detail::as_method(dlpack), METH_FASTCALL | METH_KEYWORDS,
             "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
             "Export as a DLPack capsule over the same memory."},
            {"__dlpack_device__", dlpack_device, METH_NOARGS,
             "__dlpack_device__($self, /)\n--\n\nThe device as a (type, id) pair."},
            {"__array__", detail::as_method(array), METH_FASTCALL | METH_KEYWORDS,
             "__array__($self, /, dtype=None, copy=None)\n--\n\nThe same memory as a numpy.ndarray."},
            {"__arrow_c_schema__", arrow_schema, METH_NOARGS,
             "__arrow_c_schema__($self, /)\n--\n\nThe element type as a capsule of Arrow's."},
            {"__arrow_c_array__", detail::as_method(arrow_array), METH_FASTCALL | METH_KEYWORDS,
             "__arrow_c_array__($self, /, requested_schema=None)\n--\n\n"
             "The same memory as an Arrow array, if it has one axis without gaps: two capsules."},
            {"__arrow_c_device_array__", detail::as_method(arrow_device_array), METH_FASTCALL | METH_KEYWORDS,
             "__arrow_c_device_array__($self, /, requested_schema=None, **kwargs)\n--\n\n"
             "The same on any device."},
            {nullptr, nullptr, 0, nullptr},
        };
        return table;
    }
    static PyGetSetDef* attributes() noexcept {
        static PyGetSetDef table[] = {
            {"__array_interface__", array_interface, nullptr, "NumPy's array interface, for host memory.",
             nullptr},
            {"__cuda_array_interface__", cuda_array_interface, nullptr,
             "The CUDA array interface, for CUDA memory.", nullptr},
            {nullptr, nullptr, nullptr, nullptr, nullptr},
        };
        return table;
    }
};

namespace detail {

/// Adds to a type's dictionary, immutable types included; false with an exception set.
[[nodiscard]] inline bool add_to_type(PyTypeObject* type, const char* name, ref value) noexcept {
    if (!value) return false;
#if PY_VERSION_HEX >= 0x030C0000
    const ref dict = ref::take(PyType_GetDict(type));
#else
    const ref dict = ref::borrow(type->tp_dict);
#endif
    return dict && call::set_dict_item(dict.get(), name, value.get()) == 0;
}

/// Gives a type the exchange table, under the name of DLPack 1.3.
template <class Source>
[[nodiscard]] bool publish_table(PyTypeObject* type) noexcept {
    return add_to_type(type, "__dlpack_c_exchange_api__", ref::take(exchange_table<Source>::capsule()));
}

}  // namespace detail
}  // namespace tenon::py
