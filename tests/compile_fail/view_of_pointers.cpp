// tests/compile_fail/view_of_pointers.cpp: memory is viewed as elements that no dtype stands for.
// must say: no dtype is known for this type: specialise tenon::dtype_traits

#include <tenon/tenon.hpp>

#ifdef CORRECT
using what = int;
#else
using what = int*;
#endif

bool fits(const tenon::tensor_ref& t) { return tenon::view<const what, 1>::from(t).has_value(); }
