// src/python.cpp: the engine's half for modules of Python's, in one piece: compiled once in each module.
//
// All of it is compiled for size, but for the path of every argument (acquire.cpp), those of every capsule
// (capsule.cpp) and of PyTorch's results (by_table.cpp), and what these are made of (the two headers, and
// these of the standard library).
#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "for_size.hpp"

#include "standard.hpp"

#include "for_size_end.hpp"

#include <tenon/py/acquired.hpp>
#include "tensor/managed.hpp"

#include "for_size.hpp"  // NOLINT(readability-duplicate-include)

#include "bind/argument.cpp"
#include "bind/call.cpp"
#include "bind/function.cpp"
#include "bind/kept.cpp"
#include "bind/relations.cpp"
#include "bind/results.cpp"
#include "bind/vectorize.cpp"
#include "bind/visit.cpp"
#include "py/export/array_interface.cpp"
#include "py/export/arrow.cpp"
#include "py/export/buffer.cpp"
#include "py/export/dlpack.cpp"
#include "py/export/empty_like.cpp"
#include "py/export/exchange_table.cpp"
#include "py/export/like.cpp"
#include "py/export/number.cpp"
#include "py/export/producer.cpp"
#include "py/export/tensor_type.cpp"
#include "py/export/traverse.cpp"
#include "py/import/from_python.cpp"
#include "py/import/is_array.cpp"
#include "py/import/own.cpp"
#include "py/runtime/raise.cpp"

#include "for_size_end.hpp"  // NOLINT(readability-duplicate-include)

#include "bind/lend.cpp"
#include "py/export/by_table.cpp"
#include "py/export/capsule.cpp"
#include "py/import/acquire.cpp"
