# cmake/own_targets.cmake: warnings and sanitizers for this tree's own targets; users of the headers get none.

add_library(tenon_warnings INTERFACE)
if(MSVC)
    target_compile_options(tenon_warnings INTERFACE /W4 $<$<BOOL:${TENON_WERROR}>:/WX>)
else()
    target_compile_options(tenon_warnings INTERFACE
        -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
        $<$<BOOL:${TENON_WERROR}>:-Werror>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        # GCC 12 sees overlapping memory in std::string's operator+ (GCC bug 105651).
        target_compile_options(tenon_warnings INTERFACE -Wno-restrict)
    endif()
endif()

add_library(tenon_sanitize INTERFACE)
if(TENON_SANITIZE)
    set(_flags -fsanitize=address,undefined -fno-sanitize-recover=undefined)
    target_compile_options(tenon_sanitize INTERFACE ${_flags} -fno-omit-frame-pointer -g)
    target_link_options(tenon_sanitize INTERFACE ${_flags})
endif()

# tenon_own_target(<target>): how every target of this tree is compiled.
function(tenon_own_target target)
    target_link_libraries(${target} PRIVATE tenon_warnings tenon_sanitize)
    set_target_properties(${target} PROPERTIES
        CXX_EXTENSIONS OFF
        C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# tenon_extension(<target> <source>...): a Python extension module named <target>.
function(tenon_extension target)
    Python_add_library(${target} MODULE WITH_SOABI ${ARGN})
    target_link_libraries(${target} PRIVATE tenon::python)
    tenon_own_target(${target})
endfunction()

# The engine, too: as every target of this tree.
foreach(_half IN ITEMS core python)
    if(TARGET tenon_${_half}_engine)
        tenon_own_target(tenon_${_half}_engine)
    endif()
endforeach()
