# Installation: headers, the libraries, the command, and the files behind find_package(rlx).
include(GNUInstallDirs)
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
install(TARGETS ${rlx_installed} EXPORT rlxTargets COMPONENT rlx
  ARCHIVE COMPONENT rlx LIBRARY COMPONENT rlx
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT rlx
  FILE_SET moved DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT rlx)
install(EXPORT rlxTargets NAMESPACE rlx:: DESTINATION "${package_dir}" COMPONENT rlx)

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/rlxConfig.cmake.in" "${PROJECT_BINARY_DIR}/rlxConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rlxConfig.cmake" "${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/system_libraries.cmake" DESTINATION "${package_dir}" COMPONENT rlx)
