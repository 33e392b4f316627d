// src/memory/plan.hpp: what is wrong with an allocation shows before anything is allocated.
#pragma once

#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/tensor_info.hpp>
#include "../standard.hpp"

namespace tenon::detail {

/// A tensor of this type and shape at an address that any allocation may have: what is wrong shows before
/// anything is allocated.
[[nodiscard]] inline result<tensor> plan_allocation(element_type type, const axes& shape,
                                                    bool padded) noexcept {
    const tensor_info info =
        tensor_info::contiguous(reinterpret_cast<void*>(std::uintptr_t{4096}), type, shape);
    return tensor::own(padded ? info.padded() : info, keep_alive());
}

}  // namespace tenon::detail
