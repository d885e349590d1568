# Finds everything that Tandem uses and does not write itself. Each missing library gets one line that
# says what installs it. After this file: DNNL::dnnl, onnx, fmt::fmt, tomlplusplus, CLI11::CLI11,
# nlohmann_json::nlohmann_json, ZLIB::ZLIB, JPEG::JPEG, PNG::PNG, PCRE2::PCRE2, UTF8PROC::UTF8PROC and tandem_httplib where they are there, OpenMP::OpenMP_CXX, Threads::Threads, GTest::*, benchmark::*.

set(missing_dependencies "")
macro(tandem_require name)
  if(NOT (${ARGN}))
    list(APPEND missing_dependencies "${name}")
  endif()
endmacro()

# tools/setup.sh decides where the libraries that no Debian package brings are.
set(TANDEM_DEPS "$ENV{TANDEM_DEPS}" CACHE PATH "Folder that tools/setup.sh fills; empty: its default")
set(environment "")
if(TANDEM_DEPS)
  set(environment TANDEM_DEPS=${TANDEM_DEPS})
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env ${environment} ${PROJECT_SOURCE_DIR}/tools/setup.sh --prefixes
  OUTPUT_VARIABLE prefixes COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "onednn=([^\n]*)" _ "${prefixes}")
set(onednn_prefix "${CMAKE_MATCH_1}")
set(TANDEM_ONEDNN "" CACHE STRING "Folder of oneDNN 3, or system: as CMake finds packages; empty: what tools/setup.sh chose")
if(TANDEM_ONEDNN)
  set(onednn_prefix "${TANDEM_ONEDNN}")
endif()
string(REGEX MATCH "onnx=([^\n]*)" _ "${prefixes}")
set(onnx_prefix "${CMAKE_MATCH_1}")
string(REGEX MATCH "httplib=([^\n]*)" _ "${prefixes}")
set(httplib_prefix "${CMAKE_MATCH_1}")
string(REGEX MATCH "python=([^\n]*)" _ "${prefixes}")
set(python_prefix "${CMAKE_MATCH_1}")

set(dnnl_DIR "dnnl_DIR-NOTFOUND" CACHE INTERNAL "") # looked up again: the cache folder may have moved
if(onednn_prefix STREQUAL "system")
  find_package(dnnl 3 CONFIG QUIET)
else()
  find_package(dnnl 3 CONFIG QUIET PATHS ${onednn_prefix} NO_DEFAULT_PATH)
endif()
tandem_require("oneDNN 3" dnnl_FOUND)

find_package(Protobuf QUIET)
tandem_require("Protocol Buffers (libprotobuf-dev, protobuf-compiler)" Protobuf_FOUND)
if(Protobuf_FOUND AND EXISTS ${onnx_prefix}/lib/libonnx.a)
  add_library(onnx STATIC IMPORTED GLOBAL)
  set_target_properties(onnx PROPERTIES
    IMPORTED_LOCATION ${onnx_prefix}/lib/libonnx.a
    INTERFACE_INCLUDE_DIRECTORIES ${onnx_prefix}/include
    INTERFACE_COMPILE_DEFINITIONS "ONNX_NAMESPACE=onnx;ONNX_ML=1;__STDC_FORMAT_MACROS"
    INTERFACE_LINK_LIBRARIES protobuf::libprotobuf)
endif()
tandem_require("the ONNX C++ library" TARGET onnx)

find_package(fmt CONFIG QUIET)
tandem_require("fmt (libfmt-dev)" fmt_FOUND)
find_package(CLI11 CONFIG QUIET)
tandem_require("CLI11 (libcli11-dev)" CLI11_FOUND)
find_package(nlohmann_json CONFIG QUIET)
tandem_require("nlohmann-json (nlohmann-json3-dev)" nlohmann_json_FOUND)
find_package(ZLIB QUIET)
tandem_require("zlib (zlib1g-dev)" ZLIB_FOUND)
find_package(Threads REQUIRED)
find_package(OpenMP QUIET COMPONENTS CXX)
tandem_require("OpenMP (part of g++)" OpenMP_CXX_FOUND)

set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI QUIET COMPONENTS CXX) # optional: without it there is one process alone

# optional: without them pictures of that format are refused by name
find_package(JPEG QUIET)
find_package(PNG QUIET)
foreach(format JPEG PNG)
  if(NOT ${format}_FOUND)
    message(STATUS "images: not of ${format} in this build: tools/setup.sh installs the library")
  endif()
endforeach()

# optional: without them text is refused as data, and the message names what is missing
function(tandem_find_text_library name header library package)
  find_path(${name}_INCLUDE ${header})
  find_library(${name}_LIBRARY ${library})
  mark_as_advanced(${name}_INCLUDE ${name}_LIBRARY)
  if(${name}_INCLUDE AND ${name}_LIBRARY)
    add_library(${name}::${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${name}::${name} PROPERTIES
      IMPORTED_LOCATION ${${name}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE})
    set(${name}_FOUND TRUE PARENT_SCOPE)
  else()
    set(${name}_FOUND FALSE PARENT_SCOPE)
    message(STATUS "text: no tokenizer.json in this build: tools/setup.sh installs ${package}")
  endif()
endfunction()
tandem_find_text_library(PCRE2 pcre2.h pcre2-8 libpcre2-dev)
tandem_find_text_library(UTF8PROC utf8proc.h utf8proc libutf8proc-dev)

# optional: without it `tandem policy page` says what is missing
if(EXISTS ${httplib_prefix}/httplib.cpp)
  add_library(tandem_httplib STATIC ${httplib_prefix}/httplib.cpp)
  target_include_directories(tandem_httplib SYSTEM INTERFACE ${httplib_prefix})
  target_link_libraries(tandem_httplib PRIVATE Threads::Threads)
  set_target_properties(tandem_httplib PROPERTIES CXX_STANDARD 20 POSITION_INDEPENDENT_CODE ON
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
else()
  message(STATUS "page: no `tandem policy page` in this build: tools/setup.sh installs cpp-httplib")
endif()

find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h)
mark_as_advanced(TOMLPLUSPLUS_INCLUDE)
tandem_require("toml++ (libtomlplusplus-dev)" TOMLPLUSPLUS_INCLUDE)
add_library(tomlplusplus INTERFACE)
if(TOMLPLUSPLUS_INCLUDE)
  target_include_directories(tomlplusplus SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})
endif()

find_path(DLPACK_INCLUDE dlpack/dlpack.h) # in /usr/include, where the compiler looks
mark_as_advanced(DLPACK_INCLUDE)
tandem_require("DLPack (libdlpack-dev)" DLPACK_INCLUDE)

if(TANDEM_TESTS)
  find_package(GTest CONFIG QUIET)
  tandem_require("GoogleTest (libgtest-dev, libgmock-dev)" GTest_FOUND)
endif()
if(TANDEM_BENCH)
  find_package(benchmark CONFIG QUIET) # optional: only the micro-benchmarks use it
endif()

if(missing_dependencies)
  foreach(name IN LISTS missing_dependencies)
    message(NOTICE "missing: ${name}: run tools/setup.sh")
  endforeach()
  message(FATAL_ERROR "Tandem cannot be built yet. tools/setup.sh installs what the lines above name.")
endif()

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without CCACHE_SLOPPINESS ccache stores nothing that uses precompiled headers. With paths relative to the tree and
  # without the working folder's name, clones in different folders share what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()
