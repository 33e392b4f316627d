// src/core.cpp: the engine's half that needs no Python, in one piece: compiled once in each project.
//
// What every tensor passes on its way out is compiled for speed, all else for size.
// First: flags that cannot work are said in few lines.
#include <tenon/detail/config.hpp>

#include <tenon/tensor/managed.hpp>

#include "for_size.hpp"

#include "gpu/stream.cpp"
#include "memory/allocate.cpp"
#include "memory/copy.cpp"
#include "tensor/for_each.cpp"
#include "tensor/managed.cpp"
#include "tensor/request.cpp"
#include "tensor/shape.cpp"
#include "tensor/shared_tensor.cpp"
#include "tensor/tensor_info.cpp"
#include "tensor/validate.cpp"
#include "value/error.cpp"
#include "value/names.cpp"

#include "for_size_end.hpp"

#include "tensor/tensor.cpp"
