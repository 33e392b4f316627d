// examples/keep/keep.hpp: a class that keeps arrays of the caller's, as it keeps any member.
#pragma once

#include <thread>
#include <utility>
#include <vector>

#include <tenon/bind/array.hpp>

using column = tenon::array<const double, 1>;

struct table {
    column index;                // empty at first
    tenon::shared_tensor notes;  // of any element type and shape, on any device
    std::vector<column> columns;

    void add(column x) { columns.push_back(std::move(x)); }  // what is stored keeps its memory
    void clear() { *this = table(); }

    /// By a thread that never heard of Python. It has copies of its own: the table may change meanwhile.
    template <class GilReleased>
    double total() const {
        std::vector<column> mine = columns;
        const GilReleased others_may_run;
        double sum = 0;
        std::thread([&sum, mine = std::move(mine)] {
            for (const column& x : mine)
                for (double value : x) sum += value;
        }).join();
        return sum;  // the copies are gone by now, dropped without the GIL
    }
};

/// Shows the collector what the arrays hold.
inline int traverse(const table& t, visitproc visit, void* arg) {
    for (const column& x : t.columns)
        if (const int stop = tenon::py::traverse(x, visit, arg)) return stop;
    if (const int stop = tenon::py::traverse(t.index, visit, arg)) return stop;
    return tenon::py::traverse(t.notes, visit, arg);
}
