# Compiler settings shared by every target of this project; nothing here reaches consumers.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  else()
    set(CMAKE_BUILD_TYPE Release)
  endif()
endif()

if(RLX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(RLX_CCACHE_PROGRAM ccache)
  if(RLX_CCACHE_PROGRAM)
    # Precompiled headers hit the cache only with these two checks relaxed. What a file includes is
    # taken from the compiler's own list (DEPEND): no preprocessor runs.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${RLX_CCACHE_PROGRAM})
  endif()
endif()

set(rlx_linker_flag "")
if(RLX_FAST_LINKER AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_CROSSCOMPILING)
  find_program(RLX_MOLD mold)
  find_program(RLX_LLD NAMES ld.lld)
  if(RLX_MOLD AND NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12.1))
    set(rlx_linker_flag -fuse-ld=mold)
  elseif(RLX_LLD)
    set(rlx_linker_flag -fuse-ld=lld)
  endif()
endif()

set(rlx_sanitize_flags "")
if(RLX_SANITIZE)
  list(JOIN RLX_SANITIZE "," sanitizers)
  set(rlx_sanitize_flags -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND RLX_SANITIZE MATCHES "address")
    # clang 15 moves locals to the heap by default, which costs every call of unoptimized code; g++ does not.
    list(APPEND rlx_sanitize_flags -fsanitize-address-use-after-return=never)
  endif()
endif()

# Applies language level, warnings, sanitizers and linker choice to one target of ours.
function(rlx_configure_target target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 finds overflows inside std::string concatenation that are not there (GCC bugs 105329, 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
    # It collects its garbage from 128 MB on by default, which takes a sixth of the time of the files that need 600 MB.
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=600000)
  endif()
  if(RLX_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # One rounding per written operation everywhere but in kernels: results do not depend on the build machine's FMA.
  target_compile_options(${target} PRIVATE -ffp-contract=off -ffunction-sections -fdata-sections)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND RLX_CCACHE_PROGRAM AND RLX_PCH)
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # what ccache needs to see through a GCC header
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND RLX_CCACHE_PROGRAM AND RLX_PCH)
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")  # and to tell clang's by their bytes
  endif()
  if(RLX_VERIFY)  # for every target, since a precompiled header is shared only between equal definitions
    target_compile_definitions(${target} PRIVATE RLX_VERIFY=1)
  endif()
  target_compile_options(${target} PRIVATE ${rlx_sanitize_flags})
  target_link_options(${target} PRIVATE ${rlx_sanitize_flags} ${rlx_linker_flag})
  if(NOT APPLE)
    target_link_options(${target} PRIVATE -Wl,--gc-sections)
  endif()
endfunction()

# Packs the relative relocations of a release program into bitmaps (DT_RELR); plain ones take 24 bytes each. Only GNU ld
# writes the form that glibc accepts (from 2.36 on). Libraries keep plain relocations, because they may meet an older
# glibc.
function(rlx_pack_relocations target)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR RLX_SANITIZE OR CMAKE_CROSSCOMPILING OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    return()
  endif()
  include(CheckCXXSourceRuns)
  set(flags -fuse-ld=bfd -Wl,-z,pack-relative-relocs)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${flags})
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_source_runs("#include <cstdio>
    struct Entry { const char* name; int (*print)(const char*); } entries[] = {{\"\", std::puts}, {\"\", std::puts}};
    int main(int count, char**) { return entries[count - 1].print(entries[count].name) < 0; }" RLX_HAS_RELR)
  if(RLX_HAS_RELR)
    target_link_options(${target} PRIVATE ${flags})
  endif()
endfunction()

set(rlx_pch_headers
    <algorithm> <array> <atomic> <bit> <chrono> <cmath> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring> <functional>
    <initializer_list> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <stdexcept> <string>
    <string_view> <thread> <tuple> <type_traits> <unordered_map> <unordered_set> <utility> <variant> <vector>)
# rlx headers that nine in ten files of the core library include. Precompiling them saves a second for each batch.
set(rlx_pch_graph_headers "${PROJECT_SOURCE_DIR}/rlx/ir/builder.h" "${PROJECT_SOURCE_DIR}/rlx/ir/op_def.h")
set(rlx_pch_kernel_headers
    <math.h> <algorithm> <array> <bit> <cmath> <complex> <cstddef> <cstdint> <cstring> <limits> <new> <span> <type_traits>
    <utility> <vector> "${PROJECT_SOURCE_DIR}/rlx/backends/cpu/intrinsics.h"
    "${PROJECT_SOURCE_DIR}/rlx/backends/cpu/kernels.h" "${PROJECT_SOURCE_DIR}/rlx/error.h"
    "${PROJECT_SOURCE_DIR}/rlx/tensor/half.h")
