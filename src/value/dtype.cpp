// src/value/dtype.cpp: the names of element types.
#include <tenon/value/dtype_names.hpp>
#include "../standard.hpp"

namespace tenon {

TENON_COLD TENON_INLINE std::string name(dtype t) {
    if (const dtype_entry* e = find_dtype(t)) return std::string(e->name);
    return "dtype(code=" + std::to_string(t.code) + ", bits=" + std::to_string(t.bits) +
           ", lanes=" + std::to_string(t.lanes) + ")";
}

}  // namespace tenon
