# Modules (folders of rlx/), what each may include, and the libraries they are gathered into.

# The source folder as a regular expression: "c++" is a common part of a path.
string(REGEX REPLACE "([][+.*()^$?|])" "\\\\\\1" rlx_source_regex "${PROJECT_SOURCE_DIR}")

# rlx_module(NAME [INTERNAL] [SMALL [EXCEPT x.cpp folder ...]] [LIBRARY core|report|models|testing] [DEPENDS a b ...]
#   [INTERNAL_HEADERS x.h folder ...])
# Adds rlx/NAME/*.cpp to a library and declares which modules it may include; a folder without sources is allowed.
# SMALL: much code, each piece of which runs once a graph or a file; release builds optimize it for size, but for EXCEPT,
# what runs once a run, a token or an element.
# "a DEPENDS b" permits b and whatever b may include. The headers are installed unless INTERNAL is given, but for those
# named: what no user needs may change without notice.
function(rlx_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INTERNAL;SMALL" "LIBRARY" "DEPENDS;INTERNAL_HEADERS;EXCEPT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rlx_module(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_LIBRARY)
    set(arg_LIBRARY core)
  endif()
  get_property(known GLOBAL PROPERTY rlx_modules)
  foreach(dependency IN LISTS arg_DEPENDS)
    if(NOT dependency IN_LIST known)
      message(FATAL_ERROR "rlx_module(${name}): ${dependency} is not declared above it")
    endif()
  endforeach()
  set(allowed ${arg_DEPENDS})
  foreach(dependency IN LISTS arg_DEPENDS)
    get_property(inherited GLOBAL PROPERTY rlx_module_allowed_${dependency})
    list(APPEND allowed ${inherited})
  endforeach()
  list(REMOVE_DUPLICATES allowed)
  set_property(GLOBAL APPEND PROPERTY rlx_modules ${name})
  set_property(GLOBAL PROPERTY rlx_module_allowed_${name} ${allowed})

  set(root "${PROJECT_SOURCE_DIR}/rlx")
  if(name STREQUAL "error")  # the one module that is a pair of files; rlx.h is the prelude over all of core
    set(sources "${root}/error.cpp")
    file(GLOB headers CONFIGURE_DEPENDS "${root}/*.h")
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${root}/${name}/*.cpp")
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${root}/${name}/*.h")
    # Loops over elements: `*kernels.cpp`, and the plain ones of a folder `generic`. They have options of their own.
    set(kernels ${sources})
    if(NOT name MATCHES "^backends/")
      set(kernels "")
    endif()
    list(FILTER kernels INCLUDE REGEX "(/|_)kernels\\.cpp$|/generic/[^/]*$")
    if(kernels)
      list(REMOVE_ITEM sources ${kernels})
    endif()
    set_property(GLOBAL APPEND PROPERTY rlx_kernels_${arg_LIBRARY} ${kernels})
    if(name STREQUAL "ops")  # samples of ops are in rlx::testing (testing.cmake)
      list(FILTER sources EXCLUDE REGEX "_samples\\.cpp$")
    endif()
  endif()
  foreach(path IN LISTS arg_EXCEPT)
    set(fast ${sources})
    if(IS_DIRECTORY "${root}/${name}/${path}")
      list(FILTER fast INCLUDE REGEX "^${rlx_source_regex}/rlx/${name}/${path}/")
    else()
      list(FILTER fast INCLUDE REGEX "^${rlx_source_regex}/rlx/${name}/${path}$")
    endif()
    if(NOT fast)
      message(FATAL_ERROR "rlx_module(${name}): EXCEPT ${path}: there is no such source")
    endif()
    list(REMOVE_ITEM sources ${fast})
    rlx_add_sources(${arg_LIBRARY} OFF ${fast})
  endforeach()
  rlx_add_sources(${arg_LIBRARY} "${arg_SMALL}" ${sources})
  foreach(header IN LISTS arg_INTERNAL_HEADERS)
    if(IS_DIRECTORY "${root}/${name}/${header}")
      list(FILTER headers EXCLUDE REGEX "/${name}/${header}/")
      continue()
    endif()
    if(NOT "${root}/${name}/${header}" IN_LIST headers)
      message(FATAL_ERROR "rlx_module(${name}): there is no header ${header}")
    endif()
    list(REMOVE_ITEM headers "${root}/${name}/${header}")
  endforeach()
  if(NOT arg_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY rlx_headers_${arg_LIBRARY} ${headers})
  endif()
endfunction()

# rlx_add_sources(LIBRARY SMALL sources...): SMALL is true for those that release builds optimize for size. Under the
# address sanitizer these are not optimized, which takes a third of the time to compile, but for the rules of ops, in
# which tests spend more than that saves.
function(rlx_add_sources library small)
  set_property(GLOBAL APPEND PROPERTY rlx_sources_${library} ${ARGN})
  if(small AND CMAKE_BUILD_TYPE STREQUAL "Release")
    set_property(GLOBAL APPEND PROPERTY rlx_small_${library} ${ARGN})
  elseif(small AND RLX_SANITIZE MATCHES "address")
    list(FILTER ARGN EXCLUDE REGEX "^${rlx_source_regex}/rlx/ops/")
    set_property(GLOBAL APPEND PROPERTY rlx_small_${library} ${ARGN})
  endif()
endfunction()

# rlx_group_by_module(sources...): compiles the files of a module in batches of neighbours by path. Once a batch has
# half of the target size, it ends after a file whose name hashes to zero, and at one and a half times the size at the
# latest. So a new file changes its own batch and seldom the next; all other objects stay valid.
function(rlx_group_by_module)
  list(SORT ARGN)
  set(folder "")
  set(batch "")
  foreach(source IN LISTS ARGN)
    string(REGEX REPLACE "^${rlx_source_regex}/rlx/((backends/)?[^/]*).*" "\\1" next "${source}")
    if(NOT next STREQUAL folder)
      rlx_unity_batch(${batch})
      set(batch "")
      set(folder "${next}")
    endif()
    set(size "${RLX_UNITY_LIBRARY}")
    if(size LESS 1)
      continue()
    endif()
    list(APPEND batch "${source}")
    list(LENGTH batch count)
    cmake_path(GET source STEM stem)
    string(MD5 hash "${stem}")
    string(SUBSTRING "${hash}" 0 6 hash)
    math(EXPR half "(${size} + 1) / 2")
    math(EXPR rest "0x${hash} % ${half}")
    math(EXPR most "${size} + ${half}")
    if((count GREATER_EQUAL half AND rest EQUAL 0) OR count GREATER_EQUAL most)
      rlx_unity_batch(${batch})
      set(batch "")
    endif()
  endforeach()
  rlx_unity_batch(${batch})
endfunction()

# rlx_unity_batch(sources...): these are compiled as one, which is named after the last of them.
function(rlx_unity_batch)
  list(LENGTH ARGN count)
  if(count EQUAL 0)
    return()
  endif()
  list(GET ARGN -1 last)
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${last}" ours)
  if(ours)
    cmake_path(RELATIVE_PATH last BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  endif()
  string(MAKE_C_IDENTIFIER "${last}" group)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP "${group}")
endfunction()

# rlx_compile_alone(sources...): those that include every op leave their batch, since the edit of any op compiles them.
function(rlx_compile_alone)
  if(RLX_UNITY_LARGE)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    if(EXISTS "${source}")  # not one that the build makes
      file(STRINGS "${source}" every_op REGEX "#include \"rlx/(rlx|ir/op)\\.h\"" LIMIT_COUNT 1)
      if(every_op)
        set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
endfunction()

# rlx_batch_target(TARGET SIZE): the target is compiled SIZE files at a time, whatever their folders; at most 5 without
# RLX_UNITY_LARGE.
function(rlx_batch_target target size)
  if(NOT RLX_UNITY_LARGE AND size GREATER 5)
    set(size 5)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${RLX_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
  get_target_property(sources ${target} SOURCES)
  rlx_compile_alone(${sources})
endfunction()

# rlx_group_target(TARGET sources...): the target is compiled some files of a module at a time.
function(rlx_group_target target)
  if(NOT RLX_UNITY_LIBRARY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # a class of a file counts as a header's there
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  rlx_group_by_module(${ARGN})
  rlx_compile_alone(${ARGN})
endfunction()

# How releases compile what runs once a graph or a file: for size, without the passes of GCC that take a sixth of the
# time and change the size by less than a hundredth. Other builds do not optimize it.
set(rlx_small_options -Os)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  set(rlx_small_options -O0)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND rlx_small_options -fno-tree-pta -fno-tree-vrp -fno-tree-pre -fno-gcse -fno-schedule-insns2
    -fno-ipa-modref -fno-ipa-icf -fno-ipa-cp -fno-ipa-sra)
endif()

# rlx_small_objects(core|report|models): objects of the library's SMALL modules, under options of their own: those of a source
# would take it out of its group.
function(rlx_small_objects name)
  get_property(sources GLOBAL PROPERTY rlx_small_${name})
  if(NOT sources)
    return()
  endif()
  set(target rlx_${name}_small)
  add_library(${target} OBJECT ${sources})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_features(${target} PRIVATE cxx_std_20)
  rlx_configure_target(${target})
  target_compile_options(${target} PRIVATE ${rlx_small_options})
  if(RLX_PCH AND TARGET rlx_core_small AND NOT name STREQUAL "core")
    target_precompile_headers(${target} REUSE_FROM rlx_core_small)
  elseif(RLX_PCH)
    target_precompile_headers(${target} PRIVATE ${rlx_pch_headers} ${rlx_pch_graph_headers})
  endif()
  rlx_group_target(${target} ${sources})
  target_sources(rlx_${name} PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()

# rlx_kernel_objects(core|models): objects of the library's kernels. A file holds one loop nest per instruction set under
# target pragmas, so it is never part of a batch. The precompiled header holds the intrinsics.
function(rlx_kernel_objects name)
  get_property(kernels GLOBAL PROPERTY rlx_kernels_${name})
  if(NOT kernels)
    return()
  endif()
  # Those that take longest come first: none runs alone at the end of a build.
  foreach(stem IN ITEMS tape int8 fft interleaved conv matmul)
    set(file ${kernels})
    list(FILTER file INCLUDE REGEX "/${stem}_kernels\\.cpp$")
    if(file)
      list(REMOVE_ITEM kernels ${file})
      list(PREPEND kernels ${file})
    endif()
  endforeach()
  set(target rlx_${name}_kernels)
  add_library(${target} OBJECT ${kernels})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_features(${target} PRIVATE cxx_std_20)
  rlx_configure_target(${target})
  target_compile_definitions(${target} PRIVATE ${rlx_isa_definitions})
  if(RLX_SANITIZE OR RLX_PLAIN_KERNELS)
    target_compile_options(${target} PRIVATE -O1 -ffp-contract=fast)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Below -O2 GCC joins no multiply and add without it, and kernels that build on the exact remainder of an FMA
      # (a division by a reciprocal) would be others than those users run.
      target_compile_options(${target} PRIVATE -fexpensive-optimizations)
    elseif(RLX_SANITIZE MATCHES "address")
      # clang takes minutes for these checks of loops written out; address sees most of what they do. Its own checks are
      # calls here: as code at each access they take two thirds of the time to compile conv_kernels.cpp.
      target_compile_options(${target} PRIVATE
        -fno-sanitize=alignment,null,object-size,pointer-overflow,signed-integer-overflow
        -fsanitize-address-outline-instrumentation)
    endif()
  else()
    target_compile_options(${target} PRIVATE -O3 -ffp-contract=fast)
    # Hot loops of factors are written on vectors: -O3 makes two to three times the code of them, and time to compile it.
    # The generic loops are what runs where no kernel does; GCC's -O2 leaves them scalar unless told (reverse, casts 3x).
    # Without the header, whose options are those of the others: GCC would optimize sections of an instruction set by them.
    set(plain ${kernels})
    list(FILTER plain INCLUDE REGEX "/(linalg|generic)/[^/]*$")
    set(vectors "")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set(vectors "-ftree-vectorize;-fvect-cost-model=dynamic;")
    endif()
    set_source_files_properties(${plain} PROPERTIES COMPILE_OPTIONS "-O2;${vectors}-ffp-contract=fast"
      SKIP_PRECOMPILE_HEADERS ON)
  endif()
  if(RLX_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The intrinsics' own "undefined" vectors draw a false warning, whose pragma a precompiled header forgets.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-uninitialized)
    target_precompile_headers(${target} PRIVATE ${rlx_pch_kernel_headers})
  endif()
endfunction()

# rlx_library(core|report|models): turns what the modules gathered into the target rlx::core, rlx::report or rlx::models.
function(rlx_library name)
  get_property(sources GLOBAL PROPERTY rlx_sources_${name})
  get_property(headers GLOBAL PROPERTY rlx_headers_${name})
  if(name STREQUAL "models" AND (NOT RLX_MODELS OR NOT sources))
    add_library(rlx_models INTERFACE)
    add_library(rlx::models ALIAS rlx_models)
    return()
  endif()

  get_property(small GLOBAL PROPERTY rlx_small_${name})
  if(small)
    list(REMOVE_ITEM sources ${small})
  endif()
  rlx_kernel_objects(${name})  # first, and so first in the order of the build
  add_library(rlx_${name} STATIC ${sources})
  if(TARGET rlx_${name}_kernels)
    target_sources(rlx_${name} PRIVATE $<TARGET_OBJECTS:rlx_${name}_kernels>)
  endif()
  rlx_small_objects(${name})
  add_library(rlx::${name} ALIAS rlx_${name})
  set_target_properties(rlx_${name} PROPERTIES EXPORT_NAME ${name})
  target_sources(rlx_${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
  target_compile_features(rlx_${name} PUBLIC cxx_std_20)
  rlx_configure_target(rlx_${name})
  if(RLX_PCH AND name STREQUAL "core")
    target_precompile_headers(rlx_core PRIVATE ${rlx_pch_headers} ${rlx_pch_graph_headers})
  elseif(RLX_PCH)
    target_precompile_headers(rlx_${name} REUSE_FROM rlx_core)
  endif()
  rlx_group_target(rlx_${name} ${sources})

  if(name STREQUAL "core")
    rlx_require(xxhash)
    target_link_libraries(rlx_core PRIVATE Threads::Threads ${CMAKE_DL_LIBS} $<BUILD_INTERFACE:rlx_system::xxhash>)
  elseif(name STREQUAL "report")
    target_link_libraries(rlx_report PUBLIC rlx::core)
  else()
    rlx_require(simdjson utf8proc pcre2 zlib)
    set(libraries rlx_system::simdjson rlx_system::utf8proc rlx_system::pcre2 rlx_system::zlib Threads::Threads)
    target_link_libraries(rlx_models PUBLIC rlx::core PRIVATE ${libraries})
    if(TARGET rlx_models_small)
      target_link_libraries(rlx_models_small PRIVATE ${libraries})
    endif()
  endif()
endfunction()

# rlx_shared_library(): librlx.so, the objects of the static libraries in one file, and so without compiling anything
# again. Its users get the headers of rlx::core.
function(rlx_shared_library)
  add_library(rlx_shared SHARED)
  add_library(rlx::shared ALIAS rlx_shared)
  foreach(library core report models)
    get_target_property(type rlx_${library} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")  # models without RLX_MODELS
      continue()
    endif()
    foreach(target rlx_${library} rlx_${library}_kernels rlx_${library}_small)
      if(TARGET ${target})
        target_sources(rlx_shared PRIVATE $<TARGET_OBJECTS:${target}>)
      endif()
    endforeach()
    if(library STREQUAL "models")
      target_link_libraries(rlx_shared PRIVATE rlx_system::simdjson rlx_system::utf8proc rlx_system::pcre2
        rlx_system::zlib)
    endif()
  endforeach()
  target_link_libraries(rlx_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(rlx_shared PRIVATE ${rlx_linker_flag} LINKER:--no-undefined)
  target_compile_features(rlx_shared INTERFACE cxx_std_20)
  # Before 1.0 a minor version may change the interface.
  set_target_properties(rlx_shared PROPERTIES EXPORT_NAME shared OUTPUT_NAME rlx LINKER_LANGUAGE CXX
    VERSION "${PROJECT_VERSION}" SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  target_include_directories(rlx_shared INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
endfunction()

# rlx_add_moved_headers(): a header at each path of the last release (cmake/moved_headers.txt: old path, new path), which
# includes the new one and says so.
function(rlx_add_moved_headers)
  set(table "${PROJECT_SOURCE_DIR}/cmake/moved_headers.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${table}")
  set(folder "${PROJECT_BINARY_DIR}/generated/moved")
  file(STRINGS "${table}" lines REGEX "^[a-z]")
  set(headers "")
  foreach(line IN LISTS lines)
    string(REPLACE " " ";" paths "${line}")
    list(GET paths 0 old)
    list(GET paths 1 new)
    if(NOT EXISTS "${PROJECT_SOURCE_DIR}/rlx/${new}")
      message(FATAL_ERROR "${table}: there is no header rlx/${new}")
    endif()
    file(CONFIGURE OUTPUT "${folder}/rlx/${old}" CONTENT "/* Moved. */
#pragma once
#pragma message(\"rlx/${old} is now rlx/${new}; the old path goes with the next release\")
#include \"rlx/${new}\"
" @ONLY)
    list(APPEND headers "${folder}/rlx/${old}")
  endforeach()
  target_sources(rlx_core PUBLIC FILE_SET moved TYPE HEADERS BASE_DIRS "${folder}" FILES ${headers})
endfunction()

# rlx_embed_report(): the files of rlx/report/assets as texts of its library; the scripts in the
# order of their names.
function(rlx_embed_report)
  set(assets "${PROJECT_SOURCE_DIR}/rlx/report/assets")
  set(output "${PROJECT_BINARY_DIR}/generated/report_assets.cpp")
  file(GLOB scripts RELATIVE "${assets}" CONFIGURE_DEPENDS "${assets}/*.js")
  list(SORT scripts)
  list(TRANSFORM scripts PREPEND "${assets}/" OUTPUT_VARIABLE files)
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -D "OUTPUT=${output}" -D "ASSETS=${assets}" -D "SCRIPTS=${scripts}"
      -P "${PROJECT_SOURCE_DIR}/cmake/embed_report.cmake"
    DEPENDS ${files} "${assets}/report.css" "${assets}/report.html" "${PROJECT_SOURCE_DIR}/cmake/embed_report.cmake"
    COMMENT "rlx/report/assets" VERBATIM)
  set_property(GLOBAL APPEND PROPERTY rlx_sources_report "${output}")
endfunction()

# Writes the paths of all installed headers below rlx/, one a line, for the test that looks for misuse of each function.
function(rlx_write_public_headers path)
  set(lines "")
  foreach(library core report models testing)
    get_property(headers GLOBAL PROPERTY rlx_headers_${library})
    foreach(header IN LISTS headers)
      file(RELATIVE_PATH header "${PROJECT_SOURCE_DIR}" "${header}")
      string(APPEND lines "${header}\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT "${path}" CONTENT "${lines}" @ONLY)
endfunction()

# Writes "module: every module it may include", one line each, for the test that compares it with the sources.
function(rlx_write_module_table path)
  set(table "")
  get_property(modules GLOBAL PROPERTY rlx_modules)
  foreach(name IN LISTS modules)
    get_property(allowed GLOBAL PROPERTY rlx_module_allowed_${name})
    list(JOIN allowed " " allowed)
    string(APPEND table "${name}: ${allowed}\n")
  endforeach()
  file(CONFIGURE OUTPUT "${path}" CONTENT "${table}" @ONLY)
endfunction()
