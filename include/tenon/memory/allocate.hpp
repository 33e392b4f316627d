// tenon/memory/allocate.hpp: fresh host memory for a tensor, aligned as vector units and JAX want it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include <tenon/tensor/tensor.hpp>

namespace tenon {

/// Vector units and JAX want 64 bytes; a lesser alignment makes JAX copy.
inline constexpr std::size_t allocation_alignment = 64;

/// A writable, row-major tensor in memory of its own, uninitialised. Sub-byte elements share bytes, unless
/// `padded`.
[[nodiscard]] TENON_API result<tensor> allocate(element_type type, const axes& shape,
                                                bool padded = false) noexcept;
template <class T>
[[nodiscard]] result<tensor> allocate(const axes& shape) noexcept {
    return allocate(dtype_of<T>, shape, dtype_of<T>.is_subbyte());
}

/// For containers of your own whose memory leaves as a tensor:
/// `std::vector<float, tenon::aligned_allocator<float>>` is taken by JAX without a copy.
template <class T>
struct aligned_allocator {
    using value_type = T;

    aligned_allocator() noexcept = default;
    template <class U>
    aligned_allocator(const aligned_allocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] T* allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{alignment}));
    }
    void deallocate(T* memory, std::size_t) noexcept {
        ::operator delete(memory, std::align_val_t{alignment});
    }
    friend bool operator==(aligned_allocator, aligned_allocator) noexcept { return true; }

private:
    static constexpr std::size_t alignment =
        alignof(T) > allocation_alignment ? alignof(T) : allocation_alignment;
};

}  // namespace tenon
