// src/py/import/refusals.hpp: the rungs of the import ladder, and the one exception that says why each
// refused.
#pragma once

#include "attempt.hpp"

namespace tenon::py::detail {

enum class rung_id : unsigned char {
    exchange_table,
    numpy_struct,
    dlpack_method,
    cuda_interface,
    buffer_protocol,
    array_interface,
    arrow,
    capsule,
    count,
};

struct rung_text {
    const char* name;
    const char* absent;
};
TENON_PRIVATE inline constexpr rung_text rung_texts[] = {
    {"C exchange table", "the type has no __dlpack_c_exchange_api__"},
    {"NumPy struct", "not a numpy.ndarray of a plain dtype"},
    {"__dlpack__", "no such method"},
    {"__cuda_array_interface__", "no such attribute"},
    {"buffer protocol", "the type does not support it"},
    {"__array_interface__", "no such attribute"},
    {"Arrow", "no __arrow_c_array__, __arrow_c_device_array__ or __arrow_c_stream__"},
    {"DLPack capsule", "not a capsule"},
};
static_assert(std::size(rung_texts) == static_cast<std::size_t>(rung_id::count));

/// What each rung answered, for the one exception that tells them all.
class refusals {
public:
    void note(rung_id r, const outcome& answer) noexcept {
        const auto at = static_cast<std::size_t>(r);
        if (!answers_[at]) order_[count_++] = r;
        answers_[at] = answer.is();
        if (answer != outcome::refused) return;
        reasons_[at] = answer.why();
        if (!any_) first_ = answer.why().code;
        any_ = true;
    }

    /// `fn(rung, answer, why)` for each rung that was tried, in that order; `why` is null unless it refused.
    template <class Fn>
    void for_each(Fn&& fn) const {
        for (std::size_t i = 0; i < count_; ++i) {
            const auto at = static_cast<std::size_t>(order_[i]);
            // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it was tried, so there is one
            fn(order_[i], *answers_[at], answers_[at] == outcome::refused ? &reasons_[at] : nullptr);
        }
    }

    /// None of the protocols was there.
    [[nodiscard]] bool is_no_array() const noexcept { return !any_; }

    /// Raises: TypeError when no protocol was there at all, else as the first refusal says. The exception
    /// carries its parts as well: `reason`, its first sentence, and `tried`. `told_elsewhere`: `__dlpack__`
    /// raised an exception, which stands behind this one.
    TENON_COLD void raise_for(PyObject* obj, bool told_elsewhere) const noexcept try {
        std::string list;
        for (std::size_t i = 0; i < rungs; ++i) {
            if (!answers_[i]) continue;
            list += std::string("\n  ") + rung_texts[i].name + ": ";
            list += answers_[i] == outcome::refused ? reasons_[i].message() : rung_texts[i].absent;
        }
        std::string reason = "cannot take a tensor from " + type_name(obj);
        if (!any_) reason += ": it speaks no tensor protocol; pass an array, a DLPack capsule or a buffer";
        raise(any_ ? first_ : errc::not_an_array, "tenon: " + reason + ". Tried:" + list);
        note_parts(reason, told_elsewhere);
    } catch (...) {
        PyErr_NoMemory();
    }

    static std::string type_name(PyObject* obj) {
        return std::string("'") + Py_TYPE(obj)->tp_name + "' object";
    }

private:
    /// `(name, reason)` of each rung that was tried, the reason None where the protocol was not there, or
    /// what it raised is told elsewhere. Null with an exception set on failure.
    [[nodiscard]] ref list_of_tried(bool told_elsewhere) const {
        ref list = ref::take(PyTuple_New(static_cast<Py_ssize_t>(count_)));
        Py_ssize_t at = 0;
        for (std::size_t i = 0; list && i < rungs; ++i) {
            if (!answers_[i]) continue;
            const bool elsewhere = told_elsewhere && i == static_cast<std::size_t>(rung_id::dlpack_method);
            const bool told = answers_[i] == outcome::refused && !elsewhere;
            const std::string why = told ? reasons_[i].message() : std::string();
            PyObject* const line = Py_BuildValue("(sz)", rung_texts[i].name, told ? why.c_str() : nullptr);
            if (line == nullptr) return {};
            PyTuple_SET_ITEM(list.get(), at++, line);
        }
        return list;
    }
    /// Gives the pending exception its parts. What fails at it is forgotten, but for an interruption.
    void note_parts(const std::string& reason, bool told_elsewhere) const {
        ref raised = pending_exception();
        if (!raised) return;
        const ref text = ref::take(PyUnicode_FromString(reason.c_str()));
        const ref tried = text ? list_of_tried(told_elsewhere) : ref();
        if (tried && call::set_attr(raised.get(), "reason", text.get()) == 0)
            (void)call::set_attr(raised.get(), "tried", tried.get());
        if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_Exception) == 0) return;
        PyErr_Clear();
        restore_exception(std::move(raised));
    }

    static constexpr auto rungs = static_cast<std::size_t>(rung_id::count);
    std::optional<outcome::kind> answers_[rungs];  // of those that were tried
    rung_id order_[rungs] = {};
    std::size_t count_ = 0;
    bool any_ = false;
    errc first_ = errc::not_an_array;
    error reasons_[rungs];  // read only where the answer is `refused`
};

}  // namespace tenon::py::detail
