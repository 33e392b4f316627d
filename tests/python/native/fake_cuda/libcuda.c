// tests/python/native/fake_cuda/libcuda.c: a CUDA driver, or HIP, whose devices are host memory: it writes
// down every call, and fails, captures or is busy where a test wants it to. Compiled by fake_cuda.py; with
// WITHOUT_EVENTS or WITHOUT_CONTEXT_RECORD defined it lacks functions, with HIP defined it has HIP's names.
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(HIP)
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif

static char calls[1 << 16];
static size_t used;
static char failing[64];
static int failure;
static int depth;           // contexts pushed and not popped
static int retained;        // and retained, not released
static _Atomic int events;  // created and not destroyed
static int allocations;

// What tests set.
static unsigned inactive;         // a bit for each device that has no context
static size_t capturing;          // the stream that is being captured
static int busy;                  // how often events are still pending when asked
static int place[3] = {0, 2, 0};  // of every address: device ordinal, memory type, whether it is managed
static int unknown_addresses;     // no address is known
static void* current;             // the thread's context
static int (*holds_gil)(void);    // CPython's answer, where calls are to tell
static const void* copied_from;   // the last source in the host's memory

const char* fake_log(void) { return calls; }
int fake_open(void) { return depth + retained + events; }
int fake_allocations(void) { return allocations; }
void fake_reset(const char* name, int code) {
    used = 0;
    calls[0] = '\0';
    snprintf(failing, sizeof failing, "%s", name);
    failure = code;
}
void fake_inactive(unsigned devices) { inactive = devices; }
void fake_capturing(size_t stream) { capturing = stream; }
void fake_busy(int times) { busy = times; }
void fake_gil(int (*check)(void)) { holds_gil = check; }
size_t fake_copied_from(void) { return (size_t)copied_from; }
void fake_place(int ordinal, int type, int managed, int unknown) {
    place[0] = ordinal;
    place[1] = type;
    place[2] = managed;
    unknown_addresses = unknown;
}

static int note(const char* name, const char* format, ...) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    va_list arguments;
    pthread_mutex_lock(&one_at_a_time);
    va_start(arguments, format);
    used += (size_t)snprintf(calls + used, sizeof calls - used, "%s", name);
    used += (size_t)vsnprintf(calls + used, sizeof calls - used, format, arguments);
    used += (size_t)snprintf(calls + used, sizeof calls - used, "%s\n",
                             holds_gil != NULL && holds_gil() ? " with the GIL" : "");
    va_end(arguments);
    pthread_mutex_unlock(&one_at_a_time);
    return strcmp(name, failing) == 0 ? failure : 0;
}

static void* const context = (void*)0xC0;
static void* const event = (void*)0xE0;
static const char* lone(void) { return depth == 1 || current != NULL ? "" : " without a context"; }

