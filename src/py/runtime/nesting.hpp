// src/py/runtime/nesting.hpp: code of others that is run on the way may import as well, and so on: up to a
// depth that fits every stack.
#pragma once

#include "base.hpp"

namespace tenon::py {

/// One level: it exists while an import, or the making of an array, runs code of others. One that is false
/// has raised RecursionError. The interpreter's own limit is for Python functions; between C functions alone
/// (a property that is one) it lets through more than many stacks have room for. Nor may they multiply: an
/// object that imports itself whenever it is asked for anything, and takes no RecursionError for an answer,
/// would be asked for ever.
class nesting_level {
public:
    nesting_level() noexcept {
        if (++depth > common) ++uncommon;
        fits_ = depth <= deepest && uncommon <= most_uncommon;
        if (!fits_) [[unlikely]]
            raise_too_deep();
    }
    ~nesting_level() {
        if (--depth == 0) uncommon = 0;
    }
    nesting_level(const nesting_level&) = delete;
    nesting_level& operator=(const nesting_level&) = delete;

    explicit operator bool() const noexcept { return fits_; }

    /// Whether what runs is not on behalf of another import.
    [[nodiscard]] static bool is_outermost() noexcept { return depth <= 1; }

private:
    // A level takes less than 4 KB of stack, 6 without optimization, and what runs in between as much again:
    // so many fit 256 KiB.
    static constexpr int deepest = 20;
    // Within one import there may be any number of others; but only so many that are deeper than this.
    static constexpr int common = 4;
    static constexpr int most_uncommon = 1000;

    TENON_PRIVATE static inline constinit thread_local int depth = 0;
    /// Levels deeper than `common` that there have been since the outermost began.
    TENON_PRIVATE static inline constinit thread_local int uncommon = 0;

    TENON_COLD static void raise_too_deep() noexcept {
        PyErr_Format(
            PyExc_RecursionError,
            "tenon: imports are nested more than %d deep, or more than %d times %d deep: what an array is "
            "asked on its way in imports an array in turn, maybe itself",
            deepest, most_uncommon, common);
    }

    bool fits_;
};

}  // namespace tenon::py
