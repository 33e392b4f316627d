// src/bind/argument.cpp: an object becomes an argument: taken by the import ladder, checked, converted if it
// may be, and looked at a second time. And arrays that keep their memory.
#include <tenon/bind/argument.hpp>
#include "../py/export/all.hpp"
#include "../tensor/held.hpp"
#include "number.hpp"
#include "words.hpp"

namespace tenon::bind {

// --- memory that arrays keep ------------------------------------------------------------------------------

/// Memory that is kept, and the object that it came from, or whose library it belongs to. Throws
/// `py::python_error` and `std::bad_alloc`.
[[nodiscard]] inline found keep_memory(tensor&& memory, PyObject* like, unsigned index, bool is_itself) {
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) throw py::python_error();
    holder made = tenon::detail::hold_together(std::move(memory));
    made.get()->like = py::detail::keep_object(like, here);
    made.get()->is_itself = is_itself;
    return {&made.get()->memory, like, index, std::move(made)};
}

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
        throw std::runtime_error(std::string("tenon: empty_like") + py::needs_gil);
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

// --- the second look --------------------------------------------------------------------------------------

/// What came of a second look; the later, the worse.
enum class sight : unsigned char {
    same,
    unclear,  ///< it takes code of others to tell: hold it
    changed,
};

/// Looks at an object again that was borrowed as `taken`: at NumPy's struct, or by the exchange table of a
/// library that is known to do no more than fill a struct in.
[[nodiscard]] inline sight look_again(PyObject* obj, const tensor_ref& taken, bool writable) noexcept {
    if (py::numpy::is_array(obj))
        return py::numpy::still_shows(obj, taken, writable) ? sight::same : sight::changed;
    if constexpr (py::detail::finding_runs_code) return sight::unclear;
    const py::type_plan* const plan = py::find_plan_of(obj);
    if (plan == nullptr || !plan->lends_plainly() || plan->guards.flags == nullptr) return sight::unclear;
    const py::torch_flags& flags = *plan->guards.flags;
    if (flags.is_mode_in_force()) return sight::unclear;
    py::acquired now;
    const py::outcome got = py::exchange::call_borrow(obj, py::exchange::terms_of(*plan), true, now);
    if (got == py::outcome::raised) PyErr_Clear();
    const bool still = got == py::outcome::taken && py::is_same_memory(now, taken) &&
                       !flags.is_lazy(obj, now.dtype().is_complex()) &&
                       (!writable || !flags.requires_grad(obj));
    return still ? sight::same : sight::changed;
}

TENON_COLD inline void raise_changed(PyObject* obj) noexcept try {
    const std::string text = "tenon: an argument (" + type_name(obj) +
                             ") changed while the other arguments were read: its memory, shape or element "
                             "type is another now; convert the other arguments before the call, or pass a "
                             "copy";
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, text.c_str());
} catch (...) {
    py::raise_caught();
}

// --- arrays as objects ------------------------------------------------------------------------------------

