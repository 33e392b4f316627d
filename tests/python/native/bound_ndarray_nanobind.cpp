// tests/python/native/bound_ndarray_nanobind.cpp: what people who know nanobind's ndarray write first, with
// the parameters and results of Tenon instead.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <tenon/bind/nanobind.hpp>
#include <tenon/memory/copy.hpp>

// NOLINTBEGIN(performance-unnecessary-value-param): parameters as authors write them

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using tenon::any;
using tenon::array;
using tenon::numpy_array;
using tenon::shape;
using tenon::tensor;
using tenon::tensor_info;

using anything = array<const void, tenon::dynamic_rank, tenon::any_device>;
using on_host = array<const void>;

/// A 16-bit number that C++20 has no name for, by its bits.
struct half {
    std::uint16_t bits;
};

// --- what an array says of itself -------------------------------------------------------------------------

std::vector<std::int64_t> shape_of(anything x) { return {x.shape().begin(), x.shape().end()}; }
std::vector<std::int64_t> strides_of(anything x) { return {x.strides().begin(), x.strides().end()}; }
nb::tuple sizes_of(anything x) {
    return nb::make_tuple(x.ndim(), x.size(), x.dtype().itemsize(), x.nbytes());
}
nb::tuple sizes_or_none(anything x) {
    return nb::make_tuple(x.is_valid(), x.size(), x.nbytes(), x.object() == nullptr);
}
bool is_float(anything x) { return x.dtype() == tenon::dtype_of<float>; }
bool is_bool(anything x) { return x.dtype() == tenon::dtype_of<tenon::bool8>; }
/// The axes one by one, and as lists.
bool axes_agree(anything x) {
    const std::int64_t *sizes = x.shape().data(), *steps = x.strides().data();
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.ndim()); ++i)
        if (sizes[i] != x.shape(i) || steps[i] != x.stride(i)) return false;
    return true;
}

// --- writing, and the promise not to ----------------------------------------------------------------------

/// By value, by reference or to be moved from: an array that says const shows const elements.
template <class Array>
bool write_or_read(Array&& x) {
    constexpr bool is_const = std::is_const_v<std::remove_pointer_t<decltype(x.data())>>;
    static_assert(std::is_const_v<std::remove_reference_t<decltype(x(0))>> == is_const);
    if constexpr (!is_const) {
        x(1) = 1.5;
        x(2) = 2.5;
    }
    return !is_const;
}
/// The same of one whose type is looked at first.
template <class T>
bool write_or_read_open(const array<T>& x) {
    auto typed =
        tenon::py::or_raise(x.template as<std::conditional_t<std::is_const_v<T>, const double, double>, 1>());
    return write_or_read(typed);
}

using writable = array<double, 1>;
using readable = array<const double, 1>;

// --- results ----------------------------------------------------------------------------------------------

int freed = 0;

template <class T>
tenon::result<tensor> counted(const tenon::axes& sizes = {2, 4}) {
    T* const memory = new T[8]{1, 2, 3, 4, 5, 6, 7, 8};
    return tensor::own(memory, sizes, [](T* p) {
        ++freed;
        delete[] p;
    });
}
/// The same memory, column by column.
template <class T>
tenon::result<tensor> counted_by_column() {
    T* const memory = new T[8]{1, 2, 3, 4, 5, 6, 7, 8};
    return tensor::own(tensor_info::strided(memory, {2, 4}, {1, 2}), [](void* p) {
        ++freed;
        delete[] static_cast<T*>(p);
    });
}
/// Behind an offset, as a view into something larger has it.
tenon::result<tensor> counted_behind() {
    auto* const memory = new double[9]{0, 1, 2, 3, 4, 5, 6, 7, 8};
    return tensor::own(tensor_info::contiguous(memory, {2, 4}).with_byte_offset(sizeof(double)), [](void* p) {
        ++freed;
        delete[] static_cast<double*>(p);
    });
}

const float for_ever[8] = {1, 2, 3, 4, 5, 6, 7, 8};
/// Memory that nobody ever frees says so: by an owner that is empty.
numpy_array<const float, shape<2, 4>> static_rows() {
    return tensor::own(tensor_info::contiguous(for_ever, {2, 4}), tenon::keep_alive{});
}
numpy_array<const float, shape<2, 4>> static_columns() {
    return tensor::own(tensor_info::strided(for_ever, {2, 4}, {1, 2}), tenon::keep_alive{});
}
/// Any library's memory, where only its number is known.
tensor on_metal(std::int64_t offset) {
    const auto info =
        tensor_info::contiguous(for_ever, {2, 3}, tenon::device(tenon::abi::device_code::metal, 0));
    return tenon::py::or_raise(tensor::own(
        info.writable().with_byte_offset(static_cast<std::uint64_t>(offset)), tenon::keep_alive{}));
}
nb::tuple read_metal(array<const float, 2, tenon::c_contiguous, tenon::metal> x) {
    return nb::make_tuple(x.device().type, x.device().id, x.shape(0), x.shape(1),
                          x.data() == static_cast<const void*>(for_ever), x.byte_offset());
}

