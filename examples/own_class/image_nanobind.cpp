// examples/own_class/image_nanobind.cpp: a C++ class that every array library reads in place, by nanobind.
#include <algorithm>
#include <vector>

#include <nanobind/nanobind.h>
#include <tenon/py.hpp>

namespace nb = nanobind;

/// A grey image with memory of its own, aligned to 64 bytes: JAX copies what is aligned to less.
class image {
public:
    image(std::size_t height, std::size_t width) : height_(height), width_(width), pixels_(height * width) {}
    void fill(float grey) { std::fill(pixels_.begin(), pixels_.end(), grey); }
    friend tenon::tensor_info describe(image& self) {
        return tenon::tensor_info::contiguous(self.pixels_.data(), {self.height_, self.width_});
    }

private:
    std::size_t height_, width_;
    std::vector<float, tenon::aligned_allocator<float>> pixels_;
};

NB_MODULE(image_nanobind, module) {
    nb::class_<image> type(module, "Image");
    type.def(nb::init<std::size_t, std::size_t>()).def("fill", &image::fill);
    const auto get = [](PyObject* o) { return nb::inst_ready(o) ? nb::inst_ptr<image>(o) : nullptr; };
    if (!tenon::py::make_producer<image>(type.ptr(), get)) throw nb::python_error();
}
