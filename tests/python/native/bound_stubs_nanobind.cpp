// tests/python/native/bound_stubs_nanobind.cpp: what stubs are written of, bound by nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tenon/bind/nanobind.hpp>

namespace binder = nanobind;
#define BIND_PROPERTY def_prop_rw
#define BIND_ERROR nanobind::python_error

#include "bound_stubs_binders.hpp"

NB_MODULE(bound_stubs_nanobind, m) { stubs::bind_all(m); }
