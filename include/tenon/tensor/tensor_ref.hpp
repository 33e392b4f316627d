// tenon/tensor/tensor_ref.hpp: a checked tensor that owns nothing: what every view, check and dispatch reads.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/tensor/shape.hpp>
#include <tenon/value/device.hpp>

namespace tenon {

namespace detail {
struct validator;

/// What a tensor remembers of its memory that DLPack has no flag for, in the same word as its flags. Never on
/// the wire: the validator refuses such bits from others, and what leaves is masked.
namespace mark {
inline constexpr std::uint64_t legacy = std::uint64_t{1} << 63U;  ///< read-only, and handed out as legacy
inline constexpr std::uint64_t grad = std::uint64_t{1} << 62U;    ///< of a tensor that requires grad
inline constexpr std::uint64_t number = std::uint64_t{1} << 61U;  ///< stands for a number of Python's
inline constexpr std::uint64_t all = legacy | grad | number;
}  // namespace mark
}  // namespace detail

/// A tensor whose description has been validated: the extents are not negative, the size and every address it
/// touches are representable, strides are never null, and the metadata is our own copy, so the producer
/// cannot change it afterwards. Only `validate.hpp` fills one; copying it copies the reference.
///
/// Owns neither the data nor the arrays behind `shape()` and `strides()`: it is good for as long as the
/// `tensor`, or the `py::borrow` call, it came from.
class tensor_ref {
public:
    [[nodiscard]] std::int32_t ndim() const noexcept { return ndim_; }
    [[nodiscard]] extents shape() const noexcept { return {shape_, static_cast<std::size_t>(ndim_)}; }
    /// In elements; may be negative or zero.
    [[nodiscard]] extents strides() const noexcept { return {strides_, static_cast<std::size_t>(ndim_)}; }
    [[nodiscard]] std::int64_t shape(std::size_t axis) const noexcept { return shape_[axis]; }
    [[nodiscard]] std::int64_t stride(std::size_t axis) const noexcept { return strides_[axis]; }

    /// Number of elements.
    [[nodiscard]] std::int64_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] tenon::dtype dtype() const noexcept { return tenon::dtype(dtype_); }
    [[nodiscard]] tenon::device device() const noexcept { return tenon::device(device_); }
    /// Bytes of one element standing alone.
    [[nodiscard]] std::int64_t itemsize() const noexcept { return dtype().itemsize(); }
    /// Bytes of the elements side by side (gaps between strided elements do not count).
    [[nodiscard]] std::int64_t nbytes() const noexcept {
        return byte_count(size_, dtype(), is_subbyte_padded()).value_or(0);  // validated: it fits
    }

    /// Address of the first element, `byte_offset` applied. Not an address on a device with opaque handles
    /// (`device().has_opaque_handle()`): use `base()` and `byte_offset()` there.
    [[nodiscard]] void* data() const noexcept {
        // As integers: an empty tensor may have a null base and still an offset.
        return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(base_) +
                                       static_cast<std::uintptr_t>(byte_offset_));
    }
    /// The pointer or handle as the producer gave it, without the offset.
    [[nodiscard]] void* base() const noexcept { return base_; }
    [[nodiscard]] std::uint64_t byte_offset() const noexcept { return byte_offset_; }

    /// The stream of a GPU on which the memory is ready, to launch work on: what is queued there comes after
    /// the work that made it. A `cudaStream_t` or `hipStream_t`; CUDA's default stream by the handle that
    /// means it in any code (`cudaStreamLegacy`). Null for memory that no stream orders.
    [[nodiscard]] void* stream() const noexcept {
        return stream_ != nullptr || !device().is_cuda_memory() ? stream_
                                                                : reinterpret_cast<void*>(std::uintptr_t{1});
    }

    [[nodiscard]] bool is_c_contiguous() const noexcept { return tenon::is_c_contiguous(shape(), strides()); }
    [[nodiscard]] bool is_f_contiguous() const noexcept { return tenon::is_f_contiguous(shape(), strides()); }
    [[nodiscard]] bool is_contiguous() const noexcept { return is_c_contiguous(); }
    /// The address of the first element is a multiple of `alignment`, a power of two.
    [[nodiscard]] bool is_aligned_to(std::size_t alignment) const noexcept {
        return (reinterpret_cast<std::uintptr_t>(data()) & (alignment - 1)) == 0;
    }

    [[nodiscard]] bool is_read_only() const noexcept { return (flags_ & abi::flag::read_only) != 0; }
    /// The producer says that it made a copy for us and that nobody else sees this memory.
    [[nodiscard]] bool is_copied() const noexcept { return (flags_ & abi::flag::is_copied) != 0; }
    /// Sub-byte elements take a whole byte each instead of sharing.
    [[nodiscard]] bool is_subbyte_padded() const noexcept {
        return (flags_ & abi::flag::subbyte_padded) != 0;
    }
    [[nodiscard]] std::uint64_t flags() const noexcept { return flags_ & ~detail::mark::all; }
    /// A legacy struct, which has no flags, may carry it: it can be written to, or its own library hands it
    /// out so, or `tensor::allow_legacy` has been called.
    [[nodiscard]] bool may_leave_as_legacy() const noexcept {
        return !is_read_only() || (flags_ & detail::mark::legacy) != 0;
    }
    /// It is read-only because it is the memory of a tensor that requires grad.
    [[nodiscard]] bool requires_grad() const noexcept { return (flags_ & detail::mark::grad) != 0; }
    /// It stands for a number of Python's, which a bound function takes as an array without axes.
    [[nodiscard]] bool is_number() const noexcept { return (flags_ & detail::mark::number) != 0; }
    /// The DLPack version the producer stated; 0.0 when it came as a legacy struct or by another protocol.
    [[nodiscard]] abi::dl_version version() const noexcept { return version_; }

protected:
    /// Not initialised: whoever derives fills it through the validator, or says `tensor_ref(nothing{})`.
    struct nothing {};
    tensor_ref() noexcept {}  // NOLINT: a borrowed argument pays only for the fields it has
    explicit tensor_ref(nothing) noexcept
        : base_(nullptr),
          byte_offset_(0),
          shape_(nullptr),
          strides_(nullptr),
          size_(0),
          flags_(0),
          dtype_{tenon::dtype{}.to_abi()},
          ndim_(0),
          device_{tenon::device{}.to_abi()},
          version_{0, 0},
          stream_(nullptr) {}

    friend struct detail::validator;
    friend class tensor;

    void* base_;
    std::uint64_t byte_offset_;
    const std::int64_t* shape_;
    const std::int64_t* strides_;
    std::int64_t size_;
    std::uint64_t flags_;
    // Not in the order of dl_tensor: compilers would copy the two with one load of what has just been stored
    // by two, and that stalls.
    abi::dl_dtype dtype_;
    std::int32_t ndim_;
    abi::dl_device device_;
    abi::dl_version version_;
    void* stream_;  ///< null: the default one
};

}  // namespace tenon
