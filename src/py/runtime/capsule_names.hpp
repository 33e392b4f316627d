// src/py/runtime/capsule_names.hpp: what DLPack's capsules are named.
#pragma once

namespace tenon::py {

// A capsule keeps the pointer, not the characters: the names are static (F10).
inline constexpr const char* capsule_legacy = "dltensor";
inline constexpr const char* capsule_versioned = "dltensor_versioned";
inline constexpr const char* capsule_used_legacy = "used_dltensor";
inline constexpr const char* capsule_used_versioned = "used_dltensor_versioned";
inline constexpr const char* capsule_exchange_api = "dlpack_exchange_api";

}  // namespace tenon::py
