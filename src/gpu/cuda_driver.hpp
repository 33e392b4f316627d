// src/gpu/cuda_driver.hpp: the few functions of the CUDA driver, or of HIP, that Tenon needs, found at run
// time and never linked.
//
// Nothing here is looked for, let alone called, before memory of a GPU needs it: a machine without a driver
// never notices, and no context is created that was not there.
#pragma once

#include <tenon/abi/dlpack.hpp>
#include <tenon/detail/config.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/error.hpp>
#include "../standard.hpp"

#if defined(_WIN32)
#include <process.h>
#include <windows.h>
#else
#include <dlfcn.h>
#include <unistd.h>
#endif

namespace tenon::gpu {

/// The stream that is meant where none is named. CUDA's has a handle of its own, which means the same in code
/// that was compiled for per-thread default streams (`cudaStreamLegacy`).
[[nodiscard]] inline void* default_stream(device where) noexcept {
    return where.is_cuda_memory() ? reinterpret_cast<void*>(std::uintptr_t{1}) : nullptr;
}
[[nodiscard]] inline void* named_stream(device where, void* stream) noexcept {
    return stream != nullptr ? stream : default_stream(where);
}

/// A two-dimensional copy, as both drivers lay it out (`CUDA_MEMCPY2D`, `hip_Memcpy2D`).
struct copy_2d {
    struct place {
        std::size_t x_in_bytes = 0;
        std::size_t y = 0;
        unsigned memory_type = 2;  ///< device memory
        const void* host = nullptr;
        std::uintptr_t device = 0;
        void* array = nullptr;
        std::size_t pitch = 0;
    };
    place source;
    place target;
    std::size_t width_in_bytes = 0;
    std::size_t height = 0;
};

/// What `pointer_attribute` can be asked for.
enum class pointer_fact : int { memory_type = 2, is_managed = 8, device_ordinal = 9 };

/// The driver's functions, which return 0 or an error number, by what they do. HIP's counterparts have the
/// same shapes.
struct driver {
    int (*init)(unsigned) = nullptr;
    int (*device_get)(int* out, int ordinal) = nullptr;
    int (*device_count)(int* out) = nullptr;
    int (*context_state)(int device, unsigned* flags, int* active) = nullptr;
    int (*context_retain)(void** out, int device) = nullptr;
    int (*context_release)(int device) = nullptr;
    int (*context_push)(void* context) = nullptr;
    int (*context_pop)(void** out) = nullptr;
    int (*context_current)(void** out) = nullptr;
    int (*context_device)(int* out) = nullptr;
    int (*context_synchronize)() = nullptr;
    int (*event_create)(void** out, unsigned flags) = nullptr;
    int (*event_record)(void* event, void* stream) = nullptr;
    int (*event_query)(void* event) = nullptr;
    int (*event_synchronize)(void* event) = nullptr;
    int (*event_destroy)(void* event) = nullptr;
    int (*stream_wait)(void* stream, void* event, unsigned flags) = nullptr;
    int (*stream_synchronize)(void* stream) = nullptr;
    int (*stream_is_capturing)(void* stream, int* status) = nullptr;
    int (*exchange_capture_mode)(int* mode) = nullptr;
    int (*pointer_attribute)(void* out, int attribute, std::uintptr_t pointer) = nullptr;
    int (*allocate)(std::uintptr_t* out, std::size_t bytes) = nullptr;
    int (*free)(std::uintptr_t pointer) = nullptr;
    int (*copy_to_host)(void* to, std::uintptr_t from, std::size_t bytes) = nullptr;
    int (*copy_from_host)(std::uintptr_t to, const void* from, std::size_t bytes) = nullptr;
    int (*copy_on_device)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, void* stream) = nullptr;
    int (*copy_rows)(const copy_2d* what, void* stream) = nullptr;
    // Not every version has these.
    int (*context_record)(void* context, void* event) = nullptr;
    int (*error_name)(int fault, const char** out) = nullptr;

    bool is_hip = false;
    int started = -1;  ///< what `init` answered

