// python/src/functions.hpp: what the files of the extension module show each other.
#pragma once

#include <optional>

#include <tenon/py/python.hpp>
#include <tenon/value/device.hpp>

namespace tenon::module {

/// The keyword `device=`: None, a name, a pair, or any object that `tenon.device` understands. False with an
/// exception set on failure.
[[nodiscard]] bool read_any_device(PyObject* value, std::optional<device>& out) noexcept;

/// True or False, and nothing else. False with an exception set on failure.
[[nodiscard]] bool read_flag(const char* name, PyObject* value, bool& out) noexcept;

/// Whether a function has been given as many arguments as it wants; TypeError otherwise.
[[nodiscard]] bool has_arguments(const char* function, Py_ssize_t wanted, Py_ssize_t count) noexcept;

/// The type `Tensor`: a new reference, or null with an exception set.
PyObject* make_tensor_type() noexcept;
/// The type of what memory with a deleter belongs to: a new reference, or null with an exception set.
PyObject* make_memory_type(PyObject* module) noexcept;
/// The same as this module has it: borrowed.
PyTypeObject* memory_type_of(PyObject* module) noexcept;
PyObject* from_pointer(PyObject* module, PyObject* const* args, Py_ssize_t count) noexcept;
PyObject* inspect_object(PyObject* module, PyObject* obj) noexcept;
PyObject* inspect_capsule(PyObject* module, PyObject* capsule) noexcept;
PyObject* inspect_table(PyObject* module, PyObject* obj) noexcept;
PyObject* inspect_type(PyObject* module, PyObject* obj) noexcept;
PyObject* dtype_of(PyObject* module, PyObject* obj) noexcept;
PyObject* device_of(PyObject* module, PyObject* obj) noexcept;
PyObject* dtype_name(PyObject* module, PyObject* const* args, Py_ssize_t count) noexcept;
PyObject* meanings(PyObject* module, PyObject* const* args, Py_ssize_t count) noexcept;
PyObject* device_name(PyObject* module, PyObject* pair) noexcept;
PyObject* device_pair(PyObject* module, PyObject* name) noexcept;

/// The table of element types: (name, (code, bits, lanes), typestr, buffer format, Arrow format) in each
/// line. Null with an exception set on failure.
PyObject* dtype_table() noexcept;
/// The table of libraries, by package: in each row what the Python half reads of it. Neither can be changed.
/// Null with an exception set on failure.
PyObject* library_table() noexcept;

}  // namespace tenon::module
