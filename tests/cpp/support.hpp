// tests/cpp/support.hpp: producers for the tests: tensors described in one line, and fake structs that count
// their releases.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tenon/tensor/managed.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {
// How GoogleTest prints a result that was expected to be the other way round.
inline std::ostream& operator<<(std::ostream& out, const error& e) { return out << e.message(); }
}  // namespace tenon

namespace tenon_test {

inline constexpr std::int64_t int64_lowest = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t int64_highest = std::numeric_limits<std::int64_t>::max();

using ints = std::vector<std::int64_t>;

inline ints to_ints(tenon::extents e) { return {e.begin(), e.end()}; }

/// A pointer made of a number, for descriptions that must be judged without being followed.
inline void* address(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

/// Strides, or their absence. (`std::optional<std::vector>` would do, but GCC warns falsely about its
/// insides.)
class maybe_strides {
public:
    maybe_strides() = default;
    maybe_strides(ints values) : values_(std::move(values)), given_(true) {}
    explicit operator bool() const { return given_; }
    ints& operator*() { return values_; }
    const ints& operator*() const { return values_; }
    ints* operator->() { return &values_; }
    void reset() { *this = maybe_strides(); }

private:
    ints values_;
    bool given_ = false;
};

/// What a producer says about its tensor. `strides` absent means a null pointer.
struct spec {
    void* data = nullptr;
    ints shape = {};
    maybe_strides strides = {};
    tenon::dtype type = {};
    tenon::device where = {};
    std::uint64_t flags = 0;
    std::uint64_t byte_offset = 0;
};

/// The description in DLPack's words; points into `s`.
inline tenon::abi::dl_tensor describe(spec& s) {
    return {s.data,          s.where.to_abi(), static_cast<std::int32_t>(s.shape.size()),
            s.type.to_abi(), s.shape.data(),   s.strides ? s.strides->data() : nullptr,
            s.byte_offset};
}

/// A validated tensor with nothing behind it to release.
inline tenon::result<tenon::tensor> import(spec s) {
    tenon::keep_alive nobody;
    return tenon::tensor::adopt(describe(s), s.flags, {1, 3}, nobody);
}

/// `import`, when the description is known to be sound.
inline tenon::tensor made(spec s) {
    auto t = import(std::move(s));
    if (!t) throw std::runtime_error(t.error().message());
    return std::move(*t);
}

/// A row-major tensor over the elements of `memory`.
template <class T>
spec spec_of(std::vector<T>& memory, ints shape, maybe_strides strides = {}) {
    return {.data = memory.data(),
            .shape = std::move(shape),
            .strides = std::move(strides),
            .type = tenon::dtype_of<T>};
}

/// A producer's managed struct, legacy or versioned by `Managed`. Counts its releases, overwrites the
/// description when released (a later reader sees nonsense), and fails the test when it dies without having
/// been released exactly `expected` times.
template <class Managed>
class fake {
public:
    static constexpr bool is_versioned = std::is_same_v<Managed, tenon::abi::managed_tensor_versioned>;

    explicit fake(spec s, int expected = 1) : said_(std::move(s)), expected_(expected) {
        if constexpr (is_versioned) {
            managed.version = {1, 3};
            managed.flags = said_.flags;
        }
        managed.tensor = tenon_test::describe(said_);
        managed.manager_ctx = this;
        managed.deleter = on_release;
    }
    fake(const fake&) = delete;
    fake& operator=(const fake&) = delete;
    ~fake() { EXPECT_EQ(releases_, expected_) << "releases of a fake producer's struct"; }

    [[nodiscard]] int releases() const { return releases_; }
    [[nodiscard]] spec& said() { return said_; }

    Managed managed{};

private:
    static void on_release(Managed* self) {
        auto* me = static_cast<fake*>(self->manager_ctx);
        ++me->releases_;
        std::memset(&self->tensor, 0xdd, sizeof self->tensor);
    }

    spec said_;
    int expected_;
    int releases_ = 0;
};

using fake_legacy = fake<tenon::abi::managed_tensor>;
using fake_versioned = fake<tenon::abi::managed_tensor_versioned>;

/// Memory that ends where the next page cannot be touched: reading one byte too far is a fault.
class page_end {
public:
    page_end() : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
        memory_ = mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory_ == MAP_FAILED || mprotect(last(0), size_, PROT_NONE) != 0)
            throw std::runtime_error("mmap failed");
    }
    page_end(const page_end&) = delete;
    page_end& operator=(const page_end&) = delete;
    ~page_end() { munmap(memory_, 2 * size_); }

    /// The last `bytes` bytes that may be touched.
    [[nodiscard]] void* last(std::size_t bytes) const {
        return static_cast<std::byte*>(memory_) + size_ - bytes;
    }

private:
    std::size_t size_;
    void* memory_;
};

/// Which error it was: code, field and axis at once.
inline void expect_error(const tenon::error& e, tenon::errc code, std::string_view field,
                         std::int32_t axis = -1) {
    EXPECT_EQ(static_cast<int>(e.code), static_cast<int>(code)) << e;
    EXPECT_EQ(e.field, field) << e;
    EXPECT_EQ(e.axis, axis) << e;
    EXPECT_FALSE(e.message().empty());
}

template <class T>
void expect_error(const tenon::result<T>& r, tenon::errc code, std::string_view field,
                  std::int32_t axis = -1) {
    if (r)
        ADD_FAILURE() << "accepted; an error in '" << field << "' was expected";
    else
        expect_error(r.error(), code, field, axis);
}

}  // namespace tenon_test
