// tenon/detail/core_engine.hpp: with TENON_HEADER_ONLY, the half of the engine that needs no Python.
#pragma once

#if defined(TENON_HEADER_ONLY)
#if __has_include("../src/core.cpp")  // as it is installed
#include "../src/core.cpp"
#else
#include "../../../src/core.cpp"
#endif
#endif
