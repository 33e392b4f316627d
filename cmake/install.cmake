# cmake/install.cmake: where the headers, the engine's sources, the package config and tenon.pc go, in a prefix and in a wheel alike.
include(CMakePackageConfigHelpers)

# In a wheel the prefix is the package folder itself (wheel.install-dir in pyproject.toml), so the
# same relative places serve `python -m tenon --include-dir` and its like (python/tenon/_paths.py). Not under
# lib: nothing here is compiled yet, and so it is the same on every architecture.
set(_config_dir share/cmake/tenon)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION include FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/" DESTINATION include/tenon/src FILES_MATCHING PATTERN "*.[ch]pp")
install(FILES "${PROJECT_SOURCE_DIR}/cmake/targets.cmake" DESTINATION ${_config_dir} RENAME tenon-targets.cmake)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/tenon-config.cmake.in" tenon-config.cmake
    INSTALL_DESTINATION ${_config_dir})
# Before 1.0 a minor release may break its users.
write_basic_package_version_file(tenon-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tenon-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/tenon-config-version.cmake" DESTINATION ${_config_dir})

# For nanobind's stub generator, of classes given to make_producer.
install(FILES "${PROJECT_SOURCE_DIR}/cmake/nanobind_stubs.txt" DESTINATION ${_config_dir})

configure_file("${PROJECT_SOURCE_DIR}/cmake/tenon.pc.in" tenon.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tenon.pc" DESTINATION share/pkgconfig)
