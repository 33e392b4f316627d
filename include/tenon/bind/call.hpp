// tenon/bind/call.hpp: what is noted while a call's arguments are loaded, and what its end makes of it: the
// reasons why they do not fit, put into words only if no overload takes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tenon/bind/argument.hpp>
#include <tenon/py/python_error.hpp>

namespace tenon::bind {

/// A parameter of one function.
struct parameter {
    const char* name = nullptr;
    const parameter_type* type = nullptr;
    std::uint8_t stars = 0;  ///< 1 for *args, 2 for **kwargs
    bool has_default = false;
    bool is_keyword_only = false;
    bool accepts_none = false;  ///< whatever its type says
};

/// What has been noted for the call under way on a thread: refusals, and an exception that ends the call but
/// came up where nothing may be thrown.
struct call_notes {
    struct note* first = nullptr;
    PyObject* put_off = nullptr;
    unsigned calls = 0;  ///< those under way that look at the notes at their end
};

/// Stands around a call of the binder's, whose notes are its own: what an outer call has noted is kept aside
/// meanwhile, by value, so that whoever switches stacks in between leaves nothing dangling.
class call_frame {
public:
    TENON_API call_frame() noexcept;
    TENON_API ~call_frame();
    call_frame(const call_frame&) = delete;
    call_frame& operator=(const call_frame&) = delete;

    /// What the call comes to: `result`, or the exception that was put off. That wins over what the binder
    /// makes of the refusal, and over another overload that took the arguments.
    [[nodiscard]] TENON_API PyObject* end(PyObject* result) noexcept;

private:
    call_notes outer_;
};

/// A call is under way that will look at what is noted.
[[nodiscard]] TENON_API bool is_call_noted() noexcept;
/// An exception waits for the end of the call: nothing more need be asked for it.
[[nodiscard]] TENON_API bool is_put_off() noexcept;
/// Takes the pending exception for the end of the call. Outside of any call it is reported and dropped.
TENON_API void put_off() noexcept;

/// What a hooked function does beyond the binder's own: nothing; explain why it refuses its arguments; and
/// keep notes to do it by, which one overload of arrays alone does not need.
enum class hooking : std::uint8_t { none, explains, keeps_notes };

/// A function as its errors name it.
struct named_function;
/// Copies the names, for as long as the process lives. Null when there is no memory for it.
[[nodiscard]] TENON_API const named_function* remember_function(
    const char* name, std::span<const parameter> parameters) noexcept;

/// Hooks an object that is called by vectorcall, as nanobind's are. `before` is what the object was made to
/// overload, or null; `known` is the overload that is new.
TENON_API void hook_function(PyObject* made, PyObject* before, const named_function* known,
                             hooking how) noexcept;

/// The parameters of one overload.
using overload = std::vector<parameter>;
TENON_API void add_overload(std::vector<overload>& all, overload&& added);
/// Lists the overloads of the function with this `self`, in the order in which they are tried, and gives its
/// name.
using overload_lister = std::string (*)(PyObject* self, std::vector<overload>& out);
/// Hooks a C function with keywords by its definition, which must not be a constant, as pybind11's are. False
/// when that had been done before.
TENON_API bool hook_definition(PyMethodDef& definition, overload_lister lister) noexcept;

/// Gives the exception that `e` stands for, which is pending afterwards, the names of the function and of the
/// argument that it is about, if it is about one.
TENON_API void name_argument(const py::python_error& e, const char* function,
                             std::span<const parameter> parameters, const loaded* arguments,
                             unsigned count) noexcept;
TENON_API void name_argument(const py::python_error& e, const named_function* function,
                             const loaded* arguments, unsigned count) noexcept;

/// Remembers the parameter types of an overload, by the record that stands for it: they are known when it
/// first refuses an argument.
TENON_API void remember_types(const void* record, const parameter_type* const* types) noexcept;
/// Null if they are not known.
[[nodiscard]] TENON_API const parameter_type* const* types_of_overload(const void* record) noexcept;

/// Drops what was noted while no call looks at notes.
TENON_API void forget_notes() noexcept;
/// Raises TypeError with the reason that was noted for one of these values, by which the only overload of the
/// function, which has `all` these parameters, has been refused. False when none was.
[[nodiscard]] TENON_API bool raise_noted(const char* function, std::span<const parameter> parameters,
                                         PyObject* const* values, std::span<const parameter> all) noexcept;

/// `dict[key] = value`: 0, or -1 with an exception set.
[[nodiscard]] TENON_API int set_item(PyObject* dict, const char* key, PyObject* value) noexcept;
/// `obj.name`: a new reference, or null with an exception set.
[[nodiscard]] TENON_API PyObject* attribute_of(PyObject* obj, const char* name) noexcept;

}  // namespace tenon::bind
