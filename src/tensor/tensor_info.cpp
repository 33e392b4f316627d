// src/tensor/tensor_info.cpp: what is wrong with a description of memory that its owner made.
#include <tenon/tensor/tensor_info.hpp>
#include "../standard.hpp"

namespace tenon {

TENON_INLINE element_type::element_type(std::string_view name) noexcept {
    const auto found = dtype_from_name(name);
    type = found.value_or(tenon::dtype{});
    known = found.has_value();
}

TENON_INLINE void tensor_info::note_fault(element_type type, const axes& shape,
                                          const axes* strides) noexcept {
    if (!type.known)
        fault_ = refused("dtype", "there is no element type of this name")
                     .with_advice("use a name like \"float32\" or \"bfloat16\", or a tenon::dtype");
    if (shape.is_too_long())
        fault_ = refused("shape", "too many axes", static_cast<std::int64_t>(shape.size()), max_rank);
    if (strides != nullptr && strides->size() != shape.size())
        fault_ = malformed("strides", "there is not one for each axis",
                           static_cast<std::int64_t>(strides->size()));
}

TENON_INLINE result<void> tensor_info::check_fault(std::uintptr_t off) const noexcept {
    if (fault_.problem != nullptr) return fault_;
    if (device().has_opaque_handle() || has_zero_) return {};
    return malformed("data", "the address is off the alignment of its elements, by bytes",
                     static_cast<std::int64_t>(off));
}

}  // namespace tenon
