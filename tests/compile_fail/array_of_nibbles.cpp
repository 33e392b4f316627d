// tests/compile_fail/array_of_nibbles.cpp: an argument has elements that may share bytes.
// must say: elements of less than a byte may share bytes; take const void and a view of it

#include <tenon/bind/array.hpp>

struct nibble {
    unsigned char byte;
};
template <>
struct tenon::dtype_traits<nibble> {
    static constexpr tenon::dtype value{tenon::abi::type_code::int_, 4};
};

#ifdef CORRECT
bool fits(const tenon::array<const void, 1>& x) { return x.as<const nibble>().has_value(); }
#else
bool fits(const tenon::array<const nibble, 1>& x) { return x.data() != nullptr; }
#endif
