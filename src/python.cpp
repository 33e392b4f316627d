// src/python.cpp: the engine's half for modules of Python's, in one piece: compiled once in each module.
#include <tenon/py/acquired.hpp>  // what the path of every argument is made of: for speed

#include "for_size.hpp"

#include "bind/argument.cpp"
#include "bind/array.cpp"
#include "bind/call.cpp"
#include "bind/function.cpp"
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
#include "py/import/acquire.cpp"
#include "py/import/from_python.cpp"
#include "py/runtime/raise.cpp"

#include "for_size_end.hpp"
