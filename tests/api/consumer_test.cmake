# Installs this build into a temporary folder, builds the consumer project and the examples against it and runs them.
#   cmake -DBUILD=… -DSOURCE=… -DCOMPILER=… -DFLAGS=… -P consumer_test.cmake
set(folder ${BUILD}/consumer_test)
file(REMOVE_RECURSE ${folder})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}\n${output}")
  endif()
  message("${output}")
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${folder}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/api/consumer -B ${folder}/build -DCMAKE_PREFIX_PATH=${folder}/prefix
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${folder}/build)
run(${folder}/build/consumer ${SOURCE}/models/digits/model.onnx ${folder}/trained.onnx)
if(NOT EXISTS ${folder}/trained.onnx)
  message(FATAL_ERROR "the exported file is missing")
endif()
run(${CMAKE_COMMAND} -S ${SOURCE}/examples -B ${folder}/examples -DCMAKE_PREFIX_PATH=${folder}/prefix
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${folder}/examples)
run(${folder}/examples/plan_only ${SOURCE}/models/digits/model.onnx 32)
run(${folder}/examples/policy_in_code ${SOURCE}/models/digits/model.onnx 32 ${folder}/policy.toml)
run(${folder}/prefix/bin/tandem policy check ${folder}/policy.toml --model ${SOURCE}/models/digits/model.onnx
  --bind batch=32 --device gpu=emulated:0)
run(${folder}/prefix/bin/tandem --version)
run(${folder}/prefix/bin/tandem inspect ${folder}/trained.onnx --json)
file(REMOVE_RECURSE ${folder})
