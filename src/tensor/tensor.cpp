// src/tensor/tensor.cpp: how a tensor comes to own what it shows.
#include <tenon/tensor/managed.hpp>
#include <tenon/tensor/tensor.hpp>
#include "../standard.hpp"

namespace tenon {

TENON_INLINE void tensor::steal(tensor& other) noexcept {
    static_cast<tensor_ref&>(*this) = other;
    owner_ = std::move(other.owner_);
    delete[] std::exchange(heap_, std::exchange(other.heap_, nullptr));
    if (heap_ == nullptr) {
        std::memcpy(inline_, other.inline_, sizeof inline_);  // all of it: quicker than the right amount
        shape_ = inline_;
        strides_ = inline_ + other.ndim_;
    }
    static_cast<tensor_ref&>(other) = tensor_ref(nothing{});
}

TENON_COLD TENON_INLINE result<void> detail::validator::check_whole(const detail::claim& said,
                                                                    std::int64_t* storage,
                                                                    tensor_ref& out) noexcept {
    return check(said, storage, out);
}

TENON_INLINE result<void> detail::validator::check_row_major_apart(const claim& said, std::int64_t* storage,
                                                                   tensor_ref& out) noexcept {
    return check_row_major(said, storage, out);
}

inline bool tensor::reserve(std::int32_t rank) noexcept {
    if (rank > inline_rank) heap_ = new (std::nothrow) std::int64_t[2 * static_cast<std::size_t>(rank)];
    return rank <= inline_rank || heap_ != nullptr;
}

TENON_INLINE result<tensor> tensor::adopt(const abi::dl_tensor& t, std::uint64_t flags,
                                          abi::dl_version stated, keep_alive& owner) noexcept {
    // Every path returns the one object, so that it is made where the caller wants it.
    result<tensor> made(std::in_place, key{});
    // More axes than there may be are refused before there is room for them.
    if (t.ndim <= max_rank && !made->reserve(t.ndim)) {
        made.fail(out_of_memory("shape"));
        return made;
    }
    if (auto ok = detail::validator::check_whole({t, flags, stated}, made->storage(), *made); !ok)
        made.fail(ok.error());
    else
        made->owner_ = std::move(owner);
    return made;
}

TENON_INLINE result<tensor> tensor::adopt_own(const tensor_info& info, keep_alive& owner) noexcept {
    if (auto ok = info.check(); !ok) return ok.error();
    auto made = adopt(info.to_abi(), info.flags(), {abi::dlpack_major, abi::dlpack_minor}, owner);
    if (made) made->stream_ = info.stream();
    return made;
}

TENON_INLINE result<void> tensor::keep(const tensor_ref& checked, keep_alive& owner,
                                       std::optional<tensor>& out) noexcept {
    tensor& made = out.emplace(key{});
    if (!made.reserve(checked.ndim_)) {
        out.reset();
        return out_of_memory("shape");
    }
    static_cast<tensor_ref&>(made) = checked;
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): `heap_` is a unique_ptr inside `out`
    std::int64_t* const storage = made.storage();
    for (std::int32_t i = 0; i < checked.ndim_; ++i) {
        storage[i] = checked.shape_[i];
        storage[checked.ndim_ + i] = checked.strides_[i];
    }
    made.shape_ = storage;
    made.strides_ = storage + checked.ndim_;
    made.owner_ = std::move(owner);
    return {};
}

TENON_INLINE result<tensor> tensor::take(foreign& received) noexcept {
    return take_as(received, received.owner_);
}

TENON_INLINE result<tensor> tensor::take_as(foreign& received, keep_alive& owner) noexcept {
    auto seen = received.describe();
    if (!seen) return seen.error();
    auto made = adopt(seen->tensor, seen->flags, seen->version, owner);
    if (made) received.disown();
    return made;
}

}  // namespace tenon
