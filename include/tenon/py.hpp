// tenon/py.hpp: everything, Python included, in one include.
#pragma once

#include <tenon/detail/config.hpp>  // first: it says what is wrong with the flags

#include <tenon/py/export.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/like.hpp>
#include <tenon/py/own.hpp>
#include <tenon/py/producer.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/traverse.hpp>
#include <tenon/tenon.hpp>

#include <tenon/detail/python_engine.hpp>  // last: with TENON_HEADER_ONLY, what stands behind them
