# What every target of Tandem has in common: language, warnings, sanitizers, include root.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
if(CMAKE_GENERATOR MATCHES Ninja)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fdiagnostics-color=auto>)
endif()

add_library(tandem_options INTERFACE)
set(cxx_options -Wall -Wextra $<$<BOOL:${TANDEM_WERROR}>:-Werror>
  -Wno-missing-field-initializers # designated initialisers name what differs from the default
  # Code of a shared library may still be inlined within its file.
  -fno-semantic-interposition)
set(cuda_options $<$<BOOL:${TANDEM_WERROR}>:-Werror=all-warnings> -lineinfo
  -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC looks for garbage in its own memory from 128 MiB on, which parsed headers alone take; files that were timed took 7 to 28 % longer.
  set(roomy --param=ggc-min-heapsize=1048576) # KiB
  list(APPEND cxx_options ${roomy})
  list(APPEND cuda_options -Xcompiler=${roomy})
endif()
target_compile_options(tandem_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${cxx_options}>" "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_options}>")
target_include_directories(tandem_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
if(TANDEM_SANITIZE)
  string(REPLACE "," ";" sanitizers "${TANDEM_SANITIZE}")
  list(TRANSFORM sanitizers PREPEND -fsanitize= OUTPUT_VARIABLE sanitizer_options)
  list(APPEND sanitizer_options -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  if("address" IN_LIST sanitizers AND "undefined" IN_LIST sanitizers)
    # These checks double the time to compile: 35 s of processor time instead of 16 for one group of engine/graph. The
    # preset ubsan has them.
    set(left_out null vptr object-size nonnull-attribute returns-nonnull-attribute return unreachable pointer-overflow alignment)
    list(TRANSFORM left_out PREPEND -fno-sanitize=)
    list(APPEND sanitizer_options ${left_out})
  endif()
  list(TRANSFORM sanitizer_options PREPEND -Xcompiler= OUTPUT_VARIABLE cuda_sanitizer_options) # of the host's part
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitizer_options}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_sanitizer_options}>")
  add_link_options(-fsanitize=${TANDEM_SANITIZE})
endif()

# The linker: mold or lld, where the compiler takes it, need a quarter of the time of GNU's. Programs with CUDA or
# sanitizers keep the compiler's own: nobody has tried the others there.
set(TANDEM_LINKER AUTO CACHE STRING "Linker of programs: AUTO (mold, else lld, else the compiler's own), or what -fuse-ld takes")
include(CheckLinkerFlag)
set(program_linker "")
foreach(linker mold lld)
  if(TANDEM_LINKER STREQUAL "AUTO" AND TANDEM_CUDA STREQUAL "OFF" AND NOT TANDEM_SANITIZE AND NOT program_linker)
    check_linker_flag(CXX -fuse-ld=${linker} TANDEM_LINKS_WITH_${linker})
    if(TANDEM_LINKS_WITH_${linker})
      set(program_linker ${linker})
    endif()
  endif()
endforeach()
if(NOT TANDEM_LINKER STREQUAL "AUTO")
  set(program_linker ${TANDEM_LINKER})
endif()
if(program_linker) # shared libraries keep the compiler's own: mold 1.10 never ends over a list in --exclude-libs
  string(PREPEND CMAKE_EXE_LINKER_FLAGS "-fuse-ld=${program_linker} ")
  message(STATUS "linker of programs: ${program_linker}")
endif()

# tandem_sources(OUT [EXCLUDE REGEX…] GLOB…): files below the current folder, found again at every build.
function(tandem_sources out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCLUDE")
  list(TRANSFORM arg_UNPARSED_ARGUMENTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${arg_UNPARSED_ARGUMENTS})
  foreach(pattern IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# tandem_library(NAME SOURCES… [USES targets…] [PRIVATE targets…]): a static library. USES are Tandem's own
# libraries; PRIVATE are third parties that no other part of Tandem gets to see.
function(tandem_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES;PRIVATE")
  if(arg_UNPARSED_ARGUMENTS)
    add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PUBLIC tandem_options ${arg_USES} PRIVATE ${arg_PRIVATE})
  else() # a folder without sources yet
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE tandem_options ${arg_USES})
  endif()
endfunction()

# tandem_compile_together(TARGET [ALONE REGEX…]): the compiler gets several of the target's C++ files at once, which halves the
# time of a whole build. tools/compile_groups.py chooses them: never two whose names could meet, no file with a #pragma GCC
# (which would apply to the files after it), none that edited_files.txt of the build folder names (tools/build.sh writes it).
# CMake leaves files with options of their own alone.
set(TANDEM_GROUP_KIB 128 CACHE STRING "How many KiB of C++ files the compiler gets at once; 0: each file alone")
file(TOUCH ${PROJECT_BINARY_DIR}/edited_files.txt)
file(REMOVE_RECURSE ${PROJECT_BINARY_DIR}/compile_groups)
function(tandem_compile_together target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ALONE")
  get_target_property(type ${target} TYPE)
  if(TANDEM_GROUP_KIB EQUAL 0 OR type STREQUAL INTERFACE_LIBRARY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A pragma that a file gets after CMake has looked ends with the file. GCC takes an included file for a header, whose types
    # should use nothing of an anonymous namespace.
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC push_options" UNITY_BUILD_CODE_AFTER_INCLUDE "#pragma GCC pop_options")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(pattern IN LISTS arg_ALONE)
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  set(lines "")
  foreach(source IN LISTS sources)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} is_generated)
    if(NOT is_generated)
      string(APPEND lines "${source}\n")
    endif()
  endforeach()
  file(WRITE ${PROJECT_BINARY_DIR}/compile_groups/${target} "${lines}")
endfunction()

# tandem_choose_groups(): puts the files of all targets into groups; called once, after the last tandem_compile_together.
function(tandem_choose_groups)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_BINARY_DIR}/edited_files.txt)
  if(TANDEM_GROUP_KIB EQUAL 0)
    return()
  endif()
  execute_process(COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/compile_groups.py --most ${TANDEM_GROUP_KIB}
      --edited ${PROJECT_BINARY_DIR}/edited_files.txt ${PROJECT_BINARY_DIR}/compile_groups
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^(.*)\t(.*)\t(.*)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_3} TARGET_DIRECTORY ${CMAKE_MATCH_1} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_2})
  endforeach()
endfunction()

# tandem_precompile(TARGET HEADERS…): the target's C++ files parse these headers once together. Headers of third parties and of
# the standard library alone, so that no file sees a header of Tandem that it does not include; with TANDEM_PRECOMPILE=OFF
# (the preset debug) every file has to include what it uses. With REUSE other, whose options have to be the same, the two
# share what was parsed.
option(TANDEM_PRECOMPILE "Parse headers of third parties once per target" ON)
function(tandem_precompile target)
  get_target_property(type ${target} TYPE)
  if(NOT TANDEM_PRECOMPILE OR type STREQUAL INTERFACE_LIBRARY)
    return()
  endif()
  set(standard algorithm array charconv chrono cmath cstdint cstring filesystem fstream functional limits map memory
    numeric optional random set span sstream string string_view thread unordered_map unordered_set variant vector)
  list(TRANSFORM standard REPLACE "(.+)" "<\\1>")
  if(ARGV1 STREQUAL "REUSE")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${standard} ${ARGN})
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>) # ccache asks for it
  # GCC 12 judges what it inlines out of precompiled standard headers as code of ours, and sees overflows inside std::string
  # that never happen.
  set(false_alarms -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:${false_alarms}>")
endfunction()
