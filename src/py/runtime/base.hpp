// src/py/runtime/base.hpp: what every file under src/py starts from: what needs no Python, and Python.
#pragma once

#include <tenon/abi/handover.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/python_error.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tenon.hpp>
#include "../../arrow/layout.hpp"
#include "../../arrow/managed.hpp"
#include "../../gpu/device_memory.hpp"
#include "../../tensor/managed.hpp"
#include "../../tensor/shared_owner.hpp"
#include "../../value/formats.hpp"
#include "../../value/number.hpp"
#include "../../value/sentence.hpp"

namespace tenon::py {

// What DLPack's capsules are named. A capsule keeps the pointer, not the characters: these are static (F10).
inline constexpr const char* capsule_legacy = "dltensor";
inline constexpr const char* capsule_versioned = "dltensor_versioned";
inline constexpr const char* capsule_used_legacy = "used_dltensor";
inline constexpr const char* capsule_used_versioned = "used_dltensor_versioned";
inline constexpr const char* capsule_exchange_api = "dlpack_exchange_api";

/// What is in a capsule of this name; null in any other object, or none at all.
[[nodiscard]] inline void* pointer_in(PyObject* capsule, const char* name) noexcept {
    return PyCapsule_IsValid(capsule, name) != 0 ? PyCapsule_GetPointer(capsule, name) : nullptr;
}

}  // namespace tenon::py
