// tests/compile_fail/array_of_pointers.cpp: an argument has elements that no dtype stands for.
// must say: specialise tenon::dtype_traits for it

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const int, 1>;
#else
using param = tenon::array<int*, 1>;
#endif

bool empty(const param& x) { return x.empty(); }
