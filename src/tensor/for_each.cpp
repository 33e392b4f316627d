// src/tensor/for_each.cpp: in what order a loop walks several windows, and what their shapes broadcast to.
#include <tenon/tensor/for_each.hpp>
#include "ranges.hpp"

namespace tenon::detail {

TENON_COLD inline error shapes_differ(const char* problem, extents shape, std::size_t window,
                                      const char* advice) noexcept {
    error e = refused("shape", problem);
    e.code = errc::mismatched;
    return e.of_tensor(window + 1).of_shape(shape.data()).with_advice(advice);
}
TENON_COLD inline error extents_differ(const char* problem, extents shape, std::size_t window,
                                       std::size_t axis, std::int64_t got, std::int64_t wanted,
                                       const char* advice) noexcept {
    error e = shapes_differ(problem, shape, window, advice).at_axis(axis);
    e.detail = error::detail_kind::got_wanted;
    e.got = got;
    e.wanted = wanted;
    return e;
}

/// The window has this shape.
[[nodiscard]] inline result<void> check_same(extents got, extents wanted, std::size_t window,
                                             const char* problem, const char* advice) noexcept {
    if (got.size() != wanted.size()) {
        error e = extents_differ(problem, got, window, 0, static_cast<std::int64_t>(got.size()),
                                 static_cast<std::int64_t>(wanted.size()), advice);
        e.field = "ndim";
        e.axis = -1;
        return e;
    }
    for (std::size_t i = 0; i < got.size(); ++i)
        if (got[i] != wanted[i]) return extents_differ(problem, got, window, i, got[i], wanted[i], advice);
    return {};
}

/// A shape that grows, axis by axis, to what several broadcast to.
class wide_shape {
public:
    [[nodiscard]] extents values() const noexcept { return {extents_ + capacity - rank_, rank_}; }
    [[nodiscard]] result<void> widen(extents shape, std::size_t window) noexcept {
        for (; rank_ < shape.size(); ++rank_) extents_[capacity - 1 - rank_] = 1;
        std::int64_t* const here = extents_ + capacity - shape.size();
        for (std::size_t i = 0; i < shape.size(); ++i) {
            if (here[i] == 1) here[i] = shape[i];
            if (shape[i] != 1 && shape[i] != here[i]) {
                return extents_differ(
                    "it does not broadcast with what comes before it", shape, window, i, shape[i], here[i],
                    "axes are matched from the last on: each has that extent, or 1, or is missing");
            }
        }
        return {};
    }

private:
    static constexpr auto capacity = static_cast<std::size_t>(max_rank);
    std::size_t rank_ = 0;
    std::int64_t extents_[capacity];  // the last are those of the axes
};

TENON_INLINE result<axes> broadcast_shapes(const extents* shapes, std::size_t count) noexcept {
    wide_shape full;
    for (std::size_t n = 0; n < count; ++n)
        if (auto ok = full.widen(shapes[n], n); !ok) return ok.error();
    return axes(full.values());
}

/// What the windows broadcast to, which those that are written to must have.
[[nodiscard]] inline result<void> broadcast_windows(const walked* windows, std::size_t count,
                                                    wide_shape& full) noexcept {
    for (std::size_t n = 0; n < count; ++n)
        if (auto ok = full.widen(windows[n].shape, n); !ok) return ok;
    for (std::size_t n = 0; n < count; ++n) {
        if (!windows[n].is_written) continue;
        auto ok = check_same(windows[n].shape, full.values(), n,
                             "what may be written to must have the shape that all broadcast to",
                             "pass an array of that shape; in C++, take what is only read as const");
        if (!ok) return ok;
    }
    return {};
}
[[nodiscard]] inline result<void> check_windows(const walked* windows, std::size_t count) noexcept {
    for (std::size_t n = 1; n < count; ++n) {
        auto ok =
            check_same(windows[n].shape, windows[0].shape, n, "it must have the same shape as the first",
                       "pass arrays of one shape; in C++, tenon::broadcast lets them broadcast");
        if (!ok) return ok;
    }
    return {};
}

/// Puts the axes of a loop in order, and joins them.
class loop_planner {
public:
    loop_planner(loop_axes& axes, std::int64_t* steps, std::size_t count) noexcept
        : axes_(axes), steps_(steps), count_(count) {}

