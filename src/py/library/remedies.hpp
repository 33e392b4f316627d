// src/py/library/remedies.hpp: what a caller writes in each library to make an array fit: the advice in error
// messages.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <tenon/detail/config.hpp>
#include <tenon/py/python.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/dtype_names.hpp>
#include "frameworks.hpp"

namespace tenon::py {

/// Expressions of one library; `$x` is the array, `$t` the element type. Empty: it has no short way.
struct library_remedies {
    std::string_view package;
    std::string_view to_type;  ///< another element type
    std::string_view to_c;     ///< row-major memory
    std::string_view to_f;     ///< column-major memory
    std::string_view to_host;  ///< memory the CPU can read
    std::string_view to_cuda;
    std::string_view to_writable;  ///< memory of its own that may be written to
};

TENON_PRIVATE inline constexpr std::array known_remedies{
    library_remedies{.package = "numpy",
                     .to_type = "$x.astype('$t')",
                     .to_c = "numpy.ascontiguousarray($x)",
                     .to_f = "numpy.asfortranarray($x)",
                     .to_host = {},
                     .to_cuda = "cupy.asarray($x)",
                     .to_writable = "$x.copy()"},
    library_remedies{.package = "torch",
                     .to_type = "$x.to(torch.$t)",
                     .to_c = "$x.contiguous()",
                     .to_f = "$x.T.contiguous().T",
                     .to_host = "$x.cpu()",
                     .to_cuda = "$x.cuda()",
                     .to_writable = "$x.clone()"},
    library_remedies{.package = "jaxlib",
                     .to_type = "$x.astype('$t')",
                     .to_c = {},
                     .to_f = "numpy.asfortranarray($x)",
                     .to_host = "jax.device_put($x, jax.devices('cpu')[0])",
                     .to_cuda = "jax.device_put($x, jax.devices('cuda')[0])",
                     .to_writable = "numpy.array($x)"},
    library_remedies{.package = "cupy",
                     .to_type = "$x.astype('$t')",
                     .to_c = "cupy.ascontiguousarray($x)",
                     .to_f = "cupy.asfortranarray($x)",
                     .to_host = "cupy.asnumpy($x)",
                     .to_cuda = {},
                     .to_writable = "$x.copy()"},
    library_remedies{.package = "tensorflow",
                     .to_type = "tensorflow.cast($x, '$t')",
                     .to_c = {},
                     .to_f = "numpy.asfortranarray($x)",
                     .to_host = "$x.cpu()",
                     .to_cuda = "$x.gpu()",
                     .to_writable = "numpy.array($x)"},
};

/// What the library of `obj` calls the way to meet what `unmet` complains of: "x.astype('float32')" for the
/// array called `name`. Empty when nothing short is known.
[[nodiscard]] inline std::string remedy_for(PyObject* obj, std::string_view name, const request& wanted,
                                            const error& unmet) {
    const library_remedies* known = nullptr;
    detail::walk_bases(Py_TYPE(obj), [&](PyTypeObject* type) {
        const std::string package = detail::defining_package(type);
        for (const library_remedies& r : known_remedies)
            if (r.package == package) known = &r;
        return known != nullptr;
    });
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
