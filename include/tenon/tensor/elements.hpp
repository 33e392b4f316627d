// tenon/tensor/elements.hpp: all elements of a typed window, one after the other in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/tensor/shape.hpp>

namespace tenon::detail {

/// What `view::elements()` gives: a forward range of references. It has a copy of the window's layout, and is
/// good for as long as the window would be; its iterators are for as long as it is itself.
///
/// The last axes, as far as memory follows on them in even steps, are one run: contiguous memory is one, of
/// any rank. Only from run to run the place of an element is computed anew.
template <class T, class Layout>
class elements : Layout {
public:
    elements(T* data, const Layout& laid) noexcept : Layout(laid), data_(data) {
        if (this->empty()) return;
        while (outer_ > 0) {
            const std::int64_t extent = this->shape(outer_ - 1), stride = this->stride(outer_ - 1);
            std::int64_t follows = 0;
            if (extent != 1 && run_ != 1 && (mul_overflows(step_, run_, follows) || stride != follows)) break;
            if (extent != 1 && run_ == 1) step_ = stride;
            run_ *= extent;
            --outer_;
        }
    }

    using Layout::empty;
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(Layout::size()); }

    struct iterator {
        using difference_type = std::ptrdiff_t;
        using value_type = std::remove_cv_t<T>;

        const elements* over = nullptr;
        T* at = nullptr;
        std::int64_t number = 0;  ///< of elements before this one
        std::int64_t run_end = 0;

        [[nodiscard]] T& operator*() const noexcept { return *at; }
        [[nodiscard]] T* operator->() const noexcept { return at; }
        iterator& operator++() noexcept {
            if (++number != run_end)
                at += over->step_;
            else
                over->begin_run(*this);
            return *this;
        }
        iterator operator++(int) noexcept {
            const iterator before = *this;
            ++*this;
            return before;
        }
        friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.number == b.number; }
    };
    [[nodiscard]] iterator begin() const noexcept {
        iterator first{this, data_, 0, 0};
        begin_run(first);
        return first;
    }
    [[nodiscard]] iterator end() const noexcept { return {this, nullptr, Layout::size(), 0}; }

private:
    void begin_run(iterator& i) const noexcept {
        if (i.number == Layout::size()) return;
        std::int64_t rest = i.number / run_, offset = 0;
        for (std::size_t axis = outer_; axis-- > 0; rest /= this->shape(axis))
            offset += rest % this->shape(axis) * this->stride(axis);
        i.at = data_ + offset;
        i.run_end = i.number + run_;
    }

    T* data_;
    std::int64_t run_ = 1, step_ = 1;           ///< how many elements follow in even steps, and how far apart
    std::size_t outer_ = this->shape().size();  ///< the axes that are not in a run
};

}  // namespace tenon::detail
