# What the build of kernels/cuda/pointwise needs beside its sources: the headers that kernels made at run
# time include, embedded. Sets `cuda_generated_sources`, for the library; include it where that is made.
set(cuda_embedded_headers
  engine/graph/host_device.h
  kernels/shared/scalar.h
  kernels/shared/block/launch.h
  kernels/shared/block/block.h
  kernels/shared/block/unroll.h
  kernels/shared/block/numbers.h
  kernels/shared/block/walk.h
  kernels/cuda/pointwise/fused/rtc_standard.h
  kernels/cuda/pointwise/elements.h
  kernels/cuda/pointwise/fused/fused_arguments.h
  kernels/cuda/pointwise/fused/fused_loops.h)
set(cuda_generated_sources ${CMAKE_CURRENT_BINARY_DIR}/embedded_headers.cpp)
list(TRANSFORM cuda_embedded_headers PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE cuda_header_files)
list(JOIN cuda_embedded_headers "," cuda_embedded_names)
add_custom_command(OUTPUT ${cuda_generated_sources}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DHEADERS=${cuda_embedded_names}
    -DOUT=${cuda_generated_sources} -P ${CMAKE_CURRENT_LIST_DIR}/fused/embed.cmake
  DEPENDS ${cuda_header_files} ${CMAKE_CURRENT_LIST_DIR}/fused/embed.cmake VERBATIM)
