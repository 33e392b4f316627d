// src/py/export/tensor_type.cpp: the Python type `Tensor`: a tensor that any library can read, as often as it
// likes.
//
// There is one, the package's. A module finds it once, and hands tensors to it by a C table, so that any two
// compilers and versions get along. Where the package cannot be imported, a type of the module's own stands
// in for it.
#include "all.hpp"

#include <structmember.h>  // the members of types, which 3.12 moved into Python.h

namespace tenon::py {

namespace detail {

// --- the type ---------------------------------------------------------------------------------------

/// There is no tp_clear, as for tuples: a Tensor cannot be changed, so a cycle through it goes through
/// something that can, and is broken there. Who looks at the memory while that happens finds it whole.
inline int traverse_tensor(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    const tensor_object& t = *as_tensor_object(self);
    Py_VISIT(visible(t.referenced != nullptr ? t.referenced : referenced_by(t.held.owner())));
    return 0;
}

/// A Tensor can keep a Tensor that keeps a Tensor...: this runs in turn.
inline void dealloc_tensor(PyObject* self) noexcept {
    PyTypeObject* const type = Py_TYPE(self);
    if (as_tensor_object(self)->weak_references != nullptr) call::clear_weak_references(self);
    {
        const error_guard keep;  // the owner's own code runs, and may not see what is pending
        as_tensor_object(self)->ready.~ready_event();
        as_tensor_object(self)->held.~tensor();
    }
    type->tp_free(self);
    Py_DECREF(type);
}

inline Py_ssize_t length_of_tensor(PyObject* self) noexcept {
    const tensor& t = as_tensor_object(self)->held;
    if (t.ndim() > 0) return static_cast<Py_ssize_t>(t.shape(0));
    PyErr_SetString(PyExc_TypeError, "tenon: a Tensor without axes has no length");
    return -1;
}

TENON_INLINE PyObject* numpy_dtype_of(const tensor_object& t) noexcept {
    interpreter* const here = interpreter::current();
    const auto functions = here != nullptr ? numpy_abi::functions::find(*here) : std::nullopt;
    return functions ? numpy::descriptor_for(t.held.dtype(), t.held.is_subbyte_padded(), *functions)
                     : nullptr;
}

TENON_INLINE PyObject* make_tensor_type(const char* type_name, std::span<const PyType_Slot> more) noexcept {
    producer_tables& tables = tables_of<tensor_source::source>;
    static PyGetSetDef properties[] = {
        make_property<[](const tensor_object& t) { return tuple_of(t.held.shape()); }>(
            "shape", "Extent of each axis."),
        make_property<[](const tensor_object& t) { return text_of(name(t.held.dtype())); }>(
            "dtype", "Name of the element type."),
        make_property<numpy_dtype_of>(
            "__numpy_dtype__",
            "NumPy's word for the element type: NumPy asks for it where `dtype` is a name."),
        make_property<[](const tensor_object& t) { return text_of(name(t.held.device())); }>(
            "device", "Where the memory is: 'cpu', 'cuda:0', ..."),
        make_property<[](const tensor_object& t) {
            PyObject* const owner = owner_of(t);
            return ref::borrow(owner != nullptr ? owner : Py_None).release();
        }>("owner", "The object the memory belongs to, or None where only its producer knows."),
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static PyMemberDef members[] = {
        {"__weaklistoffset__", T_PYSSIZET, sizeof(chained_object), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    PyType_Slot slots[32] = {
        {Py_tp_doc, const_cast<char*>("A tensor on any device that every array library can read: by DLPack, "
                                      "as a buffer, by an array interface, or as an Arrow array.")},
        {Py_tp_dealloc, reinterpret_cast<void*>(chained_object::dealloc_in_turn<dealloc_tensor>)},
        {Py_tp_traverse, reinterpret_cast<void*>(traverse_tensor)},
        {Py_mp_length, reinterpret_cast<void*>(length_of_tensor)},
        {Py_nb_int, reinterpret_cast<void*>(tables.as_int)},
        {Py_nb_float, reinterpret_cast<void*>(tables.as_float)},
        {Py_nb_bool, reinterpret_cast<void*>(bound_answer<tensor_source::source, &answer::as_bool>::call)},
        {Py_tp_getset, properties},
        {Py_tp_members, members},
    };
    PyType_Slot* end = slots;  // what is left ends the list
    while (end->slot != 0) ++end;
    for (const PyType_Slot& one : more) *end++ = one;
    PyType_Spec spec = {
        type_name,
        sizeof(tensor_object),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
            Py_TPFLAGS_DISALLOW_INSTANTIATION,
        slots,
    };
    ref type = ref::take(PyType_FromSpec(&spec));
    return type && add_protocols(as_type(type), tables) ? type.release() : nullptr;
}

// --- its objects ------------------------------------------------------------------------------------

/// Remembers what is queued on the stream of a GPU's tensor: an object of Python's may outlive the stream.
[[nodiscard]] inline bool remember_work(tensor& t, gpu::ready_event& ready) noexcept {
    const device where = t.device();
    if ((!where.is_cuda_memory() && !where.is_rocm()) || t.stream() == gpu::default_stream(where))
        return true;
    if (t.empty()) {  // no work is ever done on nothing
        t.set_stream(nullptr);
        return true;
    }
    return succeeded(without_gil([&] { return gpu::remember(where, t.stream(), ready); }));
}

TENON_INLINE PyObject* make_tensor_object(tensor& t, interpreter& here, PyObject* referenced,
                                          PyObject* owner) noexcept {
    PyTypeObject* const type = producer_type();
    gpu::ready_event ready;
    if (type == nullptr || !remember_work(t, ready)) return nullptr;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    tensor_object& made = *as_tensor_object(self);
    made.head.home = &here;
    new (&made.held) tensor(std::move(t));
    new (&made.ready) gpu::ready_event(std::move(ready));
    made.referenced = referenced;
    made.owner = owner;
    return self;
}

// --- the package's ----------------------------------------------------------------------------------

/// The table behind a class that may be the package's Tensor; null for any other.
[[nodiscard]] inline const abi::handover_api* handover_of(PyObject* type, const interpreter& names) noexcept {
    if (type == nullptr || PyType_Check(type) == 0) return nullptr;
    type_plan plan;
    exchange::probe(reinterpret_cast<PyTypeObject*>(type), names, plan);
    const auto* const found = plan.table != nullptr
                                  ? reinterpret_cast<const abi::handover_api*>(plan.table->header.prev_api)
                                  : nullptr;
    if (found == nullptr || !tenon::detail::is_readable<sizeof *found>(found) ||
        found->header.version.major != abi::handover_major)
        return nullptr;
    const void* const functions[] = {reinterpret_cast<const void*>(found->take)};
    return found->take != nullptr && tenon::detail::are_executable(functions) ? found : nullptr;
}

/// How tensors become the package's; null when this is the package, or there is none. It is imported once; if
/// there is none, it may still come by itself. An exception is left only if it ends the call.
[[nodiscard]] inline const abi::handover_api* package_of(interpreter& here) noexcept {
    const abi::handover_api* const known = here.package.load(std::memory_order_acquire);
    if (known != nullptr || here.is_package.load(std::memory_order_relaxed)) [[likely]]
        return known;
    const nesting_level level;
    if (!level) return nullptr;
    const bool is_first = !here.asked_for_package.exchange(true);
    const ref module =
        ref::take(is_first ? call::import_module("tenon._core") : call::imported_module("tenon"));
    ref type = module ? ref::take(call::attr(module.get(), "Tensor")) : ref();
    const abi::handover_api* const found = handover_of(type.get(), here);
    if (!forget_answer() || found == nullptr) return nullptr;
    call::drop(here.package_type.exchange(type.release()));
    here.package.store(found, std::memory_order_release);
    return found;
}

/// A new Tensor of the package's; null with an exception set, and `t` left as it was.
[[nodiscard]] inline PyObject* hand_over(const abi::handover_api& package, tensor& t) noexcept {
    const keep_alive& owner = t.owner();
    const abi::tensor_parts parts{sizeof(abi::tensor_parts),
                                  {t.base(), t.device().to_abi(), t.ndim(), t.dtype().to_abi(),
                                   const_cast<std::int64_t*>(t.shape().data()),
                                   const_cast<std::int64_t*>(t.strides().data()), t.byte_offset()},
                                  t.flags() | tenon::detail::validator::marks_of(t),
                                  t.version(),
                                  t.stream(),
                                  owner.subject(),
                                  const_cast<void*>(owner.context()),
                                  owner.release_function(),
                                  owner.is(owner_kind::memory) ? 1U : 0U,
                                  referenced_by(owner),
                                  object_behind(owner),
                                  t.device().has_streams() ? &gpu::is_any_captured_here : nullptr};
    void* made = nullptr;
    if (foreign_code([&] { return package.take(&parts, &made); }) != 0) return nullptr;
    t.owner().disown();
    t.reset();
    return static_cast<PyObject*>(made);
}

// --- what stands in for it --------------------------------------------------------------------------

inline PyObject* repr_of_stand_in(PyObject* self) noexcept try {
    const tensor& t = as_tensor_object(self)->held;
    const ref shape = ref::take(tuple_of(t.shape()));
    return shape ? PyUnicode_FromFormat("%s(shape=%R, dtype=%s, device=%s)", Py_TYPE(self)->tp_name,
                                        shape.get(), name(t.dtype()).c_str(), name(t.device()).c_str())
                 : nullptr;
} catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
}

/// Old pickle protocols would write it down, and fail when it is read.
inline PyObject* refuse_pickling(PyObject*, PyObject*) noexcept {
    PyErr_SetString(PyExc_TypeError,
                    "tenon: a Tensor is a view of memory it does not own and cannot be pickled; "
                    "pickle the array it came from, or install the package tenon");
    return nullptr;
}

}  // namespace detail

TENON_INLINE PyTypeObject* producer_type() noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    return reinterpret_cast<PyTypeObject*>(interpreter::make_once(here->producer_type, [] {
        static PyMethodDef methods[] = {{"__reduce_ex__", detail::refuse_pickling, METH_O, nullptr},
                                        {nullptr, nullptr, 0, nullptr}};
        const PyType_Slot its[] = {{Py_tp_repr, reinterpret_cast<void*>(detail::repr_of_stand_in)},
                                   {Py_tp_methods, methods}};
        return detail::make_tensor_type("tenon_stand_in.Tensor", its);
    }));
}

TENON_INLINE PyObject* to_python(tensor&& t) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr || detail::refuse_nothing(t)) return nullptr;
    if (const abi::handover_api* const package = detail::package_of(*here))
        return detail::hand_over(*package, t);
    return PyErr_Occurred() == nullptr ? detail::make_tensor_object(t, *here) : nullptr;
}

TENON_INLINE PyObject* to_python(result<tensor> t) noexcept {
    if (!t) return raise(t.error(), "tenon: ");
    const detail::taken taken(*t);
    return to_python(std::move(*t));
}

}  // namespace tenon::py
