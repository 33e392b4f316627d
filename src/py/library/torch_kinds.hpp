// src/py/library/torch_kinds.hpp: PyTorch's tensors that have no memory of plain strides, told apart when
// they have been refused, and refused in our words.
//
// PyTorch's own words are those of whichever function met them first, and may end in a backtrace of its C++
// frames; they stay behind ours as the cause.
#pragma once

#include "torch_library.hpp"

namespace tenon::py {

namespace detail {

/// Asks PyTorch what kind of tensor an object is. Runs foreign code; whatever fails says nothing.
class torch_inquiry {
public:
    explicit torch_inquiry(PyObject* tensor) noexcept : tensor_(tensor) {}

    [[nodiscard]] std::optional<error> kind() noexcept {
        if (says("torch._C._functorch", "is_functorch_wrapped_tensor") ||
            says("torch", "_is_functional_tensor"))
            return refused("",
                           "a tensor inside of a transform of torch.func stands for others, and has no "
                           "memory of its own")
                .with_advice("call this outside of vmap, grad, jvp and functionalize");
        if (is_fake())
            return refused("", "a fake tensor has only a shape and a type, and no memory")
                .with_advice("call this outside of FakeTensorMode, with a real tensor");
        const ref layout = attribute(tensor_, "layout");
        const ref text = layout ? ref::take(foreign_code([&] { return PyObject_Str(layout.get()); })) : ref();
        const char* const spelled = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
        const std::string_view name = spelled != nullptr ? spelled : "";
        if (name == "torch.jagged" || is("is_nested"))
            return refused("", "a nested tensor is several tensors, and has no memory of plain strides")
                .with_advice(
                    "call torch.nested.to_padded_tensor(t, 0.0) first, or take the parts by .unbind()");
        if (name.starts_with("torch.sparse"))
            return refused("", "a sparse tensor has no memory of plain strides")
                .with_advice("call .to_dense() first");
        if (name == "torch._mkldnn")
            return refused("", "an mkldnn tensor has no memory of plain strides")
                .with_advice("call .to_dense() first");
        if (is("is_quantized"))
            return refused("", "a quantized tensor's memory holds other numbers than it shows")
                .with_advice("call .dequantize() first, or .int_repr() for what it stores");
        if (is("is_meta"))
            return refused("", "a tensor on the meta device has only a shape and a type, and no memory")
                .with_advice("make it on a real device, as with torch.empty_like(t, device='cpu')");
        return std::nullopt;
    }

private:
    [[nodiscard]] ref attribute(PyObject* obj, const char* name) noexcept {
        // What an interruption has to say, it says once: nothing is asked after it.
        return PyErr_Occurred() == nullptr ? ref::take(call::attr(obj, name)) : ref();
    }
    [[nodiscard]] bool is_true(const ref& answer) noexcept {
        const bool yes = answer && call::is_true(answer.get()) > 0;
        return forget_answer() && yes;
    }
    [[nodiscard]] bool is(const char* name) noexcept { return is_true(attribute(tensor_, name)); }
    /// What a function of PyTorch's answers.
    [[nodiscard]] bool says(const char* module, const char* name) noexcept {
        const ref found = PyErr_Occurred() == nullptr ? imported_attr(module, name) : ref();
        return is_true(found ? ref::take(call::one_argument(found.get(), tensor_)) : ref());
    }
    [[nodiscard]] bool is_fake() noexcept {
        if (PyErr_Occurred() != nullptr) return false;
        const ref type = imported_attr("torch._subclasses.fake_tensor", "FakeTensor");
        (void)is_true({});
        return type && PyType_Check(type.get()) != 0 &&
               PyType_IsSubtype(Py_TYPE(tensor_), reinterpret_cast<PyTypeObject*>(type.get())) != 0;
    }

    PyObject* tensor_;
};

/// Raises it again; where it ends in a backtrace, only what it says before that, with all of it as the cause.
inline void raise_first_line(ref exception) noexcept try {
    const ref text = ref::take(foreign_code([&] { return PyObject_Str(exception.get()); }));
    const char* const told = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    const std::string_view all = told != nullptr ? told : "";
    const std::size_t end = all.find("\nException raised from ");
    if (!forget_answer()) return chain_behind(std::move(exception));
    if (end == std::string_view::npos) return restore_exception(std::move(exception));
    const std::string_view line = all.substr(0, end);
    const bool is_type = line.find("supported by dlpack") != std::string_view::npos;
    raise(errc::refused,
          "tenon: cannot take this tensor: " + std::string(line) +
              (is_type ? "; view it as numbers of the same size first, as with t.view(torch.uint8)" : ""));
    blame(std::move(exception));
} catch (...) {
    raise_caught();
}

}  // namespace detail

/// Puts a failed import in our words, if the object is a tensor of PyTorch's of a kind that has no plain
/// memory. The pending exception becomes the cause if it is PyTorch's; any other object's, and whatever is no
/// answer (Ctrl-C, no memory, imports that are nested too deep), stays as it is.
TENON_COLD inline void reword_for_torch(PyObject* obj) noexcept {
    if (attached_thread_state() == nullptr) return;  // what was said without the GIL stays as it is
    const torch_library* const torch = torch_library::known();
    if (torch == nullptr || !torch->has(Py_TYPE(obj)) || is_no_answer_pending()) return;
    ref first = pending_exception();
    const nesting_level level;  // it is asked, and may import in turn
    if (!level) return chain_behind(std::move(first));
    detail::torch_inquiry inquiry(obj);
    const auto kind = inquiry.kind();
    if (!forget_answer()) return chain_behind(std::move(first));  // interrupted while it was asked
    if (!kind) return detail::raise_first_line(std::move(first));
    const bool is_ours = PyObject_TypeCheck(first.get(), reinterpret_cast<PyTypeObject*>(PyExc_BufferError));
    raise_from(*kind, "tenon: cannot take this tensor: ", is_ours ? ref() : std::move(first));
}

}  // namespace tenon::py