int NAME(cuInit, hipInit)(unsigned flags) { return note("cuInit", " %u", flags); }
int NAME(cuDeviceGet, hipDeviceGet)(int* out, int ordinal) {
    *out = ordinal + 100;
    return note("cuDeviceGet", " %d", ordinal);
}
int NAME(cuDeviceGetCount, hipGetDeviceCount)(int* out) {
    *out = 2;
    return note("cuDeviceGetCount", "");
}
int NAME(cuDevicePrimaryCtxGetState, hipDevicePrimaryCtxGetState)(int device, unsigned* flags, int* active) {
    *flags = 0;
    *active = (inactive >> (device - 100) & 1u) == 0;
    return note("cuDevicePrimaryCtxGetState", " %d", device);
}
int NAME(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(void** out, int device) {
    const int fault = note("cuDevicePrimaryCtxRetain", " %d", device);
    *out = context;
    retained += fault == 0;
    return fault;
}
int NAME(cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease)(int device) {
    --retained;
    return note("cuDevicePrimaryCtxRelease", " %d", device);
}
int NAME(cuCtxPushCurrent_v2, hipCtxPushCurrent)(void* pushed) {
    const int fault = note("cuCtxPushCurrent", " %s", pushed == context ? "context" : "?");
    depth += fault == 0;
    return fault;
}
int NAME(cuCtxPopCurrent_v2, hipCtxPopCurrent)(void** out) {
    *out = context;
    --depth;
    return note("cuCtxPopCurrent", "");
}
int NAME(cuCtxGetCurrent, hipCtxGetCurrent)(void** out) {
    *out = current;
    return note("cuCtxGetCurrent", "");
}
int NAME(cuCtxGetDevice, hipCtxGetDevice)(int* out) {
    *out = 100;
    return current != NULL ? note("cuCtxGetDevice", "") : 201;
}
int NAME(cuCtxSynchronize, hipCtxSynchronize)(void) { return note("cuCtxSynchronize", "%s", lone()); }
int NAME(cuMemcpyDtoH_v2, hipMemcpyDtoH)(void* to, uintptr_t from, size_t bytes) {
    const int fault = note("cuMemcpyDtoH", " %zu%s", bytes, lone());
    if (fault == 0) memcpy(to, (const void*)from, bytes);
    return fault;
}
int NAME(cuMemcpyHtoD_v2, hipMemcpyHtoD)(uintptr_t to, const void* from, size_t bytes) {
    const int fault = note("cuMemcpyHtoD", " %zu%s", bytes, lone());
    copied_from = from;
    if (fault == 0) memcpy((void*)to, from, bytes);
    return fault;
}
int NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(uintptr_t to, uintptr_t from, size_t bytes, void* stream) {
    const int fault = note("cuMemcpyDtoD", " %zu %zu%s", bytes, (size_t)stream, lone());
    if (fault == 0) memcpy((void*)to, (const void*)from, bytes);
    return fault;
}
struct copy_place {
    size_t x, y;
    unsigned type;
    const void* host;
    uintptr_t device;
    void* array;
    size_t pitch;
};
struct copy_2d {
    struct copy_place from, to;
    size_t width, height;
};
int NAME(cuMemcpy2DAsync_v2, hipMemcpyParam2DAsync)(const struct copy_2d* c, void* stream) {
    const int fault = note("cuMemcpy2D", " %zux%zu %zu%s", c->width, c->height, (size_t)stream, lone());
    if (c->from.type != 2 || c->to.type != 2 || c->from.pitch < c->width || c->to.pitch < c->width) return 1;
    for (size_t row = 0; fault == 0 && row < c->height; ++row)
        memcpy((char*)c->to.device + row * c->to.pitch, (const char*)c->from.device + row * c->from.pitch,
               c->width);
    return fault;
}
int NAME(cuMemAlloc_v2, hipMalloc)(uintptr_t* out, size_t bytes) {
    const int fault = note("cuMemAlloc", " %zu%s", bytes, lone());
    *out = fault == 0 ? (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256) : 0;
    allocations += fault == 0;
    return fault;
}
int NAME(cuMemFree_v2, hipFree)(uintptr_t pointer) {
    free((void*)pointer);
    --allocations;
    return note("cuMemFree", "");
}
int NAME(cuPointerGetAttribute, hipPointerGetAttribute)(void* out, int attribute, uintptr_t pointer) {
    const int fault = note("cuPointerGetAttribute", " %d", attribute);
    if (unknown_addresses || pointer == 0) return 1;
    *(int*)out = attribute == 9 ? place[0] : attribute == 2 ? place[1] : attribute == 8 ? place[2] : -1;
    return fault;
}
int NAME(cuStreamSynchronize, hipStreamSynchronize)(void* stream) {
    return note("cuStreamSynchronize", " %zu%s", (size_t)stream, lone());
}
int NAME(cuStreamIsCapturing, hipStreamIsCapturing)(void* stream, int* status) {
    *status = capturing != 0 && (size_t)stream == capturing;
    return strcmp(failing, "cuStreamIsCapturing") == 0 ? failure : 0;  // not noted: it does nothing
}
int NAME(cuThreadExchangeStreamCaptureMode, hipThreadExchangeStreamCaptureMode)(int* mode) {
    static int here;
    const int before = here;
    here = *mode;
    *mode = before;
    return 0;
}
int NAME(cuGetErrorName, hipDrvGetErrorName)(int fault, const char** out) {
    *out = fault == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
    return *out != NULL ? 0 : 1;
}
#if !defined(WITHOUT_EVENTS)
int NAME(cuEventQuery, hipEventQuery)(void* asked) {
    return busy > 0 ? (--busy, 600) : note("cuEventQuery", " %s", asked == event ? "event" : "?");
}
int NAME(cuEventSynchronize, hipEventSynchronize)(void* awaited) {
    return note("cuEventSynchronize", " %s", awaited == event ? "event" : "?");
}
int NAME(cuEventCreate, hipEventCreateWithFlags)(void** out, unsigned flags) {
    const int fault = note("cuEventCreate", " %u", flags);
    *out = fault == 0 ? event : NULL;
    events += fault == 0;
    return fault;
}
int NAME(cuEventRecord, hipEventRecord)(void* recorded, void* stream) {
    return note("cuEventRecord", " %s %zu", recorded == event ? "event" : "?", (size_t)stream);
}
#if !defined(WITHOUT_CONTEXT_RECORD)
int NAME(cuCtxRecordEvent, hipCtxRecordEvent)(void* where, void* recorded) {
    return note("cuCtxRecordEvent", " %s %s", where == context ? "context" : "?",
                recorded == event ? "event" : "?");
}
#endif
int NAME(cuStreamWaitEvent, hipStreamWaitEvent)(void* stream, void* awaited, unsigned flags) {
    return note("cuStreamWaitEvent", " %zu %s %u", (size_t)stream, awaited == event ? "event" : "?", flags);
}
int NAME(cuEventDestroy_v2, hipEventDestroy)(void* destroyed) {
    --events;
    return note("cuEventDestroy", " %s", destroyed == event ? "event" : "?");
}
#endif
