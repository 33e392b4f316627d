// src/py/library/torch_kinds.hpp: PyTorch's tensors that have no memory of plain strides, told apart when
// they have been refused, and refused in our words.
//
// PyTorch's own words are those of whichever function met them first, and may end in a backtrace of its C++
// frames; they stay behind ours as the cause.
#pragma once

#include "torch_library.hpp"

namespace tenon::py {

namespace detail {

/// A kind of tensor: what Python says of such a tensor `t` alone, and what is wrong with it.
struct torch_kind {
    const char* holds;
    const char* problem;
    const char* advice;
};
TENON_PRIVATE inline constexpr const char in_transform[] =
    "a tensor inside of a transform of torch.func stands for others, and has no memory of its own";
TENON_PRIVATE inline constexpr const char leave_transform[] =
    "call this outside of vmap, grad, jvp and functionalize";
TENON_PRIVATE inline constexpr torch_kind torch_kinds[] = {
    {"torch._C._functorch.is_functorch_wrapped_tensor(t)", in_transform, leave_transform},
    {"torch._is_functional_tensor(t)", in_transform, leave_transform},
    {"issubclass(type(t), torch._subclasses.fake_tensor.FakeTensor)",
     "a fake tensor has only a shape and a type, and no memory",
     "call this outside of FakeTensorMode, with a real tensor"},
    {"str(t.layout) == 'torch.jagged' or t.is_nested",
     "a nested tensor is several tensors, and has no memory of plain strides",
     "call torch.nested.to_padded_tensor(t, 0.0) first, or take the parts by .unbind()"},
    {"str(t.layout).startswith('torch.sparse')", "a sparse tensor has no memory of plain strides",
     "call .to_dense() first"},
    {"str(t.layout) == 'torch._mkldnn'", "an mkldnn tensor has no memory of plain strides",
     "call .to_dense() first"},
    {"t.is_quantized", "a quantized tensor's memory holds other numbers than it shows",
     "call .dequantize() first, or .int_repr() for what it stores"},
    {"t.is_meta", "a tensor on the meta device has only a shape and a type, and no memory",
     "make it on a real device, as with torch.empty_like(t, device='cpu')"},
};

/// The first of the kinds that an object is. What fails to be evaluated says nothing, unless it ends the
/// call: then nothing more is asked, and the exception stands.
[[nodiscard]] inline const torch_kind* kind_of(PyObject* tensor) noexcept {
    const ref torch = ref::take(call::imported_module("torch"));
    const ref variables = torch ? variables_of({{"torch", torch.get()}, {"t", tensor}}) : ref();
    for (const torch_kind& kind : torch_kinds) {
        const ref answer = variables ? ref::take(call::evaluate(kind.holds, variables.get())) : ref();
        const bool holds = answer && call::is_true(answer.get()) > 0;
        if (!forget_answer()) return nullptr;
        if (holds) return &kind;
    }
    return nullptr;
}

/// Raises it again; where it ends in a backtrace, only what it says before that, with all of it as the cause.
inline void raise_first_line(ref exception) noexcept try {
    const ref text = ref::take(call::str(exception.get()));
    const char* const told = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    const std::string_view all = told != nullptr ? told : "";
    const std::size_t end = all.find("\nException raised from ");
    if (!forget_answer()) return chain_behind(std::move(exception));
    if (end == std::string_view::npos) return restore_exception(std::move(exception));
    const std::string_view line = all.substr(0, end);
    const bool is_type = line.find("supported by dlpack") != std::string_view::npos;
    raise(errc::refused,
          sentence(
              {"tenon: cannot take this tensor: ", line,
               is_type ? "; view it as numbers of the same size first, as with t.view(torch.uint8)" : ""}));
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
    const detail::torch_kind* const kind = detail::kind_of(obj);
    if (PyErr_Occurred() != nullptr) return chain_behind(std::move(first));  // interrupted while it was asked
    if (kind == nullptr) return detail::raise_first_line(std::move(first));
    const bool is_ours = PyObject_TypeCheck(first.get(), reinterpret_cast<PyTypeObject*>(PyExc_BufferError));
    raise(refused("", kind->problem).with_advice(kind->advice), "tenon: cannot take this tensor: ");
    blame(is_ours ? ref() : std::move(first));
}

}  // namespace tenon::py
