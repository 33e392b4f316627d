// src/py/library/torch_library.hpp: PyTorch's own classes, and its own functions that say what a tensor's
// memory means: found once, tried out on samples, and then asked without running anything else.
//
// Conjugate and negative views show other numbers than their memory holds, and the exchange table does not
// tell. The methods that do (`is_neg`) let go of the GIL and run whatever `__torch_function__` is in force;
// the functions behind them are a few instructions each. PyTorch exports them, and promises nothing: where
// they are not found by their names, or do not answer for samples as the methods do, the methods are asked.
#pragma once

#include "library_of.hpp"

#if !defined(_WIN32)
#include <dlfcn.h>
#endif

namespace tenon::py {

namespace detail {

// What loaded libraries have, and which of them something lies in. Not looked at on Windows.
#if defined(_WIN32)
inline constexpr bool sees_libraries = false;
inline void* exported_by_torch(const char*) noexcept { return nullptr; }
inline const void* library_at(const void*) noexcept { return nullptr; }
#else
inline constexpr bool sees_libraries = true;
/// What is exported by this name by PyTorch's Python module or what it depends on, which is never closed.
[[nodiscard]] inline void* exported_by_torch(const char* name) noexcept {
#if defined(__APPLE__)
    void* const library = dlopen("@rpath/libtorch_python.dylib", RTLD_NOW | RTLD_NOLOAD);
#else
    void* const library = dlopen("libtorch_python.so", RTLD_NOW | RTLD_NOLOAD);
#endif
    return library != nullptr ? dlsym(library, name) : nullptr;
}
/// Where the library begins that has something at this address; null when none has.
[[nodiscard]] inline const void* library_at(const void* address) noexcept {
    Dl_info found{};
    return address != nullptr && dladdr(address, &found) != 0 ? found.dli_fbase : nullptr;
}
#endif

}  // namespace detail

/// What the implementation behind a tensor says. Neither runs Python nor lets go of the GIL. To be asked of
/// tensors of PyTorch's alone, any class of them.
class torch_flags {
public:
    /// Its memory holds other numbers than it shows: it is a negative or a conjugate view. Of elements that
    /// are not complex PyTorch makes no conjugate views.
    TENON_HOT [[nodiscard]] bool is_lazy(PyObject* tensor, bool may_be_complex = true) const noexcept {
        return is_negative(tensor) || (may_be_complex && is_conjugate(tensor));
    }
    TENON_HOT [[nodiscard]] bool is_negative(PyObject* tensor) const noexcept {
        return is_neg_(place_in(tensor));
    }
    TENON_HOT [[nodiscard]] bool is_conjugate(PyObject* tensor) const noexcept {
        return is_conj_(place_in(tensor));
    }
    TENON_HOT [[nodiscard]] bool requires_grad(PyObject* tensor) const noexcept {
        return requires_grad_(*static_cast<void* const*>(place_in(tensor)));
    }
    /// A mode of PyTorch's dispatcher is in force on this thread. It answers for tensors that have Python say
    /// where they lie or how large they are, whatever their class: even to lend one runs code then.
    [[nodiscard]] bool is_mode_in_force() const noexcept { return any_modes_set_(false); }

private:
    friend class torch_library;

    /// The `at::Tensor` in the Python object.
    TENON_HOT [[nodiscard]] const void* place_in(PyObject* tensor) const noexcept {
        return reinterpret_cast<const char*>(tensor) + offset_;
    }
    /// The functions, if they are exported by these names.
    [[nodiscard]] bool find_functions() noexcept {
        const auto find = [&](auto& function, const char* name) {
            void* const found = detail::exported_by_torch(name);
            std::memcpy(&function, &found, sizeof found);
            return found != nullptr;
        };
        return find(is_neg_, "_ZN2at6native6is_negERKNS_6TensorE") &&
               find(is_conj_, "_ZN2at6native7is_conjERKNS_6TensorE") &&
               find(requires_grad_, "_ZNK3c1010TensorImpl13requires_gradEv") &&
               find(any_modes_set_, "_ZN3c104impl20TorchDispatchModeTLS13any_modes_setEb") &&
               find(get_disabled_, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv") &&
               find(set_disabled_,
                    "_ZN2at4impl22PythonTorchFunctionTLS18set_disabled_stateE"
                    "NS0_26TorchFunctionDisabledStateE");
    }

    bool (*is_neg_)(const void* tensor) = nullptr;
    bool (*is_conj_)(const void* tensor) = nullptr;
    bool (*requires_grad_)(const void* implementation) = nullptr;
    bool (*any_modes_set_)(bool skip_internal) = nullptr;
    static constexpr int all_disabled = 2;  ///< of ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED
    int (*get_disabled_)() = nullptr;       ///< whether functions can be overridden on this thread
    void (*set_disabled_)(int) = nullptr;
    std::size_t offset_ = 0;
};

/// PyTorch as it is loaded.
class torch_library {
public:
    /// Bytes that lie side by side.
    struct memory {
        std::uintptr_t address = 0;
        std::uint64_t size = 0;
        [[nodiscard]] bool operator==(const memory&) const noexcept = default;
    };
    /// What `find` knows.
    struct finding {
        const torch_library* library;  ///< null: not there, or not as we know it
        bool settled;                  ///< otherwise look again: it could not be tried out just now
    };

