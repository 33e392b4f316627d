// tests/python/native/bound_kept.hpp: arrays that outlive their call: in members, globals, containers and
// other threads, with and without the GIL.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/bind/array.hpp>
#include <tenon/py.hpp>

namespace kept {

using tenon::array;
using vector = array<const double, 1>;
using open = array<const double>;

/// Lets go of the GIL for as long as it is there.
class released {
public:
    released() noexcept : state_(PyEval_SaveThread()) {}
    ~released() { PyEval_RestoreThread(state_); }
    released(const released&) = delete;
    released& operator=(const released&) = delete;

private:
    PyThreadState* state_;
};

/// What the authors of classes write.
struct keeper {
    vector fixed;
    open any_rank;
    tenon::shared_tensor shared;
    tenon::tensor owned;
    std::vector<vector> many;
    std::optional<vector> maybe;

    keeper() = default;
    explicit keeper(vector x) : fixed(std::move(x)) {}
    void set(vector x) { fixed = std::move(x); }
    void add(const vector& x) { many.push_back(x); }
    [[nodiscard]] vector get() const { return fixed; }
    [[nodiscard]] std::int64_t size_of(vector x) const { return x.size() + fixed.size(); }
    void clear() { *this = keeper(); }
};

/// Destroyed by the C runtime, after the interpreter.
inline std::vector<open> global;

inline double total(const open& x) {
    double sum = 0;
    for (double value : x.elements()) sum += value;
    return sum;
}

inline void keep(open x) { global.push_back(x); }
inline void keep_moved(open x) { global.push_back(std::move(x)); }
inline void keep_assigned(const open& x) {
    global.emplace_back();
    global.back() = x;
}
inline void keep_fixed(vector x) { global.emplace_back(x); }
inline void keep_released(open x) {
    const released here;
    global.push_back(std::move(x));
}
/// Nothing looks at it with the GIL before the call ends.
inline void keep_on_threads(const open& x, std::int64_t count) {
    const released here;
    std::vector<open> found(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    for (auto& one : found) threads.emplace_back([&x, &one] { one = x; });
    for (auto& one : threads) one.join();
    for (auto& one : found) global.push_back(std::move(one));
}
inline void keep_items(const std::vector<vector>& xs) {
    for (const auto& x : xs) global.emplace_back(x);
}
inline void keep_optional(std::optional<vector> x) {
    if (x) global.emplace_back(*std::move(x));
}
inline void keep_variant(std::variant<array<const float, 1>, vector> x) {
    if (x.index() == 1) global.emplace_back(std::get<1>(std::move(x)));
}
inline void keep_converted(array<const double, 1, tenon::convert> x) { global.emplace_back(vector(x)); }
inline void keep_written(array<double, 1> x) {
    global.emplace_back(x);
    for (double& value : x) value += 1;
}
inline void keep_empty_like(vector x) { global.emplace_back(tenon::empty_like(x)); }
/// Keeps it, and lets Python do what it will to the argument: what is kept stays.
inline double keep_then(open x, PyObject* callback) {
    const open mine = x;
    const auto done = tenon::py::ref::take(PyObject_CallNoArgs(callback));
    if (!done) throw tenon::py::python_error();
    return total(mine);
}

inline std::int64_t count() { return static_cast<std::int64_t>(global.size()); }
inline double total_of_all() {
    double sum = 0;
    for (const auto& x : global) sum += total(x);
    return sum;
}
inline double total_on_thread() {
    double sum = 0;
    const released here;
    std::thread([&sum] {
        const std::vector<open> copies = global;
        for (const auto& x : copies) sum += total(x);
    }).join();
    return sum;
}
inline open last() { return global.back(); }
inline open same(open x) { return x; }
inline open nothing() { return {}; }
inline tenon::shared_tensor shared(tenon::shared_tensor x) { return x; }
inline tenon::shared_tensor made() {
    static const tenon::shared_tensor mine =
        tenon::py::or_raise(tenon::tensor::own(std::vector<double>(3, 2.0)));
    return mine;
}

inline void drop() { global.clear(); }
inline void drop_released() {
    const released here;
    global.clear();
}
inline void drop_on_thread() {
    std::vector<open> all = std::exchange(global, {});
    const released here;
    std::thread([&all] { all.clear(); }).join();
}
/// On a thread that Python knows nothing of, when it has gone, maybe.
inline void drop_later(open x, std::int64_t microseconds) {
    std::thread([mine = open(x), microseconds]() mutable {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        const open copy = mine;
        mine = {};
    }).detach();
}

}  // namespace kept