numpy_array<void, 0> one_of_two(bool is_float) {
    if (is_float) return tensor::own(std::vector<float>{1}, {});
    return tensor::own(std::vector<std::int32_t>{1}, {});
}
/// Two arrays of one object, which goes with the last of them.
std::pair<numpy_array<float, 1>, numpy_array<float, 1>> two_of_one() {
    struct both {
        std::vector<float> first{1, 2}, second{3, 4, 5};
        ~both() { ++freed; }
    };
    const auto owner = std::make_shared<both>();
    return {tensor::own(std::shared_ptr<float>(owner, owner->first.data()), {2}),
            tensor::own(std::shared_ptr<float>(owner, owner->second.data()), {3})};
}

// --- memory inside of objects -----------------------------------------------------------------------------

/// A 4 by 4 matrix, column by column, which says what it holds.
struct matrix {
    float numbers[16] = {};
    ~matrix() { ++freed; }
};
tensor_info describe(matrix& m) { return tensor_info::strided(m.numbers, {4, 4}, {1, 4}); }

using grid = numpy_array<float, shape<4, 4>>;
/// The object of Python's around the matrix keeps what is shown.
grid shown(matrix& self) { return tenon::py::own(nb::find(self), describe(self)); }
grid copied(matrix& self) {
    return tenon::copy_to_host(tenon::py::or_raise(tenon::py::own(nb::find(self), describe(self))));
}
/// A matrix that no object of Python's is around: it moves into the array.
grid made() {
    matrix m;
    std::fill_n(m.numbers, 16, 1.0F);
    return tensor::own(std::move(m));
}

/// Keeps an array that came, and shows it again.
struct keeper {
    array<const float> value;
};
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return nb::inst_ready(self) ? tenon::py::traverse(nb::inst_ptr<keeper>(self)->value, visit, arg) : 0;
}
int clear(PyObject* self) {
    nb::inst_ptr<keeper>(self)->value = {};
    return 0;
}
PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                       {0, nullptr}};

// --- binding ----------------------------------------------------------------------------------------------

void bind_metadata(nb::module_& m) {
    m.def("shape_of", &shape_of, "x"_a);
    m.def("strides_of", &strides_of, "x"_a);
    m.def("sizes_of", &sizes_of, "x"_a);
    m.def("sizes_or_none", &sizes_or_none, "x"_a.none());
    m.def("sizes_or_default", &sizes_or_none, "x"_a = nb::none());
    m.def(
        "second_or_none",
        [](anything x, array<const float, 1> y) { return nb::make_tuple(x.is_valid(), y.size()); },
        "x"_a.none(), "y"_a.noconvert().none());
    m.def(
        "copy_or_none", [](array<const float, 2> x) { return array<const float>(x).is_valid(); },
        "x"_a = nb::none());
    m.def("same_or_none", [](on_host x) { return x; }, "x"_a.none());
    m.def("optional_size", [](std::optional<on_host> x) { return x ? x->size() : -1; }, "x"_a = nb::none());
    m.def("is_float", &is_float, "x"_a);
    m.def("is_bool", &is_bool, "x"_a);
    m.def("axes_agree", &axes_agree, "x"_a);
    m.def("is_array", [](nb::handle x) { return tenon::py::is_array(x); }, "x"_a.none());
    m.def("same", [](on_host x) { return x; }, "x"_a);
}

