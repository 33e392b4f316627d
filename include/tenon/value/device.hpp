// tenon/value/device.hpp: where a tensor's memory lives, as an open value with names and predicates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenon/abi/dlpack.hpp>
#include <tenon/detail/config.hpp>

namespace tenon {

struct device {
private:  // first, or Clang could not tell below at compile time
    /// One look at a set of bits instead of one comparison for each.
    [[nodiscard]] constexpr bool is_one_of(auto... kinds) const noexcept {
        constexpr auto bit = [](std::int32_t kind) {
            return std::uint64_t{1} << static_cast<unsigned>(kind);
        };
        return static_cast<std::uint32_t>(type) < 64U && ((bit(kinds) | ...) & bit(type)) != 0;
    }

public:
    std::int32_t type = abi::device_code::cpu;
    std::int32_t id = 0;

    constexpr device() noexcept = default;
    constexpr device(std::int32_t t, std::int32_t i) noexcept : type(t), id(i) {}
    constexpr explicit device(abi::dl_device d) noexcept : type(d.device_type), id(d.device_id) {}
    [[nodiscard]] constexpr abi::dl_device to_abi() const noexcept { return {type, id}; }

    TENON_HOT friend constexpr bool operator==(device, device) noexcept = default;

    [[nodiscard]] constexpr bool is_cpu() const noexcept { return type == abi::device_code::cpu; }
    [[nodiscard]] constexpr bool is_cuda() const noexcept { return type == abi::device_code::cuda; }
    [[nodiscard]] constexpr bool is_rocm() const noexcept { return type == abi::device_code::rocm; }
    /// CUDA's own, pinned and managed memory: the driver knows it, and kernels may use its address.
    [[nodiscard]] constexpr bool is_cuda_memory() const noexcept {
        return is_one_of(abi::device_code::cuda, abi::device_code::cuda_host, abi::device_code::cuda_managed);
    }
    [[nodiscard]] constexpr bool is_rocm_memory() const noexcept {
        return is_one_of(abi::device_code::rocm, abi::device_code::rocm_host);
    }
    /// Code on a device of this kind may use the address: pinned and managed memory is the device's, too.
    [[nodiscard]] constexpr bool serves(std::int32_t kind) const noexcept {
        return type == kind || (kind == abi::device_code::cuda && is_cuda_memory()) ||
               (kind == abi::device_code::rocm && is_rocm_memory());
    }
    /// Plain code on the host may dereference its pointers: CPU, pinned and managed memory.
    [[nodiscard]] constexpr bool is_host_accessible() const noexcept {
        return is_one_of(abi::device_code::cpu, abi::device_code::cuda_host, abi::device_code::rocm_host,
                         abi::device_code::cuda_managed);
    }
    /// `data` is an opaque handle (a buffer object) and not an address: offsets cannot be added to it.
    [[nodiscard]] constexpr bool has_opaque_handle() const noexcept {
        return is_one_of(abi::device_code::opencl, abi::device_code::vulkan, abi::device_code::metal,
                         abi::device_code::webgpu);
    }
    /// Work is ordered by streams that `__dlpack__(stream=...)` speaks of.
    [[nodiscard]] constexpr bool has_streams() const noexcept { return is_cuda() || is_rocm(); }
};

namespace detail {
struct device_name {
    std::int32_t type;
    std::string_view name;
};
TENON_PRIVATE inline constexpr device_name device_table[] = {
    {abi::device_code::cpu, "cpu"},
    {abi::device_code::cuda, "cuda"},
    {abi::device_code::cuda_host, "cuda_host"},
    {abi::device_code::opencl, "opencl"},
    {abi::device_code::vulkan, "vulkan"},
    {abi::device_code::metal, "metal"},
    {abi::device_code::vpi, "vpi"},
    {abi::device_code::rocm, "rocm"},
    {abi::device_code::rocm_host, "rocm_host"},
    {abi::device_code::ext_dev, "ext_dev"},
    {abi::device_code::cuda_managed, "cuda_managed"},
    {abi::device_code::oneapi, "oneapi"},
    {abi::device_code::webgpu, "webgpu"},
    {abi::device_code::hexagon, "hexagon"},
    {abi::device_code::maia, "maia"},
    {abi::device_code::trainium, "trn"},
    {abi::device_code::tpu, "tpu"},
    {abi::device_code::tpu_host, "tpu_host"},
    {abi::device_code::ascend, "ascend"},
};
}  // namespace detail

/// True when DLPack defines the device kind, as far as is known here. Others are carried all the same.
[[nodiscard]] constexpr bool is_known(device d) noexcept {
    for (const auto& e : detail::device_table)
        if (e.type == d.type) return true;
    return false;
}

/// "cpu", "cuda:0", "cuda_host:0"; a kind without a name prints as "device(99):0".
[[nodiscard]] TENON_API std::string name(device d);

/// Reads "cpu", "cuda", "cuda:1", and what `name` says of a kind without one; nullopt for anything else.
[[nodiscard]] TENON_API std::optional<device> device_from_name(std::string_view text) noexcept;

}  // namespace tenon
