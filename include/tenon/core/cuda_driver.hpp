// tenon/core/cuda_driver.hpp: the few functions of the CUDA driver that order work between producer and
// consumer, found at run time and never linked.
//
// Nothing here is looked for, let alone called, before somebody exports CUDA memory or imports memory with an
// event: a machine without a driver never notices, and no context is created that was not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include <tenon/core/attributes.hpp>
#include <tenon/core/error.hpp>

namespace tenon::cuda_api {

/// As CUDA and `__dlpack__` both number it.
inline constexpr std::intptr_t legacy_default_stream = 1;

/// The driver's functions, by their ABI names. All return 0 or an error number.
class driver {
public:
    /// The driver, loaded on first use; null when there is none on this machine.
    [[nodiscard]] TENON_PRIVATE static const driver* get() noexcept {
        static const driver loaded;
        return loaded.is_complete_ ? &loaded : nullptr;
    }

    /// Makes `stream` wait for what has been queued so far on the legacy default stream of the device, which
    /// itself follows every stream that was not made "non-blocking".
    [[nodiscard]] result<void> wait_for_default_stream(int device, std::intptr_t stream) const noexcept {
        const current_context here(*this, device);
        if (here.fault != 0) return failed(here.fault);
        void* event = nullptr;
        if (const int fault = event_create_(&event, disable_timing)) return failed(fault);
        int fault = event_record_(event, handle(legacy_default_stream));
        if (fault == 0) fault = stream_wait_(handle(stream), event, 0);
        const int closing = event_destroy_(event);
        if (fault == 0) fault = closing;
        return fault == 0 ? result<void>() : failed(fault);
    }

    /// Waits for what has been queued so far on the legacy default stream of the device.
    [[nodiscard]] result<void> finish_default_stream(int device) const noexcept {
        const current_context here(*this, device);
        const int fault = here.fault != 0 ? here.fault : stream_synchronize_(handle(legacy_default_stream));
        return fault == 0 ? result<void>() : failed(fault);
    }

    /// Makes `stream` wait for an event that somebody else has recorded.
    [[nodiscard]] result<void> wait_for_event(int device, void* event, std::intptr_t stream) const noexcept {
        const current_context here(*this, device);
        const int fault = here.fault != 0 ? here.fault : stream_wait_(handle(stream), event, 0);
        return fault == 0 ? result<void>() : failed(fault);
    }
    /// Waits for the event here and now.
    [[nodiscard]] result<void> finish_event(int device, void* event) const noexcept {
        const current_context here(*this, device);
        const int fault = here.fault != 0 ? here.fault : event_synchronize_(event);
        return fault == 0 ? result<void>() : failed(fault);
    }

    /// Whether there is a device at all: a driver may be installed on a machine without one.
    [[nodiscard]] bool has_device() const noexcept { return init_(0) == 0; }

    /// Waits for everything queued on any device that is in use. Memory of the host that devices can reach
    /// says not which of them writes to it.
    [[nodiscard]] result<void> synchronize() const noexcept {
        int count = 0;
        int fault = device_count_(&count);
        for (int ordinal = 0; fault == 0 && ordinal < count; ++ordinal) {
            int device = 0;
            int active = 0;
            unsigned flags = 0;
            fault = device_get_(&device, ordinal);
            if (fault == 0) fault = context_state_(device, &flags, &active);
            if (fault != 0 || active == 0) continue;
            const current_context here(*this, ordinal);
            fault = here.fault != 0 ? here.fault : synchronize_();
        }
        return fault == 0 ? result<void>() : failed(fault);
    }

    /// Copies `bytes` bytes to the host once everything queued on the device is done.
    [[nodiscard]] result<void> copy_to_host(int device, void* to, const void* from,
                                            std::size_t bytes) const noexcept {
        const current_context here(*this, device);
        if (here.fault != 0) return failed(here.fault);
        int fault = synchronize_();
        if (fault == 0) fault = copy_to_host_(to, reinterpret_cast<std::uintptr_t>(from), bytes);
        return fault == 0 ? result<void>() : failed(fault);
    }

private:
    static constexpr unsigned disable_timing = 2;