    /// The driver of a device's memory, pinned and managed memory included; null when this machine has none
    /// or it lacks functions. Loaded and started on first use; there may still be no device.
    [[nodiscard]] static const driver* of(device where) noexcept {
        if (where.is_cuda_memory()) return cuda_driver();
        if (where.is_rocm_memory()) return hip_driver();
        return nullptr;
    }
    /// The same, with the reason why there is none.
    [[nodiscard]] static result<const driver*> needed_for(device where, const char* field) noexcept {
        const driver* const found = of(where);
        if (found == nullptr) {
            return where.is_rocm()
                       ? refused(field, "the HIP library (libamdhip64.so) cannot be loaded")
                       : refused(field, "the CUDA driver cannot be loaded (libcuda.so.1), or is too old");
        }
        if (found->is_forked()) {
            return refused(field, "this process was forked from one that uses the GPU, and cannot use it")
                .with_advice("start processes with multiprocessing's 'spawn' or 'forkserver'");
        }
        if (found->started != 0) return found->failed(found->started, field);
        return found;
    }

    /// A child of `fork` has none of its parent's contexts: whatever it asks the driver fails, and a lock
    /// that another thread held is held for ever.
    [[nodiscard]] bool is_forked() const noexcept { return process_id() != owner_; }

    [[nodiscard]] error failed(int fault, const char* field) const noexcept {
        const char* name = nullptr;
        if (error_name == nullptr || error_name(fault, &name) != 0 || name == nullptr)
            name = is_hip ? "HIP reports an error" : "the CUDA driver reports an error";
        return refused(field, name, fault);
    }
    [[nodiscard]] result<void> checked(int fault, const char* field) const noexcept {
        return fault == 0 ? result<void>() : failed(fault, field);
    }

private:
    [[nodiscard]] TENON_PRIVATE static const driver* cuda_driver() noexcept {
        static const driver loaded(false);
        return loaded.is_complete_ ? &loaded : nullptr;
    }
    [[nodiscard]] TENON_PRIVATE static const driver* hip_driver() noexcept {
        static const driver loaded(true);
        return loaded.is_complete_ ? &loaded : nullptr;
    }

    [[nodiscard]] static int process_id() noexcept {
#if defined(_WIN32)
        return _getpid();
#else
        return getpid();
#endif
    }

