// src/python.cpp: the engine's half for modules of Python's, in one piece: compiled once in each module.
#include <tenon/py.hpp>
