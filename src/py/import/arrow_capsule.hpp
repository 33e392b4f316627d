// src/py/import/arrow_capsule.hpp: the capsules Arrow's structs travel in: their names, and what is in one.
#pragma once

#include "../library/all.hpp"

namespace tenon::py {

/// The name of the capsule a struct travels in. A capsule keeps the pointer, not the characters: static.
template <class Struct>
inline constexpr const char* arrow_capsule_name = nullptr;
template <>
inline constexpr const char* arrow_capsule_name<abi::arrow_schema> = "arrow_schema";
template <>
inline constexpr const char* arrow_capsule_name<abi::arrow_array> = "arrow_array";
template <>
inline constexpr const char* arrow_capsule_name<abi::arrow_device_array> = "arrow_device_array";
template <>
inline constexpr const char* arrow_capsule_name<abi::arrow_array_stream> = "arrow_array_stream";

/// The struct in a capsule of its name; null, without an exception, when it is another object.
template <class Struct>
[[nodiscard]] Struct* struct_in(PyObject* capsule) noexcept {
    if (!PyCapsule_CheckExact(capsule)) return nullptr;
    if (PyCapsule_IsValid(capsule, arrow_capsule_name<Struct>) == 0) return nullptr;
    return static_cast<Struct*>(PyCapsule_GetPointer(capsule, arrow_capsule_name<Struct>));
}

}  // namespace tenon::py
