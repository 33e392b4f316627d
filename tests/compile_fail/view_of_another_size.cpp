// tests/compile_fail/view_of_another_size.cpp: a type of one's own claims a dtype that is larger than it is.
// must say: a dtype of another size than sizeof(T)

#include <tenon/tenon.hpp>

struct half {
    unsigned short bits;
};
template <>
struct tenon::dtype_traits<half> {
#ifdef CORRECT
    static constexpr tenon::dtype value{tenon::abi::type_code::float_, 16};
#else
    static constexpr tenon::dtype value{tenon::abi::type_code::float_, 32};
#endif
};

bool fits(const tenon::tensor_ref& t) { return tenon::view<const half, 1>::from(t).has_value(); }
