// src/bind/argument.cpp: an object becomes an argument: taken by the import ladder, checked, converted if it
// may be, and looked at a second time. And arrays that keep their memory.
#include <tenon/bind/argument.hpp>
#include "../py/export/all.hpp"
#include "words.hpp"

namespace tenon::bind {

// --- memory that arrays keep ------------------------------------------------------------------------------

/// The memory, and the object of the library it belongs to. Shared by copies of an array.
struct held {
    tensor memory;
    keep_alive like;
    std::atomic<unsigned> holders{1};
    std::mutex sharing{};  // of the memory, with what is returned
};

TENON_INLINE void retain(held* memory) noexcept { memory->holders.fetch_add(1, std::memory_order_relaxed); }

TENON_INLINE void release(held* memory) noexcept {
    if (memory->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete memory;
}

/// Throws `py::python_error` and `std::bad_alloc`.
[[nodiscard]] inline found keep_memory(tensor&& memory, PyObject* like, unsigned index) {
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) throw py::python_error();
    auto* const made = new held{std::move(memory), py::detail::keep_object(like, here)};
    return {&made->memory, like, index, holder(made)};
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is taken over
TENON_INLINE tensor take_tensor(holder memory) noexcept { return std::move(memory.get()->memory); }

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is taken over
TENON_INLINE PyObject* array_to_python(holder memory, PyObject* source) noexcept {
    if (memory.get() == nullptr) return py::ref::borrow(source).release();
    held& here = *memory.get();
    if (here.holders.load(std::memory_order_acquire) == 1)
        return py::to_python(std::move(here.memory), source);
    // Copies of the array are still about: they and the result share the memory.
    const auto share = [&] {
        const std::scoped_lock lock(here.sharing);
        return here.memory.share();
    };
    return py::to_python(share(), source);
}

TENON_INLINE PyObject* tensor_to_python(tensor&& t) noexcept { return py::to_python(std::move(t)); }

TENON_INLINE PyObject* tensor_to_python(result<tensor>&& t) noexcept {
    return t ? py::to_python(std::move(*t)) : py::raise(t.error(), "tenon: ");
}

TENON_INLINE found allocate_like(PyObject* like, const tensor_ref& known, const axes& shape, dtype type,
                                 const request& wanted) {
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
    made->set_stream(known.stream());
    return keep_memory(std::move(*made), like, 0);
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
        return finish(reached == loading::raised ? reached : loading::refused);
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
        return keep_memory(std::move(*kept), a.source_, a.index_);
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
        const bool writable = spec().wanted.writable;
        py::acquired now;
        now.owning = true;
        if (!py::detail::acquire(a.source_, writable, now)) return false;
        if (py::is_same_memory(now, a.got_) && (!writable || !now.is_read_only())) {
            a.got_.owner = std::move(now.owner);
            note_what_is_kept();
        } else {
            raise_changed(a.source_);
        }
        return !is_borrowed();
    }

private:
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
        why = note_of(obj, spec());
        if (!why) return;
        why->is_array = true;
        why->fault = others ? met.error() : others.error();
        why->relaxed = !others;
        why->read_only = a.got_.is_read_only();
        why->dtype = a.got_.dtype();
        why->device = a.got_.device();
        why->shape = axes(a.got_.shape());
        why->strides = axes(a.got_.strides());
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

TENON_INLINE bool argument::settle() noexcept { return loader{*this}.settle(); }

/// What is released may run code of others, which finds nothing in the room.
TENON_INLINE void argument::clear() noexcept {
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
    const std::string text =
        "tenon: an argument of type " + bind::type_name(c.from) + " was copied to become " + c.expected;
    if (PyErr_Occurred() != nullptr) return;
    foreign_code([&] { return PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1); });
}

}  // namespace tenon
