// tenon/tensor/shared_tensor.hpp: a tensor that several handles hold together: what a class keeps.
#pragma once

#include <cassert>
#include <utility>

#include <tenon/tensor/tensor.hpp>

namespace tenon {

namespace detail {

/// Memory that several handles hold, and what is remembered with it: counted, and the engine's business.
struct held;
TENON_API void retain(held* memory) noexcept;
TENON_API void release(held* memory) noexcept;

/// One share of it, or none.
class holder {
public:
    constexpr holder() noexcept = default;
    constexpr explicit holder(held* owned) noexcept : memory_(owned) {}
    holder(const holder& other) noexcept : memory_(other.memory_) {
        if (memory_ != nullptr) retain(memory_);
    }
    holder(holder&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
    holder& operator=(holder other) noexcept {
        std::swap(memory_, other.memory_);
        return *this;
    }
    ~holder() {
        if (memory_ != nullptr) release(memory_);
    }
    [[nodiscard]] held* get() const noexcept { return memory_; }

private:
    held* memory_ = nullptr;
};

/// Moves a tensor to where several handles can hold it. Throws `std::bad_alloc`.
[[nodiscard]] TENON_API holder hold_together(tensor&& t);
[[nodiscard]] TENON_API const tensor_ref& shown_by(const held& memory) noexcept;
[[nodiscard]] TENON_API result<tensor> share_held(held& memory) noexcept;

}  // namespace detail

/// A handle on a tensor that is cheap to copy: all copies show the same memory, which is given back when the
/// last of them goes, on whichever thread that is, with or without the GIL. What a class keeps as a member.
/// As a parameter of a bound function it takes any array and keeps it; returned, it is that very object.
///
/// Thread-safe as `std::shared_ptr` is: copies may be made and dropped on any thread, one handle is one
/// thread's at a time.
class shared_tensor {
public:
    shared_tensor() noexcept = default;
    /// Throws `std::bad_alloc`.
    shared_tensor(tensor&& t)  // NOLINT(google-explicit-constructor): takes over what it is given
        : shared_tensor(detail::hold_together(std::move(t))) {}
    /// For the binders.
    explicit shared_tensor(detail::holder memory) noexcept
        : shown_(memory.get() != nullptr ? &detail::shown_by(*memory.get()) : nullptr),
          memory_(std::move(memory)) {}
    shared_tensor(const shared_tensor&) noexcept = default;
    shared_tensor(shared_tensor&& other) noexcept
        : shown_(std::exchange(other.shown_, nullptr)), memory_(std::move(other.memory_)) {}
    shared_tensor& operator=(shared_tensor other) noexcept {
        std::swap(shown_, other.shown_);
        std::swap(memory_, other.memory_);
        return *this;
    }
    ~shared_tensor() = default;

    /// It holds a tensor.
    explicit operator bool() const noexcept { return shown_ != nullptr; }
    [[nodiscard]] const tensor_ref& operator*() const noexcept {
        assert(shown_ != nullptr);
        return *shown_;
    }
    [[nodiscard]] const tensor_ref* operator->() const noexcept { return &**this; }
    /// For views, `dispatch`, and whatever else takes any tensor.
    operator const tensor_ref&() const noexcept { return **this; }  // NOLINT(google-explicit-constructor)

    /// A tensor of the same memory, to be handed over: an error only where there is no memory for it.
    [[nodiscard]] result<tensor> share() const noexcept {
        assert(shown_ != nullptr);
        return detail::share_held(*memory_.get());
    }
    /// For the binders.
    [[nodiscard]] const detail::holder& memory() const noexcept { return memory_; }

private:
    const tensor_ref* shown_ = nullptr;
    detail::holder memory_;
};

}  // namespace tenon
