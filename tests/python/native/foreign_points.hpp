// tests/python/native/foreign_points.hpp: tells the module foreign_points, where it is loaded first, of every
// point where code of others can run. Included before everything else in the native modules of the tests.
#pragma once

#if defined(__GNUC__) && defined(__cplusplus)
/// Null, unless foreign_points was loaded before, for all to see.
extern "C" __attribute__((weak, visibility("default"))) void tenon_tests_foreign_point(void);

#define TENON_FOREIGN_CODE_POINT() \
    (tenon_tests_foreign_point != nullptr ? tenon_tests_foreign_point() : static_cast<void>(0))
#endif
