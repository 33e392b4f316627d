// src/py/runtime/interpreter.hpp: what the importer keeps per interpreter, and how a thread reaches an
// interpreter to release things.
//
// A record outlives its interpreter (a few hundred bytes that are never freed), so that a release that comes
// too late, from any thread, can see that it is too late and leak instead of crashing.
#pragma once

#include "base.hpp"
#include "exceptions.hpp"
#include "without_gil.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace tenon::py {

/// A name as Python keeps it, one of those that are made and let go of together.
struct interned {
    interned(interned*& all, const char* words) noexcept : text(words), next(std::exchange(all, this)) {}
    interned(const interned&) = delete;
    interned& operator=(const interned&) = delete;
    operator PyObject*() const noexcept { return object; }  // NOLINT(google-explicit-constructor)

    const char* text;
    interned* next;
    PyObject* object = nullptr;
};

/// Interned names, prebuilt tuples and exception types of one interpreter, and whether it can still be
/// entered.
class interpreter {
    interned* names_ = nullptr;  ///< all of them

public:
    // Names looked up on producers.
    interned dlpack{names_, "__dlpack__"};
    interned dlpack_device{names_, "__dlpack_device__"};
    interned exchange_api{names_, "__dlpack_c_exchange_api__"};
    interned exchange_api_1_2{names_, "__c_dlpack_exchange_api__"};
    interned cuda_array_interface{names_, "__cuda_array_interface__"};
    interned array_interface{names_, "__array_interface__"};
    interned array_typestr{names_, "__array_typestr__"};
    interned arrow_array{names_, "__arrow_c_array__"};
    interned arrow_device_array{names_, "__arrow_c_device_array__"};
    interned arrow_stream{names_, "__arrow_c_stream__"};
    interned is_conj{names_, "is_conj"};
    interned is_neg{names_, "is_neg"};
    interned requires_grad{names_, "requires_grad"};
    interned untyped_storage{names_, "untyped_storage"};
    interned torch_dispatch{names_, "__torch_dispatch__"};
    interned data_ptr{names_, "data_ptr"};
    interned nbytes{names_, "nbytes"};
    // Keywords of __dlpack__.
    interned max_version{names_, "max_version"};
    interned stream{names_, "stream"};
    interned dl_device{names_, "dl_device"};
    interned copy{names_, "copy"};
    PyObject* our_version = nullptr;       ///< (1, 3)
    PyObject* only_max_version = nullptr;  ///< ("max_version",)
    PyObject* only_stream = nullptr;       ///< ("stream",)
    PyObject* malformed_error = nullptr;   ///< the exception type, shared with other modules
    // What is known of the running NumPy: 0 not looked yet, 1 its array is as we know it, -1 it is not.
    std::atomic<signed char> numpy_layout{0};
    std::atomic<PyObject*> numpy_ndarray{nullptr};  ///< its array type, kept
    std::atomic<void**> numpy_functions{nullptr};   ///< its C table, once it has been asked for
    // Made when first needed.
    std::atomic<PyObject*> producer_type{nullptr};      ///< the type of what `to_python` returns
    std::atomic<PyObject*> library_functions{nullptr};  ///< dict: what other libraries make arrays with
    // How tensors become the package's: see export/tensor_type.cpp.
    std::atomic<const abi::handover_api*> package{nullptr};
    std::atomic<PyObject*> package_type{nullptr};  ///< keeps the table
    std::atomic<bool> is_package{false};           ///< this module is the package's own
    std::atomic<bool> asked_for_package{false};

    /// An object that is made once, by whoever is first: borrowed, or null with an exception set.
    template <class Make>
    [[nodiscard]] static PyObject* make_once(std::atomic<PyObject*>& slot, Make&& make) noexcept {
        PyObject* found = slot.load(std::memory_order_acquire);
        if (found != nullptr) [[likely]]
            return found;
        PyObject* const made = make();
        if (made == nullptr || slot.compare_exchange_strong(found, made)) return made;
        call::drop(made);  // making it ran code that came here, too
        return found;
    }

    /// The record of the interpreter this thread is attached to; null with an exception set when it cannot be
    /// made, the interpreter is beyond use, or the thread is not attached. Whatever needs the GIL comes here
    /// first, or is called by what did.
    TENON_HOT [[nodiscard]] static interpreter* current() noexcept { return of(attached_thread_state()); }
    /// The same where the thread is known to be attached.
    [[nodiscard]] static interpreter* current_attached() noexcept { return of(current_thread_state()); }

    /// Counts the interpreters that have gone: together with an interpreter's address it names one for good.
    [[nodiscard]] static unsigned departures() noexcept { return departed.load(std::memory_order_acquire); }

    TENON_HOT [[nodiscard]] bool is_dead() const noexcept { return dead_.load(std::memory_order_acquire); }

    /// Whether this thread is attached to it.
    [[nodiscard]] bool is_here() const noexcept {
        if (is_dead()) return false;
        PyThreadState* const here = attached_thread_state();
        return here != nullptr && PyThreadState_GetInterpreter(here) == state_;
    }

