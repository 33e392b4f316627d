// src/bind/lend.cpp: the way of most arguments: an array that is lent as it is.
//
// In three functions: what is imported may import in turn, and then only the first one stays on the stack,
// where compilers put the others in their place if they do not optimize.
#include "loader.hpp"

namespace tenon::bind {

TENON_FAST inline bool loader::reach_at_once(PyObject* obj) const noexcept {
    make_room(false, false);
    return py::numpy::borrow_quickly(obj, a.got_);
}

TENON_FAST inline bool loader::lend_at_once(PyObject* obj, const parameter_type& type) const noexcept {
    const request& wanted = type.specs[0]->wanted;
    // What the host is to read, the device must have written: managed and pinned memory.
    if (wanted.space == memory_space::host && !a.got_.device().is_cpu()) return false;
    if (!check(a.got_, wanted)) return false;
    a.type_ = &type;
    a.given_ = a.source_ = obj;
    a.index_ = 0;
    a.found_ = &a.got_;
    a.ran_code_ = a.ran_code_ || a.got_.ran_code;
    a.keeps_ = a.got_.owner.release_function() != nullptr;
    return true;
}

TENON_FAST TENON_INLINE loading argument::load(PyObject* obj, const parameter_type& type,
                                               bool may_convert) noexcept {
    if (type.kind != parameter_kind::array || type.count != 1 || obj == Py_None ||
        PyCapsule_CheckExact(obj) || content_ != content::nothing) [[unlikely]]
        return load_closely(*this, obj, type, may_convert, nullptr);
    const loader room{*this};
    const bool reached =
        room.reach_at_once(obj) || py::detail::acquire(obj, type.specs[0]->wanted.writable, got_);
    if (reached && room.lend_at_once(obj, type)) [[likely]]
        return loading::done;
    return load_closely(*this, obj, type, may_convert, &reached);
}

}  // namespace tenon::bind
