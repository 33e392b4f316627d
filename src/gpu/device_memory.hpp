// src/gpu/device_memory.hpp: memory of a driver's, copies to, from and on a GPU, and what lies at an address.
#pragma once

#include <tenon/memory/allocate.hpp>
#include <tenon/memory/copy.hpp>
#include "../memory/allocation.hpp"
#include "../memory/copy_plan.hpp"
#include "../standard.hpp"
#include "until_done.hpp"

namespace tenon::gpu {

/// The device whose memory lies at a CUDA address: plain device memory, managed memory, or pinned memory of
/// the host. An error when the driver knows of none there, or cannot be asked.
[[nodiscard]] inline result<device> device_of_address(const void* address) noexcept {
    const auto found = driver::needed_for({abi::device_code::cuda, 0}, "data");
    if (!found) return found.error();
    const auto ask = [&](int attribute, auto& out) {
        return (*found)->pointer_attribute(&out, attribute, reinterpret_cast<std::uintptr_t>(address));
    };
    constexpr int memory_type = 2, is_managed = 8, device_ordinal = 9;
    int ordinal = -1;
    unsigned kind = 0;
    unsigned managed = 0;
    if (ask(device_ordinal, ordinal) != 0 || ask(memory_type, kind) != 0 || ask(is_managed, managed) != 0 ||
        ordinal < 0) {
        return malformed("data", "CUDA knows of no memory at this address")
            .with_advice("a freed array looks like this, and one of another library's virtual memory");
    }
    constexpr unsigned host_memory = 1;
    const std::int32_t type = managed != 0          ? abi::device_code::cuda_managed
                              : kind == host_memory ? abi::device_code::cuda_host
                                                    : abi::device_code::cuda;
    return device{type, ordinal};
}

/// The device that CUDA calls of this thread go to; the first when it has none.
[[nodiscard]] inline device current_device() noexcept {
    const driver* const d = driver::usable_for({abi::device_code::cuda, 0});
    int ordinal = 0;
    if (d == nullptr || d->context_device(&ordinal) != 0) ordinal = 0;
    return {abi::device_code::cuda, ordinal};
}

/// Whether there is a driver that copies this, and it will find the device's memory: copying from elsewhere
/// may cost the whole process its device. HIP is believed.
[[nodiscard]] inline result<void> check_reachable(const tensor_ref& t) noexcept {
    if (const auto found = driver::needed_for(t.device(), "device"); !found) return found.error();
    if (!t.device().is_cuda() || t.empty()) return {};
    const auto span = touched_span(t.shape(), t.strides());
    const std::int64_t low = span ? span->low * t.itemsize() : 0;
    const std::int64_t end = span && !t.dtype().is_subbyte() ? (span->high + 1) * t.itemsize() : 1;
    for (const std::int64_t offset : {low, end - 1}) {
        const auto place = device_of_address(static_cast<const std::byte*>(t.data()) + offset);
        if (!place) return place.error();
    }
    return {};
}

/// Gives memory back to the driver, and the context it lies in, which would take the memory with it. Freeing
/// waits for what is queued on the device: nobody can be reading any more. A child of fork owns neither.
struct freeing {
    const driver* functions;
    device where;

