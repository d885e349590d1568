# Decides whether this build has CUDA (TANDEM_WITH_CUDA), and finds what it needs: nvcc, the runtime, which is
# linked statically, and the headers of libraries that the program opens itself (docs/cuda.md). After it:
# tandem_cuda, whose users see those headers and get the runtime.

set(TANDEM_CUDA AUTO CACHE STRING "CUDA devices: AUTO (where the toolkit is found), ON or OFF")
set_property(CACHE TANDEM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TANDEM_WITH_CUDA OFF)
set(cuda_wanted_major 13)

# tandem_no_cuda(WHY): an error where CUDA is asked for, else a notice.
macro(tandem_no_cuda why)
  if(TANDEM_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: not in this build: ${why}")
  else()
    message(FATAL_ERROR "TANDEM_CUDA=${TANDEM_CUDA}, but ${why}. docs/cuda.md says what is needed.")
  endif()
  return()
endmacro()

if(NOT TANDEM_CUDA STREQUAL "AUTO" AND NOT TANDEM_CUDA)
  return()
endif()

find_program(TANDEM_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(TANDEM_NVCC)
if(NOT TANDEM_NVCC AND NOT CMAKE_CUDA_COMPILER)
  tandem_no_cuda("there is no nvcc")
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${TANDEM_NVCC} CACHE FILEPATH "The CUDA compiler")
endif()
execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" _ "${nvcc_version}")
if(NOT CMAKE_MATCH_1 EQUAL cuda_wanted_major)
  tandem_no_cuda("${CMAKE_CUDA_COMPILER} is of CUDA ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}, not of CUDA ${cuda_wanted_major}")
endif()

# Machine code for the 8.x and 9.x GPUs, and what the driver translates for newer ones.
set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "Architectures to make code for")
if(NOT CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "What nvcc compiles the host's part with")
endif()
if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
set(CMAKE_CUDA_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
set(CMAKE_CUDA_RUNTIME_LIBRARY None) # tandem_cuda brings it
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 knows nvcc's dialects up to 17
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
find_package(CUDAToolkit ${cuda_wanted_major} REQUIRED)

# cuDNN and NCCL may have folders of their own.
set(cuda_headers ${CUDAToolkit_INCLUDE_DIRS})
foreach(header cuda_runtime_api.h cublasLt.h nvrtc.h cudnn_graph.h nccl.h)
  string(MAKE_C_IDENTIFIER TANDEM_INCLUDE_${header} variable)
  find_path(${variable} ${header} HINTS ${CUDAToolkit_INCLUDE_DIRS}
    PATH_SUFFIXES include DOC "Folder of ${header}")
  mark_as_advanced(${variable})
  if(NOT ${variable})
    tandem_no_cuda("${header} was not found: install it beside the toolkit, or set ${variable} to its folder")
  endif()
  list(APPEND cuda_headers ${${variable}})
endforeach()
list(REMOVE_DUPLICATES cuda_headers)

add_library(tandem_cuda INTERFACE)
target_include_directories(tandem_cuda SYSTEM INTERFACE ${cuda_headers})
target_link_libraries(tandem_cuda INTERFACE CUDA::cudart_static ${CMAKE_DL_LIBS})
set(TANDEM_WITH_CUDA ON)
message(STATUS "CUDA: ${CUDAToolkit_VERSION}, code for ${CMAKE_CUDA_ARCHITECTURES}")
