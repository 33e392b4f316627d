// src/bind/lend.cpp: the way of most arguments: an array that is lent as it is.
#include "loader.hpp"

namespace tenon::bind {

TENON_FAST TENON_INLINE loading argument::load(PyObject* obj, const parameter_type& type,
                                               bool may_convert) noexcept {
    if (type.kind != parameter_kind::array || type.count != 1 || obj == Py_None ||
        PyCapsule_CheckExact(obj) || content_ != content::nothing) [[unlikely]]
        return load_closely(*this, obj, type, may_convert, nullptr);
    const request& wanted = type.specs[0]->wanted;
    loader{*this}.make_room(false, false);
    const bool reached =
        py::numpy::borrow_quickly(obj, got_) || py::detail::acquire(obj, wanted.writable, got_);
    // What the host is to read, the device must have written: managed and pinned memory.
    const auto waits_for_device = [&] {
        return wanted.space == memory_space::host && !got_.device().is_cpu();
    };
    if (!reached || waits_for_device() || !check(got_, wanted)) [[unlikely]]
        return load_closely(*this, obj, type, may_convert, &reached);
    type_ = &type;
    given_ = source_ = obj;
    index_ = 0;
    found_ = &got_;
    ran_code_ = ran_code_ || got_.ran_code;
    keeps_ = got_.owner.release_function() != nullptr;
    return loading::done;
}

}  // namespace tenon::bind
