// tenon/py/taken.hpp: letting go of what a function has taken, without showing its owner a pending exception.
#pragma once

#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>

namespace tenon::py::detail {

/// Resets a tensor or a keep_alive when the scope ends, whoever has its contents by then: the owner's own
/// code runs, and may neither see nor lose the exception that the function is about to return with.
template <class Kept>
class taken {
public:
    explicit taken(Kept& kept) noexcept : kept_(kept) {}
    taken(const taken&) = delete;
    taken& operator=(const taken&) = delete;
    ~taken() {
        const error_guard keep;
        kept_.reset();
    }

private:
    Kept& kept_;
};

}  // namespace tenon::py::detail
