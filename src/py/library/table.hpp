// src/py/library/table.hpp: the one table of array libraries, a row each: what every module must know of them
// that is plain data. What the package alone reads stands beside it, in python/src/library_words.hpp.
#pragma once

#include "../runtime/all.hpp"

namespace tenon::py {

/// A function of a library that says which CUDA stream it works on; it may leave an exception.
using library_stream = std::intptr_t (*)(int device);

/// What is known of a library beyond what its objects say.
struct library_row {
    /// What is imported; its first part is that of the `__module__` of its classes.
    std::string_view name;
    std::string_view alias = "";         ///< another package that its classes may come from
    std::string_view distribution = "";  ///< what is installed for it, if that has another name

    // --- its arrays as they come in ---
    bool immutable = false;  ///< they must never be written to, whatever a struct's flags say
    /// Asked for no version, its `__dlpack__` gives a legacy struct even of memory that must not be written
    /// to: through us the same consumers get the same. Not so for the one class of it that refuses.
    bool hands_out_legacy = false;
    std::string_view legacy_refused_by = "";
    /// A class whose `__dlpack__` is wrong about strides (PyArrow 26, permuted axes): Arrow's interface is
    /// asked in its place.
    std::string_view arrow_rather_for = "";
    bool buffer_first = false;  ///< the buffer protocol says the same as `__dlpack__`, faster (measured)
    bool guarded = false;       ///< `is_conj`, `is_neg` and `requires_grad` must be asked
    bool dtype_first = false;   ///< `__dlpack__` aborts the process for dtypes it cannot express
    /// Its `__dlpack__` on CUDA is asked with the stream alone, and `__dlpack_device__` not at all: what they
    /// would add costs as much again, and the capsule says the rest (measured). Its arrays can be written to,
    /// unless `immutable`.
    bool stream_alone = false;
    bool always_cuda = false;  ///< it has no other arrays
    /// Its plain array class, as its package calls it. What trusts more than a protocol says (writable legacy
    /// structs, the library's stream, PyTorch's table and storages) trusts this very class:
    /// `is_library_class`.
    const char* array = nullptr;
    const char* array_base = nullptr;  ///< the class made in C that it derives from, where there is one
    /// The module, compiled by Cython, and the C function in it, `intptr_t (int device)`, that says which
    /// CUDA stream the library works on: it is asked, instead of having another stream wait for that one.
    const char* stream_module = nullptr;
    const char* stream_function = nullptr;

    // --- what makes its arrays ---
    const char* from_dlpack = nullptr;  ///< as a path through its modules
    bool from_capsule = false;          ///< that takes a legacy capsule, and no object
    const char* empty = nullptr;        ///< `empty(shape, dtype=...)`, where its arrays may be written to

    // --- what it can compute with ---
    /// It shares memory aligned to less, and cannot compute with it, or ends the process when it does.
    int alignment = 0, alignment_on_gpu = 0, alignment_of_complex128 = 0;

    // --- what a caller writes to make an array fit ---
    // `$x` is the array, `$t` the element type. Empty: it has no short way.
    std::string_view to_type = "";  ///< another element type
    std::string_view to_c = "";     ///< row-major memory
    std::string_view to_f = "";     ///< column-major memory
    std::string_view to_host = "";  ///< memory the CPU can read
    std::string_view to_cuda = "";
    std::string_view to_writable = "";  ///< memory of its own that may be written to

