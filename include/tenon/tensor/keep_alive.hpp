// tenon/tensor/keep_alive.hpp: what keeps a tensor's memory alive, says what it is, and releases it once.
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include <tenon/detail/foreign_code.hpp>

namespace tenon {

/// What an owner is: what its subject points to, and so what may be asked of it.
enum class owner_kind : std::uint8_t {
    other,      ///< whatever a user handed over
    memory,     ///< plain memory and nothing else: let go of at once, where others wait in turn
    object,     ///< an object of Python's
    interface,  ///< a pair of Python's: an object, and the array interface it gave
    array,      ///< an array of a library's, and what lent its memory
    buffer,     ///< a buffer of Python's
    managed,    ///< a DLPack struct of somebody else's
    arrow,      ///< an Arrow array
    allocated,  ///< a DLPack struct made by the allocator of an exchange table, which is the context
    shared,     ///< an owner that several tensors have in common
    late,       ///< an owner that is let go of when a GPU is done
};

/// Keeps a tensor's memory alive: `release(subject, context)` runs once, on whichever thread drops it last.
class keep_alive {
public:
    using release_fn = void (*)(void* subject, void* context) noexcept;

    keep_alive() noexcept = default;
    keep_alive(void* subject, release_fn release, void* context = nullptr,
               owner_kind kind = owner_kind::other) noexcept
        : subject_(subject), release_(release), context_(context), kind_(kind) {}
    keep_alive(keep_alive&& o) noexcept
        : keep_alive(o.subject_, std::exchange(o.release_, nullptr), o.context_, o.kind_) {}
    keep_alive& operator=(keep_alive&& o) noexcept {
        if (this != &o) {
            reset();
            subject_ = o.subject_;
            release_ = std::exchange(o.release_, nullptr);
            context_ = o.context_;
            kind_ = o.kind_;
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

    /// There is something that it keeps.
    explicit operator bool() const noexcept { return release_ != nullptr; }
    TENON_HOT [[nodiscard]] bool is(owner_kind kind) const noexcept {
        return release_ != nullptr && kind_ == kind;
    }
    TENON_HOT [[nodiscard]] void* subject() const noexcept { return subject_; }
    TENON_HOT [[nodiscard]] release_fn release_function() const noexcept { return release_; }
    TENON_HOT [[nodiscard]] const void* context() const noexcept { return context_; }

private:
    void* subject_ = nullptr;
    release_fn release_ = nullptr;
    void* context_ = nullptr;
    owner_kind kind_ = owner_kind::other;
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
    using step = void (*)(link*) noexcept;
    /// What is deleted in its turn.
    template <class Self>
    struct deletable : link {  // NOLINT(bugprone-crtp-constructor-accessibility): of aggregates
        static void release(void* self, void*) noexcept { run(static_cast<Self*>(self), let_go, let_go); }
        static void let_go(link* self) noexcept { delete static_cast<Self*>(self); }
    };
    /// `now(first)`, or else `later(first)`.
    static void run(link* first, step now, step later) noexcept {
        state& here = current();
        if (here.depth >= max_depth) [[unlikely]] {
            *first = {here.waiting, later};
            here.waiting = first;
            return;
        }
        ++here.depth;
        now(first);
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

/// What a struct that has left points to. It frees itself before its owner goes, on whichever thread that is.
template <class Self>
struct exported_block : release_chain::link {  // NOLINT(bugprone-crtp-constructor-accessibility): the same
    keep_alive owner;

    static void let_go(link* self) noexcept {
        auto* const block = static_cast<Self*>(self);
        const keep_alive last = std::move(block->owner);
        delete block;
    }
    static void release(Self* block) noexcept {
        if (block->owner.is(owner_kind::memory))
            let_go(block);
        else
            release_chain::run(block, let_go, let_go);
    }
};

/// An object of any class, moved to the heap to stay there.
template <class Owner>
struct box : release_chain::deletable<box<Owner>> {
    Owner object;
};

/// Moves `object` to the heap and keeps it there: where it now is, or null when there is no memory for it
/// (then it stays where it was).
template <class Owner>
[[nodiscard]] Owner* keep_moved(Owner& object, keep_alive& out) {
    auto* const kept = new (std::nothrow) box<Owner>{{}, std::move(object)};
    if (kept == nullptr) return nullptr;
    out = keep_alive(kept, &box<Owner>::release);
    return &kept->object;
}

/// Calls a deleter. One that throws has nobody to tell.
void delete_by(auto&& deleter, auto* pointer) noexcept try {
    foreign_code([&] { deleter(pointer); });
} catch (...) {  // NOLINT(bugprone-empty-catch)
}

/// A deleter that is a value: a function pointer, or a lambda that captures.
template <class Pointer, class Deleter>
struct bound_deleter : release_chain::deletable<bound_deleter<Pointer, Deleter>> {
    Deleter deleter;
    Pointer pointer;
    ~bound_deleter() { delete_by(deleter, pointer); }
};

/// Keeps a pointer until its deleter has to run. Without memory to remember the deleter in, it runs now and
/// false is returned; it also runs when it throws on its way there.
template <class Pointer, class Deleter>
[[nodiscard]] bool keep_deleted(Pointer pointer, Deleter&& deleter, keep_alive& out) {
    using value = std::remove_cvref_t<Deleter>;
    if constexpr (std::is_empty_v<value> && std::is_default_constructible_v<value>) {
        out = keep_alive(const_cast<void*>(static_cast<const void*>(pointer)), [](void* p, void*) noexcept {
            delete_by([](Pointer given) { value{}(given); }, static_cast<Pointer>(p));
        });
        return true;
    } else {
        using bound = bound_deleter<Pointer, value>;
        try {
            if (auto* const kept = new (std::nothrow) bound{{}, std::forward<Deleter>(deleter), pointer}) {
                out = keep_alive(kept, &bound::release);
                return true;
            }
        } catch (...) {
            delete_by(deleter, pointer);
            throw;
        }
        delete_by(deleter, pointer);
        return false;
    }
}

}  // namespace detail
}  // namespace tenon
