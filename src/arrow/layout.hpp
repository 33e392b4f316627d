// src/arrow/layout.hpp: an Arrow array of numbers, or of fixed-size lists of them, as the axes and the
// address of a tensor; everything else is refused by name.
//
// Nothing a producer says is believed: each struct is copied once, and only the copy is used.
#pragma once

#include <tenon/abi/arrow.hpp>
#include <tenon/tensor/validate.hpp>
#include <tenon/value/dtype_names.hpp>
#include "../tensor/ranges.hpp"
#include "metadata.hpp"

namespace tenon::arrow {

/// What a schema says: the elements, and the axes of the array and inside each item of it.
struct item_type {
    dtype type{};
    std::int32_t levels = 0;           ///< of fixed-size lists, the outermost first
    std::int64_t list_size[max_rank];  ///< of each level
    item_axes axes;
};

template <class Struct>
[[nodiscard]] bool cannot_be(const Struct* p) noexcept {
    return detail::is_implausible(p) || reinterpret_cast<std::uintptr_t>(p) % alignof(Struct) != 0;
}

struct refused_format {
    std::string_view formats;  ///< a space between two; a `*` at the end of one stands for whatever follows
    const char* problem;
    const char* advice;
};
/// Every format of Arrow's that is not an element, the more special first.
TENON_PRIVATE inline constexpr refused_format refused_formats[] = {
    {"b", "booleans are packed into bits, which a tensor cannot express", "cast them to uint8 first"},
    {"n", "an array of the null type has no values", "cast it to a type of numbers"},
    {"u U vu", "strings are not numbers", "cast or parse them first"},
    {"z Z vz", "binary data is not numbers", "pass its data buffer as one of bytes"},
    {"w:*", "fixed-size binary data is not numbers", "pass its data buffer as one of bytes"},
    {"d:*", "decimals have no tensor type", "cast them to float64 or to an integer"},
    {"tdD", "dates have no tensor type", "cast them to int32 first"},
    {"tdm", "dates have no tensor type", "cast them to int64 first"},
    {"tts ttm", "times of day have no tensor type", "cast them to int32 first"},
    {"tt*", "times of day have no tensor type", "cast them to int64 first"},
    {"ts*", "timestamps have no tensor type", "cast them to int64 first"},
    {"tD*", "durations have no tensor type", "cast them to int64 first"},
    {"ti*", "calendar intervals have no tensor type", "take them apart first"},
    {"+s", "structures are many arrays, not one (a table, a data frame, a record batch)",
     "pick one column of it"},
    {"+l +L", "lists of any length are no axis of a tensor",
     "pass the flattened values, or cast to lists of a fixed size"},
    {"+vl +vL", "views of lists are no axis of a tensor",
     "pass the flattened values, or cast to lists of a fixed size"},
    {"+m", "maps are no tensors", "pass their keys or their values"},
    {"+u*", "unions mix types, and a tensor has one", "pass one child of it"},
    {"+r", "run-end encoded data is not stored element by element",
     "decode it first (pyarrow.compute.run_end_decode)"},
};

/// Whether the format is one of these, as `refused_format` writes them.
[[nodiscard]] inline bool is_among(std::string_view formats, std::string_view format) noexcept {
    while (!formats.empty()) {
        std::string_view one = formats.substr(0, formats.find(' '));
        formats.remove_prefix(std::min(formats.size(), one.size() + 1));
        const bool is_beginning = one.back() == '*';
        if (is_beginning) one.remove_suffix(1);
        if (is_beginning ? format.starts_with(one) : format == one) return true;
    }
    return false;
}

[[nodiscard]] inline error format_refused(std::string_view format) noexcept {
    if (format.empty()) return malformed("format", "it is empty");
    // A time zone may be any text.
    const auto is_no_text = [](char c) { return c < ' ' || c > '~'; };
    if (!format.starts_with("ts") && is_any(format, is_no_text)) return malformed("format", "it is not text");
    for (const refused_format& f : refused_formats)
        if (is_among(f.formats, format)) return refused("format", f.problem).with_advice(f.advice);
    return refused("format", "it is none of the Arrow formats known here")
        .with_advice("cast it to a type of numbers");
}

[[nodiscard]] inline const dtype_entry* find_arrow_format(std::string_view format) noexcept {
    for (const dtype_entry& one : detail::dtype_table)
        if (one.arrow_format == format && !format.empty()) return &one;
    return nullptr;
}

/// A list of the format "+w:N".
[[nodiscard]] inline result<void> add_list(const abi::arrow_schema& s, std::string_view format,
                                           item_type& out) noexcept {
    format.remove_prefix(3);
    const std::int64_t size = take_number(format);
    if (size < 0 || !format.empty())
        return malformed("format", "the size of a fixed-size list is no number, or too large");
    if (out.levels == max_rank) return refused("ndim", "too many axes", 1 + out.axes.rank, max_rank);
    out.list_size[out.levels++] = size;
    return add_axes(s.metadata, size, out.axes);
}

/// Reads a type down to its elements.
[[nodiscard]] inline result<void> read_type(const abi::arrow_schema* schema, item_type& out) noexcept {
    for (const abi::arrow_schema* at = schema;;) {
        if (cannot_be(at)) return malformed("schema", "the pointer cannot be a schema");
        const abi::arrow_schema s = *at;
        if (s.release == nullptr)
            return malformed("schema", "it has been released already")
                .with_advice("it can be read once; ask the producer for a new one");
        if (detail::is_implausible(s.format)) return malformed("format", "the pointer cannot be a string");
        if (s.n_children < 0) return malformed("n_children", "it is negative", s.n_children);
        if (s.dictionary != nullptr)
            return refused("dictionary", "the values are stored as indices into a dictionary")
                .with_advice("decode it first (pyarrow: dictionary_decode())");
        // As long as any that can be taken; what goes on behind it is not read. Enough to refuse by.
        char text[32];
        const std::string_view format(text, strnlen(s.format, sizeof text));
        std::memcpy(text, s.format, format.size());
        const bool is_list = format.starts_with("+w:");
        if (is_list && format.size() == sizeof text)
            return malformed("format", "the size of a fixed-size list is longer than any number");
        const dtype_entry* const element = find_arrow_format(format);
        if (!is_list && element == nullptr) return format_refused(format);
        if (s.n_children != (is_list ? 1 : 0))
            return malformed("n_children", "a schema of this format has another number", s.n_children);
        if (element != nullptr) {
            out.type = element->type;
            return {};
        }
        if (auto ok = add_list(s, format, out); !ok) return ok;
        if (cannot_be(s.children)) return malformed("children", "the pointer cannot be an array");
        at = s.children[0];
    }
}

/// Bits that are zero among `count` from `first` on.
[[nodiscard]] inline std::int64_t count_zeros(const unsigned char* bits, std::int64_t first,
                                              std::int64_t count) noexcept {
    std::int64_t ones = 0;
    const std::int64_t end = first + count;
    for (std::int64_t i = first; i < end;) {
        if (i % 8 == 0 && end - i >= 64) {
            std::uint64_t word = 0;
            std::memcpy(&word, bits + i / 8, sizeof word);
            ones += std::popcount(word);
            i += 64;
        } else {
            ones += (unsigned{bits[i / 8]} >> (i % 8)) & 1U;
            ++i;
        }
    }
    return count - ones;
}

[[nodiscard]] inline error has_nulls(std::int64_t count) noexcept {
    return refused("null_count", "there are nulls, which a tensor cannot express", count)
        .with_advice("replace or remove them first (fill_null, drop_null)");
}

/// Whether no item of `[first, first + count)` is null.
[[nodiscard]] inline result<void> check_validity(const abi::arrow_array& a, std::int64_t first,
                                                 std::int64_t count, bool readable) noexcept {
    const void* const bitmap = a.buffers[0];
    if (a.null_count == 0 || count == 0) return {};
    if (bitmap == nullptr) {
        if (a.null_count < 0) return {};
        return malformed("null_count", "there are nulls, and no bitmap says which", a.null_count);
    }
    if (detail::is_implausible(bitmap))
        return malformed("buffers", "the pointer of the bitmap cannot be one");
    if (a.null_count > 0 && count == a.length) return has_nulls(a.null_count);
    if (!readable)
        return refused("null_count",
                       "whether there are nulls is not known, and the bitmap cannot be read here")
            .with_advice("have the producer count them, or remove the bitmap");
    const std::int64_t nulls = count_zeros(static_cast<const unsigned char*>(bitmap), first, count);
    return nulls == 0 ? result<void>() : has_nulls(nulls);
}

[[nodiscard]] inline result<void> check_counts(const abi::arrow_array& a, bool is_list) noexcept {
    std::int64_t end = 0;
    if (a.release == nullptr)
        return malformed("array", "it has been released or taken already")
            .with_advice("it can be taken once; ask the producer for a new one");
    if (a.length < 0) return malformed("length", "it is negative", a.length);
    if (a.offset < 0) return malformed("offset", "it is negative", a.offset);
    if (detail::add_overflows(a.offset, a.length, end))
        return malformed("offset", "offset and length together do not fit in 64 bits", a.offset);
    if (a.null_count < -1) return malformed("null_count", "it is negative", a.null_count);
    if (a.null_count > a.length)
        return malformed("null_count", "there are more nulls than items", a.null_count);
    if (a.n_buffers != (is_list ? 1 : 2))
        return malformed("n_buffers", "an array of this format has another number", a.n_buffers);
    if (a.n_children != (is_list ? 1 : 0))
        return malformed("n_children", "an array of this format has another number", a.n_children);
    if (a.dictionary != nullptr) return malformed("dictionary", "the schema knows nothing of one");
    if (cannot_be(a.buffers)) return malformed("buffers", "the pointer cannot be an array");
    return {};
}

/// The item number `first` of a buffer.
[[nodiscard]] inline result<const void*> find_values(const void* values, std::int64_t first,
                                                     std::int64_t size) noexcept {
    if (detail::is_implausible(values))
        return malformed("buffers", "the pointer of the values cannot be one");
    const auto base = reinterpret_cast<std::intptr_t>(values);
    std::int64_t address = 0;
    const bool overflows =
        detail::mul_overflows(first, size, address) || detail::add_overflows(address, base, address);
    const auto* const found = reinterpret_cast<const void*>(static_cast<std::intptr_t>(address));
    if (overflows || detail::is_implausible(found))
        return malformed("offset", "an item lies outside the address space", first);
    if (base % size != 0)
        return refused("buffers", "the values are not aligned to their size").with_advice("copy the array");
    return found;
}

/// The first element of an array (a copy of its struct) of this type; may be null when there is none.
/// `readable` says that the host may look into its buffers now.
[[nodiscard]] inline result<const void*> find_elements(abi::arrow_array a, const item_type& type,
                                                       bool readable) noexcept {
    std::int64_t begin = 0;  // the items of this level that belong to the tensor
    std::int64_t count = a.length;
    for (std::int32_t level = 0;; ++level) {
        const bool is_list = level < type.levels;
        if (auto ok = check_counts(a, is_list); !ok) return ok.error();
        std::int64_t first = 0;
        std::int64_t end = 0;
        if (detail::add_overflows(begin, count, end) || end > a.length)
            return malformed("length", "a list has fewer values than it says", a.length);
        if (detail::add_overflows(a.offset, begin, first))
            return malformed("offset", "an item lies further away than 64 bits can say", a.offset);
        if (auto ok = check_validity(a, first, count, readable); !ok) return ok.error();
        if (!is_list) return count == 0 ? nullptr : find_values(a.buffers[1], first, type.type.itemsize());
        const std::int64_t size = type.list_size[level];
        if (detail::mul_overflows(first, size, begin) || detail::mul_overflows(count, size, count))
            return malformed("length", "the number of values does not fit in 64 bits", a.length);
        if (cannot_be(a.children) || cannot_be(a.children[0]))
            return malformed("children", "the pointer cannot be an array");
        a = *a.children[0];
    }
}

/// The axes of a tensor of so many items: shape, then strides, in `storage` (2 * max_rank values).
inline void fill_axes(item_axes& axes, std::int64_t length, std::int64_t* storage) noexcept {
    std::int64_t strides[max_rank];
    const auto rank = static_cast<std::size_t>(axes.rank);
    axes.extent[0] = length;
    fill_row_major({axes.extent, rank}, strides);
    for (std::size_t i = 0; i < rank; ++i) {
        storage[i] = axes.extent[axes.shown_as[i]];
        storage[rank + i] = strides[axes.shown_as[i]];
    }
}

/// The device of an array. Host memory need not be numbered: -1 is what is recommended there.
[[nodiscard]] inline result<device> read_device(const abi::arrow_device_array& d) noexcept {
    const device kind{d.device_type, 0};
    if (kind.is_cpu() || (kind.is_host_accessible() && d.device_id == -1)) return kind;
    if (d.device_id < 0 || d.device_id > std::numeric_limits<std::int32_t>::max())
        return malformed("device", "the device id cannot be one", d.device_id);
    return device{d.device_type, static_cast<std::int32_t>(d.device_id)};
}

}  // namespace tenon::arrow
