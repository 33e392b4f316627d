// tests/python/native/bound_results_pybind11.cpp: the results that name their library, bound by pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tenon/bind/pybind11.hpp>

namespace binder = pybind11;

#include "bound_results_binders.hpp"

PYBIND11_MODULE(bound_results_pybind11, m) { results::bind_all(m); }
