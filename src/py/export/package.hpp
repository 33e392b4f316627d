// src/py/export/package.hpp: the package `tenon`, whose Tensor every module hands out: found once, and handed
// tensors by a C table.
#pragma once

#include "../import/all.hpp"

namespace tenon::py::detail {

/// The table behind a class that may be the package's Tensor; null for any other.
[[nodiscard]] inline const abi::handover_api* handover_of(PyObject* type, const interpreter& names) noexcept {
    if (type == nullptr || PyType_Check(type) == 0) return nullptr;
    const ref capsule = ref::take(call::type_attr(reinterpret_cast<PyTypeObject*>(type), names.exchange_api));
    if (!capsule || PyCapsule_IsValid(capsule.get(), capsule_exchange_api) == 0) return nullptr;
    const auto* const table =
        static_cast<const abi::exchange_api*>(PyCapsule_GetPointer(capsule.get(), capsule_exchange_api));
    if (!tenon::detail::is_readable<sizeof *table>(table)) return nullptr;
    const auto* const found = reinterpret_cast<const abi::handover_api*>(table->header.prev_api);
    if (found == nullptr || !tenon::detail::is_readable<sizeof *found>(found) ||
        found->header.version.major != abi::handover_major)
        return nullptr;
    const void* const functions[] = {reinterpret_cast<const void*>(found->take)};
    return found->take != nullptr && tenon::detail::are_executable(functions) ? found : nullptr;
}

/// Imports the package, once; if there is none, it may still come by itself.
TENON_COLD [[nodiscard]] inline const abi::handover_api* look_for_package(interpreter& here) noexcept {
    const nesting_level level;
    if (!level) return nullptr;
    const bool is_first = !here.asked_for_package.exchange(true);
    const ref module =
        ref::take(is_first ? call::import_module("tenon._core") : call::imported_module("tenon"));
    ref type = module ? ref::take(call::attr(module.get(), "Tensor")) : ref();
    const abi::handover_api* const found = handover_of(type.get(), here);
    if (!forget_answer() || found == nullptr) return nullptr;
    call::drop(here.package_type.exchange(type.release()));
    here.package.store(found, std::memory_order_release);
    return found;
}

/// How tensors become the package's; null when this is the package, or there is none. An exception is left
/// only if it ends the call.
[[nodiscard]] inline const abi::handover_api* package_of(interpreter& here) noexcept {
    const abi::handover_api* const known = here.package.load(std::memory_order_acquire);
    if (known != nullptr || here.is_package.load(std::memory_order_relaxed)) [[likely]]
        return known;
    return look_for_package(here);
}

/// A new Tensor of the package's; null with an exception set, and `t` left as it was.
[[nodiscard]] inline PyObject* hand_over(const abi::handover_api& package, tensor& t) noexcept {
    const keep_alive& owner = t.owner();
    const abi::tensor_parts parts{
        sizeof(abi::tensor_parts),
        {t.base(), t.device().to_abi(), t.ndim(), t.dtype().to_abi(),
         const_cast<std::int64_t*>(t.shape().data()), const_cast<std::int64_t*>(t.strides().data()),
         t.byte_offset()},
        t.flags() | tenon::detail::validator::marks_of(t),
        t.version(),
        t.stream(),
        owner.subject(),
        const_cast<void*>(owner.context()),
        owner.release_function(),
        owner.is(owner_kind::memory) ? 1U : 0U,
        referenced_by(owner),
        object_behind(owner),
        t.device().has_streams() ? &gpu::detail_done::is_any_captured_here : nullptr};
    void* made = nullptr;
    if (foreign_code([&] { return package.take(&parts, &made); }) != 0) return nullptr;
    t.owner().disown();
    t.reset();
    return static_cast<PyObject*>(made);
}

}  // namespace tenon::py::detail
