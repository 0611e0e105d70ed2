# Installation: headers, the libraries, the command, the licence, and the files behind find_package(rlx) and pkg-config.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rlx")

set(rlx_installed rlx_core rlx_report)
set(RLX_HAS_MODELS OFF)
get_target_property(models_type rlx_models TYPE)
if(NOT models_type STREQUAL "INTERFACE_LIBRARY")
  set(RLX_HAS_MODELS ON)
  list(APPEND rlx_installed rlx_models)
endif()
if(RLX_TESTING)
  list(APPEND rlx_installed rlx_testing)
endif()
if(RLX_SHARED)
  list(APPEND rlx_installed rlx_shared)
endif()
add_custom_target(rlx_installed_libraries) # for those who build by target and install
add_dependencies(rlx_installed_libraries ${rlx_installed})
install(TARGETS ${rlx_installed} EXPORT rlxTargets COMPONENT rlx
  ARCHIVE COMPONENT rlx LIBRARY COMPONENT rlx
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT rlx
  FILE_SET moved DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT rlx)
install(EXPORT rlxTargets NAMESPACE rlx:: DESTINATION "${package_dir}" COMPONENT rlx)

list(TRANSFORM rlx_installed REPLACE "^rlx_" "" OUTPUT_VARIABLE rlx_components)
list(JOIN rlx_components " " rlx_components)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/rlxConfig.cmake.in" "${PROJECT_BINARY_DIR}/rlxConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rlxConfig.cmake" "${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/system_libraries.cmake" DESTINATION "${package_dir}" COMPONENT rlx)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT rlx)

# pkg-config: rlx is core and report, rlx-models the rest on top, rlx-shared librlx.so. What static libraries need is in
# Libs, so that no --static is needed.
function(rlx_pkg_config name description requires libraries)
  set(lib "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(include "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  foreach(folder lib include)
    string(TOUPPER "${folder}" upper)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${upper}DIR}")
      set(${folder} "${CMAKE_INSTALL_${upper}DIR}")
    endif()
  endforeach()
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY CONTENT "prefix=\${pcfiledir}/${up}
libdir=${lib}
includedir=${include}

Name: ${name}
Description: ${description}
Version: ${PROJECT_VERSION}
Requires: ${requires}
Cflags: -I\${includedir}
Libs: -L\${libdir} ${libraries}
")
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT rlx)
endfunction()
set(system_libraries "-pthread")
if(CMAKE_DL_LIBS)
  string(APPEND system_libraries " -l${CMAKE_DL_LIBS}")
endif()
rlx_pkg_config(rlx "${PROJECT_DESCRIPTION} (static libraries)" "" "-lrlx_report -lrlx_core ${system_libraries}")
if(RLX_HAS_MODELS)
  rlx_pkg_config(rlx-models "File formats, tokenizers and language models on rlx (static library)" "rlx"
    "-lrlx_models -lsimdjson -lutf8proc -lpcre2-8 -lz -lrlx_core")
endif()
if(RLX_SHARED)
  rlx_pkg_config(rlx-shared "${PROJECT_DESCRIPTION} (shared library)" "" "-lrlx")
endif()
