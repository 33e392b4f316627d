// tenon/core/keep_alive.hpp: what keeps a tensor's memory alive: three words that release it once.
#pragma once

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tenon {

/// Keeps a tensor's memory alive: `release(subject, context)` runs once, on whichever thread drops it last.
class keep_alive {
public:
    using release_fn = void (*)(void* subject, void* context) noexcept;

    keep_alive() noexcept = default;
    keep_alive(void* subject, release_fn release, void* context = nullptr) noexcept
        : subject_(subject), context_(context), release_(release) {}
    keep_alive(keep_alive&& o) noexcept
        : subject_(o.subject_), context_(o.context_), release_(std::exchange(o.release_, nullptr)) {}
    keep_alive& operator=(keep_alive&& o) noexcept {
        if (this != &o) {
            reset();
            subject_ = o.subject_;
            context_ = o.context_;
            release_ = std::exchange(o.release_, nullptr);
        }
        return *this;
    }
    keep_alive(const keep_alive&) = delete;
    keep_alive& operator=(const keep_alive&) = delete;
    ~keep_alive() { reset(); }

    void reset() noexcept {
        if (const release_fn release = std::exchange(release_, nullptr)) release(subject_, context_);
    }
    /// Forgets what it kept, without releasing it.
    void disown() noexcept { release_ = nullptr; }

    [[nodiscard]] void* subject() const noexcept { return subject_; }
    [[nodiscard]] release_fn release_function() const noexcept { return release_; }

private:
    void* subject_ = nullptr;
    void* context_ = nullptr;
    release_fn release_ = nullptr;
};

namespace detail {

/// An object of any class, moved to the heap to stay there.
template <class Owner>
struct box {
    Owner object;
    static void release(void* self, void*) noexcept { delete static_cast<box*>(self); }
};

/// Moves `object` to the heap and keeps it there: where it now is, or null when there is no memory for it
/// (then it stays where it was).
template <class Owner>
[[nodiscard]] Owner* keep_moved(Owner& object, keep_alive& out) {
    auto* const kept = new (std::nothrow) box<Owner>{std::move(object)};
    if (kept == nullptr) return nullptr;
    out = keep_alive(kept, &box<Owner>::release);
    return &kept->object;
}

/// Calls `Deleter{}(pointer)`. One that throws has nobody to tell.
template <class Pointer, class Deleter>
void call_deleter(void* pointer, void*) noexcept try {
    Deleter{}(static_cast<Pointer>(pointer));
} catch (...) {  // NOLINT(bugprone-empty-catch)
}

/// A deleter that is a value: a function pointer, or a lambda that captures.
template <class Pointer, class Deleter>
struct bound_deleter {
    Pointer pointer;
    Deleter deleter;

    bound_deleter(Pointer p, Deleter d) : pointer(p), deleter(std::move(d)) {}
    bound_deleter(bound_deleter&& o) noexcept(std::is_nothrow_move_constructible_v<Deleter>)
        : pointer(o.pointer), deleter(std::move(o.deleter)), armed(std::exchange(o.armed, false)) {}
    bound_deleter(const bound_deleter&) = delete;
    bound_deleter& operator=(const bound_deleter&) = delete;
    bound_deleter& operator=(bound_deleter&&) = delete;
    ~bound_deleter() {
        if (armed) {
            try {
                deleter(pointer);
            } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
            }
        }
    }
    bool armed = true;
};

/// Keeps a pointer until its deleter has to run. Without memory to remember the deleter in, it runs now and
/// false is returned.
template <class Pointer, class Deleter>
[[nodiscard]] bool keep_deleted(Pointer pointer, Deleter deleter, keep_alive& out) {
    if constexpr (std::is_empty_v<Deleter> && std::is_default_constructible_v<Deleter>) {
        out =
            keep_alive(const_cast<void*>(static_cast<const void*>(pointer)), &call_deleter<Pointer, Deleter>);
        return true;
    } else {
        bound_deleter<Pointer, Deleter> bound(pointer, std::move(deleter));
        return keep_moved(bound, out) != nullptr;
    }
}

}  // namespace detail
}  // namespace tenon
