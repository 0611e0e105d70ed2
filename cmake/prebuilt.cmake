# rlx::core, rlx::report and rlx::models as another build of this tree has made them, for the Python package alone.
foreach(library core report models)
  add_library(rlx_prebuilt_${library} STATIC IMPORTED)
  add_library(rlx::${library} ALIAS rlx_prebuilt_${library})
  set_target_properties(rlx_prebuilt_${library} PROPERTIES IMPORTED_LOCATION "${RLX_PREBUILT}/librlx_${library}.a")
  if(NOT EXISTS "${RLX_PREBUILT}/librlx_${library}.a")
    message(FATAL_ERROR "rlx: ${RLX_PREBUILT} has no librlx_${library}.a: build it first")
  endif()
endforeach()
rlx_require(simdjson utf8proc pcre2 zlib)
target_link_libraries(rlx_prebuilt_core INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(rlx_prebuilt_report INTERFACE rlx::core)
target_link_libraries(rlx_prebuilt_models INTERFACE rlx::core
  rlx_system::simdjson rlx_system::utf8proc rlx_system::pcre2 rlx_system::zlib)
