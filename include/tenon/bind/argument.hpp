// tenon/bind/argument.hpp: a parameter type as a constant that the engine reads, and room for one argument,
// which it fills: a Python object goes in, what is lent of it comes out.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <tenon/bind/phrase.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/tensor/shared_tensor.hpp>

namespace tenon::bind {

// --- parameter types --------------------------------------------------------------------------------------

/// What one array type asks for.
struct parameter_spec {
    request wanted;
    conversions converting = conversions::none;
    const char* words = "";   ///< the parameter, as messages have it
    const char* target = "";  ///< what a conversion makes of an argument: the words without "or convertible"
    std::span<const char* const> names =
        {};                ///< of extents that others have, too: one for each axis, or none
    bool numbers = false;  ///< a number of Python's is taken, too
};

enum class parameter_kind : std::uint8_t {
    foreign,  ///< the binder's own business
    array,    ///< one of the arrays of `specs`, lent
    tensor,   ///< a tensor, kept: `specs` has what it is in words
    list,     ///< any sequence; its items are as the one part says
    mapping,  ///< text to what the one part says
    tuple,    ///< as many items as there are parts
    one_of,   ///< any of the parts
};

/// A parameter type, and those within it.
struct parameter_type {
    parameter_kind kind = parameter_kind::foreign;
    bool accepts_none = false;
    std::uint8_t count = 0;                        ///< of specs or parts
    const parameter_spec* const* specs = nullptr;  ///< the first that fits is taken
    const parameter_type* const* parts = nullptr;

    /// Its alternatives are arrays or a tensor, which `specs` has. (No pointer is compared with null in what
    /// the compiler computes: under its sanitizers GCC cannot, bug 71962.)
    [[nodiscard]] constexpr bool is_ours() const noexcept {
        return kind == parameter_kind::array || kind == parameter_kind::tensor;
    }
    /// It has extents that are related to others by a name.
    [[nodiscard]] constexpr bool relates() const noexcept {
        for (unsigned i = 0; is_ours() && i < count; ++i)
            if (!specs[i]->names.empty()) return true;
        return false;
    }
};

// --- what comes of an argument ----------------------------------------------------------------------------

enum class loading : std::uint8_t {
    done,
    refused,  ///< not such an array: another overload may take it. No exception is pending
    raised,   ///< an exception is pending that ends the call
};

using tenon::detail::held;
using tenon::detail::holder;
class argument;

inline constexpr std::int64_t no_extents[max_rank] TENON_PRIVATE = {};
/// What is shown by an array that holds nothing: no elements.
class no_elements : public tensor_ref {
public:
    no_elements(std::int32_t rank, tenon::dtype type) noexcept : tensor_ref(nothing{}) {
        ndim_ = rank < 0 ? 1 : rank;  // where it may be any
        shape_ = strides_ = no_extents;
        dtype_ = type.to_abi();
    }
    /// Good until the end of the full expression.
    [[nodiscard]] const tensor_ref* address() const noexcept { return this; }
};

/// What was found for a parameter, good for as long as who gave it.
struct found {
    const tensor_ref* ref = nullptr;  ///< null for None
    PyObject* source = nullptr;       ///< what it was borrowed from, or whose library it belongs to: borrowed
    unsigned index = 0;               ///< which of the parameter's specs it meets
    holder keeps = {};                ///< for memory that must outlive the object
    argument* lender = nullptr;       ///< or what it is lent by, for the length of the call
};

/// What `lender` lends, to be kept for as long as anybody holds it: by any thread, with or without the GIL,
/// while the call is under way. Throws `std::bad_alloc`, and `py::python_error` when the object shows other
/// memory by now.
[[nodiscard]] TENON_API found keep_lent(argument& lender);

/// Room for an argument, good for the length of the call. When all arguments have been loaded, and before the
/// function runs, `settle_all` takes what can be taken once: a bare capsule that fits is only looked at until
/// then, so that a call that is refused for another argument leaves it for the next overload, or whoever else
/// wants it. What is borrowed is looked at again there if code of others may have changed it.
class argument {
public:
    argument() noexcept {}  // NOLINT(modernize-use-equals-default): = default would let a tuple zero the room
    argument(const argument&) = delete;
    argument& operator=(const argument&) = delete;
    ~argument() {
        if (keeps_ || shared_ != nullptr) clear();
    }

    /// Takes `obj` as the parameter wants it. PyTorch's tensors and NumPy's arrays are borrowed, without an
    /// allocation or a Python call. The reason for a refusal is recorded: see call.hpp.
    [[nodiscard]] TENON_API loading load(PyObject* obj, const parameter_type& type,
                                         bool may_convert) noexcept;
    /// The same, for a parameter that takes numbers, too: Python's own are looked for first.
    [[nodiscard]] TENON_API loading load_or_number(PyObject* obj, const parameter_type& type,
                                                   bool may_convert) noexcept;
    /// Takes `none`, where the binder lets it in, for an array that holds nothing. True.
    TENON_API bool lend_nothing(PyObject* none, const parameter_type& type) noexcept;
    /// There is something that can be taken once, and has not been yet.
    [[nodiscard]] bool waits() const noexcept { return waits_; }
    /// Takes it. False with an exception set.
    [[nodiscard]] TENON_API bool settle() noexcept;
    /// The array that was lent, once it is settled.
    [[nodiscard]] found lent() noexcept { return {found_, source_, index_, {}, this}; }
    /// The tensor that a parameter of that kind keeps, once it is settled.
    [[nodiscard]] tensor& kept() noexcept { return kept_; }
    /// Where the array that the function returns is made, which goes before the argument does: an argument
    /// that is moved there is not kept.
    void set_result_place(const void* place) noexcept { result_ = place; }
    [[nodiscard]] bool is_result(const void* place) const noexcept { return result_ == place; }
    /// The object that was loaded, or what was made of it. Borrowed.
    [[nodiscard]] PyObject* source() const noexcept { return source_; }

private:
    friend struct loader;
    TENON_API void clear() noexcept;

