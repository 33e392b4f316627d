// tests/compile_fail/for_each_written_often.cpp: a row that may be written to is broadcast.
// must say: what may be written to needs as many axes as any other; of what is only read take a view<const T>

#include <tenon/tensor/for_each.hpp>

#ifdef CORRECT
using element = const float;
#else
using element = float;
#endif

bool add(const tenon::view<element, 1>& row, const tenon::view<float, 2>& to) {
    return static_cast<bool>(
        tenon::for_each(tenon::broadcast, row, to, [](float x, float& sum) { sum += x; }));
}
