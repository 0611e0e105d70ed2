# Builds rlx::core from RLX_SOURCE as plug-ins need it, the plug-in of SOURCE_DIR with that copy, and runs a graph there by
# the program RLX, which exports nothing.
function(build_core)
  execute_process(COMMAND ${ARGN} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()
build_core(${CMAKE_COMMAND} -S "${RLX_SOURCE}" -B "${BUILD_DIR}" -G Ninja -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS_RELEASE=-O0
  -DRLX_CPU=OFF -DRLX_MODELS=OFF -DRLX_CLI=OFF -DRLX_TESTS=OFF -DRLX_TESTING=OFF
  -DRLX_EXAMPLES=OFF -DRLX_UNITY_LIBRARY=24 -DRLX_UNITY_LARGE=ON)
build_core(${CMAKE_COMMAND} --build "${BUILD_DIR}")
include("${CMAKE_CURRENT_LIST_DIR}/installed.cmake")

file(WRITE "${WORK_DIR}/square.rlx" "graph @square {
  %0 = state() {name = \"s\", init = [2, 2] f32 {1, 2, 3, 4}} : [2, 2] f32
  %1 = matmul(%0, %0) : [2, 2] f32
  set_state \"s\" %1
  return %1
}
")
set(ENV{RLX_PLUGINS} "${WORK_DIR}/build/libeager.so")
run("${RLX}" devices)
if(NOT output MATCHES "tpu +TPU +available, backend eager")
  message(FATAL_ERROR "rlx devices does not list the plug-in:\n${output}")
endif()
run("${RLX}" run --device cpu "${WORK_DIR}/square.rlx")
set(wanted "${output}")
run("${RLX}" run --device tpu "${WORK_DIR}/square.rlx")
if(NOT output STREQUAL wanted)
  message(FATAL_ERROR "on the plug-in:\n${output}on the cpu:\n${wanted}")
endif()
