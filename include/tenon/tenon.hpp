// tenon/tenon.hpp: everything that needs no Python, in one include.
#pragma once

#include <tenon/detail/config.hpp>  // first: it says what is wrong with the flags

#include <tenon/abi/dlpack.hpp>
#include <tenon/detail/foreign_code.hpp>
#include <tenon/gpu/stream.hpp>
#include <tenon/memory/allocate.hpp>
#include <tenon/memory/copy.hpp>
#include <tenon/tensor/device_view.hpp>
#include <tenon/tensor/dispatch.hpp>
#include <tenon/tensor/foreign.hpp>
#include <tenon/tensor/keep_alive.hpp>
#include <tenon/tensor/managed.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/tensor_info.hpp>
#include <tenon/tensor/tensor_ref.hpp>
#include <tenon/tensor/validate.hpp>
#include <tenon/tensor/view.hpp>
#include <tenon/value/axes.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/dtype.hpp>
#include <tenon/value/dtype_names.hpp>
#include <tenon/value/error.hpp>
#include <tenon/value/shape.hpp>
#include <tenon/version.hpp>

#include <tenon/detail/core_engine.hpp>  // last: with TENON_HEADER_ONLY, what stands behind them
