// src/bind/kept.cpp: arrays and tensors that C++ keeps, and how they go back to Python.
#include <tenon/bind/argument.hpp>
#include "../py/export/all.hpp"
#include "../tensor/held.hpp"
#include "keep_memory.hpp"
#include "look_again.hpp"
#include "number.hpp"

namespace tenon::bind {

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is taken over
TENON_INLINE tensor take_tensor(holder memory) noexcept { return std::move(memory.get()->memory); }

TENON_INLINE shared_tensor keep_shared(tensor&& t, PyObject* object) {
    return shared_tensor(keep_memory(std::move(t), object, 0, true).keeps);
}

/// What is said where an array is needed that is there.
inline constexpr const char* empty_array =
    "tenon: the array is empty: nothing was put into it, or it was moved away; give it a value first, or "
    "take "
    "and return a std::optional of it where None is meant";

TENON_INLINE found allocate_like(PyObject* like, const tensor_ref& known, const axes& shape, dtype type,
                                 const request& wanted) {
    if (py::attached_thread_state() == nullptr)
        throw std::runtime_error(sentence({"tenon: empty_like", py::needs_gil}));
    if (like == nullptr) throw std::runtime_error(empty_array);
    if (known.is_number()) return keep_memory(new_number(type, shape), like, 0, false);
    auto made = py::empty_like(like, shape, type, &known);
    if (!made) throw py::python_error();
    const device where = known.device();
    // Where `like` has managed memory its library's allocator may give plain memory of the device, and serve.
    const bool is_there =
        made->device() == where || (where.type == abi::device_code::cuda_managed && made->device().is_cuda());
    const auto met = is_there ? check(*made, wanted)
                              : result<void>(refused("device", "the library allocated elsewhere",
                                                     made->device().type, where.type));
    if (!met) {
        py::raise(met.error(), "tenon: empty_like: ");
        throw py::python_error();
    }
    made->set_stream(known.stream());
    return keep_memory(std::move(*made), like, 0, false);
}

// --- arrays as objects ------------------------------------------------------------------------------------

/// The object that shows this memory, borrowed; null when there is none, or it shows other memory by now.
[[nodiscard]] inline PyObject* object_showing(held& memory, PyObject* source) noexcept {
    if (!memory.is_kept && memory.is_itself) return source;  // lent, until the call ends
    PyObject* object = nullptr;
    if (memory.is_itself) {
        object = source;
    } else {
        const std::scoped_lock lock(memory.sharing);
        object = static_cast<PyObject*>(memory.made ? memory.made.subject() : nullptr);
    }
    if (object == nullptr) return nullptr;
    return look_again(object, memory.memory, !memory.memory.is_read_only()) != sight::changed ? object
                                                                                              : nullptr;
}

/// What is made of memory that stays in C++ is remembered, and given out again.
inline void remember(held& memory, PyObject* made) noexcept {
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return PyErr_Clear();
    keep_alive object = py::detail::keep_object(made, here);
    const std::scoped_lock lock(memory.sharing);
    if (!memory.made) memory.made = std::move(object);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is taken over
TENON_INLINE PyObject* array_to_python(holder memory, PyObject* source, argument* lender) noexcept try {
    const bool is_lent = memory.get() == nullptr && lender != nullptr && source != nullptr;
    if (is_lent && PyCapsule_CheckExact(source))
        memory = keep_lent(*lender).keeps;  // the capsule is used up: a Tensor goes back
    if (memory.get() == nullptr) {
        if (source == nullptr) PyErr_SetString(PyExc_RuntimeError, empty_array);
        return py::ref::borrow(source).release();
    }
    held& here = *memory.get();
    if (PyObject* const object = object_showing(here, source)) return py::ref::borrow(object).release();
    if (here.memory.is_number()) return number_to_python(here.memory);
    const bool is_last = here.holders.load(std::memory_order_acquire) == 1;
    if (is_last && !here.is_itself && source != nullptr) return py::to_python(std::move(here.memory), source);
    auto shared = tenon::detail::share_held(here);  // copies of the array are still about
    PyObject* const made =
        source != nullptr ? py::to_python(std::move(shared), source) : py::to_python(std::move(shared));
    if (made != nullptr && !here.is_itself) remember(here, made);
    return made;
} catch (...) {
    py::raise_caught();
    return nullptr;
}

TENON_INLINE PyObject* tensor_to_python(const shared_tensor& t) noexcept {
    held* const memory = t.memory().get();
    PyObject* const source =
        memory != nullptr && memory->like ? static_cast<PyObject*>(memory->like.subject()) : nullptr;
    return array_to_python(t.memory(), source);
}

TENON_INLINE PyObject* tensor_to_python(tensor&& t) noexcept { return py::to_python(std::move(t)); }

TENON_INLINE PyObject* tensor_to_python(const tensor& t) noexcept {
    return tensor_to_python(const_cast<tensor&>(t).share());  // what it owns is shared, and stays as it was
}

TENON_INLINE PyObject* tensor_to_python(result<tensor>&& t) noexcept {
    return t ? py::to_python(std::move(*t)) : py::raise(t.error(), "tenon: ");
}

}  // namespace tenon::bind
