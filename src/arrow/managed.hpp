// src/arrow/managed.hpp: a tensor of one compact axis leaves as Arrow's structs, for any C consumer.
#pragma once

#include <tenon/abi/arrow.hpp>
#include <tenon/tensor/keep_alive.hpp>
#include <tenon/tensor/tensor_ref.hpp>
#include <tenon/value/dtype_names.hpp>
#include <tenon/value/error.hpp>
#include "../standard.hpp"

namespace tenon::arrow {

/// What an exported array points to: its owner and its list of buffers.
struct array_block : detail::exported_block<array_block> {
    const void* buffers[2];  // validity, values
};

inline void release_array(abi::arrow_array* array) noexcept {
    array->release = nullptr;
    array_block::release(static_cast<array_block*>(array->private_data));
}
inline void release_schema(abi::arrow_schema* schema) noexcept { schema->release = nullptr; }

/// Whether Arrow can say what there is to say.
[[nodiscard]] inline result<void> can_leave(const tensor_ref& t) noexcept {
    const dtype_entry* const known = find_dtype(t.dtype());
    if (t.dtype() == dtype{abi::type_code::bool_, 8})
        return refused("dtype", "Arrow packs booleans into bits").with_advice("view them as uint8 first");
    if (known == nullptr || known->arrow_format.empty())
        return refused("dtype", "Arrow has no format for this element type")
            .with_advice("use __dlpack__, or another type");
    if (t.ndim() != 1)
        return refused("ndim", "an Arrow array has one axis", t.ndim(), 1)
            .with_advice("reshape or ravel it first");
    if (!t.is_c_contiguous())
        return refused("strides", "the elements of an Arrow array lie side by side")
            .with_advice("make a contiguous copy");
    return {};
}

/// The type of the elements of a tensor that `can_leave`: an empty name, and nothing to be freed.
inline void describe_type(const tensor_ref& t, abi::arrow_schema& out) noexcept {
    const dtype_entry* const known = find_dtype(t.dtype());
    out = {};
    out.format = known->arrow_format.data();  // NOLINT(bugprone-suspicious-stringview-data-usage): a literal
    out.name = "";
    out.flags = abi::arrow_flag::nullable;  // as every array of Arrow's own is, unless a field says otherwise
    out.release = &release_schema;
}

/// The elements of a tensor that `can_leave`, which are at `data`, kept alive by `owner`, moved into it;
/// false when there is no memory, and then `owner` is left as it was. Its release may be called on any
/// thread.
[[nodiscard]] inline bool make_array(const tensor_ref& t, const void* data, keep_alive& owner,
                                     abi::arrow_array& out) noexcept {
    auto* const block = new (std::nothrow) array_block{{{}, std::move(owner)}, {nullptr, data}};
    if (block == nullptr) return false;
    out = {};
    out.length = t.shape(0);
    out.n_buffers = 2;
    out.buffers = block->buffers;
    out.release = &release_array;
    out.private_data = block;
    return true;
}

}  // namespace tenon::arrow
