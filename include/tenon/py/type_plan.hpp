// tenon/py/type_plan.hpp: what is known of a Python type's protocols, remembered per thread until the type
// changes.
//
// An entry is keyed by the type's address and its version tag. CPython gives a type a new tag whenever the
// type or a base of it is modified, and never gives a tag twice, so an entry cannot outlive what it
// describes: not when the type dies and another takes its address, not when a protocol attribute is added
// later. Tags are unique per interpreter, so entries of heap types also name the interpreter. Entries hold no
// references.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/attributes.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/frameworks.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>

namespace tenon::py {

/// A question to an object, by a method without arguments or an attribute: the C function behind it is found
/// once, where there is one, so that asking costs no attribute lookup.
class object_query {
public:
    constexpr object_query() noexcept = default;

    [[nodiscard]] static object_query find(PyTypeObject* type, PyObject* name) noexcept {
        object_query query;
        const ref found = ref::take(call::type_attr(type, name));
        if (!found) return query;
        query.kind_ = kind::python;
        // A descriptor borrowed from an unrelated class must do its own type check, and raise.
        const bool fits =
            (Py_IS_TYPE(found.get(), &PyMethodDescr_Type) || Py_IS_TYPE(found.get(), &PyGetSetDescr_Type)) &&
            PyType_IsSubtype(type, PyDescr_TYPE(found.get())) != 0;
        if (fits && Py_IS_TYPE(found.get(), &PyMethodDescr_Type)) {
            const PyMethodDef* def = reinterpret_cast<PyMethodDescrObject*>(found.get())->d_method;
            query.is_method_ = true;
            if (def->ml_flags == METH_NOARGS) {
                query.kind_ = kind::c_method;
                query.method_ = def->ml_meth;
            }
        } else if (fits && reinterpret_cast<PyGetSetDescrObject*>(found.get())->d_getset->get != nullptr) {
            const PyGetSetDef* def = reinterpret_cast<PyGetSetDescrObject*>(found.get())->d_getset;
            query.kind_ = kind::c_getter;
            query.getter_ = def->get;
            query.closure_ = def->closure;
        } else {
            query.is_method_ =
                Py_TYPE(found.get())->tp_descr_get != nullptr && PyCallable_Check(found.get()) != 0;
        }
        return query;
    }

    [[nodiscard]] bool exists() const noexcept { return kind_ != kind::none; }
    /// Asking may let other threads run in between (a C function of this kind keeps the GIL, if there is
    /// one).
    [[nodiscard]] bool may_interleave() const noexcept {
#if defined(Py_GIL_DISABLED)
        return true;
#else
        return kind_ == kind::python;
#endif
    }

    /// The answer, or nothing with an exception set. The attribute must exist.
    [[nodiscard]] ref fetch(PyObject* self, PyObject* name) const noexcept {
        switch (kind_) {
            case kind::none:
                break;
            case kind::c_method:
                return ref::take(method_(self, nullptr));
            case kind::c_getter:
                return ref::take(getter_(self, closure_));
            case kind::python:
                return ref::take(is_method_ ? call::method(self, name) : call::attr(self, name));
        }
        return {};
    }

    /// 1 yes, 0 no, -1 an exception is set. A type without the attribute answers no.
    [[nodiscard]] int ask(PyObject* self, PyObject* name) const noexcept {
        if (!exists()) return 0;
        const ref answer = fetch(self, name);
        if (!answer && PyErr_Occurred() == nullptr)
            PyErr_SetString(PyExc_SystemError,
                            "tenon: an attribute of the tensor failed without an exception");
        return answer ? call::is_true(answer.get()) : -1;
    }

private:
    enum class kind : unsigned char { none, c_method, c_getter, python };
    kind kind_ = kind::none;
    bool is_method_ = false;
    PyCFunction method_ = nullptr;
    getter getter_ = nullptr;
    void* closure_ = nullptr;
};

/// What PyTorch's exchange table does not tell: conjugate and negative views show other numbers than their
/// memory holds, and what requires grad must not be written to from outside.
struct tensor_guards {
    object_query conjugate;
    object_query negative;
    object_query requires_grad;
    object_query
        storage;  ///< not a guard: the object that owns the memory, whatever the tensor is made to point to

