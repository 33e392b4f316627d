// tenon/detail/python_engine.hpp: with TENON_HEADER_ONLY, the half of the engine for modules of Python's.
#pragma once

#if defined(TENON_HEADER_ONLY)
#if __has_include("../src/python.cpp")  // as it is installed
#include "../src/python.cpp"
#else
#include "../../../src/python.cpp"
#endif
#endif