/// The object that shows this memory, borrowed; null when there is none, or it shows other memory by now.
[[nodiscard]] inline PyObject* object_of(held& memory, PyObject* source) noexcept {
    if (!memory.is_kept) return source;  // lent, until the call ends
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
TENON_INLINE PyObject* array_to_python(holder memory, PyObject* source) noexcept {
    if (memory.get() == nullptr) {
        if (source == nullptr) PyErr_SetString(PyExc_RuntimeError, empty_array);
        return py::ref::borrow(source).release();
    }
    held& here = *memory.get();
    if (PyObject* const object = object_of(here, source)) return py::ref::borrow(object).release();
    if (here.memory.is_number()) return number_to_python(here.memory);
    const bool is_last = here.holders.load(std::memory_order_acquire) == 1;
    if (is_last && !here.is_itself && source != nullptr) return py::to_python(std::move(here.memory), source);
    auto shared = tenon::detail::share_held(here);  // copies of the array are still about
    PyObject* const made =
        source != nullptr ? py::to_python(std::move(shared), source) : py::to_python(std::move(shared));
    if (made != nullptr && !here.is_itself) remember(here, made);
    return made;
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

// --- conversions ------------------------------------------------------------------------------------------

/// The tensor lacks nothing but what the caller's library can, and may, convert: element type and order, and
/// with them the address. Asked before, so that nothing is copied, and reported, in vain.
[[nodiscard]] inline bool is_convertible(const tensor_ref& t, const parameter_spec& spec) noexcept {
    const std::optional<dtype> type = wanted_type(t.dtype(), spec.wanted);
    if (spec.converting == conversions::none ||
        (type && spec.converting != conversions::lossy &&
         !can_convert(t.dtype(), *type, spec.converting == conversions::narrowing)))
        return false;
    request others = without_conversion(spec.wanted);
    others.alignment = 1;
    return static_cast<bool>(check(t, others));
}

/// What stays pending after false is no answer, but an interruption, say.
[[nodiscard]] inline bool has_attribute(PyObject* obj, const char* name) noexcept {
    const bool found = static_cast<bool>(py::ref::take(py::call::attr(obj, name)));
    if (!found) (void)py::forget_answer();
    return found;
}

/// The array with another element type: `astype` of most libraries, `to` of PyTorch. Null with an exception
/// set.
[[nodiscard]] inline py::ref convert_type(PyObject* obj, dtype type) {
    const py::ref library = py::detail::element_types_of(obj);
    const std::string text = name(type);
    py::ref word = library ? py::ref::take(py::call::attr(library.get(), text.c_str())) : py::ref();
    if (!word && py::forget_answer()) word = py::ref::take(PyUnicode_FromString(text.c_str()));
    if (!word) return {};
    const char* const method = has_attribute(obj, "astype") ? "astype" : "to";
    if (PyErr_Occurred() != nullptr) return {};
    return py::ref::take(py::call::method(obj, method, "O", word.get()));
}

/// The array in another order: `contiguous` of PyTorch, `ascontiguousarray` and `asfortranarray` of the
/// others. Null with an exception set.
[[nodiscard]] inline py::ref convert_order(PyObject* obj, memory_order order) {
    if (order != memory_order::f && has_attribute(obj, "contiguous"))
        return py::ref::take(py::call::method(obj, "contiguous", ""));
    if (PyErr_Occurred() != nullptr) return {};
    const py::ref library = py::detail::element_types_of(obj);
    if (!library) {
        if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "tenon: the array has no library");
        return {};
    }
    const char* const function = order == memory_order::f ? "asfortranarray" : "ascontiguousarray";
    return py::ref::take(py::call::method(library.get(), function, "O", obj));
}

/// What the library of `obj` makes of it to meet `wanted`, as far as element type and order go. Null with an
/// exception set when it cannot.
[[nodiscard]] inline py::ref convert_argument(PyObject* obj, const tensor_ref& got, const request& wanted) {
    py::ref made = py::ref::borrow(obj);
    bool in_order = false;
    const auto look = [&](const tensor_ref& t) noexcept {
        in_order = static_cast<bool>(check(t, {.order = wanted.order}));
    };
    look(got);
    const std::optional<dtype> type = wanted_type(got.dtype(), wanted);
    if (type && *type != got.dtype()) {
        made = convert_type(obj, *type);
        if (!made || !py::borrow(made.get(), {}, look)) return {};
    }
    return in_order ? std::move(made) : convert_order(made.get(), wanted.order);
}

TENON_PRIVATE inline std::atomic<conversion_hook> conversion_reporter{nullptr};

// --- loading ----------------------------------------------------------------------------------------------

TENON_INLINE loading refuse_or_raise() noexcept {
    if (py::is_no_answer_pending()) return loading::raised;
    PyErr_Clear();
    return loading::refused;
}

/// The engine's hands in an argument.
struct loader {
    argument& a;
    bool is_item = false;  ///< of a container: what is loaded is to be kept

    [[nodiscard]] const parameter_spec& spec() const noexcept { return *a.type_->specs[a.index_]; }
    [[nodiscard]] bool is_array() const noexcept { return a.content_ == argument::content::array; }
    [[nodiscard]] bool is_borrowed() const noexcept {
        return is_array() && a.got_.owner.release_function() == nullptr;
    }
    [[nodiscard]] bool ran_code() const noexcept {
        // What NumPy's struct lends has no version.
        return a.ran_code_ || (is_array() && a.got_.version().major != 0 && py::is_torch_mode_in_force());
    }

    /// The first alternative that takes it as it is, else the first that takes it converted.
    [[nodiscard]] loading load(PyObject* obj, const parameter_type& type, bool may_convert,
                               note_ptr& why) const noexcept {
        a.type_ = &type;
        a.given_ = obj;
        if (type.accepts_none && obj == Py_None) return loading::done;
        loading reached = loading::refused;
        for (a.index_ = 0; a.index_ < type.count; ++a.index_) {
            // One import serves them all, but for those that are to be written to.
            const bool is_asked =
                a.index_ != 0 && spec().wanted.writable == type.specs[a.index_ - 1]->wanted.writable;
            if (!is_asked) reached = import_array(obj, why);
            if (reached == loading::raised) return finish(reached);
            if (reached == loading::done && check(a.got_, spec().wanted)) [[likely]]
                return finish(lend(obj));
        }
        if (reached == loading::done && !why) note_closest(obj, why);
        for (a.index_ = 0; may_convert && reached == loading::done && a.index_ < type.count; ++a.index_) {
            if (!is_convertible(a.got_, spec())) continue;
            const loading answer = load_converted(obj);
            if (answer != loading::refused) return finish(answer);
            if (a.index_ + 1U < type.count) reached = import_array(obj, why);
        }
        if (reached == loading::refused && a.got_.no_array && is_number(obj))
            return load_number(obj, may_convert, why);
        return finish(reached == loading::raised ? reached : loading::refused);
    }
    /// A number, for the first alternative that has room for it.
    [[nodiscard]] loading load_number(PyObject* obj, bool may_convert, note_ptr& why) const noexcept {
        const char* problem = nullptr;
        for (a.index_ = 0; a.index_ < a.type_->count; ++a.index_) {
            if (!spec().numbers) continue;
            const dtype type = spec().wanted.type.value_or(dtype{});
            element_bits element;
            const char* const unmet = store_number(obj, type, may_convert, element);
            if (unmet == nullptr) {
                why.reset();
                return finish(lend_number(obj, type, element));
            }
            if (problem == nullptr) problem = unmet;
        }
        a.index_ = 0;
        if (!why) why = note_of(obj, spec());
        if (why) why->number = problem;
        return finish(loading::refused);
    }
    /// Takes what was only looked at, once: see `settle_all`.
    [[nodiscard]] bool settle() const noexcept { return !a.waits_ || take_capsule(); }
    /// What came of an import that failed: the pending exception ends the call, or is the reason to be noted.
    [[nodiscard]] loading refuse_import(PyObject* obj, note_ptr& why) const noexcept {
        const bool no_array = a.got_.no_array;
        if (!no_array && py::is_no_answer_pending()) return loading::raised;
        py::ref exception = no_array ? py::ref() : py::pending_exception();
        why = note_of(obj, spec());
        if (why) why->exception = std::move(exception);
        return loading::refused;
    }
    /// An item that has been loaded and settled. Throws.
    [[nodiscard]] found give() const {
        auto kept = take();
        if (!kept) throw py::python_error();
        return keep_memory(std::move(*kept), a.source_, a.index_, true);
    }

    /// What copies of the array hold together, made by whoever is first: a share of the room's. Throws.
    [[nodiscard]] held& shared() const {
        const std::atomic_ref<held*> place(a.shared_);
        held* found = place.load(std::memory_order_acquire);
        if (found != nullptr) return *found;
        keep_alive nothing;
        std::optional<tensor> shown;
        if (!tensor::keep(*a.found_, nothing, shown)) throw std::bad_alloc();
        auto made = std::make_unique<held>(std::move(*shown));
        made->is_itself = true;
        made->is_kept = false;
        if (place.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel))
            return *made.release();
        return *found;
    }
    /// Gives the memory to those who hold it together: from then on they keep it, and not the room alone.
    /// False with an exception set, when the object shows other memory by now, say.
    [[nodiscard]] bool hand_over(held& to) const noexcept {
        py::interpreter* const here = py::interpreter::current();
        if (here == nullptr) return false;
        const bool is_owned = a.got_.owner && a.got_.owner.subject() != &a.got_.buffer;
        keep_alive owner;
        if (!is_owned && !take_again(owner, *here)) return false;
        const std::scoped_lock lock(to.sharing);
        if (to.is_kept) return true;  // another thread was first
        to.memory.owner() = std::move(is_owned ? a.got_.owner : owner);
        to.like = py::detail::keep_object(a.source_, here);
        return to.is_kept = true;
    }
    /// The call is over: what others hold of it is theirs from now on.
    void end_sharing() const noexcept {
        held* const memory = std::exchange(a.shared_, nullptr);
        if (py::attached_thread_state() == nullptr) return;  // the interpreter is going: it stays as it is
        if (!memory->is_kept && memory->holders.load(std::memory_order_acquire) != 1) {
            const py::error_guard aside;  // reports what is wrong: there is nobody to tell
            py::interpreter* const here = py::interpreter::current();
            if (!hand_over(*memory) && here != nullptr)
                memory->like = py::detail::keep_object(a.source_, here);
        }
        tenon::detail::release(memory);
    }

    /// The name of an axis; null when it has none, or there is no array.
    [[nodiscard]] const char* name_of_axis(std::size_t axis) const noexcept {
        const char* const* const names = has_names() ? spec().names : nullptr;
        return names != nullptr ? names[axis] : nullptr;
    }
    [[nodiscard]] extents shape() const noexcept { return a.found_->shape(); }
    /// Where the extents are kept of the array that is lent; null without one.
    [[nodiscard]] const void* shape_storage() const noexcept {
        return is_array() && a.found_ != nullptr ? static_cast<const void*>(shape().data()) : nullptr;
    }
    /// An array is in the room, and states names.
    [[nodiscard]] bool has_names() const noexcept {
        return is_array() && a.found_ != nullptr && spec().names != nullptr;
    }
    /// Notes that an axis has another extent than one of the same name.
    void note_unrelated(std::size_t axis, const related_axis& other) const noexcept {
        const std::int64_t got = a.got_.shape(axis);
        note_ptr why = note_of_array(
            a.given_, refused("shape", "another extent of the same name", got, other.extent).at_axis(axis));
        if (why) why->related = other;
        add_note(std::move(why), *a.type_);
    }

    /// The second look at what is borrowed; raises when it has changed.
    [[nodiscard]] sight look() const noexcept {
        const sight seen = look_now();
        if (seen == sight::changed) raise_changed(a.source_);
        return seen;
    }
    /// Keeps what is borrowed, unless it can be looked at as it is; raises when it has changed.
    [[nodiscard]] bool hold() const noexcept {
        if (look_now() != sight::unclear) return true;
        py::interpreter* const here = py::interpreter::current();
        if (here == nullptr || !take_again(a.got_.owner, *here)) return false;
        note_what_is_kept();
        return !is_borrowed();
    }

private:
    /// What keeps the memory that was borrowed, if it is still the object's. False with an exception set.
    [[nodiscard]] bool take_again(keep_alive& owner, py::interpreter& here) const noexcept {
        const bool writable = spec().wanted.writable;
        if (py::numpy::is_array(a.source_) && py::numpy::still_shows(a.source_, a.got_, writable)) {
            owner = py::detail::keep_object(a.source_, &here);
            return true;
        }
        py::acquired now;
        now.owning = true;
        if (!py::detail::acquire(a.source_, writable, now)) return false;
        owner = std::move(now.owner);
        if (py::is_same_memory(now, a.got_) && (!writable || !now.is_read_only())) return true;
        raise_changed(a.source_);
        return false;
    }
    /// Leaves nothing in the room unless it is done.
    [[nodiscard]] loading finish(loading answer) const noexcept {
        if (answer == loading::done) [[likely]]
            return answer;
        const py::error_guard aside;
        a.clear();
        return answer;
    }
    [[nodiscard]] sight look_now() const noexcept {
        return is_borrowed() ? look_again(a.source_, a.got_, spec().wanted.writable) : sight::same;
    }
    /// Whether something in the room must be destroyed: nothing of what is only borrowed.
    void note_what_is_kept() const noexcept {
        a.keeps_ = a.converted_ != nullptr || a.got_.owner.release_function() != nullptr;
    }
    /// Borrows `obj`, or takes it to be kept, without checking that it is as it is wanted. False with an
    /// exception set, or `no_array` if that is all that is to be said.
    [[nodiscard]] bool reach(PyObject* obj) const noexcept {
        return (!a.got_.owning && py::numpy::borrow_quickly(obj, a.got_)) ||
               py::detail::acquire(obj, spec().wanted.writable, a.got_);
    }
    /// Imports `obj` anew as the current alternative would have it.
    [[nodiscard]] loading import_array(PyObject* obj, note_ptr& why) const noexcept {
        if (is_array()) a.clear();
        new (&a.got_) py::acquired;
        a.content_ = argument::content::array;
        a.got_.quiet = true;
        a.got_.owning = is_item || a.type_->kind == parameter_kind::tensor;
        a.got_.looking = PyCapsule_CheckExact(obj);
        const bool reached = reach(obj);
        a.ran_code_ = a.ran_code_ || a.got_.ran_code;
        return reached ? loading::done : refuse_import(obj, why);
    }
    /// What was noted of an array that does not fit. Null when there is no memory for it.
    [[nodiscard]] note_ptr note_of_array(PyObject* obj, const error& fault) const noexcept {
        note_ptr why = note_of(obj, spec());
        if (!why) return why;
        why->is_array = true;
        why->fault = fault;
        why->read_only = a.got_.is_read_only();
        why->dtype = a.got_.dtype();
        why->device = a.got_.device();
        why->shape = axes(a.got_.shape());
        why->strides = axes(a.got_.strides());
        return why;
    }
    /// Notes what was imported as unmet: for the first alternative, unless a later one has the element type.
    /// Where it is converted, what differs in element type or order is at fault only if nothing else is: the
    /// library was asked for a conversion and refused, or it would have lost a part of the values.
    TENON_COLD void note_closest(PyObject* obj, note_ptr& why) const noexcept {
        const auto unmet = [&] { return check(a.got_, spec().wanted); };
        const auto is_of_other_type = [&](const result<void>& met) {
            return !met && std::string_view(met.error().field) == "dtype";
        };
        a.index_ = 0;
        while (a.index_ < a.type_->count && is_of_other_type(unmet())) ++a.index_;
        if (a.index_ == a.type_->count) a.index_ = 0;
        const auto met = unmet();
        if (met) return;
        const auto others = spec().converting != conversions::none
                                ? check(a.got_, without_conversion(spec().wanted))
                                : result<void>();
        why = note_of_array(obj, others ? met.error() : others.error());
        if (why) why->relaxed = !others;
    }
    /// What was noted is the reason as long as this refuses.
    [[nodiscard]] loading load_converted(PyObject* obj) const noexcept try {
        a.ran_code_ = true;
        py::ref made = convert_argument(obj, a.got_, spec().wanted);
        if (!made) return refuse_or_raise();
        a.got_.owner.reset();
        a.got_.looking = a.got_.quiet = false;
        a.converted_ = made.release();
        if (!reach(a.converted_)) return refuse_or_raise();
        if (!check(a.got_, spec().wanted)) return loading::refused;
        if (const conversion_hook tell = conversion_reporter.load()) tell({obj, a.converted_, spec().target});
        if (PyErr_Occurred() != nullptr) return loading::raised;
        return lend(a.converted_);
    } catch (...) {
        py::raise_caught();
        return loading::raised;
    }
    /// It has memory of its own, which copies of the array keep as any other.
    [[nodiscard]] loading lend_number(PyObject* obj, dtype type, const element_bits& element) const noexcept {
        auto made = allocate(type, extents());
        if (!made) return py::raise(made.error(), "tenon: "), loading::raised;
        std::memcpy(made->data(), element.bytes, static_cast<std::size_t>(type.itemsize()));
        if (is_array()) a.clear();
        new (&a.got_) py::acquired;
        a.content_ = argument::content::array;
        const abi::dl_tensor described{
            made->data(), {abi::device_code::cpu, 0}, 0, type.to_abi(), nullptr, nullptr, 0};
        if (auto ok = a.got_.admit({described}); !ok)
            return py::raise(ok.error(), "tenon: "), loading::raised;
        a.got_.owner = std::move(made->owner());
        a.got_.add_marks(tenon::detail::mark::number);
        return lend(obj);
    }
    [[nodiscard]] loading lend(PyObject* obj) const noexcept {
        a.source_ = obj;
        a.found_ = &a.got_;
        a.waits_ = a.got_.looking;
        note_what_is_kept();
        // What the host is to read, the device must have written: managed and pinned memory.
        if (spec().wanted.space == memory_space::host && !a.got_.device().is_cpu()) [[unlikely]] {
            a.ran_code_ = true;  // it waits without the GIL
            if (!py::detail::finish_device_work(a.got_.device())) return loading::raised;
            if (!a.waits_ && (!hold() || look() != sight::same)) return loading::raised;
        }
        const bool is_tensor = a.got_.owning && !is_item && !a.waits_;
        return !is_tensor || keep() ? loading::done : loading::raised;
    }
    /// What was taken to be kept, as a tensor; nothing with an exception set.
    [[nodiscard]] std::optional<tensor> take() const noexcept {
        std::optional<tensor> out;
        if (auto ok = tensor::keep(a.got_, a.got_.owner, out); !ok) py::raise(ok.error());
        return out;
    }
    /// The same, in the room. False with an exception set.
    [[nodiscard]] bool keep() const noexcept {
        auto kept = take();
        if (!kept) return false;
        a.clear();
        new (&a.kept_) tensor(std::move(*kept));
        a.content_ = argument::content::tensor;
        return a.keeps_ = true;
    }
    /// A bare capsule can be taken once: it was looked at first, so that one that does not fit is left for
    /// another overload, or whoever else wants it.
    TENON_COLD [[nodiscard]] bool take_capsule() const noexcept {
        a.waits_ = a.got_.looking = a.got_.quiet = false;
        if (!reach(a.source_)) return false;
        note_what_is_kept();
        if (auto met = check(a.got_, spec().wanted); !met)
            return py::raise(met.error(), "tenon: ") != nullptr;
        return lend(a.source_) == loading::done;
    }
};

