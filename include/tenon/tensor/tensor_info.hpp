// tenon/tensor/tensor_info.hpp: memory as its owner describes it: pointer, shape, strides, dtype, device.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
// NOLINTBEGIN(clang-analyzer-core.StackAddressEscape): every copy points to its own storage
class tensor_info {
public:
    /// Row-major elements without gaps. `{}` as the shape describes a single element.
    template <class T>
        requires(!std::is_void_v<T>)
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
        requires(!std::is_void_v<T>)
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

    tensor_info(const tensor_info& other) noexcept { *this = other; }
    tensor_info& operator=(const tensor_info& other) noexcept {
        if (this == &other) return *this;
        std::memcpy(storage_, other.storage_, 2 * other.stored_rank() * sizeof(std::int64_t));
        tensor_ = other.tensor_;
        tensor_.shape = storage_;
        if (tensor_.strides != nullptr) tensor_.strides = storage_ + stored_rank();
        flags_ = other.flags_;
        stream_ = other.stream_;
        fault_ = other.fault_;
        has_zero_ = other.has_zero_;
        return *this;
    }
    ~tensor_info() = default;

    /// The first element lies this many bytes behind the pointer.
    [[nodiscard]] tensor_info with_byte_offset(std::uint64_t bytes) const noexcept {
        tensor_info out = *this;
        out.tensor_.byte_offset = bytes;
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
    /// Sub-byte elements take a byte each.
    [[nodiscard]] tensor_info padded() const noexcept { return with_flag(abi::flag::subbyte_padded, true); }

    /// What is wrong with it that the validator cannot see: an unknown name, lists that do not fit together,
    /// an address no element can have.
    [[nodiscard]] result<void> check() const noexcept {
        const std::uintptr_t address =
            reinterpret_cast<std::uintptr_t>(tensor_.data) + static_cast<std::uintptr_t>(tensor_.byte_offset);
        const std::uintptr_t off = address & (dtype().alignment() - 1);  // a power of two
        if (fault_.problem != nullptr || off != 0) [[unlikely]]
            return check_fault(off);
        return {};
    }
    /// In DLPack's words; a reference, because reading back whole what was just written by fields stalls.
    [[nodiscard]] const abi::dl_tensor& to_abi() const noexcept { return tensor_; }
    [[nodiscard]] std::uint64_t flags() const noexcept { return flags_; }
    /// The pointer as it was given, offset not applied.
    [[nodiscard]] void* data() const noexcept { return tensor_.data; }
    [[nodiscard]] tenon::dtype dtype() const noexcept { return tenon::dtype(tensor_.dtype); }
    [[nodiscard]] tenon::device device() const noexcept { return tenon::device(tensor_.device); }
    [[nodiscard]] extents shape() const noexcept { return {storage_, stored_rank()}; }
    [[nodiscard]] void* stream() const noexcept { return stream_; }

private:
    template <class T>
    tensor_info(T* data, element_type type, const axes& shape, const axes* strides,
                tenon::device where) noexcept {
        tensor_ = {const_cast<std::remove_const_t<T>*>(data),
                   where.to_abi(),
                   static_cast<std::int32_t>(shape.values().size()),
                   type.type.to_abi(),
                   storage_,
                   nullptr,
                   0};
        flags_ = std::is_const_v<T> ? abi::flag::read_only : 0;
        // A C++ object takes a byte at least: where the pointer is typed, the elements are padded.
        if constexpr (!std::is_void_v<T>)
            if (type.type.is_subbyte()) flags_ |= abi::flag::subbyte_padded;
        fault_.problem = nullptr;
        has_zero_ = false;
        for (std::size_t i = 0; i < stored_rank(); ++i) {
            storage_[i] = shape.values()[i];
            has_zero_ |= storage_[i] == 0;
        }
        if (!type.known || shape.is_too_long() || (strides != nullptr && strides->size() != shape.size()))
            [[unlikely]] {
            note_fault(type, shape, strides);
            return;
        }
        if (strides == nullptr) return;
        tensor_.strides = storage_ + stored_rank();
        for (std::size_t i = 0; i < stored_rank(); ++i) storage_[stored_rank() + i] = strides->values()[i];
    }

    [[nodiscard]] tensor_info with_flag(std::uint64_t flag, bool on) const noexcept {
        tensor_info out = *this;
        out.flags_ = on ? flags_ | flag : flags_ & ~flag;
        return out;
    }
    TENON_API void note_fault(element_type type, const axes& shape, const axes* strides) noexcept;
    [[nodiscard]] TENON_API result<void> check_fault(std::uintptr_t off) const noexcept;
    [[nodiscard]] std::size_t stored_rank() const noexcept { return static_cast<std::size_t>(tensor_.ndim); }

    abi::dl_tensor tensor_;  // its arrays are in `storage_`; null strides mean row-major
    std::uint64_t flags_;
    void* stream_ = nullptr;
    error fault_;  // there is one only if `problem` is not null
    bool has_zero_;
    std::int64_t storage_[2 * max_rank];
};
// NOLINTEND(clang-analyzer-core.StackAddressEscape)

/// A class whose objects say by `tensor_info describe(T&)`, found by argument-dependent lookup, what memory
/// they hold.
template <class T>
concept describable = requires(T& object) {
    { describe(object) } -> std::same_as<tensor_info>;
};

}  // namespace tenon
