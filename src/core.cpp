// src/core.cpp: the engine's half that needs no Python, in one piece: compiled once in the project that uses
// it.
#include "value/device.cpp"
#include "value/error.cpp"