    /// What has been found so far.
    [[nodiscard]] static const torch_library* known() noexcept {
        return found_.load(std::memory_order_acquire);
    }
    /// Called when a type is looked at that says it is PyTorch's. Runs code of PyTorch's; an exception is
    /// left only if it ends the call (Ctrl-C).
    [[nodiscard]] TENON_PRIVATE static finding find(const interpreter& names) noexcept {
        const torch_library* library = known();
        if (library != nullptr && library->is_settled()) return {library, true};
        thread_local bool looking = false;
        if (looking) return {library, false};  // a collector that imports, while samples are made
        looking = true;
        if (library == nullptr) library = look(names);
        if (library != nullptr) library->find_flags();
        looking = false;
        return {library, library == nullptr || library->is_settled()};
    }

    /// Whether objects of the type are tensors of PyTorch's.
    [[nodiscard]] bool has(PyTypeObject* type) const noexcept { return PyType_IsSubtype(type, tensor_) != 0; }
    /// Whether the type is `torch.Tensor` itself, which is kept for good.
    [[nodiscard]] bool is_plain(PyTypeObject* type) const noexcept { return type == tensor_; }
    /// Whether the type has its exchange table from `torch.Tensor`, and not one of its own: a subclass may
    /// bring another, which lends memory that must not be written to.
    [[nodiscard]] bool lends_by_own_table(PyTypeObject* type, const interpreter& names) const noexcept {
        if (!has(type)) return false;
        const ref own = ref::take(call::type_attr(type, names.exchange_api));
        const ref plain = ref::take(call::type_attr(tensor_, names.exchange_api));
        return own && own.get() == plain.get();
    }
    /// Whether tensors of the type may have Python say where they lie or how large they are, so that even to
    /// lend one runs code: a class with a `__torch_dispatch__` of its own.
    [[nodiscard]] bool asks_python(PyTypeObject* type, const interpreter& names) const noexcept {
        const ref own = ref::take(call::type_attr(type, names.torch_dispatch));
        return !own || own.get() != no_dispatch_;
    }
    /// Whether something lies in PyTorch's own library: a table that somebody else has put on its class does
    /// not, and keeps none of PyTorch's row.
    [[nodiscard]] bool contains(const void* address) const noexcept {
        if (!detail::sees_libraries) return true;  // not known, and believed
        return library_ != nullptr && detail::library_at(address) == library_;
    }
    /// Null when tensors must be asked by their methods.
    [[nodiscard]] const torch_flags* flags() const noexcept { return flags_.load(std::memory_order_acquire); }
    /// Whether these are what `torch.Tensor` itself is asked by: what `flags` tells then, too.
    [[nodiscard]] bool asks_by(const object_query& conjugate, const object_query& negative,
                               const object_query& requires_grad) const noexcept {
        return conjugate == conjugate_ && negative == negative_ && requires_grad == requires_grad_;
    }
    /// The storage behind a tensor, whose memory the exchange table shows; null with an exception set when
    /// it has none. It is PyTorch's own function that is asked, not what a subclass has made of it. What is
    /// told by one that overrides all functions (`__torch_function__`, a mode) must be a storage at least.
    [[nodiscard]] ref storage_of(PyObject* tensor, const interpreter& names) const noexcept {
        ref told = storage_of_.fetch(tensor, names.untyped_storage);
        const torch_flags* const functions = flags();
        if (!told || Py_IS_TYPE(told.get(), storage_) || functions == nullptr) return told;
        const int before = functions->get_disabled_();
        functions->set_disabled_(torch_flags::all_disabled);
        told = storage_of_.fetch(tensor, names.untyped_storage);
        functions->set_disabled_(before);
        return told;
    }

