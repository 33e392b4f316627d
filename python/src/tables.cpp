// python/src/tables.cpp: the tables of element types, devices and libraries, as the Python half of the
// package reads them.
#include "../../src/py/export/all.hpp"

#include "functions.hpp"
#include "library_words.hpp"

namespace tenon::module {

namespace {

namespace argument = py::argument;

using py::detail::text_of;

}  // namespace

bool has_arguments(const char* function, Py_ssize_t wanted, Py_ssize_t count) noexcept {
    if (count == wanted) return true;
    PyErr_Format(PyExc_TypeError, "_core.%s() takes %zd arguments (%zd given)", function, wanted, count);
    return false;
}

bool read_flag(const char* name, PyObject* value, bool& out) noexcept {
    if (!PyBool_Check(value)) return argument::wrong(name, "True or False", value);
    out = value == Py_True;
    return true;
}

bool read_any_device(PyObject* value, std::optional<device>& out) noexcept {
    if (value == Py_None || PyUnicode_Check(value) || PyTuple_Check(value))
        return argument::read_device("device", value, out);
    const py::ref half = py::ref::take(py::call::import_module("tenon._device"));
    const py::ref pair =
        half ? py::ref::take(py::call::method(half.get(), "pair_of", "O", value)) : py::ref();
    return pair && argument::read_device("device", pair.get(), out);
}

namespace {

/// What `read` makes of a Tensor: for the package, which has other properties of these names.
template <class Read>
PyObject* read_tensor(PyObject* obj, Read&& read) noexcept try {
    PyTypeObject* const type = py::producer_type();
    if (type == nullptr) return nullptr;
    if (!Py_IS_TYPE(obj, type)) return argument::wrong("the argument", "a tenon.Tensor", obj), nullptr;
    return read(*py::held_tensor(obj));
} catch (...) {
    py::raise_caught();
    return nullptr;
}

}  // namespace

PyObject* dtype_of(PyObject*, PyObject* obj) noexcept {
    return read_tensor(obj, [](const tensor& t) { return text_of(name(t.dtype())); });
}

PyObject* device_of(PyObject*, PyObject* obj) noexcept {
    return read_tensor(obj, [](const tensor& t) {
        const device where = t.device();
        return Py_BuildValue("(ii)", where.type, where.id);
    });
}

PyObject* dtype_name(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept try {
    if (!has_arguments("dtype_name", 3, count)) return nullptr;
    long long code = 0;
    long long bits = 0;
    long long lanes = 0;
    if (!argument::read_integer("code", "an integer from 0 to 255", args[0], 0, 255, code) ||
        !argument::read_integer("bits", "an integer from 1 to 255", args[1], 1, 255, bits) ||
        !argument::read_integer("lanes", "an integer from 1 to 65535", args[2], 1, 65535, lanes))
        return nullptr;
    return text_of(name(dtype(static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
                              static_cast<std::uint16_t>(lanes))));
} catch (...) {
    py::raise_caught();
    return nullptr;
}

/// `(code, bits)`, at most 8: what each number of so many bits means, in order.
PyObject* meanings(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    if (!has_arguments("meanings", 2, count)) return nullptr;
    long long code = 0;
    long long bits = 0;
    if (!argument::read_integer("code", "an integer from 0 to 255", args[0], 0, 255, code) ||
        !argument::read_integer("bits", "an integer from 1 to 8", args[1], 1, 8, bits))
        return nullptr;
    const dtype type(static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits));
    py::ref all = py::ref::take(PyTuple_New(Py_ssize_t{1} << bits));
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(all.get()); ++i) {
        // As wide as the widest: compilers see all of them read.
        alignas(8) const std::uint8_t element[16] = {static_cast<std::uint8_t>(i)};
        const auto value = read_number(type, element);
        if (!value) return argument::wrong("code", "that of a type known here", args[0]), nullptr;
        PyObject* const item = py::to_python(*value);
        if (item == nullptr) return nullptr;
        PyTuple_SET_ITEM(all.get(), i, item);
    }
    return all.release();
}

PyObject* device_name(PyObject*, PyObject* pair) noexcept try {
    std::optional<device> where;
    if (!argument::read_device("device", pair, where)) return nullptr;
    return text_of(name(where.value_or(device{})));
} catch (...) {
    py::raise_caught();
    return nullptr;
}

