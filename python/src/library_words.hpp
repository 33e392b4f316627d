// python/src/library_words.hpp: what of array libraries the package alone reads: what each takes, and its
// words; a row for each of the engine's table, and part of the same in `_core.LIBRARIES`.
#pragma once

#include "../../src/py/library/table.hpp"

namespace tenon::module {

/// Lists of words are separated by blanks.
struct library_words {
    std::string_view of;  ///< the name of its row in the engine's table

    // --- what it takes ---
    std::string_view devices = "";  ///< kinds of them; empty: code must say it
    /// Element types it has besides those NumPy has itself, and which of NumPy's it has not. Of those whose
    /// limits are code (NumPy, Numba): none.
    std::string_view more_types = "", fewer_types = "";
    int copies_below = 0;  ///< memory of the CPU aligned to less it copies
    int most_axes = 0;
    bool forgets_readonly = false;         ///< it has no read-only arrays: it lets the memory be written to
    bool forgets_readonly_on_gpu = false;  ///< it has none on a GPU
    /// On a GPU it writes to memory of others when the array it made of it is donated (seen with JAX 0.11; on
    /// the CPU it makes a copy then).
    bool donates_on_gpu = false;

    // --- its words ---
    /// Attributes of its objects for a device: the kind and the number; or what stands in front of both in
    /// their text, up to a closing parenthesis. Neither: its devices cannot be read, or are `always_cuda`.
    std::string_view device_kind = "", device_number = "", device_text = "";
    std::string_view device_names = "";  ///< kinds it calls otherwise than DLPack: "gpu=cuda"
    /// The attribute of an element type that is its name, or what stands in front of that in its text.
    std::string_view type_attribute = "", type_prefix = "";
    std::string_view type_names = "";  ///< element types it calls otherwise: "double=float64"
    bool types_as_text = false;        ///< a type's text is its name, after the prefix
};

inline constexpr std::array words_of_libraries{
    library_words{.of = "numpy", .devices = "cpu cuda_host rocm_host cuda_managed"},
    library_words{.of = "torch",
                  .devices = "cpu cuda rocm oneapi",
                  .more_types =
                      "bfloat16 complex32 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
                      "float8_e8m0fnu float4_e2m1fn_x2",
                  .forgets_readonly = true,
                  .device_kind = "type",
                  .device_number = "index",
                  .device_names = "hip=rocm mps=metal xpu=oneapi",
                  .type_prefix = "torch.",
                  .types_as_text = true},
    library_words{.of = "jax",
                  .devices = "cpu cuda cuda_host rocm",
                  .more_types = "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
                                "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu",
                  .copies_below = 64,
                  .donates_on_gpu = true,
                  .device_kind = "platform",
                  .device_number = "id",
                  .device_names = "gpu=cuda"},
    library_words{.of = "tensorflow",
                  .devices = "cpu cuda",
                  .more_types = "bfloat16",
                  .device_kind = "device_type",
                  .device_number = "device_index",
                  .device_names = "gpu=cuda",
                  .type_attribute = "name"},
    library_words{.of = "paddle",
                  .devices = "cpu cuda cuda_host",
                  .more_types = "bfloat16 float8_e4m3fn float8_e5m2",
                  .most_axes = 9,
                  .forgets_readonly = true,
                  .device_text = "Place(",
                  .device_names = "gpu=cuda xpu=oneapi",
                  .type_attribute = "name"},
    library_words{.of = "cupy",
                  .devices = "cuda cuda_managed rocm",
                  .more_types = "bfloat16",
                  .forgets_readonly = true,
                  .device_number = "id"},
    library_words{.of = "pyarrow",
                  .devices = "cpu",
                  .fewer_types = "complex64 complex128",  // and its bool is a bit
                  .type_names = "halffloat=float16 float=float32 double=float64",
                  .types_as_text = true},
    library_words{.of = "numba",
                  .devices = "cpu cuda_host rocm_host cuda_managed cuda",
                  .forgets_readonly_on_gpu = true},
    library_words{.of = "tvm_ffi", .forgets_readonly = true},
    library_words{.of = "cuda.core", .devices = "cpu cuda cuda_host cuda_managed", .more_types = "bfloat16"},
};

static_assert(std::ranges::equal(words_of_libraries, py::known_libraries, {}, &library_words::of,
                                 &py::library_row::name),
              "the two tables have the same rows, in the same order");

/// Whether `is_fine` says so of every word.
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

static_assert(std::ranges::all_of(words_of_libraries,
                                  [](const library_words& row) {
                                      const auto is_type = [](std::string_view word) {
                                          return dtype_from_name(word).has_value();
                                      };
                                      return all_words(row.devices, is_device_kind) &&
                                             all_words(row.more_types, is_type) &&
                                             all_words(row.fewer_types, is_type);
                                  }),
              "a row names an element type or a kind of device that is in neither table");

}  // namespace tenon::module
