// tests/python/native/bound_loops_pybind11.cpp: the element loops, bound by pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tenon/bind/pybind11.hpp>

namespace binder = pybind11;

#include "bound_loops_binders.hpp"

PYBIND11_MODULE(bound_loops_pybind11, m) { loops::bind_all(m); }