    /// The memory that an object owns, if it is a storage of PyTorch's, that very class: whoever holds it
    /// holds the memory. No exception is left.
    [[nodiscard]] std::optional<memory> memory_of(PyObject* storage,
                                                  const interpreter& names) const noexcept {
        if (!Py_IS_TYPE(storage, storage_)) return std::nullopt;
        const ref address = data_ptr_.fetch(storage, names.data_ptr);
        const ref size = address ? nbytes_.fetch(storage, names.nbytes) : ref();
        memory out;
        if (size && PyLong_Check(address.get()) && PyLong_Check(size.get())) {
            out.address = reinterpret_cast<std::uintptr_t>(PyLong_AsVoidPtr(address.get()));
            out.size = PyLong_AsUnsignedLongLong(size.get());
        }
        const bool told = size && PyErr_Occurred() == nullptr;
        PyErr_Clear();
        return told ? std::optional(out) : std::nullopt;
    }

private:
    torch_library() noexcept = default;

    [[nodiscard]] bool is_settled() const noexcept { return flags() != nullptr || tries_left_.load() <= 0; }

    TENON_COLD [[nodiscard]] static const torch_library* look(const interpreter& names) noexcept {
        auto* const made = new (std::nothrow) torch_library;  // as long as PyTorch: for good
        const torch_library* first = nullptr;
        if (made != nullptr && made->find_classes(names) && found_.compare_exchange_strong(first, made))
            return made;
        (void)forget_answer();
        delete made;
        return first;
    }

    TENON_COLD void find_flags() const noexcept {
        torch_flags candidate;
        // They are for the library that takes the same class for its tensors.
        PyObject* const* const exported = exported_class();
        if (!candidate.find_functions() || exported == nullptr ||
            *exported != reinterpret_cast<PyObject*>(tensor_)) {
            tries_left_.store(0);
        } else if (try_out(candidate)) {
            auto* const made = new (std::nothrow) torch_flags(candidate);
            const torch_flags* first = nullptr;
            if (!flags_.compare_exchange_strong(first, made)) delete made;
        } else {
            tries_left_.fetch_sub(1);
            if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_Exception) != 0) PyErr_Clear();
        }
    }

    [[nodiscard]] bool find_classes(const interpreter& names) noexcept {
        ref tensor = imported_attr("torch", "Tensor");
        ref storage = tensor ? imported_attr("torch", "UntypedStorage") : ref();
        if (!storage || PyType_Check(tensor.get()) == 0 || PyType_Check(storage.get()) == 0) return false;
        tensor_ = as_type(tensor);
        storage_ = as_type(storage);
        const library_row* const row = detail::library_of_class(tensor_);
        if (row == nullptr || row->name != "torch" || !is_library_class(tensor_, *row) ||
            !is_library_class(storage_, "torch", "UntypedStorage", "torch._C.StorageBase"))
            return false;
        conjugate_ = object_query::find(tensor_, names.is_conj);
        negative_ = object_query::find(tensor_, names.is_neg);
        requires_grad_ = object_query::find(tensor_, names.requires_grad);
        storage_of_ = object_query::find(tensor_->tp_base, names.untyped_storage);  // a class in C
        data_ptr_ = object_query::find(storage_->tp_base, names.data_ptr);
        nbytes_ = object_query::find(storage_->tp_base, names.nbytes);
        ref no_dispatch = ref::take(call::type_attr(tensor_, names.torch_dispatch));
        if (!data_ptr_.exists() || !nbytes_.exists()) return false;
        if (no_dispatch && PyCFunction_Check(no_dispatch.get())) no_dispatch_ = no_dispatch.release();
        library_ = detail::library_at(exported_class());
        (void)tensor.release();  // kept for good
        (void)storage.release();
        return true;
    }

    /// Where PyTorch's module keeps the class it takes for its tensors.
    [[nodiscard]] static PyObject* const* exported_class() noexcept {
        return static_cast<PyObject* const*>(detail::exported_by_torch("THPVariableClass"));
    }

