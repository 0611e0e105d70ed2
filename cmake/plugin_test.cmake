# Builds the plug-ins of SOURCE_DIR against the installed package, and runs their host.
include("${CMAKE_CURRENT_LIST_DIR}/installed.cmake")

set(libraries "")
foreach(name eager version null failing noentry throwing)
  list(APPEND libraries "${WORK_DIR}/build/lib${name}.so")
endforeach()
run("${WORK_DIR}/build/plugin_host" ${libraries})
message(STATUS "${output}")
