// src/memory/copy.cpp: copies in host memory, by several threads where that pays.
#include <tenon/memory/allocate.hpp>
#include <tenon/memory/copy.hpp>
#include "../standard.hpp"
#include "copy_plan.hpp"

namespace tenon {

namespace detail {

/// Copies elements `first` to `end`, shared out among threads; where none can be started, by this one.
inline void copy_shared(const copy_plan& plan, std::int64_t first, std::int64_t end, std::int64_t item,
                        std::byte* target) noexcept {
    std::int64_t wanted = std::min((end - first) * item / bytes_per_thread, max_copy_threads);
    // Only asked where it matters: the answer is read from a file, and takes longer than a small copy.
    if (wanted > 1) wanted = std::min(wanted, static_cast<std::int64_t>(std::thread::hardware_concurrency()));
    if (wanted <= 1) return plan.copy(first, end, target);  // 0 processors: nobody knows
    const std::int64_t share = (end - first + wanted - 1) / wanted;
    std::array<std::thread, static_cast<std::size_t>(max_copy_threads)> helpers;
    try {
        for (auto helper = helpers.begin(); end - first > share; ++helper, end -= share) {
            const std::int64_t from = end - share;
            *helper = std::thread([&plan, from, end, target] { plan.copy(from, end, target); });
        }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no thread, or no memory for one
    }
    plan.copy(first, end, target);  // what is left
    for (std::thread& helper : helpers)
        if (helper.joinable()) helper.join();
}

}  // namespace detail

TENON_INLINE result<tensor> copy_to_host(const tensor_ref& from, copy_watch watch) noexcept {
    if (!from.device().is_host_accessible()) {
        return refused("device", "only host memory can be copied here", from.device().type)
            .with_advice("ask the producing library for a copy on the CPU");
    }
    const auto packed = detail::is_packed(from);
    if (!packed) return packed.error();
    auto made = allocate(from.dtype(), from.shape(), from.is_subbyte_padded());
    if (made) made->mark_copied();
    if (!made || from.empty()) return made;
    auto* const target = static_cast<std::byte*>(made->data());
    if (*packed) {
        std::memcpy(target, from.data(), static_cast<std::size_t>(from.nbytes()));
    } else {
        const detail::copy_plan plan(from);
        const std::int64_t step = std::max<std::int64_t>(1, detail::bytes_per_look / from.itemsize());
        for (std::int64_t first = 0; first < from.size(); first += step) {
            if (first != 0 && watch.go_on != nullptr && !watch.go_on(watch.context))
                return refused("copy", "it was given up half-way");
            detail::copy_shared(plan, first, std::min(from.size() - first, step) + first, from.itemsize(),
                                target);
        }
    }
    return made;
}

}  // namespace tenon