void bind_constraints(nb::module_& m) {
    m.def("take_uint32", [](array<std::uint32_t>) {}, "x"_a);
    m.def("take_float32", [](array<float>) {}, "x"_a);
    m.def("take_const_float32", [](array<const float>) {}, "x"_a);
    m.def("take_complex64", [](const array<std::complex<float>>&) {}, "x"_a);
    m.def("take_const_complex64", [](array<const std::complex<float>>) {}, "x"_a);
    m.def("take_bool", [](array<tenon::bool8>) {}, "x"_a);
    m.def("take_any", [](array<void>) {}, "x"_a);
    m.def("take_const_any", [](on_host) {}, "x"_a);
    m.def("take_shape", [](array<float, shape<3, any, 4>>) {}, "x"_a);
    m.def("take_rows_of_four", [](array<float, shape<any, any, 4>, tenon::c_contiguous>) {}, "x"_a);
    m.def("take_rows", [](array<const float, 3, tenon::c_contiguous>) {}, "x"_a);
    m.def("take_columns", [](array<const float, 2, tenon::f_contiguous>) {}, "x"_a);
    m.def("take_dense", [](array<const float, 2, tenon::any_contiguous>) {}, "x"_a);

    m.def("order_of", [](array<const void, tenon::dynamic_rank, tenon::c_contiguous>) { return 'C'; });
    m.def("order_of", [](array<const void, tenon::dynamic_rank, tenon::f_contiguous>) { return 'F'; });
    m.def("order_of", [](on_host) { return '?'; });
    m.def("device_of", [](array<const void, tenon::dynamic_rank, tenon::cpu>) { return "cpu"; });
    m.def("device_of", [](array<const void, tenon::dynamic_rank, tenon::cuda>) { return "cuda"; });
    m.def("read_metal", &read_metal, "x"_a);

    m.def(
        "in_rows",
        [](array<const void, tenon::dynamic_rank, tenon::c_contiguous, tenon::convert> x) { return x; },
        "x"_a);
    using square = array<const float, shape<2, 2>, tenon::c_contiguous, tenon::convert, tenon::narrowing>;
    m.def("whole_or_real", [](array<const std::int32_t, 1, tenon::convert>) { return "whole"; }, "x"_a);
    m.def("whole_or_real", [](array<const double, 1, tenon::convert>) { return "real"; }, "x"_a);
    m.def("square", [](square x) { return x.span()[3]; }, "x"_a);
    m.def("square_as_it_is", [](square x) { return x.span()[3]; }, "x"_a.noconvert());
    m.def("set_first", [](array<double, 1, tenon::c_contiguous> x, std::uint32_t value) {
        x(0) = value;
        return "real";
    });
    m.def("set_first", [](array<std::complex<double>, 1, tenon::c_contiguous> x, std::uint32_t value) {
        x(0) = value;
        return "complex";
    });
}

void bind_elements(nb::module_& m) {
    m.def(
        "count_up",
        [](array<std::uint8_t, shape<10>>& x) {
            for (int i = 0; i < 10; ++i) x(i) = static_cast<std::uint8_t>(i);
        },
        "x"_a);
    m.def(
        "count_up",
        [](array<float, shape<10>>& x) {
            for (int i = 0; i < 10; ++i) x(i) = static_cast<float>(i);
        },
        "x"_a);
    m.def(
        "count_up",
        [](array<float, shape<10, any>>& x) {
            float next = 0;
            for (float& value : x.elements()) value = next++;
        },
        "x"_a);
    m.def(
        "brighten",
        [](array<std::uint8_t, shape<any, any, 3>, tenon::cpu> x) {
            for (std::int64_t i = 0; i < x.shape(0); ++i)
                for (std::int64_t j = 0; j < x.shape(1); ++j)
                    for (std::int64_t k = 0; k < 3; ++k)
                        x(i, j, k) = static_cast<std::uint8_t>(std::min(255, 2 * x(i, j, k)));
        },
        "x"_a);

    m.def("by_value", [](writable x) { return write_or_read(x); });
    m.def("by_value", [](readable x) { return write_or_read(x); });
    m.def("by_const_ref", [](const writable& x) { return write_or_read(x); });
    m.def("by_const_ref", [](const readable& x) { return write_or_read(x); });
    m.def("by_rvalue_ref", [](writable&& x) { return write_or_read(x); });
    m.def("by_rvalue_ref", [](readable&& x) { return write_or_read(x); });
    m.def("open_by_value", [](array<void> x) { return write_or_read_open(x); });
    m.def("open_by_value", [](on_host x) { return write_or_read_open(x); });
    m.def("read_only_says_so", [](readable x) { return x.is_read_only(); }, "x"_a);

    const auto fill = [](const auto& x) {
        const auto v = x.view();
        for (std::int64_t i = 0; i < v.shape(0); ++i)
            for (std::int64_t j = 0; j < v.shape(1); ++j) v(i, j) = static_cast<float>(10 * i + j);
    };
    m.def("fill", [fill](array<float, 2> x) { fill(x); }, "x"_a);
    m.def("fill_rows", [fill](array<float, shape<3, 4>, tenon::c_contiguous> x) { fill(x); }, "x"_a);
    m.def("fill_columns", [fill](array<float, shape<3, 4>, tenon::f_contiguous> x) { fill(x); }, "x"_a);
    m.def(
        "double_if_float32",
        [](array<void> x) {
            if (auto v = x.as<float, 2>())
                for (float& value : v->elements()) value *= 2;
        },
        "x"_a);
    m.def(
        "turn",
        [](array<std::complex<float>, shape<2, 2>, tenon::c_contiguous> x) {
            for (auto& z : x.elements()) z *= std::complex<float>(-1, 2);
        },
        "x"_a);
    m.def(
        "negate_flat",
        [](array<std::complex<float>, shape<2, 2>, tenon::c_contiguous> x) {
            for (auto& z : x.span()) z = -z;
        },
        "x"_a);
}