    enum class content : std::uint8_t { nothing, array, tensor };

    bool keeps_ = false;  ///< what is in the room must be destroyed
    bool waits_ = false;
    bool is_item_ = false;   ///< what is loaded is to be kept, by somebody else
    bool ran_code_ = false;  ///< code of others may have run while it was loaded
    content content_ = content::nothing;
    unsigned index_ = 0;
    const tensor_ref* found_ = nullptr;
    PyObject* source_ = nullptr;
    PyObject* given_ = nullptr;  ///< what was to be loaded
    const void* result_ = nullptr;
    const parameter_type* type_ = nullptr;
    PyObject* converted_ = nullptr;  ///< what the array is borrowed from instead: a reference of its own
    held* shared_ = nullptr;         ///< what copies of the array hold that outlive the call, maybe: a share
    union {
        py::acquired got_;
        tensor kept_;
    };
};

/// An argument that has been loaded, or null for one of somebody else's caster, and whether loading that may
/// have run code.
struct loaded {
    argument* ours;
    bool ran_code;
};
/// Before the function runs, when all arguments have been loaded, in this order: settles them, and looks at
/// the borrowed ones again if it must. False with an exception set.
[[nodiscard]] TENON_API bool settle_all(const loaded* arguments, unsigned count) noexcept;
/// The first argument, counted from 0, with an extent that has the same name as another one of another size:
/// why it does not fit is noted. -1 when there is none. Before they are settled.
[[nodiscard]] TENON_API int find_unrelated(const loaded* arguments, unsigned count) noexcept;

/// The argument that an error is about, counted from 0; `count` when it is about none of them.
[[nodiscard]] TENON_API unsigned argument_about(const error& e, const loaded* arguments,
                                                unsigned count) noexcept;

/// An array that keeps what it shows, or a tensor: for those inside of lists, tuples and dicts, whose items
/// may go away while the function runs. As `argument::load`, settled at once.
[[nodiscard]] TENON_API loading load_kept(PyObject* obj, const parameter_type& type, bool may_convert,
                                          found& out) noexcept;
/// The tensor that was kept so.
[[nodiscard]] TENON_API tensor take_tensor(holder memory) noexcept;
/// A tensor that came as `object`, for several handles. Throws `std::bad_alloc`, and `py::python_error`.
[[nodiscard]] TENON_API shared_tensor keep_shared(tensor&& t, PyObject* object);

/// Classes the pending exception: one that ends the call stays.
[[nodiscard]] TENON_API loading refuse_or_raise() noexcept;

/// An object that numbers and text are read from without running code: one of Python's own, and no subclass.
[[nodiscard]] inline bool is_plain_value(PyObject* obj) noexcept {
    PyTypeObject* const type = Py_TYPE(obj);
    return type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyUnicode_Type;
}

// --- results ----------------------------------------------------------------------------------------------

/// As an array of its library, that of `source`; what came from Python as the very object that came, unless
/// that is a capsule, which is used up. Without `memory` it is lent by `lender`, if anything is. As all of
/// these a new reference, or null with an exception set.
[[nodiscard]] TENON_API PyObject* array_to_python(holder memory, PyObject* source,
                                                  argument* lender = nullptr) noexcept;
/// The very object that came from Python, else a `tenon.Tensor`: the same one each time.
[[nodiscard]] TENON_API PyObject* tensor_to_python(const shared_tensor& t) noexcept;
/// Another tensor of the same memory: this one stays in C++.
[[nodiscard]] TENON_API PyObject* tensor_to_python(const tensor& t) noexcept;
[[nodiscard]] TENON_API PyObject* tensor_to_python(tensor&& t) noexcept;
[[nodiscard]] TENON_API PyObject* tensor_to_python(result<tensor>&& t) noexcept;

/// Memory like `known`, which is of `like`'s library, but of this shape and type. Throws `py::python_error`,
/// and `std::runtime_error` without the GIL.
[[nodiscard]] TENON_API found allocate_like(PyObject* like, const tensor_ref& known, const axes& shape,
                                            dtype type, const request& wanted);

}  // namespace tenon::bind

namespace tenon {

/// A conversion that was made for a parameter with `convert`: a copy of the caller's array.
struct conversion {
    PyObject* from;        ///< what the caller passed
    PyObject* to;          ///< what its library made of it
    const char* expected;  ///< the parameter in words
};

/// Called after each conversion, with the GIL held. An exception it leaves pending ends the call.
using conversion_hook = void (*)(const conversion&);

/// Says which function is told of conversions made in this extension module; null for none, as it is at
/// first. Returns the one before.
TENON_API conversion_hook set_conversion_hook(conversion_hook hook) noexcept;

/// A hook that warns: "tenon: an argument of type numpy.ndarray was copied to become float32[*]". Python's
/// filters decide whether that is shown, or raised.
TENON_API void warn_of_conversion(const conversion& c);

}  // namespace tenon
