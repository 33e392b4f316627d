# cmake/googletest.cmake: GoogleTest from the system (Debian: libgtest-dev, or its sources), else a pinned download.
if(TARGET GTest::gtest_main)
    return()
endif()
find_package(GTest QUIET)
if(NOT GTest_FOUND AND EXISTS /usr/src/googletest/CMakeLists.txt)
    set(INSTALL_GTEST OFF)
    set(BUILD_GMOCK OFF)
    add_subdirectory(/usr/src/googletest "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
elseif(NOT GTest_FOUND)
    include(FetchContent)
    set(INSTALL_GTEST OFF)
    set(BUILD_GMOCK OFF)
    FetchContent_Declare(googletest
        URL https://github.com/google/googletest/releases/download/v1.17.0/googletest-1.17.0.tar.gz
        URL_HASH SHA256=65fab701d9829d38cb77c14acdc431d2108bfdbf8979e40eb8ae567edf10b27c
        DOWNLOAD_EXTRACT_TIMESTAMP OFF)
    message(STATUS "GoogleTest is not installed: downloading 1.17.0")
    FetchContent_MakeAvailable(googletest)
endif()
