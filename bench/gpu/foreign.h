/* bench/gpu/foreign.h: counts the releases of the device memory that contenders hand to Python. */

#ifndef TENON_BENCH_GPU_FOREIGN_H
#define TENON_BENCH_GPU_FOREIGN_H

#include <stdint.h>

static volatile int64_t foreign_releases;

/* What giving the memory back would be. */
static inline void foreign_release(void) { foreign_releases = foreign_releases + 1; }

#endif
