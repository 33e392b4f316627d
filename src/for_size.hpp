// src/for_size.hpp: from here on code is compiled for size, up to for_size_end.hpp: most of the engine runs
// seldom.
//
// Only where the compiler optimizes at all. Nothing compiled for size is inlined into what is compiled for
// speed (TENON_FAST), unless it is TENON_HOT. The passes that are left out take GCC a sixth of its time here,
// and make nothing smaller.

#if defined(__OPTIMIZE__) && defined(__clang__)
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#elif defined(__OPTIMIZE__) && defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("Os", "no-gcse", "no-tree-dominator-opts", "no-tree-loop-optimize", "no-tree-pre")
#pragma GCC optimize("no-tree-pta", "no-tree-vrp")
#endif