void bind_results(nb::module_& m) {
    m.def("freed", [] { return freed; });
    m.def("as_tensor", [] { return counted<float>(); });
    m.def("as_legacy_capsule",
          [] { return nb::steal(tenon::py::to_capsule(counted<float>(), tenon::py::capsule_kind::legacy)); });
    m.def("as_numpy", []() -> numpy_array<float, shape<2, 4>> { return counted<float>(); });
    m.def("as_torch", []() -> tenon::torch_tensor<float, shape<2, 4>> { return counted<float>(); });
    m.def("as_jax", []() -> tenon::jax_array<float, shape<2, 4>> { return counted<float>(); });
    m.def("as_memoryview", []() -> tenon::memory_view<double, 2> { return counted<double>(); });
    m.def("as_const_memoryview", []() -> tenon::memory_view<const float, 2> { return counted<float>(); });
    m.def("columns_as_memoryview",
          []() -> tenon::memory_view<float, 2> { return counted_by_column<float>(); });
    m.def("columns_as_numpy", []() -> numpy_array<float, shape<2, 4>> { return counted_by_column<float>(); });
    m.def("behind_an_offset", [] { return counted_behind(); });
    m.def("scalar", []() -> numpy_array<float, 0> { return counted<float>({}); });
    m.def("empty", []() -> numpy_array<float, 1> {
        return tensor::own(static_cast<float*>(nullptr), {0}, [](float*) { ++freed; });
    });
    m.def("halves", []() -> numpy_array<void, 1> {
        return tensor::own(std::vector<half>{{0x3C00}, {0x4000}}, [](std::vector<half>& v) {
            return tensor_info::contiguous(static_cast<void*>(v.data()), "float16", {2});
        });
    });
    m.def("bfloats", [] {
        return tensor::own(std::vector<half>{{0x3F80}, {0x4000}}, [](std::vector<half>& v) {
            return tensor_info::contiguous(static_cast<void*>(v.data()), "bfloat16", {2});
        });
    });
    m.def("static_rows", &static_rows);
    m.def("static_columns", &static_columns);
    m.def("on_metal", &on_metal, "offset"_a = 0);
    m.def("one_of_two", &one_of_two, "is_float"_a);
    m.def("two_of_one", &two_of_one);
    m.def("from_stack", []() -> numpy_array<float, 1> {
        const float local[] = {1, 2, 3};
        return std::vector<float>(local, local + 3);
    });
    m.def("cast_to_object", [] { return nb::cast(numpy_array<float, 1>(std::vector<float>{1, 2, 3})); });
}

void bind_classes(nb::module_& m) {
    nb::class_<matrix> type(m, "Matrix");
    type.def(nb::init<>()).def("shown", &shown).def("copied", &copied).def("add", [](matrix& self, float x) {
        for (float& value : self.numbers) value += x;
    });
    m.def("made", &made);
    const auto get = [](PyObject* o) { return nb::inst_ready(o) ? nb::inst_ptr<matrix>(o) : nullptr; };
    if (!tenon::py::make_producer<matrix>(type.ptr(), get)) throw nb::python_error();
    nb::class_<keeper>(m, "Keeper", nb::type_slots(slots), nb::dynamic_attr())
        .def(nb::init<array<const float>>(), "value"_a)
        .def_rw("value", &keeper::value);
}

}  // namespace

NB_MODULE(bound_ndarray_nanobind, m) {
    bind_metadata(m);
    bind_constraints(m);
    bind_elements(m);
    bind_results(m);
    bind_classes(m);
}

// NOLINTEND(performance-unnecessary-value-param)
