// src/gpu/cuda_driver.hpp: functions of the CUDA driver, or of HIP, found at run time and never linked.
//
// Nothing here is looked for, let alone called, before memory of a GPU needs it: a machine without a driver
// never notices, and no context is created that was not there.
#pragma once

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

/// The driver's functions, which return 0 or an error number, by what they do. HIP's have the same shapes.
struct driver {
private:
    struct found {
        void* address;
        template <class Function>
        operator Function() const noexcept {  // NOLINT(google-explicit-constructor): the member's type
            return reinterpret_cast<Function>(address);
        }
    };
    /// HIP's names are CUDA's with another beginning, and without a version, unless one is given.
    [[nodiscard]] found wanted(const char* in_cuda, const char* in_hip = nullptr) const noexcept {
        const std::string_view stem = std::string_view(in_cuda).substr(2);
        char same[64] = "hip";
        stem.substr(0, stem.find("_v2")).copy(same + 3, sizeof same - 4);
        const char* const name = !is_hip_ ? in_cuda : in_hip != nullptr ? in_hip : same;
        return {library_ != nullptr ? find(library_, name) : nullptr};
    }
    [[nodiscard]] found needed(const char* in_cuda, const char* in_hip = nullptr) noexcept {
        const found function = wanted(in_cuda, in_hip);
        is_complete_ &= function.address != nullptr;
        return function;
    }

