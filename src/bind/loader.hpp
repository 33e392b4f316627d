// src/bind/loader.hpp: an object becomes an argument: taken by the import ladder, checked, converted if it
// may be.
#pragma once

#include <tenon/bind/argument.hpp>
#include <tenon/bind/parameter.hpp>
#include "../py/export/all.hpp"
#include "conversion.hpp"

namespace tenon::bind {

// --- memory that arrays keep ------------------------------------------------------------------------------

/// The memory, and the object of the library it belongs to. Shared by copies of an array.
struct held {
    held(tensor&& m, keep_alive&& l) noexcept : memory(std::move(m)), like(std::move(l)) {}
    tensor memory;
    keep_alive like;
    std::atomic<unsigned> holders{1};
};

/// Throws `std::bad_alloc`.
[[nodiscard]] inline found keep_memory(tensor&& memory, keep_alive&& like, unsigned index) {
    auto* const made = new held(std::move(memory), std::move(like));
    return {&made->memory, static_cast<PyObject*>(made->like.subject()), index, holder(made)};
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

// --- loading ----------------------------------------------------------------------------------------------

/// Borrows `obj` as `wanted` would have it, without checking that it is so. False with an exception set, or
/// `no_array` if that is all that is to be said.
[[nodiscard]] inline bool reach(PyObject* obj, bool writable, py::acquired& out) noexcept {
    return py::numpy::borrow_quickly(obj, out) || py::detail::acquire(obj, writable, out);
}

/// What came of an import that failed: the pending exception ends the call, or is the reason to be noted.
[[nodiscard]] inline loading refuse_import(PyObject* obj, const parameter_spec& spec, bool no_array,
                                           note_ptr& why) noexcept {
    if (!no_array && py::is_no_answer_pending()) return loading::raised;
    py::ref exception = no_array ? py::ref() : py::pending_exception();
    why = note_of(no_array ? reason::no_array : reason::raised, obj, spec);
    if (why) why->exception = std::move(exception);
    return loading::refused;
}
/// The same of what is not as it is wanted. Where it is converted, what differs in element type or order is
/// at fault only if nothing else is: the library was asked for a conversion and refused, or it would have
/// lost a part of the values.
TENON_COLD inline loading refuse_unmet(PyObject* obj, const parameter_spec& spec, const tensor_ref& got,
                                       const error& fault, note_ptr& why) noexcept {
    request others = spec.wanted;
    others.type.reset();
    others.order = memory_order::any;
    const auto met = spec.converting != conversions::none ? check(got, others) : result<void>();
    why = note_unmet(obj, spec, got, met ? fault : met.error());
    if (why) why->relaxed = !met;
    return loading::refused;
}

/// A bare capsule can be taken once: it is looked at first, so that one that does not fit is left for another
/// overload, or whoever else wants it.
[[nodiscard]] inline loading look_at_capsule(PyObject* obj, const parameter_spec& spec,
                                             note_ptr& why) noexcept {
    py::acquired seen;
    seen.looking = true;
    if (!reach(obj, spec.wanted.writable, seen)) return refuse_import(obj, spec, false, why);
    const auto met = check(seen, spec.wanted);
    return met ? loading::done : refuse_unmet(obj, spec, seen, met.error(), why);
}

/// What is in an argument's room while an array is lent.
struct array_room {
    py::ref converted;  // before what is borrowed from it
    py::acquired got;
};

/// The engine's hands in an argument.
struct loader {
    argument& a;

    static_assert(sizeof(array_room) <= argument::room_size &&
                  alignof(array_room) <= alignof(std::max_align_t));
    static_assert(sizeof(tensor) <= argument::room_size);

    [[nodiscard]] array_room& room() const noexcept {
        return *std::launder(reinterpret_cast<array_room*>(a.room_));
    }
    [[nodiscard]] const parameter_spec& spec() const noexcept { return *a.type_->specs[a.index_]; }
    /// Whether something in the room must be destroyed: nothing of what is only borrowed.
    void note_what_is_kept() const noexcept {
        a.keeps_ = room().converted || room().got.owner.release_function() != nullptr;
    }
    [[nodiscard]] bool is_array() const noexcept { return a.content_ == argument::content::array; }
    [[nodiscard]] bool is_borrowed() const noexcept {
        return is_array() && room().got.owner.release_function() == nullptr;
    }
    [[nodiscard]] bool ran_code() const noexcept {
        // What NumPy's struct lends has no version.
        return a.ran_code_ || (is_array() && room().got.version().major != 0 && py::is_torch_mode_in_force());
    }

    [[nodiscard]] loading lend(PyObject* obj) const noexcept {
        py::acquired& got = room().got;
        a.source_ = obj;
        a.found_ = &got;
        a.waits_ = got.looking;
        note_what_is_kept();
        // What the host is to read, the device must have written: managed and pinned memory.
        if (spec().wanted.space == memory_space::host && !got.device().is_cpu()) [[unlikely]] {
            a.ran_code_ = true;  // it waits without the GIL
            if (!py::detail::finish_device_work(got.device())) return loading::raised;
            const bool is_sure = got.looking || (hold() && look() == sight::same);
            return is_sure ? loading::done : loading::raised;
        }
        return loading::done;
    }
    /// Imports `obj` anew as the current alternative would have it.
    [[nodiscard]] loading import_array(PyObject* obj, note_ptr& why) const noexcept {
        if (is_array()) a.clear();
        py::acquired& got = (new (a.room_) array_room)->got;
        a.content_ = argument::content::array;
        got.quiet = true;
        got.owning = a.owning_;
        got.looking = PyCapsule_CheckExact(obj);
        const bool reached = reach(obj, spec().wanted.writable, got);
        a.ran_code_ = a.ran_code_ || got.ran_code;
        return reached ? loading::done : refuse_import(obj, spec(), got.no_array, why);
    }
    [[nodiscard]] loading load(PyObject* obj, bool may_convert, note_ptr& why) const noexcept {
        return a.type_->kind == parameter_kind::array ? load_array(obj, may_convert, why)
                                                      : load_tensor(obj, why);
    }
    /// What was loaded to be kept, as a tensor; nullopt with an exception set.
    [[nodiscard]] std::optional<tensor> take() const noexcept {
        std::optional<tensor> out;
        if (a.content_ == argument::content::tensor)
            out = std::move(*a.kept_);
        else if (auto ok = tensor::keep(room().got, room().got.owner, out); !ok)
            py::raise(ok.error());
        return out;
    }
    /// The first alternative that takes it as it is, else the first that takes it converted.
    [[nodiscard]] loading load_array(PyObject* obj, bool may_convert, note_ptr& why) const noexcept {
        const parameter_type& type = *a.type_;
        loading reached = loading::refused;
        for (a.index_ = 0; a.index_ < type.count; ++a.index_) {
            // One import serves them all, but for those that are to be written to.
            const bool is_asked =
                a.index_ != 0 && spec().wanted.writable == type.specs[a.index_ - 1]->wanted.writable;
            if (!is_asked) reached = import_array(obj, why);
            if (reached == loading::raised) return give_up(reached);
            if (reached == loading::done && check(room().got, spec().wanted)) [[likely]] {
                const loading answer = lend(obj);
                return answer == loading::done ? answer : give_up(answer);
            }
        }
        if (reached == loading::done && !why) refuse_closest(obj, why);
        for (a.index_ = 0; may_convert && reached == loading::done && a.index_ < type.count; ++a.index_) {
            if (!is_convertible(room().got, spec())) continue;
            const loading answer = load_converted(obj);
            if (answer == loading::done) return answer;
            if (answer == loading::raised) return give_up(answer);
            if (a.index_ + 1U < type.count) reached = import_array(obj, why);
        }
        return give_up(reached == loading::raised ? reached : loading::refused);
    }
    [[nodiscard]] loading give_up(loading answer) const noexcept {
        const py::error_guard aside;
        a.clear();
        return answer;
    }
    /// Notes what was imported as unmet: for the first alternative, unless a later one has the element type.
    TENON_COLD void refuse_closest(PyObject* obj, note_ptr& why) const noexcept {
        unsigned closest = 0;
        const auto is_of_other_type = [&](unsigned i) {
            const auto met = check(room().got, a.type_->specs[i]->wanted);
            return !met && std::string_view(met.error().field) == "dtype";
        };
        while (closest < a.type_->count && is_of_other_type(closest)) ++closest;
        const parameter_spec& s = *a.type_->specs[closest < a.type_->count ? closest : 0];
        if (const auto met = check(room().got, s.wanted); !met)
            (void)refuse_unmet(obj, s, room().got, met.error(), why);
    }
    /// What was noted is the reason as long as this refuses.
    [[nodiscard]] loading load_converted(PyObject* obj) const noexcept try {
        array_room& there = room();
        a.ran_code_ = true;
        there.converted = convert_argument(obj, there.got, spec().wanted);
        if (!there.converted) return refuse_or_raise();
        there.got.owner.reset();
        there.got.looking = false;
        there.got.quiet = false;
        if (!reach(there.converted.get(), false, there.got)) return refuse_or_raise();
        if (!check(there.got, spec().wanted)) return loading::refused;
        if (!report_conversion(obj, there.converted.get(), spec().target)) return loading::raised;
        return lend(there.converted.get());
    } catch (...) {
        py::raise_caught();
        return loading::raised;
    }
    [[nodiscard]] loading load_tensor(PyObject* obj, note_ptr& why) const noexcept {
        a.source_ = obj;
        a.ran_code_ = true;
        if (PyCapsule_CheckExact(obj)) {
            const loading answer = look_at_capsule(obj, spec(), why);
            a.waits_ = answer == loading::done;
            return answer;
        }
        py::acquired got;
        got.quiet = true;
        return keep_tensor(got) ? loading::done : refuse_import(obj, spec(), got.no_array, why);
    }
    /// The tensor of the object, in the room. False with an exception set, or `no_array` if that is all that
    /// is to be said.
    [[nodiscard]] bool keep_tensor(py::acquired& got) const noexcept {
        got.owning = true;
        if (py::interpreter::current() == nullptr || !py::detail::acquire(a.source_, false, got))
            return false;
        auto t = py::detail::settle(a.source_, got, {.writable = false});
        if (!t) return false;
        a.kept_ = new (a.room_) tensor(std::move(*t));
        a.content_ = argument::content::tensor;
        a.keeps_ = true;
        return true;
    }

    [[nodiscard]] sight look_now() const noexcept {
        return look_again(a.source_, room().got, spec().wanted.writable);
    }
    /// The second look at what is borrowed; raises when it has changed.
    [[nodiscard]] sight look() const noexcept {
        const sight seen = is_borrowed() ? look_now() : sight::same;
        if (seen == sight::changed) raise_changed(a.source_);
        return seen;
    }
    /// Keeps what is borrowed, unless it can be looked at as it is; raises when it has changed.
    [[nodiscard]] bool hold() const noexcept {
        return !is_borrowed() || look_now() != sight::unclear || take_to_keep();
    }
    [[nodiscard]] bool take_to_keep() const noexcept {
        py::acquired& got = room().got;
        const bool writable = spec().wanted.writable;
        py::acquired now;
        now.owning = true;
        if (!py::detail::acquire(a.source_, writable, now)) return false;
        if (py::is_same_memory(now, got) && (!writable || !now.is_read_only())) {
            got.owner = std::move(now.owner);
            note_what_is_kept();
        } else {
            raise_changed(a.source_);
        }
        return !is_borrowed();
    }
    TENON_COLD [[nodiscard]] bool take_capsule() const noexcept {
        array_room& there = room();
        a.waits_ = there.got.looking = there.got.quiet = false;
        if (!reach(a.source_, spec().wanted.writable, there.got)) return false;
        note_what_is_kept();
        if (auto met = check(there.got, spec().wanted); !met)
            return py::raise(met.error(), "tenon: ") != nullptr;
        return lend(a.source_) == loading::done;
    }
    [[nodiscard]] bool settle() const noexcept {
        if (!a.waits_) return true;
        if (is_array()) return take_capsule();
        a.waits_ = false;
        py::acquired got;
        return keep_tensor(got);
    }
};

}  // namespace tenon::bind
