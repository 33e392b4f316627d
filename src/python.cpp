// src/python.cpp: the engine's half for modules of Python's, in one piece: compiled once in each module.
#include <tenon/py.hpp>

#include "bind/argument.cpp"
#include "bind/array.cpp"
#include "bind/call.cpp"
#include "bind/function.cpp"
#include "py/python_error.cpp"
