// src/py/import/attempt.hpp: one import under way: what every rung of the ladder is given, and what can come
// of it.
#pragma once

#include <tenon/py/import.hpp>
#include "type_plan.hpp"

namespace tenon::py {

/// What came of one way to import an object: one of four, and a refusal has its reason. That something was
/// taken is one byte written, and one byte copied.
class [[nodiscard]] outcome {
public:
    enum kind : unsigned char {
        taken,    ///< the tensor is in `acquired`
        absent,   ///< the object does not speak this protocol
        refused,  ///< it does, but what it said is not acceptable: `why`
        raised,   ///< a Python exception is set, the producer's own: nothing else is tried
    };

    outcome() noexcept {}  // NOLINT(modernize-use-equals-default): room for one, which costs nothing
    TENON_HOT constexpr outcome(kind is) noexcept
        : none_(0), is_(is) {}                                       // NOLINT(google-explicit-constructor)
    outcome(const error& why) noexcept : why_(why), is_(refused) {}  // NOLINT(google-explicit-constructor)
    /// A check that failed is a refusal.
    outcome(const result<void>& checked) noexcept  // NOLINT(google-explicit-constructor)
        : none_(0), is_(checked ? taken : refused) {
        if (!checked) why_ = checked.error();
    }

    TENON_HOT outcome(const outcome& other) noexcept : none_(0), is_(other.is_) {
        if (is_ == refused) [[unlikely]]
            why_ = other.why_;
    }
    TENON_HOT outcome& operator=(const outcome& other) noexcept {
        is_ = other.is_;
        if (is_ == refused) [[unlikely]]
            why_ = error(other.why_);
        return *this;
    }

    friend bool operator==(const outcome& a, kind b) noexcept { return a.is_ == b; }
    [[nodiscard]] kind is() const noexcept { return is_; }
    /// Of a refusal alone.
    [[nodiscard]] const error& why() const noexcept { return why_; }

private:
    union {
        char none_;
        error why_;
    };
    kind is_;
};

/// What an import asks, and where it puts what it finds. `plan` is the caller's own copy: rungs run foreign
/// code.
struct attempt {
    PyObject* obj;
    const type_plan& plan;
    const import_options& options;
    bool writable;
    interpreter& here;
    acquired& out;

    // What rungs leave behind, for when nothing better comes.
    ref swallowed{};      ///< raised by a rung that was tried only because it is quick
    ref left_to_arrow{};  ///< raised by `__dlpack__` of an object that speaks Arrow, too

    /// Rungs that know no other place are left out where there is a better one to ask.
    [[nodiscard]] bool host_will_do() const noexcept { return !options.to || options.wants_host(); }
    /// Lets go of what was found, and refuses it.
    [[nodiscard]] error give_up(const error& why) noexcept {
        out.owner.reset();
        return why;
    }
};

/// Changes what has been learned of a type, if the plan the import was begun by is still there (an object may
/// change its class meanwhile); for the other threads, too.
template <class Change>
void learn(const attempt& a, Change&& change) noexcept {
    type_plan* const plan = find_plan_of(a.obj);
    if (plan == nullptr || plan->type != a.plan.type || plan->tag != a.plan.tag) return;
    change(plan->route);
    remember_plan(*plan);
}

/// A description whose shape and strides are not in it.
[[nodiscard]] inline abi::dl_tensor without_axes(void* data, std::int32_t ndim, dtype type,
                                                 device where = {}) noexcept {
    return {data, where.to_abi(), ndim, type.to_abi(), nullptr, nullptr, 0};
}

/// Whether both describe the same elements in the same memory.
[[nodiscard]] inline bool is_same_memory(const tensor_ref& a, const tensor_ref& b) noexcept {
    if (a.dtype() != b.dtype() || a.device() != b.device() || !is_same(a.shape(), b.shape())) return false;
    if (a.empty()) return true;
    for (std::size_t i = 0; i < a.shape().size(); ++i)
        if (a.shape(i) > 1 && a.stride(i) != b.stride(i)) return false;
    return a.data() == b.data();
}

namespace detail {

/// A Python failure while reading a field: a wrong type or range is the producer's malformed answer, anything
/// else (KeyboardInterrupt, an `__index__` that raises) is an exception of its own.
[[nodiscard]] inline outcome field_failed(const char* field, const char* problem) noexcept {
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0 &&
        PyErr_ExceptionMatches(PyExc_OverflowError) == 0)
        return outcome::raised;
    PyErr_Clear();
    return malformed(field, problem);
}

/// `uncopied`: a copy would have been where it was asked for, and copy=False was asked for.
[[nodiscard]] inline error elsewhere(device where, const import_options& asked,
                                     bool uncopied = false) noexcept {
    return refused("device",
                   uncopied ? "the data is not on the device asked for, and copy=False was asked for"
                            : "the data is not on the device asked for",
                   where.type, asked.to.value_or(device{}).type);
}

}  // namespace detail
}  // namespace tenon::py