// --- arguments --------------------------------------------------------------------------------------------

/// Notes why the object was refused; what was refused as it was, and is taken converted, no longer is.
TENON_COLD inline void conclude(loading answer, PyObject* obj, const parameter_type& type,
                                note_ptr why) noexcept {
    if (answer == loading::refused)
        add_note(std::move(why), type);
    else if (answer == loading::done)
        why = take_note(notes_here().first, type, obj);
}

TENON_INLINE loading argument::load(PyObject* obj, const parameter_type& type, bool may_convert) noexcept {
    note_ptr why;
    const loading answer = loader{*this}.load(obj, type, may_convert, why);
    if (why) [[unlikely]]
        conclude(answer, obj, type, std::move(why));
    return answer;
}

TENON_INLINE loading argument::load_or_number(PyObject* obj, const parameter_type& type,
                                              bool may_convert) noexcept {
    if (!is_plain_number(obj)) return load(obj, type, may_convert);
    note_ptr why;
    type_ = &type;
    const loading answer = loader{*this}.load_number(obj, may_convert, why);
    if (why) [[unlikely]]
        conclude(answer, obj, type, std::move(why));
    return answer;
}

TENON_INLINE loading load_kept(PyObject* obj, const parameter_type& type, bool may_convert,
                               found& out) noexcept try {
    const py::ref held_object = py::ref::borrow(obj);  // its container may let go of it while it is asked
    argument a;
    const loader room{a, true};
    note_ptr why;
    out = {};
    loading answer = room.load(obj, type, may_convert, why);
    if (answer == loading::done && !room.settle()) answer = room.refuse_import(obj, why);
    // A refusal is noted for a call that will look at it: else the item would be kept for nobody.
    if (why && is_call_noted()) conclude(answer, obj, type, std::move(why));
    if (answer == loading::done && a.lent().ref != nullptr) out = room.give();
    return answer;
} catch (...) {
    py::raise_caught();
    return loading::raised;
}

