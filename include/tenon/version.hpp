// tenon/version.hpp: the version number, in the one place where the build and the package read it.
#pragma once

#define TENON_VERSION_MAJOR 0
#define TENON_VERSION_MINOR 1
#define TENON_VERSION_PATCH 0

#define TENON_DETAIL_STRINGIZE_(x) #x
#define TENON_DETAIL_STRINGIZE(x) TENON_DETAIL_STRINGIZE_(x)

namespace tenon {

inline constexpr char version[] = TENON_DETAIL_STRINGIZE(TENON_VERSION_MAJOR) "." TENON_DETAIL_STRINGIZE(
    TENON_VERSION_MINOR) "." TENON_DETAIL_STRINGIZE(TENON_VERSION_PATCH);

}  // namespace tenon

#undef TENON_DETAIL_STRINGIZE
#undef TENON_DETAIL_STRINGIZE_