PyObject* device_pair(PyObject*, PyObject* name) noexcept {
    std::optional<device> where;
    if (!argument::read_device("device", name, where)) return nullptr;
    const device found = where.value_or(device{});
    return Py_BuildValue("(ii)", found.type, found.id);
}

PyObject* dtype_table() noexcept {
    const auto lines = static_cast<Py_ssize_t>(std::size(detail::dtype_table));
    py::ref table = py::ref::take(PyTuple_New(lines));
    for (Py_ssize_t i = 0; table && i < lines; ++i) {
        const dtype_entry& e = detail::dtype_table[static_cast<std::size_t>(i)];
        PyObject* const line = Py_BuildValue(
            "(s#(iii)s#s#s#)", e.name.data(), static_cast<Py_ssize_t>(e.name.size()), e.type.code,
            e.type.bits, e.type.lanes, e.typestr.data(), static_cast<Py_ssize_t>(e.typestr.size()),
            e.buffer_format.data(), static_cast<Py_ssize_t>(e.buffer_format.size()), e.arrow_format.data(),
            static_cast<Py_ssize_t>(e.arrow_format.size()));
        if (line == nullptr) return nullptr;
        PyTuple_SET_ITEM(table.get(), i, line);
    }
    return table.release();
}

/// What the Python half reads of a library.
[[nodiscard]] static PyObject* as_dictionary(const py::library_row& row,
                                             const library_words& words) noexcept {
    const std::pair<const char*, std::string_view> texts[] = {
        {"name", row.name},
        {"distribution", row.distribution},
        {"devices", words.devices},
        {"more_types", words.more_types},
        {"fewer_types", words.fewer_types},
        {"to_type", row.to_type},
        {"device_kind", words.device_kind},
        {"device_number", words.device_number},
        {"device_text", words.device_text},
        {"device_names", words.device_names},
        {"type_attribute", words.type_attribute},
        {"type_prefix", words.type_prefix},
        {"type_names", words.type_names},
        {"from_dlpack", row.from_dlpack != nullptr ? row.from_dlpack : ""},
    };
    const std::pair<const char*, int> numbers[] = {
        {"alignment", row.alignment},
        {"alignment_on_gpu", row.alignment_on_gpu},
        {"alignment_of_complex128", row.alignment_of_complex128},
        {"copies_below", words.copies_below},
        {"most_axes", words.most_axes},
    };
    const std::pair<const char*, bool> answers[] = {
        {"always_cuda", row.always_cuda},
        {"forgets_readonly", words.forgets_readonly},
        {"forgets_readonly_on_gpu", words.forgets_readonly_on_gpu},
        {"donates_on_gpu", words.donates_on_gpu},
        {"types_as_text", words.types_as_text},
    };
    py::ref made = py::ref::take(PyDict_New());
    const auto put = [&](const char* key, PyObject* value) {
        const py::ref held = py::ref::take(value);
        if (made && (!held || py::call::set_dict_item(made.get(), key, held.get()) != 0)) made = py::ref();
    };
    for (const auto& [key, value] : texts) put(key, text_of(value));
    for (const auto& [key, value] : numbers) put(key, PyLong_FromLong(value));
    for (const auto& [key, value] : answers) put(key, PyBool_FromLong(value ? 1 : 0));
    return made.release();
}

PyObject* library_table() noexcept {
    const py::ref table = py::ref::take(PyDict_New());
    for (std::size_t i = 0; i < py::known_libraries.size(); ++i) {
        const py::library_row& row = py::known_libraries[i];
        const py::ref line = table ? py::ref::take(as_dictionary(row, words_of_libraries[i])) : py::ref();
        const py::ref shown = line ? py::ref::take(PyDictProxy_New(line.get())) : py::ref();
        for (const std::string_view package : {row.name, row.alias})
            if (!package.empty() &&
                (!shown || py::call::set_dict_item(table.get(), package.data(), shown.get()) != 0))
                return nullptr;
    }
    return table ? PyDictProxy_New(table.get()) : nullptr;
}

}  // namespace tenon::module