    [[nodiscard]] static tensor_guards find(PyTypeObject* type, const interpreter& names) noexcept {
        return {object_query::find(type, names.is_conj), object_query::find(type, names.is_neg),
                object_query::find(type, names.requires_grad),
                object_query::find(type, names.untyped_storage)};
    }
    [[nodiscard]] bool exist() const noexcept {
        return conjugate.exists() || negative.exists() || requires_grad.exists();
    }
};

/// Where an attribute can be found.
enum class attribute_place : unsigned char {
    nowhere,   ///< neither the type nor an instance can have it
    method,    ///< a plain method of the type
    anywhere,  ///< a property, an instance attribute, `__getattr__`: must be asked for
};

[[nodiscard]] inline attribute_place place_of(PyTypeObject* type, PyObject* name) noexcept {
    const ref found = ref::take(call::type_attr(type, name));
    if (found) {
        const bool plain = (Py_TYPE(found.get())->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR) != 0 &&
                           type->tp_getattro == PyObject_GenericGetAttr;
        return plain ? attribute_place::method : attribute_place::anywhere;
    }
#if PY_VERSION_HEX >= 0x030B0000
    const bool has_dict = type->tp_dictoffset != 0 || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
#else
    const bool has_dict = type->tp_dictoffset != 0;
#endif
    const bool generic = type->tp_getattro == PyObject_GenericGetAttr;
    return generic && !has_dict ? attribute_place::nowhere : attribute_place::anywhere;
}

/// How `__dlpack__` of a type wants to be called.
enum class dlpack_dialect : unsigned char {
    unknown,  ///< not called yet: try `max_version`, step back once on TypeError
    modern,   ///< takes `max_version`
    ancient,  ///< takes `stream` alone
};

/// The rung that a plain import of the type's objects begins with, without a look at the ladder.
enum class direct_way : unsigned char { none, numpy_struct, exchange_table, buffer, plain_dlpack };

/// How an array of the type's own library is made from a tensor.
enum class maker_kind : unsigned char {
    unresolved,      ///< not looked for yet
    none,            ///< the type belongs to no library that makes arrays
    exchange_table,  ///< the type's own table does
    numpy,           ///< NumPy's C functions do
    function,        ///< a function that takes a producer object
    of_capsule,      ///< a function that takes a legacy capsule
    type_method,     ///< `from_dlpack` of the type itself
};

/// A library's C function that says which stream of a device it works on, or leaves an exception.
using library_stream = std::intptr_t (*)(int device);

struct type_plan {
    PyTypeObject* type = nullptr;
    unsigned tag = 0;
    bool any_interpreter = false;  ///< a static type: the same in all of them
    direct_way direct = direct_way::none;
    bool numpy_struct = false;  ///< exactly numpy.ndarray, of the layout we know
    bool has_buffer = false;
    bool prefer_buffer = false;  ///< ask for a buffer before `__dlpack__`; dropped when a buffer is refused
    bool guarded = false;        ///< the guards below must be asked: not everything it has is what it shows
    bool masked = false;         ///< a numpy.ma array: what the mask hides must not be shown
    bool dtype_first = false;    ///< `__dlpack__` must not be called before `dtype.name` is known to be sound
    bool buffer_first = false;   ///< `prefer_buffer` may be taken up again
    bool honest_borrow = false;  ///< a borrowed tensor of this table is known to be writable
    bool immutable = false;      ///< never to be written to
    bool plain_call = false;     ///< `__dlpack__` is best asked with the stream alone
    bool on_cuda = false;        ///< the last object that was asked so was on CUDA, or all of them are
    dlpack_dialect dialect = dlpack_dialect::unknown;
    maker_kind maker = maker_kind::unresolved;
    attribute_place dlpack = attribute_place::nowhere;
    attribute_place dlpack_device = attribute_place::nowhere;
    attribute_place cuda_array_interface = attribute_place::nowhere;
    attribute_place array_interface = attribute_place::nowhere;
    attribute_place array_typestr = attribute_place::nowhere;
    attribute_place arrow_array = attribute_place::nowhere;
    attribute_place arrow_device_array = attribute_place::nowhere;
    attribute_place arrow_stream = attribute_place::nowhere;
    unsigned departures = 0;  ///< with the address below, the interpreter of a heap type
    PyInterpreterState* interpreter = nullptr;
    const abi::exchange_api* table = nullptr;
    const void* seen_dlpack = nullptr;  ///< what the attributes were; only ever compared
    const void* seen_table = nullptr;
    const char* table_fault = nullptr;  ///< why a published table cannot be used
    library_stream stream_of = nullptr;
    tensor_guards guards;
    py::interpreter* maker_home = nullptr;  ///< the record that keeps the two functions below
    PyObject* make_from = nullptr;          ///< borrowed: what makes an array of a producer or a capsule
    PyObject* make_empty = nullptr;         ///< borrowed: what makes an empty one; null when there is none
};

namespace detail {
inline constexpr std::size_t plan_slots = 32;
inline thread_local constinit type_plan plans[plan_slots] TENON_PRIVATE{};

inline type_plan& slot_of(PyTypeObject* type) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(type);
    return plans[((address >> 4U) ^ (address >> 9U)) % plan_slots];
}
/// Python 3.10 can be told to begin its tags anew (`sys._clear_type_cache`), and a tag may then mean another
/// state of the type, or another type. There, what the main protocols were is compared as well.
inline bool is_same_type(PyTypeObject* type, const type_plan& plan) noexcept {
#if PY_VERSION_HEX < 0x030B0000
    if (current_thread_state() == nullptr) return false;
    const interpreter* const names = interpreter::current_attached();
    if (names == nullptr) PyErr_Clear();
    return names != nullptr && _PyType_Lookup(type, names->dlpack) == plan.seen_dlpack &&
           _PyType_Lookup(type, names->exchange_api) == plan.seen_table;
#else
    (void)type, (void)plan;
    return true;
#endif
}
}  // namespace detail

