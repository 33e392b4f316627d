// tenon/tenon.hpp: everything that needs no Python, in one include.
#pragma once

#include <tenon/detail/config.hpp>  // first: it says what is wrong with the flags

// Each brings those it is made of.
#include <tenon/detail/binders.hpp>
#include <tenon/gpu/stream.hpp>
#include <tenon/memory/allocate.hpp>
#include <tenon/memory/copy.hpp>
#include <tenon/tensor/dispatch.hpp>
#include <tenon/tensor/for_each.hpp>
#include <tenon/tensor/managed.hpp>
#include <tenon/tensor/validate.hpp>
#include <tenon/version.hpp>

#include <tenon/detail/core_engine.hpp>  // last: with TENON_HEADER_ONLY, what stands behind them