    void operator()(void* memory) const noexcept {
        if (memory == nullptr || functions->is_forked()) return;
        const context_scope here(where, "device");
        const beside_capture relaxed(*functions);
        detail::blocking([&] { (void)functions->free(reinterpret_cast<std::uintptr_t>(memory)); });
        int device = 0;
        if (functions->device_get(&device, where.id) == 0) (void)functions->context_release(device);
    }
};

/// What `freeing` gives back: 0, or an error, and then nothing is held. The context is the caller's.
[[nodiscard]] inline int take_memory(const driver& d, int ordinal, std::size_t bytes,
                                     std::uintptr_t& out) noexcept {
    const beside_capture relaxed(d);
    int device = 0;
    void* context = nullptr;
    int fault = d.device_get(&device, ordinal);
    if (fault == 0) fault = d.context_retain(&context, device);
    if (fault != 0) return fault;
    fault = d.allocate(&out, bytes);
    if (fault != 0) (void)d.context_release(device);
    return fault;
}

/// Compact memory for a tensor like this one, on a device whose context is current.
[[nodiscard]] inline result<tensor> room_for(const driver& d, const tensor_ref& like, device where,
                                             void* stream, bool for_copy = false) noexcept {
    std::uintptr_t address = 0;
    const auto bytes = static_cast<std::size_t>(like.nbytes());
    if (const int fault = like.empty() ? 0 : take_memory(d, where.id, bytes, address)) {
        constexpr int no_memory = 2;
        return fault == no_memory ? out_of_memory("device memory") : d.failed(fault, "device");
    }
    const tensor_info info =
        tensor_info::contiguous(reinterpret_cast<void*>(address), like.dtype(), like.shape(), where)
            .on_stream(stream)
            .padded(like.is_subbyte_padded());
    auto made = tensor::own(info, freeing{&d, where});
    if (!made) return made;
    if (for_copy) made->mark_copied();
    // Freeing waits for a device that is busy: then a thread does it.
    made->owner() = released_late(std::move(made->owner()), where);
    return made;
}

/// Copies memory with gaps by rows, where two-dimensional copies can say it: with few steps, that go up.
class row_copy : detail::joined_axes {
public:
    explicit row_copy(const tensor_ref& from) noexcept : joined_axes(from), item_(from.itemsize()) {
        if (rank == 0 || axes[0].stride != 1) {  // rows of one element
            std::copy_backward(axes.begin(), axes.begin() + rank, axes.begin() + rank + 1);
            axes[0] = {1, 1};
            ++rank;
        }
        if (rank == 1) axes[rank++] = {1, axes[0].extent};
        for (std::size_t i = 2; i < rank; ++i) calls_ *= axes[i].extent;  // at most the number of elements
    }
    [[nodiscard]] bool is_possible() const noexcept {
        // The furthest apart that drivers take rows, and so many calls that the host would be quicker.
        constexpr std::int64_t most_pitch = (std::int64_t{1} << 31U) - 1;
        constexpr std::int64_t most_calls = 4096;
        for (std::size_t i = 0; i < rank; ++i)
            if (axes[i].stride <= 0 || axes[i].stride > most_pitch) return false;
        const std::int64_t row = axes[0].extent * item_;
        const std::int64_t pitch = axes[1].stride * item_;
        return calls_ <= most_calls && row <= pitch && pitch <= most_pitch;
    }

