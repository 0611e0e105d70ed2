# Imported targets for system libraries that come without CMake files; shared by our build and by find_package(rlx).
function(rlx_system_library name header library)
  if(TARGET rlx_system::${name})
    return()
  endif()
  find_path(RLX_${name}_INCLUDE_DIR ${header})
  find_library(RLX_${name}_LIBRARY ${library})
  mark_as_advanced(RLX_${name}_INCLUDE_DIR RLX_${name}_LIBRARY)
  if(RLX_${name}_INCLUDE_DIR AND RLX_${name}_LIBRARY)
    add_library(rlx_system::${name} UNKNOWN IMPORTED)
    set_target_properties(rlx_system::${name} PROPERTIES
      IMPORTED_LOCATION "${RLX_${name}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${RLX_${name}_INCLUDE_DIR}")
  endif()
endfunction()

rlx_system_library(simdjson simdjson.h simdjson)
rlx_system_library(utf8proc utf8proc.h utf8proc)
rlx_system_library(pcre2 pcre2.h pcre2-8)
rlx_system_library(zlib zlib.h z)
