/* bench/sink.h: the two volatile stores every contender ends with, so that no compiler can drop the work. */

#ifndef TENON_BENCH_SINK_H
#define TENON_BENCH_SINK_H

#include <stdint.h>

static volatile uintptr_t sink_data;
static volatile int64_t sink_metadata;

/* Uses up one received argument: its address, its first extent and stride, and whatever its element
   type and device were read as. */
static inline void sink(const void* data, int64_t ndim, int64_t extent, int64_t stride, int64_t type) {
    sink_data = (uintptr_t)data;
    sink_metadata = ndim + extent + stride + type;
}

#endif
