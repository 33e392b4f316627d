/* bench/source.h: the memory every contender hands to Python, and an owner that counts its releases. */

#ifndef TENON_BENCH_SOURCE_H
#define TENON_BENCH_SOURCE_H

#include <stdint.h>

#define SOURCE_EXTENT 16

static float source_memory[SOURCE_EXTENT * SOURCE_EXTENT];
static volatile int64_t source_releases;

/* What giving the memory back would be. */
static inline void source_release(void) { source_releases = source_releases + 1; }

#endif
