// tenon/bind/hook.hpp: a binder's function object, made to explain what it refuses; what it takes costs a
// jump more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/bind/explain.hpp>
#include <tenon/bind/put_off.hpp>
#include <tenon/detail/config.hpp>
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

/// `NameOf::name_of(self)` is what the binder calls the function in its messages. With `PutsOff`, loading its
/// arguments may put an exception off, which the call raises.
template <class NameOf, bool PutsOff = false>
struct vectorcall_stand {
    template <std::size_t I>
    static PyObject* call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* names) {
        const auto original = stand_ins<vectorcallfunc, vectorcall_stand>::template original<I>();
        PyObject* result = nullptr;
        if constexpr (PutsOff) {
            put_off_exception::call under_way;
            result = under_way.end(original(self, args, nargsf, names));
        } else {
            result = original(self, args, nargsf, names);
        }
        if (result == nullptr) [[unlikely]] {
            // The highest bits are flags, CPython's and the binder's.
            const auto count = static_cast<Py_ssize_t>(nargsf & (~std::size_t{0} >> 4U));
            explain_pending({args, count, names}, [&] { return NameOf::name_of(self); });
        }
        return result;
    }
};

template <class NameOf>
struct keyword_stand {
    template <std::size_t I>
    static PyObject* call(PyObject* self, PyObject* args, PyObject* keywords) {
        const auto original = stand_ins<PyCFunctionWithKeywords, keyword_stand>::template original<I>();
        PyObject* const result = original(self, args, keywords);
        if (result == nullptr) [[unlikely]]
            explain(self, args, keywords);
        return result;
    }

private:
    TENON_COLD static void explain(PyObject* self, PyObject* args, PyObject* keywords) noexcept try {
        std::vector<PyObject*> values;
        values.reserve(static_cast<std::size_t>(PyTuple_GET_SIZE(args)));
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
        explain_pending({values.data(), PyTuple_GET_SIZE(args), names.get()},
                        [&] { return NameOf::name_of(self); });
    } catch (...) {
        py::raise_caught();
    }
};

}  // namespace detail

/// What an object that is called by vectorcall is called by: its `__name__`.
struct own_name {
    [[nodiscard]] static std::string name_of(PyObject* self) {
        const py::ref name = py::ref::take(py::call::attr(self, "__name__"));
        const char* const text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
        PyErr_Clear();
        return text != nullptr ? text : "";
    }
};

/// What a hooked function does beyond the binder's own: nothing, explain its refusals, and raise what was put
/// off while its arguments were loaded.
enum class hooking : unsigned char { none, explains, puts_off };

namespace detail {
template <bool PutsOff>
using vectorcall_stand_ins = stand_ins<vectorcallfunc, vectorcall_stand<own_name, PutsOff>>;
}

/// Hooks an object that is called by vectorcall, and is not hooked yet.
inline void hook_vectorcall(PyObject* callable, hooking how) noexcept {
    const Py_ssize_t offset = Py_TYPE(callable)->tp_vectorcall_offset;
    if (offset <= 0 || (Py_TYPE(callable)->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL) == 0) return;
    auto& place = *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(callable) + offset);
    if (how == hooking::explains) place = detail::vectorcall_stand_ins<false>::in_front_of(place);
    if (how == hooking::puts_off) place = detail::vectorcall_stand_ins<true>::in_front_of(place);
}
[[nodiscard]] inline hooking hooking_of(PyObject* callable) noexcept {
    const auto function = PyVectorcall_Function(callable);
    if (detail::vectorcall_stand_ins<true>::is_one(function)) return hooking::puts_off;
    return detail::vectorcall_stand_ins<false>::is_one(function) ? hooking::explains : hooking::none;
}

/// Makes a C function with keywords explain its refusals, by its definition, which must not be a constant.
/// False when it had been made to before.
template <class NameOf>
bool hook_definition(PyMethodDef& definition) noexcept {
    const auto swap = [&]<class Stand, class Fn>(std::type_identity<Stand>, Fn) {
        const auto old = reinterpret_cast<Fn>(reinterpret_cast<void (*)()>(definition.ml_meth));
        const Fn made = detail::stand_ins<Fn, Stand>::in_front_of(old);
        definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(made));
        return made != old;
    };
    constexpr int fast = METH_FASTCALL | METH_KEYWORDS;
    constexpr int slow = METH_VARARGS | METH_KEYWORDS;
    // The fast kind is called as by vectorcall, but for the sign of a number that is never negative.
    if ((definition.ml_flags & fast) == fast)
        return swap(std::type_identity<detail::vectorcall_stand<NameOf>>{}, vectorcallfunc{});
    if ((definition.ml_flags & slow) == slow)
        return swap(std::type_identity<detail::keyword_stand<NameOf>>{}, PyCFunctionWithKeywords{});
    return false;
}

}  // namespace tenon::bind
