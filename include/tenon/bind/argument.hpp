// tenon/bind/argument.hpp: room for one argument, which the engine fills: a Python object goes in, what is
// lent of it comes out.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/bind/parameter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::bind {

/// What came of an argument.
enum class loading : std::uint8_t {
    done,
    refused,  ///< not such an array: another overload may take it. No exception is pending
    raised,   ///< an exception is pending that ends the call
};

/// Memory that arrays keep, with the object whose library it belongs to: counted, and the engine's business.
struct held;
TENON_API void retain(held* memory) noexcept;
TENON_API void release(held* memory) noexcept;

/// One share of it, or none.
class holder {
public:
    constexpr holder() noexcept = default;
    constexpr explicit holder(held* owned) noexcept : memory_(owned) {}
    holder(const holder& other) noexcept : memory_(other.memory_) {
        if (memory_ != nullptr) retain(memory_);
    }
    holder(holder&& other) noexcept : memory_(other.release()) {}
    holder& operator=(holder other) noexcept {
        held* const old = memory_;
        memory_ = other.memory_;
        other.memory_ = old;
        return *this;
    }
    ~holder() {
        if (memory_ != nullptr) bind::release(memory_);
    }
    [[nodiscard]] held* get() const noexcept { return memory_; }
    [[nodiscard]] held* release() noexcept {
        held* const out = memory_;
        memory_ = nullptr;
        return out;
    }

private:
    held* memory_ = nullptr;
};

/// What was found for a parameter, good for as long as who gave it.
struct found {
    const tensor_ref* ref = nullptr;  ///< null for None
    PyObject* source = nullptr;       ///< what it was borrowed from, or whose library it belongs to: borrowed
    unsigned index = 0;               ///< which of the parameter's specs it meets
    holder keeps = {};                ///< for memory that must outlive the object
};

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
        if (keeps_) clear();
    }

    /// Takes `obj` as the parameter wants it. PyTorch's tensors and NumPy's arrays are borrowed, without an
    /// allocation or a Python call. The reason for a refusal is recorded: see call.hpp.
    [[nodiscard]] TENON_API loading load(PyObject* obj, const parameter_type& type,
                                         bool may_convert) noexcept;
    /// There is something that can be taken once, and has not been yet.
    [[nodiscard]] bool waits() const noexcept { return waits_; }
    /// Takes it. False with an exception set.
    [[nodiscard]] TENON_API bool settle() noexcept;
    /// The array that was lent, once it is settled.
    [[nodiscard]] found lent() const noexcept { return {found_, source_, index_}; }
    /// The tensor that a parameter of that kind keeps, once it is settled.
    [[nodiscard]] tensor& kept() noexcept { return *kept_; }

private:
    friend struct loader;
    friend loading load_kept(PyObject*, const parameter_type&, bool, found&) noexcept;
    TENON_API void clear() noexcept;

    enum class content : std::uint8_t { nothing, array, tensor };

    bool keeps_ = false;  ///< what is in the room must be destroyed
    bool waits_ = false;
    bool owning_ = false;    ///< what is loaded is to be kept
    bool ran_code_ = false;  ///< code of others may have run while it was loaded
    content content_ = content::nothing;
    unsigned index_ = 0;
    const tensor_ref* found_ = nullptr;
    tensor* kept_ = nullptr;
    PyObject* source_ = nullptr;
    const parameter_type* type_ = nullptr;

    static constexpr std::size_t room_size = 1408;  // an import, or a tensor
    alignas(std::max_align_t) unsigned char room_[room_size];
};

/// Before the function runs, when all arguments have been loaded, in this order: settles them, and looks at
/// the borrowed ones again if it must. Null stands for an argument of somebody else's caster, whose bit in
/// `ran_code` says that loading it may have run code. False with an exception set.
[[nodiscard]] TENON_API bool settle_all(argument* const* arguments, unsigned count,
                                        std::uint64_t ran_code) noexcept;

/// An array that keeps what it shows, or a tensor: for those inside of lists, tuples and dicts, whose items
/// may go away while the function runs. As `argument::load`, settled at once.
[[nodiscard]] TENON_API loading load_kept(PyObject* obj, const parameter_type& type, bool may_convert,
                                          found& out) noexcept;

/// The tensor that was kept so.
[[nodiscard]] TENON_API tensor take_tensor(holder memory) noexcept;

/// Classes the pending exception: one that ends the call stays.
[[nodiscard]] TENON_API loading refuse_or_raise() noexcept;

/// An object that numbers and text are read from without running code: one of Python's own, and no subclass.
[[nodiscard]] inline bool is_plain_value(PyObject* obj) noexcept {
    PyTypeObject* const type = Py_TYPE(obj);
    return type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyUnicode_Type;
}

}  // namespace tenon::bind
