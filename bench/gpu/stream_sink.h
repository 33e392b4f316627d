/* bench/gpu/stream_sink.h: bench/sink.h and the stream beside it, where every GPU contender ends. */

#ifndef TENON_BENCH_GPU_STREAM_SINK_H
#define TENON_BENCH_GPU_STREAM_SINK_H

#include "../sink.h"

static volatile uintptr_t sink_stream;

static inline void sink_on(const void* data, int64_t ndim, int64_t extent, int64_t stride, int64_t type,
                           const void* stream) {
    sink(data, ndim, extent, stride, type);
    sink_stream = (uintptr_t)stream;
}

#endif