    /// The device's primary context, current for as long as this object lives. It exists already: memory does
    /// not lie on a device without one.
    class current_context {
    public:
        current_context(const driver& d, int ordinal) noexcept : driver_(d) {
            fault = d.init_(0);
            if (fault == 0) fault = d.device_get_(&device_, ordinal);
            void* context = nullptr;
            if (fault == 0) fault = d.retain_(&context, device_);
            retained_ = fault == 0;
            if (fault == 0) fault = d.push_(context);
            pushed_ = retained_ && fault == 0;
        }
        ~current_context() {
            void* popped = nullptr;
            if (pushed_) (void)driver_.pop_(&popped);
            if (retained_) (void)driver_.release_(device_);
        }
        current_context(const current_context&) = delete;
        current_context& operator=(const current_context&) = delete;

        int fault = 0;

    private:
        const driver& driver_;
        int device_ = 0;
        bool retained_ = false;
        bool pushed_ = false;
    };

    static void* handle(std::intptr_t stream) noexcept { return reinterpret_cast<void*>(stream); }
    static error failed(int fault) noexcept {
        return refused("stream", "the CUDA driver reports an error, by its number", fault);
    }

    driver() noexcept {
#if defined(_WIN32)
        HMODULE const library = LoadLibraryA("nvcuda.dll");
        const auto find = [&](const char* name) {
            return library != nullptr ? reinterpret_cast<void*>(GetProcAddress(library, name)) : nullptr;
        };
#else
        void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        const auto find = [&](const char* name) {
            return library != nullptr ? dlsym(library, name) : nullptr;
        };
#endif
        const auto load = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find(name));
            return function != nullptr;
        };
        is_complete_ =
            load(init_, "cuInit") && load(device_get_, "cuDeviceGet") &&
            load(device_count_, "cuDeviceGetCount") && load(context_state_, "cuDevicePrimaryCtxGetState") &&
            load(retain_, "cuDevicePrimaryCtxRetain") && load(release_, "cuDevicePrimaryCtxRelease_v2") &&
            load(push_, "cuCtxPushCurrent_v2") && load(pop_, "cuCtxPopCurrent_v2") &&
            load(synchronize_, "cuCtxSynchronize") && load(event_create_, "cuEventCreate") &&
            load(event_record_, "cuEventRecord") && load(event_destroy_, "cuEventDestroy_v2") &&
            load(event_synchronize_, "cuEventSynchronize") && load(stream_wait_, "cuStreamWaitEvent") &&
            load(stream_synchronize_, "cuStreamSynchronize") && load(copy_to_host_, "cuMemcpyDtoH_v2");
    }

    bool is_complete_ = false;
    int (*init_)(unsigned) = nullptr;
    int (*device_get_)(int*, int) = nullptr;
    int (*device_count_)(int*) = nullptr;
    int (*context_state_)(int, unsigned*, int*) = nullptr;
    int (*retain_)(void**, int) = nullptr;
    int (*release_)(int) = nullptr;
    int (*push_)(void*) = nullptr;
    int (*pop_)(void**) = nullptr;
    int (*synchronize_)() = nullptr;
    int (*event_create_)(void**, unsigned) = nullptr;
    int (*event_record_)(void*, void*) = nullptr;
    int (*event_destroy_)(void*) = nullptr;
    int (*event_synchronize_)(void*) = nullptr;
    int (*stream_wait_)(void*, void*, unsigned) = nullptr;
    int (*stream_synchronize_)(void*) = nullptr;
    int (*copy_to_host_)(void*, std::uintptr_t, std::size_t) = nullptr;
};

}  // namespace tenon::cuda_api
