# rlx::testing: samples of ops, and checks of custom ops on their samples. Tests link it; rlx::core, rlx::models, the
# command and the Python package do without it.

# rlx_testing_library(): the target rlx::testing, of the module `testing` and the samples beside the rules of ops. It is
# built with `all` and installed where RLX_TESTING is on.
function(rlx_testing_library)
  get_property(sources GLOBAL PROPERTY rlx_sources_testing)
  get_property(headers GLOBAL PROPERTY rlx_headers_testing)
  file(GLOB_RECURSE samples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/rlx/ops/*_samples.cpp")
  add_library(rlx_testing STATIC ${sources} ${samples})
  add_library(rlx::testing ALIAS rlx_testing)
  set_target_properties(rlx_testing PROPERTIES EXPORT_NAME testing)
  target_sources(rlx_testing PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
  target_compile_features(rlx_testing PUBLIC cxx_std_20)
  rlx_configure_target(rlx_testing)
  target_compile_options(rlx_testing PRIVATE -O0)  # lists of shapes, each read once: half the time to compile
  target_link_libraries(rlx_testing PUBLIC rlx::core)
  rlx_batch_target(rlx_testing 40)
  if(RLX_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(rlx_testing PRIVATE -Wno-subobject-linkage)
  endif()
  if(NOT RLX_TESTING)
    set_target_properties(rlx_testing PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()