    /// Arrays of it can be made of any tensor: NumPy's by its C functions, the others' by `from_dlpack`.
    [[nodiscard]] constexpr bool makes_arrays() const noexcept {
        return from_dlpack != nullptr || name == "numpy";
    }
    /// Whether it can compute with elements at an address, as far as alignment goes.
    [[nodiscard]] bool can_compute_at(const void* address, dtype type, device where) const noexcept {
        constexpr dtype complex128(abi::type_code::complex, 128);
        const int needed = type == complex128 && alignment_of_complex128 != 0 ? alignment_of_complex128
                           : where.has_streams()                              ? alignment_on_gpu
                                                                              : alignment;
        return needed == 0 || reinterpret_cast<std::uintptr_t>(address) % static_cast<unsigned>(needed) == 0;
    }
};

TENON_PRIVATE inline constexpr std::array known_libraries{
    library_row{.name = "numpy",
                .to_type = "$x.astype('$t')",
                .to_c = "numpy.ascontiguousarray($x)",
                .to_f = "numpy.asfortranarray($x)",
                .to_cuda = "cupy.asarray($x)",
                .to_writable = "$x.copy()"},
    library_row{.name = "torch",
                .guarded = true,
                .array = "Tensor",
                .array_base = "torch._C.TensorBase",
                .from_dlpack = "torch.from_dlpack",
                .empty = "torch.empty",
                .alignment_of_complex128 = 16,
                .to_type = "$x.to(torch.$t)",
                .to_c = "$x.contiguous()",
                .to_f = "$x.T.contiguous().T",
                .to_host = "$x.cpu()",
                .to_cuda = "$x.cuda()",
                .to_writable = "$x.clone()"},
    library_row{.name = "jax",
                .alias = "jaxlib",
                .immutable = true,
                .hands_out_legacy = true,
                .buffer_first = true,
                .stream_alone = true,
                .from_dlpack = "jax.numpy.from_dlpack",
                .alignment_on_gpu = 16,
                .to_type = "$x.astype('$t')",
                .to_f = "numpy.asfortranarray($x)",
                .to_host = "jax.device_put($x, jax.devices('cpu')[0])",
                .to_cuda = "jax.device_put($x, jax.devices('cuda')[0])",
                .to_writable = "numpy.array($x)"},
    library_row{.name = "tensorflow",
                .immutable = true,
                .hands_out_legacy = true,
                .dtype_first = true,
                .from_dlpack = "tensorflow.experimental.dlpack.from_dlpack",
                .from_capsule = true,
                .alignment = 64,
                .alignment_on_gpu = 64,
                .to_type = "tensorflow.cast($x, '$t')",
                .to_f = "numpy.asfortranarray($x)",
                .to_host = "$x.cpu()",
                .to_cuda = "$x.gpu()",
                .to_writable = "numpy.array($x)"},
    library_row{.name = "paddle",
                .distribution = "paddlepaddle",
                .from_dlpack = "paddle.from_dlpack",
                .alignment_of_complex128 = 16,
                .to_type = "$x.astype('$t')"},
    library_row{.name = "cupy",
                .distribution = "cupy-cuda13x (or the one that fits your CUDA)",
                .stream_alone = true,
                .always_cuda = true,
                .array = "ndarray",
                .stream_module = "cupy_backends.cuda.stream",
                .stream_function = "get_stream_ptr",
                .from_dlpack = "cupy.from_dlpack",
                .empty = "cupy.empty",
                .to_type = "$x.astype('$t')",
                .to_c = "cupy.ascontiguousarray($x)",
                .to_f = "cupy.asfortranarray($x)",
                .to_host = "cupy.asnumpy($x)",
                .to_writable = "$x.copy()"},
    library_row{.name = "pyarrow",
                .hands_out_legacy = true,
                .legacy_refused_by = "pyarrow.lib.Tensor",
                .arrow_rather_for = "pyarrow.lib.FixedShapeTensorArray",
                .to_type = "$x.cast('$t')"},
    library_row{.name = "numba"},
    library_row{.name = "tvm_ffi", .distribution = "apache-tvm-ffi", .from_dlpack = "tvm_ffi.from_dlpack"},
    library_row{.name = "cuda.core", .distribution = "cuda-core"},
};

/// The row of a package, or null.
[[nodiscard]] constexpr const library_row* find_library(std::string_view package) noexcept {
    for (const library_row& row : known_libraries)
        if (row.name == package || (!row.alias.empty() && row.alias == package)) return &row;
    return nullptr;
}

}  // namespace tenon::py
