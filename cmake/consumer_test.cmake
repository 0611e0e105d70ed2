# Builds SOURCE_DIR against the installed package, runs its programs, checks their output.
include("${CMAKE_CURRENT_LIST_DIR}/installed.cmake")

# The core needs none of the packages that rlx::models is made of.
run(${CMAKE_COMMAND} -S "${SOURCE_DIR}" -B "${WORK_DIR}/bare" -G Ninja -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DRLX_simdjson_LIBRARY=OFF)

run("${WORK_DIR}/build/consumer")
if(NOT output STREQUAL "4 6\n")
  message(FATAL_ERROR "the consumer printed '${output}', expected '4 6'")
endif()
run("${WORK_DIR}/build/custom_op")
file(READ "${SOURCE_DIR}/../../examples/06_custom_op.expected.txt" expected)
if(NOT output STREQUAL expected)
  message(FATAL_ERROR "the custom op printed '${output}', expected '${expected}'")
endif()
