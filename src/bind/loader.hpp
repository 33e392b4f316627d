// src/bind/loader.hpp: the engine's hands in an argument: it is imported, checked, converted if it may be,
// lent or kept.
#pragma once

#include <tenon/bind/argument.hpp>
#include "../py/export/all.hpp"
#include "../tensor/held.hpp"
#include "convert.hpp"
#include "keep_memory.hpp"
#include "look_again.hpp"
#include "number.hpp"
#include "words.hpp"

namespace tenon::bind {

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

    /// The first alternative that takes it as it is, else the first that takes it converted. `first`: what
    /// came of reaching for it already, as the first would have it.
    [[nodiscard]] loading load(PyObject* obj, const parameter_type& type, bool may_convert, note_ptr& why,
                               const bool* first = nullptr) const noexcept {
        a.type_ = &type;
        a.given_ = obj;
        if (type.accepts_none && obj == Py_None) return loading::done;
        loading reached = loading::refused;
        for (a.index_ = 0; a.index_ < type.count; ++a.index_) {
            // One import serves them all, but for those that are to be written to.
            const bool is_asked =
                a.index_ != 0 && spec().wanted.writable == type.specs[a.index_ - 1]->wanted.writable;
            if (!is_asked) reached = import_array(obj, why, a.index_ == 0 ? first : nullptr);
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
    /// What lend.cpp does: NumPy's struct, and an array of the only kind that is asked for, lent as it is.
    [[nodiscard]] bool reach_at_once(PyObject* obj) const noexcept;
    [[nodiscard]] bool lend_at_once(PyObject* obj, const parameter_type& type) const noexcept;
    /// Room for an import.
    TENON_HOT void make_room(bool owning, bool looking) const noexcept {
        new (&a.got_) py::acquired;
        a.content_ = argument::content::array;
        a.got_.quiet = true;
        a.got_.owning = owning;
        a.got_.looking = looking;
    }
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
        // NOLINTNEXTLINE(bugprone-unchecked-optional-access): `keep` has filled it
        auto made = std::make_unique<held>(std::move(*shown));
        made->is_itself = a.source_ == nullptr || !PyCapsule_CheckExact(a.source_);  // that is used up
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
        to.is_kept = true;
        return true;
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

    /// The name of an axis; empty when it has none, or there is no array.
    [[nodiscard]] std::string_view name_of_axis(std::size_t axis) const noexcept {
        return has_names() ? spec().names[axis] : "";
    }
    [[nodiscard]] extents shape() const noexcept { return a.found_->shape(); }
    /// Where the extents are kept of the array that is lent; null without one.
    [[nodiscard]] const void* shape_storage() const noexcept {
        return is_array() && a.found_ != nullptr ? static_cast<const void*>(shape().data()) : nullptr;
    }
    /// An array is in the room, and states names.
    [[nodiscard]] bool has_names() const noexcept {
        return is_array() && a.found_ != nullptr && !spec().names.empty();
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
        if (seen == sight::changed) raise_changed(a.source_, false);
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
        raise_changed(a.source_, a.shared_ != nullptr);
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
    /// Imports `obj` anew as the current alternative would have it, unless that has been tried: `tried`.
    [[nodiscard]] loading import_array(PyObject* obj, note_ptr& why,
                                       const bool* tried = nullptr) const noexcept {
        bool reached = false;
        if (tried != nullptr) {
            reached = *tried;
        } else {
            if (is_array()) a.clear();
            make_room(is_item || a.type_->kind == parameter_kind::tensor, PyCapsule_CheckExact(obj));
            reached = reach(obj);
        }
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

/// Whatever takes more than to lend an array as it is. `first` as above.
[[nodiscard]] TENON_API loading load_closely(argument& a, PyObject* obj, const parameter_type& type,
                                             bool may_convert, const bool* first) noexcept;

}  // namespace tenon::bind
