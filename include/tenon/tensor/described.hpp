// tenon/tensor/described.hpp: memory as its owner describes it, checked in the code that describes it: there
// the rank and the element type are often constants, and little is left to check.
#pragma once

#include <cstdint>

#include <tenon/tensor/tensor_info.hpp>
#include <tenon/tensor/validate.hpp>

namespace tenon::detail {

/// What is described, as a tensor that owns nothing: good where `checked()`.
class described : public tensor_ref {
public:
    TENON_HOT explicit described(const tensor_info& info) noexcept : checked_(info.check()) {
        if (!checked_) return;
        const abi::dl_tensor t = info.to_abi();
        const claim said{t, info.flags(), {abi::dlpack_major, abi::dlpack_minor}};
        checked_ = t.strides == nullptr && t.ndim != 0 ? validator::check_row_major(said, storage_, *this)
                                                       : validator::check_whole(said, storage_, *this);
        stream_ = info.stream();
    }
    described(const described&) = delete;  // it points into itself
    described& operator=(const described&) = delete;

    [[nodiscard]] const result<void>& checked() const noexcept { return checked_; }

private:
    std::int64_t storage_[2 * max_rank];
    result<void> checked_;
};

}  // namespace tenon::detail