/// The remembered plan of a type, or null when there is none that still holds. Good until the next import on
/// this thread: copy what is needed before running foreign code.
TENON_HOT [[nodiscard]] inline type_plan* find_plan(PyTypeObject* type) noexcept {
    type_plan* plan = &detail::slot_of(type);
#if defined(__GNUC__)
    asm(""
        : "+r"(plan));  // an ordinary pointer from here on: the thread's block is looked up once, not at each
                        // use
#endif
    if (plan->type != type || plan->tag == 0 || plan->tag != version_tag(type)) return nullptr;
    if (!detail::is_same_type(type, *plan)) return nullptr;
    if (!plan->any_interpreter) {
        const PyThreadState* const here = current_thread_state();
        if (here == nullptr || plan->interpreter != here->interp ||
            plan->departures != interpreter::departures())
            return nullptr;
    }
    return plan;
}

/// Dates a plan before its type is looked at, so that a change in the middle leaves it out of date.
inline void date_plan(type_plan& plan, const interpreter& names) noexcept {
    const ref dlpack = ref::take(call::type_attr(plan.type, names.dlpack));  // gives the type its tag, too
    const ref table = ref::take(call::type_attr(plan.type, names.exchange_api));
    plan.seen_dlpack = dlpack.get();
    plan.seen_table = table.get();
    plan.tag = version_tag(plan.type);
    plan.any_interpreter = (plan.type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
    plan.interpreter = PyInterpreterState_Get();
    plan.departures = interpreter::departures();
}

/// Remembers a plan, if its type has a tag to be known by.
inline void remember_plan(const type_plan& plan) noexcept {
    if (plan.tag != 0) detail::slot_of(plan.type) = plan;
}

}  // namespace tenon::py
