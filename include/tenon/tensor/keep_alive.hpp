// tenon/tensor/keep_alive.hpp: what keeps a tensor's memory alive: three words that release it once.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include <tenon/detail/config.hpp>
#include <tenon/detail/foreign_code.hpp>

namespace tenon {

/// Keeps a tensor's memory alive: `release(subject, context)` runs once, on whichever thread drops it last.
class keep_alive {
public:
    using release_fn = void (*)(void* subject, void* context) noexcept;

    keep_alive() noexcept = default;
    keep_alive(void* subject, release_fn release, void* context = nullptr) noexcept
        : subject_(subject), release_(release), context_(context) {}
    keep_alive(keep_alive&& o) noexcept
        : subject_(o.subject_), release_(std::exchange(o.release_, nullptr)), context_(o.context_) {}
    keep_alive& operator=(keep_alive&& o) noexcept {
        if (this != &o) {
            reset();
            subject_ = o.subject_;
            release_ = std::exchange(o.release_, nullptr);
            context_ = o.context_;
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

    /// The context of a release that gives plain memory back and lets go of nothing else: it is run at once,
    /// where others may have to wait for their turn in a chain.
    [[nodiscard]] TENON_PRIVATE static void* plain_memory() noexcept {
        static char mark;
        return &mark;
    }
    [[nodiscard]] bool keeps_plain_memory() const noexcept { return context_ == plain_memory(); }

    [[nodiscard]] void* subject() const noexcept { return subject_; }
    [[nodiscard]] release_fn release_function() const noexcept { return release_; }
    [[nodiscard]] const void* context() const noexcept { return context_; }

private:
    void* subject_ = nullptr;
    release_fn release_ = nullptr;
    void* context_ = nullptr;
};

namespace detail {

/// Lets go of many things that keep one another alive without recursing into each: a tensor may keep a
/// library's array that keeps a tensor of ours... What is let go of deep inside another release waits for the
/// outermost to come round to it.
class release_chain {
public:
    struct link {  // written only when it has to wait
        link* next;
        void (*finish)(link*) noexcept;
    };
    /// `Link::let_go(first)`, now or later.
    template <class Link>
    static void run(Link* first) noexcept {
        run<&Link::let_go, &Link::let_go>(first);
    }
    /// `Now(first)`, or else `Later(first)`.
    template <void (*Now)(link*) noexcept, void (*Later)(link*) noexcept>
    static void run(link* first) noexcept {
        state& here = current();
        if (here.depth >= max_depth) [[unlikely]] {
            first->next = here.waiting;
            first->finish = Later;
            here.waiting = first;
            return;
        }
        ++here.depth;
        Now(first);
        while (here.depth == 1 && here.waiting != nullptr) {
            link* const next = here.waiting;
            here.waiting = next->next;
            next->finish(next);
        }
        --here.depth;
    }

private:
    static constexpr int max_depth = 32;
    struct state {
        int depth = 0;
        link* waiting = nullptr;
    };
    TENON_PRIVATE static state& current() noexcept {
        static thread_local constinit state here;
        return here;
    }
};

/// An object of any class, moved to the heap to stay there.
template <class Owner>
struct box : release_chain::link {
    Owner object;
    explicit box(Owner&& o) : object(std::move(o)) {}
    static void release(void* self, void*) noexcept { release_chain::run(static_cast<box*>(self)); }
    static void let_go(link* self) noexcept { delete static_cast<box*>(self); }
};

/// Moves `object` to the heap and keeps it there: where it now is, or null when there is no memory for it
/// (then it stays where it was).
template <class Owner>
[[nodiscard]] Owner* keep_moved(Owner& object, keep_alive& out) {
    auto* const kept = new (std::nothrow) box<Owner>(std::move(object));
    if (kept == nullptr) return nullptr;
    out = keep_alive(kept, &box<Owner>::release);
    return &kept->object;
}

/// Calls `Deleter{}(pointer)`. One that throws has nobody to tell.
template <class Pointer, class Deleter>
void call_deleter(void* pointer, void*) noexcept try {
    foreign_code([&] { Deleter{}(static_cast<Pointer>(pointer)); });
} catch (...) {  // NOLINT(bugprone-empty-catch)
}

/// A deleter that is a value: a function pointer, or a lambda that captures.
template <class Pointer, class Deleter>
struct bound_deleter : release_chain::link {
    Deleter deleter;
    Pointer pointer;

    template <class D>
    bound_deleter(D&& d, Pointer p) : deleter(std::forward<D>(d)), pointer(p) {}
    static void release(void* self, void*) noexcept { release_chain::run(static_cast<bound_deleter*>(self)); }
    static void let_go(link* self) noexcept {
        auto* const bound = static_cast<bound_deleter*>(self);
        run(bound->deleter, bound->pointer);
        delete bound;
    }
    static void run(auto& deleter, Pointer pointer) noexcept try {
        foreign_code([&] { deleter(pointer); });
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
    }
};

/// Keeps a pointer until its deleter has to run. Without memory to remember the deleter in, it runs now and
/// false is returned; it also runs when it throws on its way there.
template <class Pointer, class Deleter>
[[nodiscard]] bool keep_deleted(Pointer pointer, Deleter&& deleter, keep_alive& out) {
    using value = std::remove_cvref_t<Deleter>;
    if constexpr (std::is_empty_v<value> && std::is_default_constructible_v<value>) {
        out = keep_alive(const_cast<void*>(static_cast<const void*>(pointer)), &call_deleter<Pointer, value>);
        return true;
    } else {
        using bound = bound_deleter<Pointer, value>;
        bound* kept = nullptr;
        try {
            kept = new (std::nothrow) bound(std::forward<Deleter>(deleter), pointer);
        } catch (...) {
            bound::run(deleter, pointer);
            throw;
        }
        if (kept == nullptr) {
            bound::run(deleter, pointer);
            return false;
        }
        out = keep_alive(kept, &bound::release);
        return true;
    }
}

}  // namespace detail
}  // namespace tenon
