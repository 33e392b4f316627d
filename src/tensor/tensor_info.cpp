// src/tensor/tensor_info.cpp: what is wrong with a description of memory that its owner made.
#include <tenon/tensor/tensor.hpp>
#include "ranges.hpp"

namespace tenon {

TENON_INLINE element_type::element_type(std::string_view name) noexcept {
    const auto found = dtype_from_name(name);
    type = found.value_or(tenon::dtype{});
    known = found.has_value();
}

TENON_INLINE result<void> tensor_info::check_closely() const noexcept {
    if (is_strided_ && strides_.size() != shape_.size())
        return malformed("strides", "there is not one for each axis",
                         static_cast<std::int64_t>(strides_.size()));
    if (shape_.is_too_long())
        return refused("shape", "too many axes", static_cast<std::int64_t>(shape_.size()), max_rank);
    if (!type_.known)
        return refused("dtype", "there is no element type of this name")
            .with_advice("use a name like \"float32\" or \"bfloat16\", or a tenon::dtype");
    const std::uintptr_t off = bytes_off_alignment();
    if (off == 0 || device_.has_opaque_handle() || has_zero(shape())) return {};
    return malformed("data", "the address is off the alignment of its elements, by bytes",
                     static_cast<std::int64_t>(off));
}

TENON_INLINE result<void> tensor::check_count(const axes& shape, std::int64_t held) noexcept {
    const auto is_negative = [](std::int64_t extent) { return extent < 0; };
    if (shape.is_too_long() || is_any(shape.values(), is_negative)) return {};
    const auto wanted = element_count(shape.values());
    if (!wanted || *wanted == held) return {};
    return refused("shape", "it does not have as many elements as the vector", *wanted, held);
}

}  // namespace tenon
