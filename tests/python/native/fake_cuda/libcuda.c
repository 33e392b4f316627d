// tests/python/native/fake_cuda/libcuda.c: a CUDA driver whose devices are host memory: it writes down every
// call, and fails where a test wants it to. Compiled by fake_cuda.py; with WITHOUT_EVENTS defined it is one
// that lacks functions.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char calls[1 << 16];
static size_t used;
static char failing[64];
static int failure;
static int depth;     // contexts pushed and not popped
static int retained;  // and retained, not released
static int events;    // created and not destroyed

const char* fake_log(void) { return calls; }
int fake_open(void) { return depth + retained + events; }
void fake_reset(const char* name, int code) {
    used = 0;
    calls[0] = '\0';
    snprintf(failing, sizeof failing, "%s", name);
    failure = code;
}

static int note(const char* name, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    used += (size_t)snprintf(calls + used, sizeof calls - used, "%s", name);
    used += (size_t)vsnprintf(calls + used, sizeof calls - used, format, arguments);
    used += (size_t)snprintf(calls + used, sizeof calls - used, "\n");
    va_end(arguments);
    return strcmp(name, failing) == 0 ? failure : 0;
}

static void* const context = (void*)0xC0;
static void* const event = (void*)0xE0;

int cuInit(unsigned flags) { return note("cuInit", " %u", flags); }
int cuDeviceGet(int* out, int ordinal) {
    *out = ordinal + 100;
    return note("cuDeviceGet", " %d", ordinal);
}
int cuDeviceGetCount(int* out) {
    *out = 2;
    return note("cuDeviceGetCount", "");
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    *flags = 0;
    *active = device == 101;  // the second device is in use, the first is not
    return note("cuDevicePrimaryCtxGetState", " %d", device);
}
int cuDevicePrimaryCtxRetain(void** out, int device) {
    const int fault = note("cuDevicePrimaryCtxRetain", " %d", device);
    *out = context;
    retained += fault == 0;
    return fault;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    --retained;
    return note("cuDevicePrimaryCtxRelease", " %d", device);
}
int cuCtxPushCurrent_v2(void* pushed) {
    const int fault = note("cuCtxPushCurrent", " %s", pushed == context ? "context" : "?");
    depth += fault == 0;
    return fault;
}
int cuCtxPopCurrent_v2(void** out) {
    *out = context;
    --depth;
    return note("cuCtxPopCurrent", "");
}
int cuCtxSynchronize(void) { return note("cuCtxSynchronize", "%s", depth == 1 ? "" : " without a context"); }
int cuMemcpyDtoH_v2(void* to, uintptr_t from, size_t bytes) {
    const int fault = note("cuMemcpyDtoH", " %zu%s", bytes, depth == 1 ? "" : " without a context");
    if (fault == 0) memcpy(to, (const void*)from, bytes);
    return fault;
}
int cuStreamSynchronize(void* stream) {
    return note("cuStreamSynchronize", " %zu%s", (size_t)stream, depth == 1 ? "" : " without a context");
}
#if !defined(WITHOUT_EVENTS)
int cuEventSynchronize(void* awaited) {
    return note("cuEventSynchronize", " %s%s", awaited == event ? "event" : "?",
                depth == 1 ? "" : " without a context");
}
int cuEventCreate(void** out, unsigned flags) {
    const int fault = note("cuEventCreate", " %u", flags);
    *out = event;
    events += fault == 0;
    return fault;
}
int cuEventRecord(void* recorded, void* stream) {
    return note("cuEventRecord", " %s %zu", recorded == event ? "event" : "?", (size_t)stream);
}
int cuStreamWaitEvent(void* stream, void* awaited, unsigned flags) {
    return note("cuStreamWaitEvent", " %zu %s %u", (size_t)stream, awaited == event ? "event" : "?", flags);
}
int cuEventDestroy_v2(void* destroyed) {
    --events;
    return note("cuEventDestroy", " %s", destroyed == event ? "event" : "?");
}
#endif
