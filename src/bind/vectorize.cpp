// src/bind/vectorize.cpp: room for what a vectorized function returns, of the shape its arguments come to.
#include <tenon/bind/vectorize.hpp>
#include "../py/export/all.hpp"

namespace tenon::bind {

/// "(2, 3)", "(4,)": a shape as Python shows it.
[[nodiscard]] inline std::string shown(extents shape) {
    std::string out = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) append(out, {i != 0 ? ", " : "", shape[i]});
    out += shape.size() == 1 ? ",)" : ")";
    return out;
}

/// Raises ValueError for the first two that do not go together, and throws.
[[noreturn]] TENON_COLD inline void raise_mismatch(std::span<const walked_argument> all) {
    for (std::size_t n = 0; n < all.size(); ++n) {
        for (std::size_t i = 0; i < n; ++i) {
            if (broadcast_shape(*all[i].ref, *all[n].ref)) continue;
            py::raise(
                errc::mismatched,
                sentence({"tenon: arguments ", all[i].place, " and ", all[n].place,
                          " have shapes that do not broadcast: ", shown(all[i].ref->shape()), " and ",
                          shown(all[n].ref->shape()),
                          "; axes are matched from the last on: each pair must be equal, or one of them 1"}));
            throw py::python_error();
        }
    }
    throw std::logic_error("tenon: any two shapes broadcast, and all together do not");
}

TENON_INLINE found allocate_results(const walked_argument* arguments, std::size_t count, dtype type,
                                    const request& wanted) {
    const std::span all(arguments, count);
    const walked_argument* like = arguments;
    // What has axes says more of the library that is meant than a number, or what stands for one.
    const auto rank = [](const walked_argument& a) { return a.ref->is_number() ? -1 : a.ref->ndim(); };
    const auto level = [&](const walked_argument& a) { return std::min(rank(a), 1); };
    axes shape;
    for (const walked_argument& one : all) {
        if (level(one) > level(*like)) like = &one;
        const extents pair[] = {shape.values(), one.ref->shape()};
        const auto wider = tenon::detail::broadcast_shapes(pair, 2);
        if (!wider) raise_mismatch(all);
        shape.assign(*wider);
    }
    return allocate_like(like->object, *like->ref, shape, type, wanted);
}

}  // namespace tenon::bind
