// tests/consume/again.cpp: a module of two files by tenon::python: this one has what it does.
#include <utility>

#include <tenon/py.hpp>

PyObject* again(PyObject*, PyObject* array) {
    auto t = tenon::py::from_python(array);
    return t ? tenon::py::to_python(std::move(*t)) : nullptr;
}
