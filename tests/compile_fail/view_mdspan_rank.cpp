// tests/compile_fail/view_mdspan_rank.cpp: a matrix is asked for as an mdspan of one axis.
// must say: the view must have a fixed rank, the same as the mdspan's

#include <array>
#include <cstddef>
#include <span>

#include <tenon/tenon.hpp>

// As little of an mdspan as there can be; not every standard library has one.
struct vector_span {
    struct extents_type {
        explicit extents_type(long n) : count(n) {}
        long count;
    };
    struct mapping_type {
        mapping_type(extents_type e, std::array<long, 1> s) : count(e.count), step(s[0]) {}
        long count, step;
    };
    using index_type = long;
    static constexpr std::size_t rank() { return 1; }
    static constexpr std::size_t static_extent(std::size_t) { return std::dynamic_extent; }
    vector_span(const float* p, mapping_type m) : data(p), map(m) {}
    const float* data;
    mapping_type map;
};

#ifdef CORRECT
constexpr int rank = 1;
#else
constexpr int rank = 2;
#endif

bool fits(const tenon::view<const float, rank>& v) { return v.to<vector_span>().has_value(); }