    // These come before the functions, which are found by them.
    bool is_hip_;
    bool is_complete_ = true;
    int owner_;      ///< the process that loaded it
    void* library_;  ///< never unloaded: its functions are needed until the process ends

public:
    int (*init)(unsigned) = needed("cuInit");
    int (*device_get)(int* out, int ordinal) = needed("cuDeviceGet");
    int (*device_count)(int* out) = needed("cuDeviceGetCount", "hipGetDeviceCount");
    int (*context_state)(int device, unsigned* flags, int* active) = needed("cuDevicePrimaryCtxGetState");
    int (*context_retain)(void** out, int device) = needed("cuDevicePrimaryCtxRetain");
    int (*context_release)(int device) = needed("cuDevicePrimaryCtxRelease_v2");
    int (*context_push)(void* context) = needed("cuCtxPushCurrent_v2");
    int (*context_pop)(void** out) = needed("cuCtxPopCurrent_v2");
    int (*context_current)(void** out) = needed("cuCtxGetCurrent");
    int (*context_device)(int* out) = needed("cuCtxGetDevice");
    int (*context_synchronize)() = needed("cuCtxSynchronize");
    int (*event_create)(void** out, unsigned flags) = needed("cuEventCreate", "hipEventCreateWithFlags");
    int (*event_record)(void* event, void* stream) = needed("cuEventRecord");
    int (*event_query)(void* event) = needed("cuEventQuery");
    int (*event_synchronize)(void* event) = needed("cuEventSynchronize");
    int (*event_destroy)(void* event) = needed("cuEventDestroy_v2");
    int (*stream_wait)(void* stream, void* event, unsigned flags) = needed("cuStreamWaitEvent");
    int (*stream_synchronize)(void* stream) = needed("cuStreamSynchronize");
    int (*stream_is_capturing)(void* stream, int* status) = needed("cuStreamIsCapturing");
    int (*exchange_capture_mode)(int* mode) = needed("cuThreadExchangeStreamCaptureMode");
    int (*pointer_attribute)(void* out, int attribute, std::uintptr_t at) = needed("cuPointerGetAttribute");
    int (*allocate)(std::uintptr_t* out, std::size_t bytes) = needed("cuMemAlloc_v2", "hipMalloc");
    int (*free)(std::uintptr_t pointer) = needed("cuMemFree_v2", "hipFree");
    int (*copy_to_host)(void* to, std::uintptr_t from, std::size_t bytes) = needed("cuMemcpyDtoH_v2");
    int (*copy_from_host)(std::uintptr_t to, const void* from, std::size_t bytes) = needed("cuMemcpyHtoD_v2");
    int (*copy_on_device)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes,
                          void* stream) = needed("cuMemcpyDtoDAsync_v2");
    int (*copy_rows)(const copy_2d* what, void* stream) = needed("cuMemcpy2DAsync_v2",
                                                                 "hipMemcpyParam2DAsync");
    // Not every version has these.
    int (*context_record)(void* context, void* event) = wanted("cuCtxRecordEvent");
    int (*error_name)(int fault, const char** out) = wanted("cuGetErrorName", "hipDrvGetErrorName");

    int started = is_complete_ ? init(0) : -1;  ///< what `init` answered

    /// The driver of a device's memory, pinned and managed memory included; null when this machine has none
    /// or it lacks functions. Loaded and started on first use; there may still be no device.
    [[nodiscard]] static const driver* of(device where) noexcept {
        if (where.is_cuda_memory()) return loaded<false>();
        if (where.is_rocm_memory()) return loaded<true>();
        return nullptr;
    }
    /// The same; null also where it may not or cannot be asked anything.
    [[nodiscard]] static const driver* usable_for(device where) noexcept {
        const driver* const found = of(where);
        return found != nullptr && found->started == 0 && !found->is_forked() ? found : nullptr;
    }
    /// The same, with the reason why there is none.
    [[nodiscard]] static result<const driver*> needed_for(device where, const char* field) noexcept {
        const driver* const found = of(where);
        if (found == nullptr) {
            return refused(field, where.is_rocm()
                                      ? "the HIP library (libamdhip64.so) cannot be loaded"
                                      : "the CUDA driver cannot be loaded (libcuda.so.1), or is too old");
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
            name = is_hip_ ? "HIP reports an error" : "the CUDA driver reports an error";
        return refused(field, name, fault);
    }
    [[nodiscard]] result<void> checked(int fault, const char* field) const noexcept {
        return fault == 0 ? result<void>() : failed(fault, field);
    }

private:
    explicit driver(bool hip) noexcept : is_hip_(hip), owner_(process_id()), library_(open(hip)) {}

    template <bool Hip>
    [[nodiscard]] TENON_PRIVATE static const driver* loaded() noexcept {
        static const driver only(Hip);
        return only.is_complete_ ? &only : nullptr;
    }

#if defined(_WIN32)
    [[nodiscard]] static int process_id() noexcept { return _getpid(); }
    [[nodiscard]] static void* open(bool hip) noexcept {
        return LoadLibraryA(hip ? "amdhip64.dll" : "nvcuda.dll");
    }
    [[nodiscard]] static void* find(void* library, const char* name) noexcept {
        return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
    }
#else
    [[nodiscard]] static int process_id() noexcept { return getpid(); }
    [[nodiscard]] static void* open(bool hip) noexcept {
        constexpr int how = RTLD_NOW | RTLD_LOCAL;
        if (!hip) return dlopen("libcuda.so.1", how);
        // Installations without the development files lack the plain name.
        for (const char* name : {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"})
            if (void* const found = dlopen(name, how)) return found;
        return nullptr;
    }
    [[nodiscard]] static void* find(void* library, const char* name) noexcept { return dlsym(library, name); }
#endif
};

/// A device's context, current for as long as this object lives: the primary one, which every library here
/// uses, or else the one that is current. Where the device has neither, nothing is pending on it.
class context_scope {
public:
    /// What to do when the device has no context yet.
    enum class missing : std::uint8_t { leave, create };

    /// `field` is what an error speaks of.
    context_scope(device where, const char* field, missing then = missing::leave) noexcept {
        const auto found = driver::needed_for(where, field);
        if (!found) {
            entered_ = found.error();
            return;
        }
        driver_ = *found;
        entered_ = driver_->checked(enter(where.id, then), field);
    }
    ~context_scope() {
        void* popped = nullptr;
        if (pushed_) (void)driver_->context_pop(&popped);
        if (retained_) (void)driver_->context_release(device_);
    }
    context_scope(const context_scope&) = delete;
    context_scope& operator=(const context_scope&) = delete;

    /// Whether the driver could be asked, and had no complaint.
    [[nodiscard]] const result<void>& entered() const noexcept { return entered_; }
    [[nodiscard]] bool exists() const noexcept { return context_ != nullptr; }
    [[nodiscard]] void* context() const noexcept { return context_; }
    const driver& operator*() const noexcept { return *driver_; }
    const driver* operator->() const noexcept { return driver_; }

private:
    [[nodiscard]] int enter(int ordinal, missing then) noexcept {
        unsigned flags = 0;
        int active = 0;
        int fault = driver_->device_get(&device_, ordinal);
        if (fault == 0) fault = driver_->context_state(device_, &flags, &active);
        if (fault != 0) return fault;
        if (active == 0 && then == missing::leave) {
            int device = -1;
            if (driver_->context_current(&context_) != 0 || context_ == nullptr ||
                driver_->context_device(&device) != 0 || device != device_)
                context_ = nullptr;
            return 0;
        }
        fault = driver_->context_retain(&context_, device_);
        retained_ = fault == 0;
        if (fault == 0) fault = driver_->context_push(context_);
        pushed_ = fault == 0;
        return fault;
    }

    const driver* driver_ = nullptr;
    result<void> entered_;
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
