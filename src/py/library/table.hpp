// src/py/library/table.hpp: the one table of array libraries, a row each: everything known of them that is
// plain data, for C++ and for the package's Python half, which reads it as `_core.LIBRARIES`.
#pragma once

#include "../runtime/all.hpp"

namespace tenon::py {

/// A function of a library that says which CUDA stream it works on; it may leave an exception.
using library_stream = std::intptr_t (*)(int device);

/// What is known of a library beyond what its objects say. Lists of words are separated by blanks.
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

    // --- what it takes ---
    std::string_view devices = "";  ///< kinds of them; empty: code must say it
    /// Element types it has besides those NumPy has itself, and which of NumPy's it has not. Of those whose
    /// limits are code (NumPy, Numba): none.
    std::string_view more_types = "", fewer_types = "";
    /// It shares memory aligned to less, and cannot compute with it, or ends the process when it does.
    int alignment = 0, alignment_on_gpu = 0, alignment_of_complex128 = 0;
    int copies_below = 0;  ///< memory of the CPU aligned to less it copies
    int most_axes = 0;
    bool forgets_readonly = false;         ///< it has no read-only arrays: it lets the memory be written to
    bool forgets_readonly_on_gpu = false;  ///< it has none on a GPU
    /// On a GPU it writes to memory of others when the array it made of it is donated (seen with JAX 0.11; on
    /// the CPU it makes a copy then).
    bool donates_on_gpu = false;

    // --- what a caller writes to make an array fit ---
    // `$x` is the array, `$t` the element type. Empty: it has no short way.
    std::string_view to_type = "";  ///< another element type
    std::string_view to_c = "";     ///< row-major memory
    std::string_view to_f = "";     ///< column-major memory
    std::string_view to_host = "";  ///< memory the CPU can read
    std::string_view to_cuda = "";
    std::string_view to_writable = "";  ///< memory of its own that may be written to

