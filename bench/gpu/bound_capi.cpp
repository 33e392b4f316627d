// bench/gpu/bound_capi.cpp: Tenon's functions of the GPU page in a module written by hand.

#include <utility>

#include <tenon/bind/function.hpp>

#include "bound.h"
#include "foreign.h"

namespace {

PyObject* wrap(PyObject*, PyObject* like) {
    const auto memory =
        tenon::tensor_info::contiguous(foreign_memory(), {GPU_EXTENT}, {tenon::abi::device_code::cuda, 0});
    tenon::keep_alive owner(
        foreign_memory(), [](void*, void*) noexcept { foreign_release(); }, nullptr,
        tenon::owner_kind::memory);
    return tenon::py::to_python(memory, std::move(owner), like);
}

std::uint64_t address() { return reinterpret_cast<std::uintptr_t>(foreign_memory()); }
std::int64_t releases() { return foreign_releases; }

PyMethodDef methods[] = {tenon::py::function<&take_vector>("take", {"x"}),
                         tenon::py::function<&like_vector>("like", {"x"}),
                         {"wrap", wrap, METH_O, "Foreign memory as an array of the argument's library."},
                         tenon::py::function<&saxpy>("saxpy", {"a", "x", "y"}),
                         tenon::py::function<&last_address>("last_address"),
                         tenon::py::function<&last_stream>("last_stream"),
                         tenon::py::function<&address>("address"),
                         tenon::py::function<&releases>("releases"),
                         {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bench_gpu_tenon", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_bench_gpu_tenon() { return PyModule_Create(&definition); }
