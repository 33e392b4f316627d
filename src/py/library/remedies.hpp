// src/py/library/remedies.hpp: what a caller writes in each library to make an array fit: the advice in error
// messages.
#pragma once

#include "library_of.hpp"

namespace tenon::py {

/// What the library of `obj` calls the way to meet what `unmet` complains of: "x.astype('float32')" for the
/// array called `name`. Empty when nothing short is known.
[[nodiscard]] inline std::string remedy_for(PyObject* obj, std::string_view name, const request& wanted,
                                            const error& unmet) {
    const library_row* const known = library_of(Py_TYPE(obj));
    if (known == nullptr) return {};
    const std::string_view field = unmet.field;
    const bool wants_cuda = wanted.kind == abi::device_code::cuda;
    std::string_view way;
    if (field == "dtype")
        way = known->to_type;
    else if (field == "device")
        way = wants_cuda ? known->to_cuda : wanted.kind <= abi::device_code::cpu ? known->to_host : way;
    else if (field == "strides" && wanted.order == memory_order::f)
        way = known->to_f;
    else if (field == "strides" && wanted.order == memory_order::c)
        way = known->to_c;
    else if (field == "flags" || field == "strides")
        way = known->to_writable;
    std::string out;
    for (std::size_t i = 0; i < way.size(); ++i) {
        if (way[i] != '$')
            out += way[i];
        else if (way[++i] == 'x')
            out += name;
        else if (wanted.type)
            out += tenon::name(*wanted.type);
    }
    return out;
}

}  // namespace tenon::py