    explicit driver(bool hip) noexcept : is_hip(hip), owner_(process_id()) {
        const library functions(hip);
        const auto load = [&](auto& function, const char* in_cuda, const char* in_hip) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
                functions.find(hip ? in_hip : in_cuda));
            return function != nullptr;
        };
        is_complete_ = load(init, "cuInit", "hipInit") && load(device_get, "cuDeviceGet", "hipDeviceGet") &&
                       load(device_count, "cuDeviceGetCount", "hipGetDeviceCount") &&
                       load(context_state, "cuDevicePrimaryCtxGetState", "hipDevicePrimaryCtxGetState") &&
                       load(context_retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain") &&
                       load(context_release, "cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease") &&
                       load(context_push, "cuCtxPushCurrent_v2", "hipCtxPushCurrent") &&
                       load(context_pop, "cuCtxPopCurrent_v2", "hipCtxPopCurrent") &&
                       load(context_current, "cuCtxGetCurrent", "hipCtxGetCurrent") &&
                       load(context_device, "cuCtxGetDevice", "hipCtxGetDevice") &&
                       load(context_synchronize, "cuCtxSynchronize", "hipCtxSynchronize") &&
                       load(event_create, "cuEventCreate", "hipEventCreateWithFlags") &&
                       load(event_record, "cuEventRecord", "hipEventRecord") &&
                       load(event_query, "cuEventQuery", "hipEventQuery") &&
                       load(event_synchronize, "cuEventSynchronize", "hipEventSynchronize") &&
                       load(event_destroy, "cuEventDestroy_v2", "hipEventDestroy") &&
                       load(stream_wait, "cuStreamWaitEvent", "hipStreamWaitEvent") &&
                       load(stream_synchronize, "cuStreamSynchronize", "hipStreamSynchronize") &&
                       load(stream_is_capturing, "cuStreamIsCapturing", "hipStreamIsCapturing") &&
                       load(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode",
                            "hipThreadExchangeStreamCaptureMode") &&
                       load(pointer_attribute, "cuPointerGetAttribute", "hipPointerGetAttribute") &&
                       load(allocate, "cuMemAlloc_v2", "hipMalloc") &&
                       load(free, "cuMemFree_v2", "hipFree") &&
                       load(copy_to_host, "cuMemcpyDtoH_v2", "hipMemcpyDtoH") &&
                       load(copy_from_host, "cuMemcpyHtoD_v2", "hipMemcpyHtoD") &&
                       load(copy_on_device, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync") &&
                       load(copy_rows, "cuMemcpy2DAsync_v2", "hipMemcpyParam2DAsync");
        (void)load(context_record, "cuCtxRecordEvent", "hipCtxRecordEvent");
        (void)load(error_name, "cuGetErrorName", "hipDrvGetErrorName");
        if (is_complete_) started = init(0);
    }

    /// The library itself, never unloaded: its functions are needed until the process ends.
    struct library {
#if defined(_WIN32)
        HMODULE handle;
        explicit library(bool hip) noexcept : handle(LoadLibraryA(hip ? "amdhip64.dll" : "nvcuda.dll")) {}
        [[nodiscard]] void* find(const char* name) const noexcept {
            return handle != nullptr ? reinterpret_cast<void*>(GetProcAddress(handle, name)) : nullptr;
        }
#else
        void* handle;
        explicit library(bool hip) noexcept : handle(open(hip)) {}
        [[nodiscard]] static void* open(bool hip) noexcept {
            constexpr int how = RTLD_NOW | RTLD_LOCAL;
            if (!hip) return dlopen("libcuda.so.1", how);
            // Installations without the development files lack the plain name.
            for (const char* name : {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"})
                if (void* const found = dlopen(name, how)) return found;
            return nullptr;
        }
        [[nodiscard]] void* find(const char* name) const noexcept {
            return handle != nullptr ? dlsym(handle, name) : nullptr;
        }
#endif
    };

    bool is_complete_ = false;
    int owner_;  ///< the process that loaded it
};

/// A device's context, current for as long as this object lives: the primary one, which every library here
/// uses, or else the one that is current. Where the device has neither, nothing is pending on it.
class context_scope {
public:
    /// What to do when the device has no context yet.
    enum class missing : std::uint8_t { leave, create };

    context_scope(const driver& d, int ordinal, missing then = missing::leave) noexcept : driver_(d) {
        unsigned flags = 0;
        int active = 0;
        fault = d.device_get(&device_, ordinal);
        if (fault == 0) fault = d.context_state(device_, &flags, &active);
        if (fault != 0) return;
        if (active == 0 && then == missing::leave) {
            adopt_current();
            return;
        }
        fault = d.context_retain(&context_, device_);
        retained_ = fault == 0;
        if (fault == 0) fault = d.context_push(context_);
        pushed_ = retained_ && fault == 0;
        exists = pushed_;
    }
    ~context_scope() {
        void* popped = nullptr;
        if (pushed_) (void)driver_.context_pop(&popped);
        if (retained_) (void)driver_.context_release(device_);
    }
    context_scope(const context_scope&) = delete;
    context_scope& operator=(const context_scope&) = delete;

    [[nodiscard]] void* get() const noexcept { return context_; }

    int fault = 0;
    bool exists = false;

private:
    void adopt_current() noexcept {
        int device = -1;
        if (driver_.context_current(&context_) != 0 || context_ == nullptr) return;
        exists = driver_.context_device(&device) == 0 && device == device_;
    }

    const driver& driver_;
    void* context_ = nullptr;
    int device_ = 0;
    bool retained_ = false;
    bool pushed_ = false;
};

/// While this lives, what this thread calls does not end a capture of a CUDA graph that is going on
/// elsewhere, as allocating, freeing, copying and asking for events would.
class beside_capture {
public:
    explicit beside_capture(const driver& d) noexcept : driver_(d) {
        entered_ = driver_.exchange_capture_mode(&mode_) == 0;
    }
    ~beside_capture() {
        if (entered_) (void)driver_.exchange_capture_mode(&mode_);
    }
    beside_capture(const beside_capture&) = delete;
    beside_capture& operator=(const beside_capture&) = delete;

private:
    const driver& driver_;
    int mode_ = 2;  // relaxed; then what it was before
    bool entered_;
};

}  // namespace tenon::gpu
