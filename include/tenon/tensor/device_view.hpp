// tenon/tensor/device_view.hpp: a typed, borrowed window on memory of a device: to launch on, never to read.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include <tenon/tensor/view.hpp>

namespace tenon {

/// Pointer (with `byte_offset` applied), extents, strides, dtype, device and stream of a tensor that a device
/// can use: accelerator memory, and pinned and managed memory, which the host can read as well. There is no
/// element access by design. Borrows like `view`.
template <class T = const void, int Rank = dynamic_rank>
class device_view : public detail::layout<Rank> {
    static_assert(detail::require_viewable<T>());

public:
    using element_type = T;

    [[nodiscard]] static result<device_view> from(const tensor_ref& t) noexcept {
        if (auto ok = detail::check_window<T, Rank>(t, memory_space::accelerator); !ok) return ok.error();
        return over(t);
    }
    /// Without the checks of `from`: for whoever has made them. Host memory is a device's too, then.
    [[nodiscard]] static device_view over(const tensor_ref& t) noexcept { return device_view(t); }

    /// Whoever may write may also only read. (A template, as that of `view`.)
    template <std::same_as<const T> U>
        requires(!std::is_const_v<T>)
    operator device_view<U, Rank>() const noexcept {
        return device_view<const T, Rank>::over(tensor_);
    }

    /// A device address, or the opaque handle on devices that have those (then `byte_offset` is not applied).
    [[nodiscard]] T* data() const noexcept {
        return static_cast<T*>(device().has_opaque_handle() ? tensor_.base() : tensor_.data());
    }
    /// What is still to be added to `data()`: zero except on devices with opaque handles.
    [[nodiscard]] std::uint64_t byte_offset() const noexcept {
        return device().has_opaque_handle() ? tensor_.byte_offset() : 0;
    }
    [[nodiscard]] std::int64_t nbytes() const noexcept { return tensor_.nbytes(); }
    [[nodiscard]] tenon::dtype dtype() const noexcept { return tensor_.dtype(); }
    [[nodiscard]] tenon::device device() const noexcept { return tensor_.device(); }
    /// The stream to launch on: what is queued there comes after the work that made the memory.
    [[nodiscard]] void* stream() const noexcept { return tensor_.stream(); }
    /// "cuda:0".
    [[nodiscard]] std::string device_name() const { return name(device()); }

    template <class... Index>
    void operator()(Index...) const TENON_DELETED("not readable by the host: pass data() to a kernel");
    void operator[](std::int64_t) const TENON_DELETED("not readable by the host: pass data() to a kernel");
    void begin() const TENON_DELETED("not readable by the host: pass data() to a kernel");
    void end() const TENON_DELETED("not readable by the host: pass data() to a kernel");
    void elements() const TENON_DELETED("not readable by the host: pass data() to a kernel");

private:
    explicit device_view(const tensor_ref& t) noexcept : detail::layout<Rank>(t), tensor_(t) {}

    tensor_ref tensor_;
};

}  // namespace tenon
