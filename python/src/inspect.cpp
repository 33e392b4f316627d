// python/src/inspect.cpp: what can be said of an object or a capsule by looking at it: the compiled half of
// `tenon.inspect`.
#if defined(__linux__)
#include <sys/uio.h>
#include <unistd.h>
#endif

#include "../../src/py/export/all.hpp"

#include "functions.hpp"

namespace tenon::module {

namespace {

using py::ref;

// --- memory that may not be there -------------------------------------------------------------------

/// Copies memory of this process; false when it cannot be read. Where the system cannot be asked, the address
/// is believed.
[[nodiscard]] bool read_memory(const void* from, void* to, std::size_t size) noexcept {
    if (detail::is_implausible(from)) return false;
#if defined(__linux__)
    const iovec local{to, size};
    const iovec remote{const_cast<void*>(from), size};
    const ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (count == static_cast<ssize_t>(size)) return true;
    if (count >= 0 || errno == EFAULT) return false;
#endif
    std::memcpy(to, from, size);
    return true;
}

template <class T>
[[nodiscard]] bool read_struct(const void* from, T& to) noexcept {
    return reinterpret_cast<std::uintptr_t>(from) % alignof(T) == 0 && read_memory(from, &to, sizeof to);
}

/// Whether an array of as many numbers as there are axes can be read. What the validator refuses unread is
/// left to it.
[[nodiscard]] bool is_readable(const std::int64_t* array, std::int32_t ndim) noexcept {
    std::int64_t copy[max_rank];
    if (ndim <= 0 || ndim > max_rank || detail::is_implausible(array)) return true;
    return read_memory(array, copy, sizeof(std::int64_t) * static_cast<std::size_t>(ndim));
}

// --- values -----------------------------------------------------------------------------------------

[[nodiscard]] unsigned long long number(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
}
template <class... Args>
[[nodiscard]] unsigned long long number(void (*function)(Args...)) noexcept {
    return reinterpret_cast<std::uintptr_t>(function);
}

[[nodiscard]] PyObject* none() noexcept { return ref::borrow(Py_None).release(); }

[[nodiscard]] PyObject* text_or_none(const std::string& text) noexcept {
    return text.empty() ? none()
                        : PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

[[nodiscard]] PyObject* version_or_none(abi::dl_version version) noexcept {
    return version.major == 0 ? none() : Py_BuildValue("(II)", version.major, version.minor);
}

/// What keeps the memory: ("object" or "buffer", the type of it), or ("struct", None), ("arrow", None) or
/// ("memory", None). None when nothing does.
/// `known` is the object, where another module has said it.
[[nodiscard]] PyObject* owner_of(const keep_alive& any, PyObject* known) noexcept {
    if (!any) return none();
    if (known != nullptr) return Py_BuildValue("(sO)", "object", Py_TYPE(known));
    const keep_alive& owner = gpu::kept_by(any);
    const char* const kind = owner.is(owner_kind::buffer)    ? "buffer"
                             : owner.is(owner_kind::arrow)   ? "arrow"
                             : owner.is(owner_kind::managed) ? "struct"
                                                             : "memory";
    PyObject* const object = py::detail::object_behind(owner);
    if (object == nullptr) return Py_BuildValue("(sO)", kind, Py_None);
    return Py_BuildValue("(sO)", owner.is(owner_kind::buffer) ? kind : "object", Py_TYPE(object));
}

/// Everything a checked tensor says, as a dictionary.
[[nodiscard]] PyObject* facts_of(const tensor_ref& t, const keep_alive& owner,
                                 PyObject* known_owner = nullptr) noexcept {
    const bool is_address = !t.device().has_opaque_handle();
    const element_span reach =
        t.empty() ? element_span{} : touched_span(t.shape(), t.strides()).value_or(element_span{});
    return Py_BuildValue(
        "{s:K, s:O, s:K, s:N, s:N, s:(iii), s:(ii), s:L, s:L, s:L, s:(LL), s:N, s:N, s:N, s:K, s:N, s:N}",  //
        "data_ptr", number(is_address ? t.data() : t.base()),                                               //
        "is_address", is_address ? Py_True : Py_False,                                                      //
        "byte_offset", static_cast<unsigned long long>(t.byte_offset()),                                    //
        "shape", py::detail::tuple_of(t.shape()),                                                           //
        "strides", py::detail::tuple_of(t.strides()),                                                       //
        "dtype", int{t.dtype().code}, int{t.dtype().bits}, int{t.dtype().lanes},                            //
        "device", t.device().type, t.device().id,                                                           //
        "size", static_cast<long long>(t.size()),                                                           //
        "itemsize", static_cast<long long>(t.itemsize()),                                                   //
        "nbytes", static_cast<long long>(t.nbytes()),                                                       //
        "reach", static_cast<long long>(reach.low), static_cast<long long>(reach.high),                     //
        "is_c_contiguous", PyBool_FromLong(t.is_c_contiguous() ? 1 : 0),                                    //
        "is_f_contiguous", PyBool_FromLong(t.is_f_contiguous() ? 1 : 0),                                    //
        "may_overlap", PyBool_FromLong(may_overlap(t.shape(), t.strides()) ? 1 : 0),                        //
        "flags", static_cast<unsigned long long>(t.flags()),                                                //
        "version", version_or_none(t.version()),                                                            //
        "owner", owner_of(owner, known_owner));
}

// --- the ladder -------------------------------------------------------------------------------------

/// (rung, answer, reason or None) of each that was tried.
[[nodiscard]] ref list_of(const py::detail::refusals& told) {
    ref list = ref::take(PyList_New(0));
    for (const py::detail::refusals::answer& each : told.all()) {
        static constexpr const char* words[] = {"taken", "absent", "refused", "raised"};
        const std::string reason = each.why() != nullptr              ? each.why()->message()
                                   : each.came == py::outcome::absent ? each.asked->absent
                                                                      : "";
        const ref line = ref::take(Py_BuildValue(
            "(ssN)", each.asked->name, words[static_cast<int>(each.came.is())], text_or_none(reason)));
        if (list && (!line || PyList_Append(list.get(), line.get()) != 0)) list = ref();
    }
    return list;
}

// --- capsules ---------------------------------------------------------------------------------------

[[nodiscard]] PyObject* numbers_of(const abi::dl_tensor& t) noexcept {
    return Py_BuildValue("{s:K, s:(ii), s:i, s:(iii), s:K, s:K, s:K}",                       //
                         "data", number(t.data),                                             //
                         "device", t.device.device_type, t.device.device_id,                 //
                         "ndim", t.ndim,                                                     //
                         "dtype", int{t.dtype.code}, int{t.dtype.bits}, int{t.dtype.lanes},  //
                         "shape", number(t.shape),                                           //
                         "strides", number(t.strides),                                       //
                         "byte_offset", static_cast<unsigned long long>(t.byte_offset));
}

constexpr const char* unreadable_struct = "it leads to memory that cannot be read";

[[nodiscard]] error array_fault(const abi::dl_tensor& t, const error& otherwise) noexcept {
    static constexpr const char* unreadable = "the pointer leads to memory that cannot be read";
    if (!is_readable(t.shape, t.ndim)) return malformed("shape", unreadable);
    if (!is_readable(t.strides, t.ndim)) return malformed("strides", unreadable);
    return otherwise;
}

/// The numbers in a managed struct as they lie there, nothing believed: a dictionary, or None with the reason
/// in `why`. Where the layout is unknown, "tensor" is None.
[[nodiscard]] PyObject* struct_facts(const void* managed, bool versioned, std::string& why) {
    const auto unreadable = [&] {
        why = malformed("capsule", unreadable_struct).message();
        return none();
    };
    const error fine = malformed("", "");
    error fault = fine;
    ref made;
    if (versioned) {
        // What comes before the tensor keeps its place in every version; the rest only in ours.
        abi::managed_tensor_versioned m{};
        static constexpr std::size_t head = offsetof(abi::managed_tensor_versioned, tensor);
        if (number(managed) % alignof(abi::managed_tensor_versioned) != 0 || !read_memory(managed, &m, head))
            return unreadable();
        const bool known = m.version.major == abi::dlpack_major;
        if (known && !read_struct(managed, m)) return unreadable();
        if (known) fault = array_fault(m.tensor, fine);
        made = ref::take(Py_BuildValue("{s:K, s:(II), s:K, s:K, s:K, s:N}",                //
                                       "address", number(managed),                         //
                                       "version", m.version.major, m.version.minor,        //
                                       "manager_ctx", number(m.manager_ctx),               //
                                       "deleter", number(m.deleter),                       //
                                       "flags", static_cast<unsigned long long>(m.flags),  //
                                       "tensor", known ? numbers_of(m.tensor) : none()));
    } else {
        abi::managed_tensor m{};
        if (!read_struct(managed, m)) return unreadable();
        fault = array_fault(m.tensor, fine);
        made = ref::take(Py_BuildValue("{s:K, s:O, s:K, s:K, s:O, s:N}",      //
                                       "address", number(managed),            //
                                       "version", Py_None,                    //
                                       "manager_ctx", number(m.manager_ctx),  //
                                       "deleter", number(m.deleter),          //
                                       "flags", Py_None,                      //
                                       "tensor", numbers_of(m.tensor)));
    }
    if (fault.field[0] != '\0') why = fault.message();
    return made.release();
}

// --- exchange tables --------------------------------------------------------------------------------

/// (version or None, names of the functions that are there, problem or None).
[[nodiscard]] PyObject* table_facts(const void* published, const abi::exchange_api* usable,
                                    const char* fault) {
    abi::dl_version version{0, 0};
    abi::exchange_api_header header{};
    if (usable != nullptr)
        version = usable->header.version;
    else if (read_struct(published, header))
        version = header.version;
    ref names = ref::take(PyList_New(0));
    const auto add = [&](const char* name, bool there) {
        const ref text = names && there ? ref::take(PyUnicode_FromString(name)) : ref();
        if (names && there && (!text || PyList_Append(names.get(), text.get()) != 0)) names = ref();
    };
    if (usable != nullptr) {
        add("managed_tensor_allocator", usable->managed_tensor_allocator != nullptr);
        add("managed_tensor_from_py_object_no_sync",
            usable->managed_tensor_from_py_object_no_sync != nullptr);
        add("managed_tensor_to_py_object_no_sync", usable->managed_tensor_to_py_object_no_sync != nullptr);
        add("dltensor_from_py_object_no_sync", usable->dltensor_from_py_object_no_sync != nullptr);
        add("current_work_stream", usable->current_work_stream != nullptr);
    }
    if (!names) return nullptr;
    return Py_BuildValue("(NNN)", version_or_none(version), PyList_AsTuple(names.get()),
                         text_or_none(usable == nullptr && fault != nullptr ? fault : ""));
}

}  // namespace

/// `(facts or None, rungs tried, exception or None)` of an import that is let go of at once. A capsule that
/// somebody holds stays as it was. Only what is no `Exception` is raised.
PyObject* inspect_object(PyObject*, PyObject* obj) noexcept try {
    PyTypeObject* const type = py::producer_type();
    if (type == nullptr) return nullptr;
    const tensor* const own = Py_IS_TYPE(obj, type) ? py::held_tensor(obj) : nullptr;
    if (own != nullptr)
        return Py_BuildValue("(N[]O)", facts_of(*own, own->owner(), py::detail::as_tensor_object(obj)->owner),
                             Py_None);

    py::acquired got;
    got.owning = true;
    got.looking = true;
    py::detail::refusals told;
    ref refusal;
    const bool taken = py::detail::climb(obj, {}, false, got, nullptr, &told);
    if (!taken) {
        if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return nullptr;
        refusal = py::pending_exception();
    }
    ref tried = list_of(told);
    ref facts = taken ? ref::take(facts_of(got, got.owner)) : ref::borrow(Py_None);
    if (!tried || !facts) return nullptr;
    return Py_BuildValue("(OOO)", facts.get(), tried.get(), refusal ? refusal.get() : Py_None);
} catch (...) {
    py::raise_caught();
    return nullptr;
}

/// `(name or None, whether it has a destructor, struct or None, problem or None)` of a capsule, which stays
/// as it was. The struct is looked at only if the name says that nobody has taken it.
PyObject* inspect_capsule(PyObject*, PyObject* capsule) noexcept try {
    if (!PyCapsule_CheckExact(capsule)) return PyErr_Format(PyExc_TypeError, "_core: a capsule is needed");
    const py::critical_section alone(capsule);
    const char* const name = PyCapsule_GetName(capsule);
    const bool has_destructor = PyCapsule_GetDestructor(capsule) != nullptr;
    PyErr_Clear();  // an invalid capsule sets one when asked
    const bool versioned = name != nullptr && std::strcmp(name, py::capsule_versioned) == 0;
    const bool legacy = name != nullptr && std::strcmp(name, py::capsule_legacy) == 0;
    std::string why;
    const ref inside = ref::take(
        versioned || legacy ? struct_facts(PyCapsule_GetPointer(capsule, name), versioned, why) : none());
    if (!inside) return nullptr;
    const ref shown =
        ref::take(name == nullptr ? none()
                                  : PyUnicode_DecodeUTF8(name, static_cast<Py_ssize_t>(std::strlen(name)),
                                                         "backslashreplace"));
    if (!shown) return nullptr;
    return Py_BuildValue("(OOON)", shown.get(), has_destructor ? Py_True : Py_False, inside.get(),
                         text_or_none(why));
} catch (...) {
    py::raise_caught();
    return nullptr;
}

/// The exchange table a capsule holds or the object's type publishes, or None: see `table_facts`.
PyObject* inspect_table(PyObject*, PyObject* obj) noexcept try {
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return nullptr;
    if (PyCapsule_CheckExact(obj)) {
        if (PyCapsule_IsValid(obj, py::capsule_exchange_api) == 0) return none();
        const void* const published = PyCapsule_GetPointer(obj, py::capsule_exchange_api);
        const char* fault = nullptr;
        const abi::exchange_api* const usable = py::exchange::detail::usable_table(published, fault);
        return table_facts(published, usable, fault);
    }
    py::type_plan plan;
    const ref type = py::class_of(obj);
    py::exchange::probe(py::as_type(type), *here, plan);
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (plan.table == nullptr && plan.table_fault == nullptr) return none();
    return table_facts(nullptr, plan.table, plan.table_fault);
} catch (...) {
    py::raise_caught();
    return nullptr;
}

/// `(whether it has NumPy's struct, whether it has a buffer)`: what is known of an object by its type alone.
PyObject* inspect_type(PyObject*, PyObject* obj) noexcept {
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return nullptr;
    py::type_plan plan;
    const ref type = py::class_of(obj);
    py::numpy::probe(py::as_type(type), *here, plan);
    if (PyErr_Occurred() != nullptr) return nullptr;
    return Py_BuildValue("(OO)", plan.numpy_struct ? Py_True : Py_False,
                         PyObject_CheckBuffer(obj) != 0 ? Py_True : Py_False);
}

}  // namespace tenon::module