TENON_INLINE found keep_lent(argument& lender) {
    const loader room{lender};
    held& memory = room.shared();
    if (!memory.is_kept && py::attached_thread_state() != nullptr && !room.hand_over(memory))
        throw py::python_error();
    tenon::detail::retain(&memory);
    return {&memory.memory, lender.source(), 0, holder(&memory)};
}

TENON_INLINE bool argument::settle() noexcept { return loader{*this}.settle(); }

/// What is released may run code of others, which finds nothing in the room.
TENON_INLINE void argument::clear() noexcept {
    if (shared_ != nullptr) loader{*this}.end_sharing();
    const content was = std::exchange(content_, content::nothing);
    const py::ref last =
        py::ref::take(std::exchange(converted_, nullptr));  // what was borrowed from it first
    keeps_ = waits_ = false;
    if (was == content::array)
        got_.~acquired();
    else if (was == content::tensor)
        kept_.~tensor();
}

/// Makes sure of everything that is borrowed. Ends: what is held stays so, and while nothing has to be held
/// no code of others runs.
TENON_COLD [[nodiscard]] inline bool make_sure(std::span<const loaded> arguments) noexcept {
    for (;;) {
        for (const loaded& one : arguments)
            if (one.ours != nullptr && !loader{*one.ours}.hold()) return false;
        sight worst = sight::same;
        for (const loaded& one : arguments)
            if (one.ours != nullptr && worst != sight::changed)
                worst = std::max(worst, loader{*one.ours}.look());
        if (worst != sight::unclear) return worst == sight::same;
    }
}

