// tenon/bind/hook.hpp: a binder's function object, made to explain what it refuses; what it takes costs a
// jump more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/bind/explain.hpp>
#include <tenon/core/attributes.hpp>
#include <tenon/py/python.hpp>

namespace tenon::bind {

namespace detail {

/// Functions that stand in front of a binder's own, one for each of those. A binder has a handful for all the
/// functions it makes, so a few places do; when there are more, the rest keep their own messages.
template <class Fn, class Stand>
class stand_ins {
public:
    /// What to call instead of `original`: `original` itself when it is a stand-in already.
    [[nodiscard]] static Fn in_front_of(Fn original) noexcept {
        if (original == nullptr || is_one(original)) return original;
        for (std::size_t i = 0; i < places; ++i) {
            Fn none = nullptr;
            if (originals[i].compare_exchange_strong(none, original) || none == original) return functions[i];
        }
        return original;
    }
    [[nodiscard]] static bool is_one(Fn function) noexcept {
        for (const Fn f : functions)
            if (f == function) return true;
        return false;
    }
    template <std::size_t I>
    [[nodiscard]] static Fn original() noexcept {
        return originals[I].load(std::memory_order_relaxed);
    }

private:
    static constexpr std::size_t places = 8;
    TENON_PRIVATE static inline std::atomic<Fn> originals[places]{};
    TENON_PRIVATE static inline constexpr auto functions = []<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<Fn, places>{&Stand::template call<I>...};
    }(std::make_index_sequence<places>{});
};

/// The exception of this thread that ends a call, put aside in a place that can only say "not such an array":
/// a binder's list of arrays. Whoever makes the call raises it in the end.
class put_off {
public:
    static void pending() noexcept {
        if (kept == nullptr) {
            kept = py::pending_exception().release();
            count.fetch_add(1, std::memory_order_relaxed);
        }
        PyErr_Clear();
    }
    [[nodiscard]] static bool is_any() noexcept { return count.load(std::memory_order_relaxed) != 0; }
    /// Whether this thread has one, which is pending now in place of any other.
    [[nodiscard]] TENON_COLD static bool raise() noexcept {
        if (kept == nullptr) return false;
        count.fetch_sub(1, std::memory_order_relaxed);
        PyErr_Clear();
        py::restore_exception(py::ref::take(std::exchange(kept, nullptr)));
        return true;
    }

private:
    TENON_PRIVATE static inline thread_local PyObject* kept = nullptr;
    TENON_PRIVATE static inline std::atomic<int> count{0};  // of all threads: quicker to ask than `kept`
};

struct vectorcall_stand {
    template <std::size_t I>
    static PyObject* call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* names) {
        PyObject* const result =
            stand_ins<vectorcallfunc, vectorcall_stand>::original<I>()(self, args, nargsf, names);
        if (put_off::is_any() && put_off::raise()) [[unlikely]] {
            drop(result);
            return nullptr;
        }
        // The highest bits are flags, CPython's and the binder's.
        if (result == nullptr) [[unlikely]]
            explain_pending({args, static_cast<Py_ssize_t>(nargsf & (~std::size_t{0} >> 4U)), names});
        return result;
    }

private:
    static void drop(PyObject* result) noexcept {
        const py::error_guard keep;
        Py_XDECREF(result);
    }
};

struct keyword_stand {
    template <std::size_t I>
    static PyObject* call(PyObject* self, PyObject* args, PyObject* keywords) {
        PyObject* const result =
            stand_ins<PyCFunctionWithKeywords, keyword_stand>::original<I>()(self, args, keywords);
        if (result == nullptr) [[unlikely]]
            explain(args, keywords);
        return result;
    }

private:
    TENON_COLD static void explain(PyObject* args, PyObject* keywords) noexcept try {
        std::vector<PyObject*> values;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) values.push_back(PyTuple_GET_ITEM(args, i));
        py::ref names;
        if (keywords != nullptr) {
            const py::error_guard aside;
            names = py::ref::take(PyTuple_New(PyDict_GET_SIZE(keywords)));
            if (!names) return;
            PyObject *key = nullptr, *value = nullptr;
            Py_ssize_t at = 0;
            for (Py_ssize_t i = 0; PyDict_Next(keywords, &at, &key, &value) != 0; ++i) {
                PyTuple_SET_ITEM(names.get(), i, py::ref::borrow(key).release());
                values.push_back(value);
            }
        }
        explain_pending({values.data(), PyTuple_GET_SIZE(args), names.get()});
    } catch (...) {
        py::raise_caught();
    }
};

}  // namespace detail

/// Makes an object that is called by vectorcall explain its refusals. Any number of times.
inline void hook_vectorcall(PyObject* callable) noexcept {
    const Py_ssize_t offset = Py_TYPE(callable)->tp_vectorcall_offset;
    if (offset <= 0 || (Py_TYPE(callable)->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL) == 0) return;
    auto& place = *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(callable) + offset);
    place = detail::stand_ins<vectorcallfunc, detail::vectorcall_stand>::in_front_of(place);
}
[[nodiscard]] inline bool is_hooked(PyObject* callable) noexcept {
    return detail::stand_ins<vectorcallfunc, detail::vectorcall_stand>::is_one(
        PyVectorcall_Function(callable));
}

/// Makes a C function with keywords explain its refusals, by its definition, which must not be a constant.
/// False when it had been made to before.
inline bool hook_definition(PyMethodDef& definition) noexcept {
    // The two kinds differ only in whether the number of arguments has a sign.
    const auto swap = [&]<class Stand, class Fn>(std::type_identity<Stand>, Fn) {
        const auto old = reinterpret_cast<Fn>(reinterpret_cast<void (*)()>(definition.ml_meth));
        const Fn made = detail::stand_ins<Fn, Stand>::in_front_of(old);
        definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(made));
        return made != old;
    };
    constexpr int fast = METH_FASTCALL | METH_KEYWORDS;
    constexpr int slow = METH_VARARGS | METH_KEYWORDS;
    if ((definition.ml_flags & fast) == fast)
        return swap(std::type_identity<detail::vectorcall_stand>{}, vectorcallfunc{});
    if ((definition.ml_flags & slow) == slow)
        return swap(std::type_identity<detail::keyword_stand>{}, PyCFunctionWithKeywords{});
    return false;
}

}  // namespace tenon::bind
