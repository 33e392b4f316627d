// src/memory/allocate.cpp: fresh host memory, in large pages where that pays.
#include <tenon/memory/allocate.hpp>
#include "../standard.hpp"
#include "allocation.hpp"

namespace tenon {

TENON_INLINE result<tensor> allocate(element_type type, const axes& shape, bool padded) noexcept {
    const auto planned = detail::plan_allocation(type, shape, padded);
    if (!planned) return planned.error();
    const auto bytes = static_cast<std::size_t>(planned->nbytes());
    void* const memory =
        ::operator new(bytes != 0 ? bytes : 1, std::align_val_t{allocation_alignment}, std::nothrow);
    if (memory == nullptr) return out_of_memory("data");
    detail::ask_for_large_pages(memory, bytes);
    const tensor_info info = tensor_info::contiguous(memory, type, shape);
    const auto release = [](void* subject, void*) noexcept {
        ::operator delete(subject, std::align_val_t{allocation_alignment});
    };
    return tensor::own(info.padded(padded), keep_alive(memory, release, nullptr, owner_kind::memory));
}

}  // namespace tenon