    // --- its words ---
    /// Attributes of its objects for a device: the kind and the number; or what stands in front of both in
    /// their text, up to a closing parenthesis. Neither: its devices cannot be read, or are `always_cuda`.
    std::string_view device_kind = "", device_number = "", device_text = "";
    std::string_view device_names = "";  ///< kinds it calls otherwise than DLPack: "gpu=cuda"
    /// The attribute of an element type that is its name, or what stands in front of that in its text.
    std::string_view type_attribute = "", type_prefix = "";
    std::string_view type_names = "";  ///< element types it calls otherwise: "double=float64"
    bool types_as_text = false;        ///< a type's text is its name, after the prefix

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
                .devices = "cpu cuda_host rocm_host cuda_managed",
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
                .devices = "cpu cuda rocm oneapi",
                .more_types = "bfloat16 complex32 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
                              "float8_e8m0fnu float4_e2m1fn_x2",
                .alignment_of_complex128 = 16,
                .forgets_readonly = true,
                .to_type = "$x.to(torch.$t)",
                .to_c = "$x.contiguous()",
                .to_f = "$x.T.contiguous().T",
                .to_host = "$x.cpu()",
                .to_cuda = "$x.cuda()",
                .to_writable = "$x.clone()",
                .device_kind = "type",
                .device_number = "index",
                .device_names = "hip=rocm mps=metal xpu=oneapi",
                .type_prefix = "torch.",
                .types_as_text = true},
    library_row{.name = "jax",
                .alias = "jaxlib",
                .immutable = true,
                .hands_out_legacy = true,
                .buffer_first = true,
                .stream_alone = true,
                .from_dlpack = "jax.numpy.from_dlpack",
                .devices = "cpu cuda cuda_host rocm",
                .more_types = "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
                              "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu",
                .alignment_on_gpu = 16,
                .copies_below = 64,
                .donates_on_gpu = true,
                .to_type = "$x.astype('$t')",
                .to_f = "numpy.asfortranarray($x)",
                .to_host = "jax.device_put($x, jax.devices('cpu')[0])",
                .to_cuda = "jax.device_put($x, jax.devices('cuda')[0])",
                .to_writable = "numpy.array($x)",
                .device_kind = "platform",
                .device_number = "id",
                .device_names = "gpu=cuda"},
    library_row{.name = "tensorflow",
                .immutable = true,
                .hands_out_legacy = true,
                .dtype_first = true,
                .from_dlpack = "tensorflow.experimental.dlpack.from_dlpack",
                .from_capsule = true,
                .devices = "cpu cuda",
                .more_types = "bfloat16",
                .alignment = 64,
                .alignment_on_gpu = 64,
                .to_type = "tensorflow.cast($x, '$t')",
                .to_f = "numpy.asfortranarray($x)",
                .to_host = "$x.cpu()",
                .to_cuda = "$x.gpu()",
                .to_writable = "numpy.array($x)",
                .device_kind = "device_type",
                .device_number = "device_index",
                .device_names = "gpu=cuda",
                .type_attribute = "name"},
    library_row{.name = "paddle",
                .distribution = "paddlepaddle",
                .from_dlpack = "paddle.from_dlpack",
                .devices = "cpu cuda cuda_host",
                .more_types = "bfloat16 float8_e4m3fn float8_e5m2",
                .alignment_of_complex128 = 16,
                .most_axes = 9,
                .forgets_readonly = true,
                .to_type = "$x.astype('$t')",
                .device_text = "Place(",
                .device_names = "gpu=cuda xpu=oneapi",
                .type_attribute = "name"},
    library_row{.name = "cupy",
                .distribution = "cupy-cuda13x (or the one that fits your CUDA)",
                .stream_alone = true,
                .always_cuda = true,
                .array = "ndarray",
                .stream_module = "cupy_backends.cuda.stream",
                .stream_function = "get_stream_ptr",
                .from_dlpack = "cupy.from_dlpack",
                .empty = "cupy.empty",
                .devices = "cuda cuda_managed rocm",
                .more_types = "bfloat16",
                .forgets_readonly = true,
                .to_type = "$x.astype('$t')",
                .to_c = "cupy.ascontiguousarray($x)",
                .to_f = "cupy.asfortranarray($x)",
                .to_host = "cupy.asnumpy($x)",
                .to_writable = "$x.copy()",
                .device_number = "id"},
    library_row{.name = "pyarrow",
                .hands_out_legacy = true,
                .legacy_refused_by = "pyarrow.lib.Tensor",
                .arrow_rather_for = "pyarrow.lib.FixedShapeTensorArray",
                .devices = "cpu",
                .fewer_types = "complex64 complex128",  // and its bool is a bit
                .to_type = "$x.cast('$t')",
                .type_names = "halffloat=float16 float=float32 double=float64",
                .types_as_text = true},
    library_row{.name = "numba",
                .devices = "cpu cuda_host rocm_host cuda_managed cuda",
                .forgets_readonly_on_gpu = true},
    library_row{.name = "tvm_ffi",
                .distribution = "apache-tvm-ffi",
                .from_dlpack = "tvm_ffi.from_dlpack",
                .forgets_readonly = true},
    library_row{.name = "cuda.core",
                .distribution = "cuda-core",
                .devices = "cpu cuda cuda_host cuda_managed",
                .more_types = "bfloat16"},
};

namespace detail {

template <class Fn>
constexpr bool all_words(std::string_view list, Fn&& is_fine) {
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(' '), list.size());
        if (!is_fine(list.substr(0, end))) return false;
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return true;
}

constexpr bool is_device_kind(std::string_view word) noexcept {
    return std::ranges::any_of(tenon::detail::device_table, [&](const auto& e) { return e.name == word; });
}

static_assert(std::ranges::all_of(known_libraries,
                                  [](const library_row& row) {
                                      const auto is_type = [](std::string_view word) {
                                          return dtype_from_name(word).has_value();
                                      };
                                      return all_words(row.devices, is_device_kind) &&
                                             all_words(row.more_types, is_type) &&
                                             all_words(row.fewer_types, is_type);
                                  }),
              "a row names an element type or a kind of device that is in neither table");

}  // namespace detail

/// The row of a package, or null.
[[nodiscard]] constexpr const library_row* find_library(std::string_view package) noexcept {
    for (const library_row& row : known_libraries)
        if (row.name == package || (!row.alias.empty() && row.alias == package)) return &row;
    return nullptr;
}

}  // namespace tenon::py
