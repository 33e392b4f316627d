// tests/python/native/bound_loops_nanobind.cpp: the element loops, bound by nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tenon/bind/nanobind.hpp>

namespace binder = nanobind;

#include "bound_loops_binders.hpp"

NB_MODULE(bound_loops_nanobind, m) { loops::bind_all(m); }
