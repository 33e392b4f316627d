// tenon/tenon.hpp: everything that needs no Python, in one include.
#pragma once

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/allocate.hpp>
#include <tenon/core/axes.hpp>
#include <tenon/core/copy.hpp>
#include <tenon/core/device.hpp>
#include <tenon/core/device_memory.hpp>
#include <tenon/core/device_view.hpp>
#include <tenon/core/dispatch.hpp>
#include <tenon/core/dtype.hpp>
#include <tenon/core/dtype_names.hpp>
#include <tenon/core/error.hpp>
#include <tenon/core/foreign.hpp>
#include <tenon/core/foreign_code.hpp>
#include <tenon/core/keep_alive.hpp>
#include <tenon/core/managed.hpp>
#include <tenon/core/request.hpp>
#include <tenon/core/shape.hpp>
#include <tenon/core/stream_order.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/core/tensor_info.hpp>
#include <tenon/core/tensor_ref.hpp>
#include <tenon/core/until_done.hpp>
#include <tenon/core/validate.hpp>
#include <tenon/core/view.hpp>
#include <tenon/version.hpp>
