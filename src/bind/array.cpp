// src/bind/array.cpp: arrays with memory of their own: made in the caller's library, shared, and given back.
#include <tenon/bind/array.hpp>
#include "../py/export/all.hpp"
#include "loader.hpp"

namespace tenon::bind {

TENON_INLINE void retain(held* memory) noexcept { memory->holders.fetch_add(1, std::memory_order_relaxed); }

TENON_INLINE void release(held* memory) noexcept {
    if (memory->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete memory;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is taken over
TENON_INLINE PyObject* array_to_python(holder memory, PyObject* source) noexcept {
    if (memory.get() == nullptr) return py::ref::borrow(source).release();
    held& here = *memory.get();
    if (here.holders.load(std::memory_order_acquire) == 1)
        return py::to_python(std::move(here.memory), source);
    // Copies of the array are still about: they and the result share the memory.
    const tensor_ref& t = here.memory;
    const tensor_info info =
        tensor_info::strided(t.data(), t.dtype(), axes(t.shape()), axes(t.strides()), t.device())
            .on_stream(t.stream())
            .padded(t.is_subbyte_padded());
    const auto let_go = [](void* subject, void*) noexcept { release(static_cast<held*>(subject)); };
    retain(&here);
    auto shared = tensor::own(info, keep_alive(&here, let_go));
    if (shared && t.is_read_only()) shared->set_read_only();
    return py::to_python(std::move(shared), source);
}

TENON_INLINE PyObject* tensor_to_python(tensor&& t) noexcept { return py::to_python(std::move(t)); }

TENON_INLINE PyObject* tensor_to_python(result<tensor>&& t) noexcept {
    return t ? py::to_python(std::move(*t)) : py::raise(t.error(), "tenon: ");
}

TENON_INLINE found allocate_like(PyObject* like, const tensor_ref& known, const axes& shape,
                                 tenon::dtype type, const request& wanted) {
    if (py::attached_thread_state() == nullptr)
        throw std::runtime_error(std::string("tenon: empty_like") + py::needs_gil);
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
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) throw py::python_error();
    made->set_stream(known.stream());
    return keep_memory(std::move(*made), py::detail::keep_object(like, here), 0);
}

}  // namespace tenon::bind
