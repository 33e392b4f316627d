// tenon/tensor/managed.hpp: a tensor leaves as DLPack's managed struct, for any C consumer.
#pragma once

#include <tenon/tensor/tensor.hpp>

namespace tenon {

/// Hands a tensor over to a consumer of C structs (`abi::managed_tensor_versioned` or the legacy
/// `abi::managed_tensor`), which calls its deleter when it is done, on any thread. On failure `t` is left as
/// it was.
template <class Managed = abi::managed_tensor_versioned>
[[nodiscard]] result<Managed*> to_managed(tensor&& t) noexcept;

template <>
[[nodiscard]] TENON_API result<abi::managed_tensor*> to_managed(tensor&& t) noexcept;
template <>
[[nodiscard]] TENON_API result<abi::managed_tensor_versioned*> to_managed(tensor&& t) noexcept;

}  // namespace tenon
