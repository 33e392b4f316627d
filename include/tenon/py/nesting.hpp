// tenon/py/nesting.hpp: code of others that is run on the way may import as well, and so on: up to a depth
// that fits every stack.
#pragma once

#include <tenon/core/attributes.hpp>
#include <tenon/py/python.hpp>

namespace tenon::py {

/// One level: it exists while an import, or the making of an array, runs code of others. One that is false
/// has raised RecursionError. The interpreter's own limit is for Python functions; between C functions alone
/// (a property that is one) it lets through more than many stacks have room for.
class nesting_level {
public:
    nesting_level() noexcept : fits_(++depth() <= deepest) {
        if (!fits_) [[unlikely]]
            raise_too_deep();
    }
    ~nesting_level() { --depth(); }
    nesting_level(const nesting_level&) = delete;
    nesting_level& operator=(const nesting_level&) = delete;

    explicit operator bool() const noexcept { return fits_; }

private:
    // A level takes less than 4 KB of stack, 6 without optimization, and what runs in between as much again:
    // so many fit 256 KiB.
    static constexpr int deepest = 20;

    TENON_PRIVATE static int& depth() noexcept {
        static thread_local constinit int levels = 0;
        return levels;
    }
    TENON_COLD static void raise_too_deep() noexcept {
        PyErr_Format(
            PyExc_RecursionError,
            "tenon: imports are nested more than %d deep: what an array is asked on its way in imports "
            "an array in turn, maybe itself",
            deepest);
    }

    bool fits_;
};

}  // namespace tenon::py
