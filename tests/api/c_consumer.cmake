# Part of consumer_test.cmake: programs in C against the installed library, compiled with and without CMake.
get_filename_component(compiler_folder ${COMPILER} DIRECTORY)
get_filename_component(compiler_name ${COMPILER} NAME)
# The C compiler that belongs to the C++ compiler, whose sanitizers the library may need.
string(REPLACE "clang++" "clang" c_name ${compiler_name})
string(REPLACE "g++" "gcc" c_name ${c_name})
string(REGEX REPLACE "^c\\+\\+" "cc" c_name ${c_name})
find_program(c_compiler NAMES ${c_name} gcc cc HINTS ${compiler_folder} REQUIRED)

file(GLOB library ${folder}/prefix/*/libtandem.so ${folder}/prefix/*/*/libtandem.so)
get_filename_component(library_folder ${library} DIRECTORY)
run(${c_compiler} -std=c11 -Wall -Werror ${FLAGS} ${SOURCE}/examples/c/train.c -o ${folder}/c_train
  -I${folder}/prefix/include -L${library_folder} -ltandem -Wl,-rpath,${library_folder})
run(${folder}/c_train ${SOURCE}/models/digits/model.onnx ${folder}/c_trained.onnx)

run(${CMAKE_COMMAND} -S ${SOURCE}/tests/api/consumer_c -B ${folder}/c_build -DCMAKE_PREFIX_PATH=${folder}/prefix
  -DCMAKE_C_COMPILER=${c_compiler} -DCMAKE_C_FLAGS=${FLAGS} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${folder}/c_build)
file(MAKE_DIRECTORY ${folder}/c_files)
run(${folder}/c_build/c_api_test ${SOURCE}/models/digits ${folder}/c_files)
