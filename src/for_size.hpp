// src/for_size.hpp: from here on code is compiled for size, up to for_size_end.hpp: most of the engine runs
// seldom.
//
// Only where the compiler optimizes at all. Nothing compiled for size is inlined into what is compiled for
// speed (TENON_FAST), unless it is TENON_HOT. The passes that are left out take GCC a fifth of its time here,
// and make the code smaller by one part in a hundred.

#if defined(__OPTIMIZE__) && defined(__clang__)
#pragma clang diagnostic push
// What comes again, or has come already: of the standard library, or all of it in a header-only build.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang diagnostic ignored "-Wpragma-clang-attribute"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#elif defined(__OPTIMIZE__) && defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("Os", "no-code-hoisting", "no-cse-follow-jumps", "no-gcse", "no-ree")
#pragma GCC optimize("no-rerun-cse-after-loop", "no-schedule-insns2", "no-tree-bit-ccp", "no-tree-ccp")
#pragma GCC optimize("no-tree-copy-prop", "no-tree-dominator-opts", "no-tree-dse", "no-tree-fre")
#pragma GCC optimize("no-tree-loop-optimize", "no-tree-pre", "no-tree-pta", "no-tree-sink", "no-tree-slsr")
#pragma GCC optimize("no-tree-switch-conversion", "no-tree-tail-merge", "no-tree-vrp")
#endif