    [[nodiscard]] int run(const driver& d, std::uintptr_t to, std::uintptr_t from,
                          void* stream) const noexcept {
        copy_2d rows;
        rows.width_in_bytes = static_cast<std::size_t>(axes[0].extent * item_);
        rows.height = static_cast<std::size_t>(axes[1].extent);
        rows.source.pitch = static_cast<std::size_t>(axes[1].stride * item_);
        rows.target.pitch = rows.width_in_bytes;
        rows.target.device = to;
        for (std::int64_t call = 0; call < calls_; ++call) {
            std::int64_t source = 0;
            std::int64_t rest = call;
            for (std::size_t i = 2; i < rank; ++i) {
                source += rest % axes[i].extent * axes[i].stride;
                rest /= axes[i].extent;
            }
            rows.source.device = from + static_cast<std::uintptr_t>(source * item_);
            if (const int fault = d.copy_rows(&rows, stream)) return fault;
            rows.target.device += rows.width_in_bytes * rows.height;
        }
        return 0;
    }

private:
    std::int64_t item_;
    std::int64_t calls_ = 1;
};

/// Whether memory can be made there by a driver, for work on the stream.
[[nodiscard]] inline result<void> check_target(device where, void* stream) noexcept {
    if (!where.has_streams())
        return refused("device", "a driver makes memory of its devices alone", where.type);
    return check_stream(stream);
}

/// A writable, row-major tensor in memory of its own on a GPU, uninitialised, to be written to on the stream.
/// The driver's memory is dear: allocating and freeing it waits for the device.
[[nodiscard]] inline result<tensor> allocate(device where, element_type type, const axes& shape,
                                             void* stream = nullptr) noexcept {
    const auto planned = detail::plan_allocation(type, shape, false);
    if (!planned) return planned.error();
    if (auto ok = check_target(where, stream); !ok) return ok.error();
    const context_scope here(where, "device", context_scope::missing::create);
    if (!here.entered()) return here.entered().error();
    return room_for(*here, *planned, where, stream);
}

/// A compact copy of a GPU's memory on the host, complete when it is there: everything queued on the device
/// is waited for first. All the memory between the first and the last element is fetched at once, and put in
/// order here.
[[nodiscard]] inline result<tensor> fetch(const tensor_ref& t, copy_watch watch = {}) noexcept {
    if (t.empty()) {
        auto made = tenon::allocate(t.dtype(), t.shape(), t.is_subbyte_padded());
        if (made) made->mark_copied();
        return made;
    }
    const auto packed = detail::is_packed(t);
    const auto span = touched_span(t.shape(), t.strides());
    if (!packed) return packed.error();
    if (auto ok = check_reachable(t); !ok) return ok.error();
    if (!span) return refused("strides", "the elements lie too far apart");
    const std::int64_t low = span->low * t.itemsize();
    const std::int64_t bytes = *packed ? t.nbytes() : (span->high + 1) * t.itemsize() - low;
    auto room = tenon::allocate(dtype_of<std::uint8_t>, axes(bytes));
    if (!room) return room.error();
    {
        const context_scope here(t.device(), "device", context_scope::missing::create);
        if (!here.entered()) return here.entered().error();
        const auto first = reinterpret_cast<std::uintptr_t>(t.data()) + static_cast<std::uintptr_t>(low);
        int fault = here->context_synchronize();
        if (fault == 0) fault = here->copy_to_host(room->data(), first, static_cast<std::size_t>(bytes));
        if (fault != 0) return here->failed(fault, "device");
    }
    const tensor_info info = tensor_info::strided(room->data(), t.dtype(), t.shape(), t.strides())
                                 .with_byte_offset(static_cast<std::uint64_t>(-low))
                                 .padded(t.is_subbyte_padded());
    auto there = tensor::own(info, std::move(room->owner()));
    if (!there || !there->is_c_contiguous()) return there ? copy_to_host(*there, watch) : std::move(there);
    there->mark_copied();
    return there;
}

/// A compact copy of host memory on a GPU, complete when it is there. It is said to be ready on the stream.
[[nodiscard]] inline result<tensor> put(const tensor_ref& t, device to, void* stream,
                                        copy_watch watch = {}) noexcept {
    if (auto ok = check_target(to, stream); !ok) return ok.error();
    if (const auto found = driver::needed_for(to, "device"); !found) return found.error();
    if (!t.is_c_contiguous()) {
        auto compact = copy_to_host(t, watch);
        return compact ? put(*compact, to, stream) : std::move(compact);
    }
    const context_scope here(to, "device", context_scope::missing::create);
    if (!here.entered()) return here.entered().error();
    auto made = room_for(*here, t, to, stream, /*for_copy=*/true);
    if (!made || t.empty()) return made;
    const beside_capture relaxed(*here);
    // Returns when the host's memory has been read, and not before: but for what the device still has to do
    // with it, which comes before anything that is queued later on any stream that waits for the default one.
    int fault = here->copy_from_host(reinterpret_cast<std::uintptr_t>(made->data()), t.data(),
                                     static_cast<std::size_t>(t.nbytes()));
    if (fault == 0) fault = here->stream_synchronize(default_stream(to));
    if (fault != 0) return here->failed(fault, "device");
    return made;
}

/// A compact copy of a GPU's memory on the same GPU, made on the stream, for which the host does not wait
/// unless the elements lie in an order that only the host can undo.
[[nodiscard]] inline result<tensor> copy_on_device(const tensor_ref& t, void* stream) noexcept {
    const device where = t.device();
    stream = named_stream(where, stream);
    const auto packed = detail::is_packed(t);
    if (!packed) return packed.error();
    if (auto ok = check_target(where, stream); !ok) return ok.error();
    if (auto ok = check_reachable(t); !ok) return ok.error();
    std::optional<row_copy> rows;
    if (!t.is_c_contiguous()) rows.emplace(t);
    if (rows && !rows->is_possible()) {
        auto fetched = fetch(t);
        return fetched ? put(*fetched, where, stream) : std::move(fetched);
    }
    const context_scope here(where, "device", context_scope::missing::create);
    if (!here.entered()) return here.entered().error();
    if (capture_of(*here, stream) != capture::none) {
        return refused("stream", "it is being captured into a graph, which would write to the copy again")
            .with_advice("copy with the library that captures");
    }
    auto made = room_for(*here, t, where, stream, /*for_copy=*/true);
    if (!made || t.empty()) return made;
    const auto to = reinterpret_cast<std::uintptr_t>(made->data());
    const auto from = reinterpret_cast<std::uintptr_t>(t.data());
    const int fault = rows ? rows->run(*here, to, from, stream)
                           : here->copy_on_device(to, from, static_cast<std::size_t>(t.nbytes()), stream);
    if (fault != 0) return here->failed(fault, "device");
    return made;
}

}  // namespace tenon::gpu
