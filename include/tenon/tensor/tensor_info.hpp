// tenon/tensor/tensor_info.hpp: memory as its owner describes it: pointer, shape, strides, dtype, device.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <tenon/tensor/axes.hpp>
#include <tenon/value/dtype_names.hpp>
#include <tenon/value/error.hpp>

namespace tenon {

/// An element type by value or by name ("bfloat16"); a name that is not in the table is refused when the
/// description is used.
struct element_type {
    tenon::dtype type;
    bool known = true;

    element_type(tenon::dtype t) noexcept : type(t) {}       // NOLINT(google-explicit-constructor)
    TENON_API element_type(std::string_view name) noexcept;  // NOLINT(google-explicit-constructor)
    element_type(const char* name) noexcept : element_type(std::string_view(name)) {}  // NOLINT
};

/// A description of memory, owning nothing. It holds its own copy of the axes, so it may be returned from a
/// function and outlive the lists it was made from. Nothing is checked here: `tensor::own` does, and says
/// what is wrong. A pointer to const describes read-only memory, unless `writable()` says otherwise.
class tensor_info {
public:
    /// Row-major elements without gaps. `{}` as the shape describes a single element.
    template <class T>
    [[nodiscard]] static tensor_info contiguous(T* data, const axes& shape,
                                                tenon::device where = {}) noexcept {
        static_assert(element<T>,
                      "tensor_info: no dtype corresponds to this type; specialise tenon::dtype_traits");
        return tensor_info(data, dtype_of<std::remove_const_t<T>>, shape, nullptr, where);
    }
    template <class T>
        requires(std::is_void_v<T>)
    [[nodiscard]] static tensor_info contiguous(T* data, element_type type, const axes& shape,
                                                tenon::device where = {}) noexcept {
        return tensor_info(data, type, shape, nullptr, where);
    }
    /// Strides count elements, not bytes; they may be zero or negative.
    template <class T>
    [[nodiscard]] static tensor_info strided(T* data, const axes& shape, const axes& strides,
                                             tenon::device where = {}) noexcept {
        return tensor_info(data, dtype_of<std::remove_const_t<T>>, shape, &strides, where);
    }
    template <class T>
        requires(std::is_void_v<T>)
    [[nodiscard]] static tensor_info strided(T* data, element_type type, const axes& shape,
                                             const axes& strides, tenon::device where = {}) noexcept {
        return tensor_info(data, type, shape, &strides, where);
    }

    /// The first element lies this many bytes behind the pointer.
    [[nodiscard]] tensor_info with_byte_offset(std::uint64_t bytes) const noexcept {
        tensor_info out = *this;
        out.byte_offset_ = bytes;
        return out;
    }
    /// The work that makes the memory is queued on this stream of its device; without one, on the default
    /// stream. It must live until the tensor made of this has been handed to Python, or has gone.
    [[nodiscard]] tensor_info on_stream(void* stream) const noexcept {
        tensor_info out = *this;
        out.stream_ = stream;
        return out;
    }
    [[nodiscard]] tensor_info read_only() const noexcept { return with_flag(abi::flag::read_only, true); }
    /// The memory may be written to, although the pointer is one to const: a `describe` sees its object so.
    [[nodiscard]] tensor_info writable() const noexcept { return with_flag(abi::flag::read_only, false); }
    /// Sub-byte elements take a byte each, or share bytes.
    [[nodiscard]] tensor_info padded(bool are = true) const noexcept {
        return with_flag(abi::flag::subbyte_padded, are);
    }

    /// What is wrong with it that the validator cannot see: an unknown name, lists that do not fit together,
    /// an address no element can have.
    [[nodiscard]] result<void> check() const noexcept {
        const bool fits = !shape_.is_too_long() && (!is_strided_ || strides_.size() == shape_.size());
        return fits && type_.known && bytes_off_alignment() == 0 ? result<void>() : check_closely();
    }
    /// In DLPack's words, as long as this object lives; null strides mean row-major.
    [[nodiscard]] abi::dl_tensor to_abi() const noexcept {
        return {data_,
                device_.to_abi(),
                static_cast<std::int32_t>(shape().size()),
                dtype().to_abi(),
                const_cast<std::int64_t*>(shape().data()),
                is_strided_ ? const_cast<std::int64_t*>(strides_.values().data()) : nullptr,
                byte_offset_};
    }
    [[nodiscard]] std::uint64_t flags() const noexcept { return flags_; }
    /// The pointer as it was given, offset not applied.
    [[nodiscard]] void* data() const noexcept { return data_; }
    [[nodiscard]] tenon::dtype dtype() const noexcept { return type_.type; }
    [[nodiscard]] tenon::device device() const noexcept { return device_; }
    [[nodiscard]] extents shape() const noexcept { return shape_.values(); }
    [[nodiscard]] void* stream() const noexcept { return stream_; }

private:
    [[nodiscard]] TENON_API result<void> check_closely() const noexcept;
    [[nodiscard]] std::uintptr_t bytes_off_alignment() const noexcept {
        const auto first =
            reinterpret_cast<std::uintptr_t>(data_) + static_cast<std::uintptr_t>(byte_offset_);
        return first & (dtype().alignment() - 1);  // a power of two
    }

    template <class T>
    tensor_info(T* data, element_type type, const axes& shape, const axes* strides,
                tenon::device where) noexcept
        : data_(const_cast<std::remove_const_t<T>*>(data)),
          type_(type),
          device_(where),
          shape_(shape),
          strides_(strides != nullptr ? *strides : axes()),
          is_strided_(strides != nullptr) {
        if (std::is_const_v<T>) flags_ |= abi::flag::read_only;
        // A C++ object takes a byte at least: where the pointer is typed, the elements are padded.
        if (!std::is_void_v<T> && type.type.is_subbyte()) flags_ |= abi::flag::subbyte_padded;
    }

    [[nodiscard]] tensor_info with_flag(std::uint64_t flag, bool on) const noexcept {
        tensor_info out = *this;
        out.flags_ = on ? flags_ | flag : flags_ & ~flag;
        return out;
    }

    /// Copied only as far as they go.
    struct kept_axes : axes {
        kept_axes(const axes& other) noexcept { assign(other); }
        // NOLINTNEXTLINE(bugprone-copy-constructor-init): the base would copy all there is room for
        kept_axes(const kept_axes& other) noexcept : axes() { assign(other); }
        kept_axes& operator=(const kept_axes& other) noexcept {
            assign(other);
            return *this;
        }
        ~kept_axes() = default;
    };

    void* data_;
    element_type type_;
    tenon::device device_;
    kept_axes shape_;
    kept_axes strides_;
    bool is_strided_;  // if not, row-major
    std::uint64_t byte_offset_ = 0;
    std::uint64_t flags_ = 0;
    void* stream_ = nullptr;
};

/// A class whose objects say by `tensor_info describe(T&)`, found by argument-dependent lookup, what memory
/// they hold.
template <class T>
concept describable = requires(T& object) {
    { describe(object) } -> std::same_as<tensor_info>;
};

}  // namespace tenon
