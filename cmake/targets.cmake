# cmake/targets.cmake: tenon::core and the targets for modules, with the engine behind them; read by this tree and, as
# tenon-targets.cmake, by every project that finds an installed Tenon.
#
# The engine is compiled in the project that uses it, once, by that project's compiler and flags, and hidden in each of its
# modules. TENON_HEADER_ONLY leaves it to every file that includes a header.
option(TENON_HEADER_ONLY "Compile Tenon's engine in every file that includes it, instead of once" OFF)

# _tenon_add_engine(<name> <source>): the library tenon_<name>_engine, unless everything is in the headers.
function(_tenon_add_engine name source)
    add_library(tenon_${name} INTERFACE)
    add_library(tenon::${name} ALIAS tenon_${name})
    if(TENON_HEADER_ONLY)
        target_compile_definitions(tenon_${name} INTERFACE TENON_HEADER_ONLY)
        return()
    endif()
    add_library(tenon_${name}_engine STATIC EXCLUDE_FROM_ALL "${source}")
    set_target_properties(tenon_${name}_engine PROPERTIES
        POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON UNITY_BUILD OFF)
    target_compile_features(tenon_${name}_engine PUBLIC cxx_std_20)
    target_include_directories(tenon_${name}_engine PRIVATE "${tenon_include_dir}")
    target_link_libraries(tenon_${name} INTERFACE tenon_${name}_engine)
endfunction()

_tenon_add_engine(core "${tenon_source_dir}/core.cpp")
target_compile_features(tenon_core INTERFACE cxx_std_20)
target_include_directories(tenon_core INTERFACE "${tenon_include_dir}")
target_link_libraries(tenon_core INTERFACE ${CMAKE_DL_LIBS})

# Python::Module is looked up by name when somebody links this target, not before, so a project that uses tenon::core
# alone needs no Python. One that adds this folder finds Python first: CMake shows a subdirectory only what its parent had
# found by then.
_tenon_add_engine(python "${tenon_source_dir}/python.cpp")
target_link_libraries(tenon_python INTERFACE tenon_core Python::Module)
if(TARGET tenon_python_engine)
    target_link_libraries(tenon_python_engine PRIVATE $<TARGET_NAME_IF_EXISTS:Python::Module>)
    # In this order a linker that looks once finds what the one needs of the other.
    target_link_libraries(tenon_python_engine INTERFACE tenon_core_engine)
endif()

# The binders are looked up by name in the same way. nanobind's headers come with nanobind_add_module.
add_library(tenon_pybind11 INTERFACE)
add_library(tenon::pybind11 ALIAS tenon_pybind11)
target_link_libraries(tenon_pybind11 INTERFACE tenon_python pybind11::headers)

add_library(tenon_nanobind INTERFACE)
add_library(tenon::nanobind ALIAS tenon_nanobind)
target_link_libraries(tenon_nanobind INTERFACE tenon_python)