TENON_INLINE unsigned argument_about(const error& e, const loaded* arguments, unsigned count) noexcept {
    unsigned i = 0;
    const auto is_it = [&](argument* one) {
        return one != nullptr && loader{*one}.shape_storage() == e.about;
    };
    while (i < count && !is_it(arguments[i].ours)) ++i;
    return e.about != nullptr ? i : count;
}

/// The first axis of those before this one that has the name.
[[nodiscard]] inline std::optional<related_axis> axis_named(std::string_view name, const loaded* arguments,
                                                            unsigned argument, std::size_t axis) noexcept {
    for (unsigned i = 0; i <= argument; ++i) {
        if (arguments[i].ours == nullptr || !loader{*arguments[i].ours}.has_names()) continue;
        const loader room{*arguments[i].ours};
        const extents shape = room.shape();
        const std::size_t end = i == argument ? axis : shape.size();
        for (std::size_t k = 0; k < end; ++k) {
            const char* const other = room.name_of_axis(k);
            if (other != nullptr && name == other) return related_axis{other, shape[k], i, k};
        }
    }
    return std::nullopt;
}

TENON_INLINE int find_unrelated(const loaded* arguments, unsigned count) noexcept {
    for (unsigned i = 0; i < count; ++i) {
        if (arguments[i].ours == nullptr || !loader{*arguments[i].ours}.has_names()) continue;
        const loader room{*arguments[i].ours};
        const extents shape = room.shape();
        for (std::size_t k = 0; k < shape.size(); ++k) {
            const char* const name = room.name_of_axis(k);
            const auto first = name != nullptr ? axis_named(name, arguments, i, k) : std::nullopt;
            if (!first || first->extent == shape[k]) continue;
            room.note_unrelated(k, *first);
            return static_cast<int>(i);
        }
    }
    return -1;
}

