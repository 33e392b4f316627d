// src/tenon.cpp: the whole engine, for builds that want one file: add it to the sources of the module.
#include "python.cpp"

#include "core.cpp"
