// tests/python/native/bound_results_nanobind.cpp: the results that name their library, bound by nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tenon/bind/nanobind.hpp>

namespace binder = nanobind;

#include "bound_results_binders.hpp"

NB_MODULE(bound_results_nanobind, m) { results::bind_all(m); }
