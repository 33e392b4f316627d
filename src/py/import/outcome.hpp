// src/py/import/outcome.hpp: what came of one way to import an object: one of four, and a refusal has its
// reason.
#pragma once

#include "../library/all.hpp"

namespace tenon::py {

/// Trivial: that something was taken is one byte written.
class [[nodiscard]] outcome {
public:
    enum kind : unsigned char {
        taken,    ///< the tensor is in `acquired`
        absent,   ///< the object does not speak this protocol
        refused,  ///< it does, but what it said is not acceptable: `why`
        raised,   ///< a Python exception is set, the producer's own: nothing else is tried
    };

    TENON_HOT constexpr outcome(kind is) noexcept
        : none_(0), is_(is) {}                                       // NOLINT(google-explicit-constructor)
    outcome(const error& why) noexcept : why_(why), is_(refused) {}  // NOLINT(google-explicit-constructor)
    /// A check that failed is a refusal.
    outcome(const result<void>& checked) noexcept  // NOLINT(google-explicit-constructor)
        : none_(0), is_(checked ? taken : refused) {
        if (!checked) why_ = checked.error();
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

}  // namespace tenon::py
