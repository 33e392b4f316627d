// src/python.cpp: the engine's half for modules of Python's, in one piece: compiled once in each module.
#include <tenon/py.hpp>

#include "bind/argument.cpp"
#include "bind/array.cpp"
#include "bind/conversion.cpp"
#include "bind/function.cpp"
#include "bind/hook.cpp"
#include "bind/overloads.cpp"
#include "bind/record.cpp"
#include "bind/words.cpp"
