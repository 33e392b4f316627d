// examples/own_class/image_pybind11.cpp: a C++ class that every array library reads in place, by pybind11.
#include <algorithm>
#include <vector>

#include <pybind11/pybind11.h>
#include <tenon/py.hpp>

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

PYBIND11_MODULE(image_pybind11, module) {
    pybind11::class_<image> type(module, "Image");
    type.def(pybind11::init<std::size_t, std::size_t>()).def("fill", &image::fill);
    const auto get = [](PyObject* self) { return pybind11::cast<image*>(self); };
    if (!tenon::py::make_producer<image>(type.ptr(), get)) throw pybind11::error_already_set();
}
