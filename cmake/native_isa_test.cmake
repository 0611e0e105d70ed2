# Builds the command of RLX_SOURCE with RLX_ISA=native in BUILD_DIR and runs it on an emulated processor that lacks what
# this machine has: the baseline runs, and the command says so once.
find_program(emulator qemu-x86_64-static)
if(NOT emulator)
  message(FATAL_ERROR "qemu-x86_64-static is missing (package qemu-user-static)")
endif()
foreach(step "-S;${RLX_SOURCE};-B;${BUILD_DIR};-G;Ninja;-DCMAKE_CXX_COMPILER=${CXX};-DCMAKE_CXX_FLAGS_RELEASE=-O0;-DRLX_ISA=native;\
-DRLX_TESTS=OFF;-DRLX_EXAMPLES=OFF;-DRLX_MODELS=ON;-DRLX_UNITY_LIBRARY=24;-DRLX_UNITY_LARGE=ON" "--build;${BUILD_DIR};--target;rlx_cli")
  execute_process(COMMAND "${CMAKE_COMMAND}" ${step} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND "${BUILD_DIR}/rlx" --version OUTPUT_VARIABLE here ERROR_VARIABLE note COMMAND_ERROR_IS_FATAL ANY)
if(NOT here MATCHES "cpu kernels  sse4[a-z0-9 ]* \\(RLX_ISA=native\\)" OR note)
  message(FATAL_ERROR "on this machine: ${here}${note}")
endif()
execute_process(COMMAND "${emulator}" -cpu Nehalem "${BUILD_DIR}/rlx" --version OUTPUT_VARIABLE there ERROR_VARIABLE note
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "note: rlx was built for" notes "${note}")
list(LENGTH notes count)
set(wanted 1)
if(here MATCHES "cpu kernels  sse4 \\(")  # this machine is no better itself
  set(wanted 0)
endif()
if(NOT there MATCHES "in use       cpu \\(sse4" OR NOT count EQUAL wanted)
  message(FATAL_ERROR "on an emulated Nehalem: ${there}${note}")
endif()