    /// Runs `fn` attached to this interpreter, from any thread, keeping a pending exception as it was. When
    /// the interpreter is going or gone `fn` is not run: what it would have released leaks, by design.
    template <class Fn>
    void enter(Fn&& fn) noexcept {
        if (is_dead()) return;
        PyThreadState* const here = attached_thread_state();
        if (here != nullptr && PyThreadState_GetInterpreter(here) == state_) return guarded(fn);
        // Announce first, then look: the closing interpreter looks in the other order, so one of the two
        // sees.
        entering_.fetch_add(1);
        if (!closing_.load() && Py_IsInitialized() != 0) enter_detached(here, fn);
        entering_.fetch_sub(1);
    }

private:
    TENON_HOT [[nodiscard]] static interpreter* of(const PyThreadState* here) noexcept {
        interpreter* const seen = last_seen;
        if (seen != nullptr && here != nullptr && seen->state_ == here->interp && !seen->is_dead()) [[likely]]
            return seen;
        if (here != nullptr) return look_up();
        detail::raise_detached();
        return nullptr;
    }

    template <class Fn>
    static void guarded(Fn&& fn) noexcept {
        const error_guard guard;
        fn();
    }
    template <class Fn>
    void enter_detached(PyThreadState* here, Fn&& fn) noexcept {
        // The simple way attaches whatever state this thread was last given, which may be a subinterpreter's.
        PyThreadState* const own = PyGILState_GetThisThreadState();
        if (here == nullptr && is_main_ && (own == nullptr || PyThreadState_GetInterpreter(own) == state_)) {
            const PyGILState_STATE gil = foreign_code([] { return PyGILState_Ensure(); });
            guarded(fn);
            PyGILState_Release(gil);
        } else {
            visit(state_, here, fn);
        }
    }

    /// Runs `fn` attached to another interpreter than `here`, the state this thread is attached by, if any.
    template <class Fn>
    static void visit(PyInterpreterState* there, PyThreadState* here, Fn&& fn) noexcept {
        if (here != nullptr) PyEval_SaveThread();
        if (PyThreadState* const visiting = PyThreadState_New(there)) {
            foreign_code([&] { PyEval_RestoreThread(visiting); });
            guarded(fn);
            foreign_code([&] { PyThreadState_Clear(visiting); });
            PyThreadState_DeleteCurrent();
        }
        if (here != nullptr) foreign_code([&] { PyEval_RestoreThread(here); });
    }

    TENON_COLD static interpreter* look_up() noexcept {
        PyInterpreterState* const state = PyInterpreterState_Get();
        interpreter* found = find_from(first(), state);
        if (found == nullptr) found = create(state);
        if (found != nullptr) last_seen = found;
        return found;
    }
    /// By address: of the interpreters that live, no two share one.
    static interpreter* find_from(interpreter* i, const PyInterpreterState* state) noexcept {
        while (i != nullptr && (i->state_ != state || i->is_dead())) i = i->next_;
        return i;
    }

    static interpreter* create(PyInterpreterState* state) noexcept {
        auto* fresh = new (std::nothrow) interpreter;
        if (fresh == nullptr) {
            PyErr_NoMemory();
            return nullptr;
        }
        tenon::detail::known_lock_keeper.store(&detail::keep_off_gil);
        fresh->state_ = state;
        fresh->is_main_ = state == PyInterpreterState_Main();
        if (!fresh->fill() || !fresh->watch_exit()) {
            fresh->clear();
            delete fresh;
            return nullptr;
        }
        {
            const std::lock_guard hold(list_lock);
            if (interpreter* const other = find_from(list_head, state))
                return other;  // another thread was first; ours idles on
            fresh->next_ = list_head;
            list_head = fresh;
        }
        // The runtime goes with the main interpreter, whether or not it has been told of this one: it must
        // know.
        if (!fresh->is_main_) {
            visit(PyInterpreterState_Main(), current_thread_state(), [] {
                if (current() == nullptr) PyErr_Clear();
            });
        }
        return fresh;
    }

    bool fill() noexcept {
        for (interned* name = names_; name != nullptr; name = name->next) {
            name->object = PyUnicode_InternFromString(name->text);
            if (name->object == nullptr) return false;
        }
        our_version = Py_BuildValue("(ii)", 1, 3);
        only_max_version = PyTuple_Pack(1, max_version.object);
        only_stream = PyTuple_Pack(1, stream.object);
        malformed_error = shared_malformed_error();
        return our_version != nullptr && only_max_version != nullptr && only_stream != nullptr &&
               malformed_error != nullptr;
    }

    /// One exception type for all extension modules of an interpreter, whoever comes first: a new reference,
    /// or null with an exception set.
    [[nodiscard]] static PyObject* shared_malformed_error() noexcept {
        static constexpr const char* name = "tenon.MalformedError";
        PyObject* const shared = PyInterpreterState_GetDict(PyInterpreterState_Get());
        const ref key = ref::take(PyUnicode_FromString(name));
        const ref bases = key ? ref::take(PyTuple_Pack(2, PyExc_ValueError, PyExc_BufferError)) : ref();
        ref made = bases ? ref::take(PyErr_NewExceptionWithDoc(
                               name, "The description of a tensor contradicts itself.", bases.get(), nullptr))
                         : ref();
        if (!made || shared == nullptr) return made.release();
        return call::dict_item_or_set(shared, key.get(), made.get());
    }