    /// Makes tensors of every kind, finds out where in their objects the implementation is, and whether the
    /// functions answer as the methods do. False when anything is unexpected, with or without an exception.
    [[nodiscard]] bool try_out(torch_flags& candidate) const noexcept {
        // Whatever modes are in force, the samples are plain ones, on the CPU.
        static constexpr const char* program = R"(
with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
    c = torch.ones(4, dtype=torch.complex64, device="cpu")
    f = torch.ones(8, dtype=torch.float32, device="cpu")
    n = c.conj().imag
    g = torch.ones(1, dtype=torch.float32, device="cpu", requires_grad=True)
    made = [c, f, c.conj(), n, n.as_strided((2,), (1,), 2), f[::2], g, g.detach()]
    made += [torch.nn.Parameter(f), torch.nn.Parameter(f, requires_grad=False)]
    samples = [(t, cdata.__get__(t), t.is_neg(), t.is_conj(), t.requires_grad) for t in made]
)";
        const ref module = ref::take(call::imported_module("torch"));
        // An address that is used: what PyTorch's own class in C says, which cannot be changed.
        const ref cdata = ref::take(call::type_attr(tensor_->tp_base, "_cdata"));
        if (!module || !cdata || !Py_IS_TYPE(cdata.get(), &PyGetSetDescr_Type)) return false;
        const ref left = run_over(program, {{"torch", module.get()}, {"cdata", cdata.get()}});
        const ref made = left ? ref::take(call::dict_item(left.get(), "samples")) : ref();
        return made && agree(made.get(), candidate);
    }

    /// The implementation's address in the object: its place, if that is one word alone; otherwise 0.
    [[nodiscard]] std::size_t find_offset(PyObject* tensor, std::uintptr_t implementation) const noexcept {
        std::size_t found = 0;
        int places = 0;
        const auto size = static_cast<std::size_t>(tensor_->tp_basicsize);
        for (std::size_t at = sizeof(PyObject); at + sizeof(void*) <= size; at += sizeof(void*)) {
            if (word_at(tensor, at) != implementation) continue;
            found = at;
            ++places;
        }
        return places == 1 ? found : 0;
    }
    [[nodiscard]] static std::uintptr_t word_at(PyObject* tensor, std::size_t offset) noexcept {
        std::uintptr_t word = 0;
        std::memcpy(&word, reinterpret_cast<const char*>(tensor) + offset, sizeof word);
        return word;
    }

    /// Whether every sample has its implementation at one place, which is noted, and the functions answer as
    /// the methods did. Every answer must have been heard both ways.
    [[nodiscard]] bool agree(PyObject* samples, torch_flags& candidate) const noexcept {
        bool heard[3][2] = {};
        if (!PyList_CheckExact(samples)) return false;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(samples); ++i) {
            const ref row = ref::borrow(PyList_GET_ITEM(samples, i));
            PyObject *tensor = nullptr, *said[3] = {};
            unsigned long long address = 0;
            const bool read =
                PyTuple_CheckExact(row.get()) && foreign_code([&] {
                    return PyArg_ParseTuple(row.get(), "OKO!O!O!", &tensor, &address, &PyBool_Type, &said[0],
                                            &PyBool_Type, &said[1], &PyBool_Type, &said[2]);
                });
            if (!read || !has(Py_TYPE(tensor)) || address == 0) return false;
            if (i == 0) candidate.offset_ = find_offset(tensor, address);
            if (candidate.offset_ == 0 || word_at(tensor, candidate.offset_) != address) return false;
            const bool told[3] = {candidate.is_negative(tensor), candidate.is_conjugate(tensor),
                                  candidate.requires_grad(tensor)};
            for (int k = 0; k < 3; ++k) {
                if (told[k] != (said[k] == Py_True)) return false;
                heard[k][told[k] ? 1 : 0] = true;
            }
        }
        return !is_any(heard, [](const auto& both) { return !both[0] || !both[1]; });
    }

    TENON_PRIVATE static inline constinit std::atomic<const torch_library*> found_{nullptr};

    PyTypeObject* tensor_ = nullptr;
    PyTypeObject* storage_ = nullptr;
    const void* library_ = nullptr;    ///< where it is loaded
    PyObject* no_dispatch_ = nullptr;  ///< what stands for no `__torch_dispatch__`; kept for good
    object_query conjugate_, negative_, requires_grad_;
    object_query storage_of_, data_ptr_, nbytes_;
    mutable std::atomic<const torch_flags*> flags_{nullptr};
    /// How often the samples may turn out otherwise, in whatever state PyTorch is, before its methods are
    /// asked for good.
    mutable std::atomic<int> tries_left_{8};
};

/// Whether a tensor of PyTorch's that was lent just now may have run code: see `is_mode_in_force`.
[[nodiscard]] inline bool is_torch_mode_in_force() noexcept {
    const torch_library* const torch = torch_library::known();
    const torch_flags* const flags = torch != nullptr ? torch->flags() : nullptr;
    return flags != nullptr && flags->is_mode_in_force();
}

}  // namespace tenon::py
