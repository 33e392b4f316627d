// tests/python/native/bound_hazards_pybind11.cpp: what can go wrong around arguments, bound by pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tenon/bind/pybind11.hpp>

namespace binder = pybind11;

#include "bound_hazards_binders.hpp"

PYBIND11_MODULE(bound_hazards_pybind11, m) { hazards::bind_all(m); }