    void clear() noexcept {
        for (interned* name = names_; name != nullptr; name = name->next)
            call::drop(std::exchange(name->object, nullptr));
        for (PyObject** slot : {&our_version, &only_max_version, &only_stream, &malformed_error})
            call::drop(std::exchange(*slot, nullptr));
        package.store(nullptr);
        for (auto* slot : {&producer_type, &library_functions, &package_type, &numpy_ndarray})
            call::drop(slot->exchange(nullptr));
    }

    /// Two hooks: `atexit` closes the door while threads can still finish, and the interpreter's own
    /// dictionary drops our objects when it goes.
    TENON_PRIVATE bool watch_exit() noexcept {
        watch_fork();
        static PyMethodDef close_def = {"tenon_close", &interpreter::on_exit, METH_NOARGS, nullptr};
        PyObject* const dict = PyInterpreterState_GetDict(state_);
        if (dict == nullptr) {
            PyErr_SetString(PyExc_RuntimeError, "tenon: the interpreter is shutting down");
            return false;
        }
        const ref key = ref::take(PyUnicode_FromFormat("tenon.%p", static_cast<void*>(this)));
        if (!key) return false;
        {
            const ref last = ref::take(PyCapsule_New(this, capsule_name, &interpreter::on_gone));
            if (!last || call::set_dict_item(dict, key.get(), last.get()) != 0) return false;
        }
        const ref self = ref::take(PyCapsule_New(this, capsule_name, nullptr));
        const ref hook = self ? ref::take(PyCFunction_New(&close_def, self.get())) : ref();
        const ref atexit = hook ? ref::take(call::import_module("atexit")) : ref();
        const ref done = atexit ? ref::take(call::method(atexit.get(), "register", "O", hook.get())) : ref();
        if (done) return true;
        const error_guard keep;
        (void)call::delete_dict_item(dict, key.get());  // nobody may be told of an interpreter we give up on
        return false;
    }

    static PyObject* on_exit(PyObject* self, PyObject*) noexcept {
        auto* i = static_cast<interpreter*>(PyCapsule_GetPointer(self, capsule_name));
        if (i == nullptr) return nullptr;
        // Closed already means that the main interpreter has, and the runtime is going: the GIL cannot be
        // given up any more, and there is nobody left to wait for.
        if (i->closing_.exchange(true)) Py_RETURN_NONE;
        // With the main interpreter the others go too, and nobody tells them.
        const auto goes = [&](const interpreter* other) { return other == i || i->is_main_; };
        bool waiting = false;
        for (interpreter* other = first(); other != nullptr; other = other->next_) {
            if (!goes(other)) continue;
            other->closing_.store(true);
            waiting |= other->entering_.load() != 0;
        }
        if (!waiting) Py_RETURN_NONE;
        // Ten seconds are plenty for the releases under way; one that takes longer must not hang the exit.
        foreign_code([&] {
            Py_BEGIN_ALLOW_THREADS;
            const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
            for (interpreter* other = first(); other != nullptr; other = other->next_) {
                while (goes(other) && other->entering_.load() != 0 &&
                       std::chrono::steady_clock::now() < give_up)
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            Py_END_ALLOW_THREADS;
        });
        Py_RETURN_NONE;
    }

    /// The list only grows at its head, so that a walk needs the lock only to begin.
    static interpreter* first() noexcept {
        const std::lock_guard hold(list_lock);
        return list_head;
    }

    /// A forked child has none of the threads that were entering, nor the one that may have held the lock.
    TENON_PRIVATE static void watch_fork() noexcept {
#if !defined(_WIN32)
        static const int watched = pthread_atfork(nullptr, nullptr, [] {
            new (&list_lock) std::mutex;
            for (interpreter* i = list_head; i != nullptr; i = i->next_) i->entering_.store(0);
        });
        (void)watched;
#endif
    }

    static void on_gone(PyObject* capsule) noexcept {
        auto* i = static_cast<interpreter*>(PyCapsule_GetPointer(capsule, capsule_name));
        if (i == nullptr) {
            PyErr_Clear();
            return;
        }
        departed.fetch_add(1, std::memory_order_release);
        i->closing_.store(true);
        i->dead_.store(true, std::memory_order_release);
        i->clear();
    }

    static constexpr const char* capsule_name = "tenon.interpreter";
    TENON_PRIVATE static inline constinit std::atomic<unsigned> departed{0};
    TENON_PRIVATE static inline constinit thread_local interpreter* last_seen = nullptr;
    TENON_PRIVATE static inline interpreter* list_head = nullptr;
    TENON_PRIVATE static inline std::mutex list_lock;

    PyInterpreterState* state_ = nullptr;
    bool is_main_ = false;
    std::atomic<bool> closing_{false};
    std::atomic<bool> dead_{false};
    std::atomic<int> entering_{0};
    interpreter* next_ = nullptr;
};

}  // namespace tenon::py
