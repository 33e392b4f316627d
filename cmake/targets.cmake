# cmake/targets.cmake: tenon::core and the targets for modules, with the engine behind them; read by this tree and, as
# tenon-targets.cmake, by every project that finds an installed Tenon (tenon_is_package).
#
# The engine is compiled in the project that uses it, once, by that project's compiler and the flags that hold where Tenon is
# found; it is hidden in each of its modules. TENON_HEADER_ONLY leaves it to every file that includes a header.
if(NOT DEFINED TENON_HEADER_ONLY)
    option(TENON_HEADER_ONLY "Compile Tenon's engine in every file that includes it, instead of once" OFF)
endif()

# Others' warnings are no business of our files; CMAKE_NO_SYSTEM_FROM_IMPORTED is CMake's word for wanting them all the same.
set(_tenon_quiet ON)
if(CMAKE_NO_SYSTEM_FROM_IMPORTED OR (PROJECT_IS_TOP_LEVEL AND NOT tenon_is_package))
    set(_tenon_quiet OFF)
endif()

# Those of a package are imported: a project that exports libraries names them, and does not export them too. One set of them
# serves all folders of a project, as there is one engine.
set(_tenon tenon_)
if(tenon_is_package)
    set(_tenon tenon::)
endif()
foreach(_name IN ITEMS core python pybind11 nanobind)
    if(tenon_is_package)
        add_library(tenon::${_name} INTERFACE IMPORTED GLOBAL)
    else()
        add_library(tenon_${_name} INTERFACE)
        add_library(tenon::${_name} ALIAS tenon_${_name})
    endif()
endforeach()

# _tenon_add_engine(<name> <source>): the library tenon_<name>_engine, unless everything is in the headers.
function(_tenon_add_engine name source)
    if(TENON_HEADER_ONLY)
        target_compile_definitions(${_tenon}${name} INTERFACE TENON_HEADER_ONLY)
        return()
    endif()
    set(_engine tenon_${name}_engine)
    add_library(${_engine} STATIC EXCLUDE_FROM_ALL "${source}")
    set_target_properties(${_engine} PROPERTIES
        POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
        UNITY_BUILD OFF CXX_SCAN_FOR_MODULES OFF
        CXX_CLANG_TIDY "" CXX_CPPCHECK "" CXX_CPPLINT "" CXX_INCLUDE_WHAT_YOU_USE "")
    target_compile_features(${_engine} PUBLIC cxx_std_20)
    target_include_directories(${_engine} PRIVATE "${tenon_include_dir}")
    if(MSVC)
        target_compile_options(${_engine} PRIVATE /bigobj $<$<BOOL:${_tenon_quiet}>:/w>)
    else()
        # In sections, so that a module carries what it uses of the engine, and no more.
        target_compile_options(${_engine} PRIVATE -ffunction-sections -fdata-sections $<$<BOOL:${_tenon_quiet}>:-w>)
    endif()
    target_link_libraries(${_tenon}${name} INTERFACE ${_engine})
    # What the engine has of the standard library's templates is the module's own business, as the engine is.
    target_link_options(${_tenon}${name} INTERFACE
        $<$<PLATFORM_ID:Linux>:LINKER:--exclude-libs,$<TARGET_FILE_NAME:${_engine}>>)
endfunction()

_tenon_add_engine(core "${tenon_source_dir}/core.cpp")
target_compile_features(${_tenon}core INTERFACE cxx_std_20)
if(_tenon_quiet AND NOT tenon_is_package)  # a package's are the system's without a word
    target_include_directories(${_tenon}core SYSTEM INTERFACE "${tenon_include_dir}")
else()
    target_include_directories(${_tenon}core INTERFACE "${tenon_include_dir}")
endif()
# It opens libraries and has threads; a C library before glibc 2.34 keeps both apart.
target_link_libraries(${_tenon}core INTERFACE ${CMAKE_DL_LIBS} $<$<PLATFORM_ID:Linux>:pthread>)

target_link_options(${_tenon}core INTERFACE
    $<$<AND:$<PLATFORM_ID:Linux>,$<NOT:$<CONFIG:Debug>>>:LINKER:--gc-sections>)

# Python::Module is looked up by name when somebody links this target, not before, so a project that uses tenon::core
# alone needs no Python. One that adds this folder finds Python first: CMake shows a subdirectory only what its parent had
# found by then.
_tenon_add_engine(python "${tenon_source_dir}/python.cpp")
target_link_libraries(${_tenon}python INTERFACE tenon::core Python::Module)
if(TARGET tenon_python_engine)
    target_link_libraries(tenon_python_engine PRIVATE $<TARGET_NAME_IF_EXISTS:Python::Module>)
    # In this order a linker that looks once finds what the one needs of the other.
    target_link_libraries(tenon_python_engine INTERFACE tenon_core_engine)
endif()

# The binders are looked up by name in the same way. nanobind's headers come with nanobind_add_module.
target_link_libraries(${_tenon}pybind11 INTERFACE tenon::python pybind11::headers)
target_link_libraries(${_tenon}nanobind INTERFACE tenon::python)