TENON_INLINE bool settle_all(const loaded* arguments, unsigned count) noexcept {
    const std::span all(arguments, count);
    bool has_borrowed = false, is_stale = false;
    for (const loaded& one : all) {
        if (one.ours == nullptr) {
            is_stale = is_stale || (has_borrowed && one.ran_code);
            continue;
        }
        const loader room{*one.ours};
        is_stale = is_stale || one.ours->waits() || (has_borrowed && room.ran_code());
        has_borrowed = has_borrowed || room.is_borrowed();
    }
    if (!is_stale) [[likely]]
        return true;
    for (const loaded& one : all)
        if (one.ours != nullptr && !one.ours->settle()) return false;
    return make_sure(all);
}

}  // namespace tenon::bind

namespace tenon {

TENON_INLINE conversion_hook set_conversion_hook(conversion_hook hook) noexcept {
    return bind::conversion_reporter.exchange(hook);
}

TENON_INLINE void warn_of_conversion(const conversion& c) {
    if (py::attached_thread_state() == nullptr) return py::detail::raise_detached();
    const std::string text =
        "tenon: an argument of type " + bind::type_name(c.from) + " was copied to become " + c.expected;
    if (PyErr_Occurred() != nullptr) return;
    foreign_code([&] { return PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1); });
}

}  // namespace tenon