    /// Takes the axes of more than one element, the last first.
    void gather(const walked* windows, extents shape) noexcept {
        axes_.rank = 0;
        for (std::size_t i = shape.size(); i-- > 0;) {
            if (shape[i] == 1) continue;
            std::int64_t* const steps = steps_of(axes_.rank);
            for (std::size_t n = 0; n < count_; ++n) {
                const std::size_t missing = shape.size() - windows[n].shape.size();
                const bool is_there = i >= missing && windows[n].shape[i - missing] != 1;
                steps[n] = is_there ? windows[n].strides[i - missing] : 0;
            }
            axes_.extents[axes_.rank++] = shape[i];
        }
    }
    /// Sorts by the steps, those of the `leading` window first; what they say nothing of stays as it was.
    void sort(std::size_t leading) noexcept {
        for (std::size_t next = 1; next < axes_.rank; ++next) {
            std::size_t place = next;
            for (std::size_t i = next; i-- > 0;) {
                const int order = compare(next, i, leading);
                if (order > 0) break;
                if (order < 0) place = i;
            }
            std::rotate(axes_.extents + place, axes_.extents + next, axes_.extents + next + 1);
            std::rotate(steps_of(place), steps_of(next), steps_of(next + 1));
        }
    }
    /// Joins axes that follow on one another in all windows.
    void join() noexcept {
        std::size_t last = 0;
        for (std::size_t i = 1; i < axes_.rank; ++i) {
            if (follows(last, i)) {
                axes_.extents[last] *= axes_.extents[i];
                continue;
            }
            axes_.extents[++last] = axes_.extents[i];
            std::copy_n(steps_of(i), count_, steps_of(last));
        }
        if (axes_.rank != 0) axes_.rank = last + 1;
    }
    /// Makes them two at least, and says what the innermost is like.
    void complete(const walked* windows) noexcept {
        for (; axes_.rank < 2; ++axes_.rank) {
            axes_.extents[axes_.rank] = 1;
            std::fill_n(steps_of(axes_.rank), count_, axes_.rank == 0 ? 1 : 0);
        }
        axes_.is_plain = !is_any(extents(steps_, count_), [](std::int64_t step) { return step != 1; });
        axes_.repeats = !axes_.is_plain && axes_.extents[0] >= worth_repeating;
        for (std::size_t n = 0; n < count_; ++n)
            axes_.repeats = axes_.repeats && (steps_[n] == 1 || (steps_[n] == 0 && !windows[n].is_written));
    }

private:
    /// So many elements are walked more quickly once one of them has been copied as often.
    static constexpr std::int64_t worth_repeating = 16;

    [[nodiscard]] std::int64_t* steps_of(std::size_t axis) const noexcept { return steps_ + axis * count_; }
    /// Negative if axis `a` is to be inside of `b`, positive if outside, 0 if either will do.
    [[nodiscard]] int compare(std::size_t a, std::size_t b, std::size_t leading) const noexcept {
        const auto length = [&](std::size_t axis, std::size_t n) {
            const std::int64_t step = steps_of(axis)[n];
            return step < 0 ? 0 - static_cast<std::uint64_t>(step) : static_cast<std::uint64_t>(step);
        };
        for (std::size_t i = 0; i < count_; ++i) {
            const std::size_t n = (leading + i) % count_;
            const std::uint64_t of_a = length(a, n), of_b = length(b, n);
            if (of_a != 0 && of_b != 0 && of_a != of_b) return of_a < of_b ? -1 : 1;
        }
        return 0;
    }
    [[nodiscard]] bool follows(std::size_t inner, std::size_t outer) const noexcept {
        for (std::size_t n = 0; n < count_; ++n) {
            std::int64_t reach = 0;
            if (mul_overflows(steps_of(inner)[n], axes_.extents[inner], reach) || steps_of(outer)[n] != reach)
                return false;
        }
        return true;
    }

    loop_axes& axes_;
    std::int64_t* steps_;
    std::size_t count_;
};

TENON_INLINE result<void> plan_loop(const walked* windows, std::size_t count, bool broadcasts,
                                    loop_axes& axes, std::int64_t* steps) noexcept {
    wide_shape wide;
    const auto ok = broadcasts ? broadcast_windows(windows, count, wide) : check_windows(windows, count);
    if (!ok) return ok;
    const extents full = broadcasts ? wide.values() : windows[0].shape;
    axes.rank = 0;
    if (has_zero(full)) return {};
    std::size_t leading = 0;
    while (leading + 1 < count && !windows[leading].is_written) ++leading;
    if (!windows[leading].is_written) leading = 0;
    loop_planner planner(axes, steps, count);
    planner.gather(windows, full);
    planner.sort(leading);
    planner.join();
    planner.complete(windows);
    return {};
}

}  // namespace tenon::detail
