# Decides whether this build has the Python package (TANDEM_WITH_PYTHON), and finds what it needs: a Python with its
# headers, and nanobind. tools/setup.sh has installed such a Python; -DPython_EXECUTABLE=… names another one.

set(TANDEM_PYTHON OFF CACHE STRING "The Python package: AUTO (where nanobind is found), ON or OFF")
set_property(CACHE TANDEM_PYTHON PROPERTY STRINGS AUTO ON OFF)
set(TANDEM_WITH_PYTHON OFF)
if(NOT TANDEM_PYTHON STREQUAL "AUTO" AND NOT TANDEM_PYTHON)
  return()
endif()

# tandem_no_python(WHY): an error where the package is asked for, else a notice.
macro(tandem_no_python why)
  if(TANDEM_PYTHON STREQUAL "AUTO")
    message(STATUS "Python: not in this build: ${why}")
  else()
    message(FATAL_ERROR "TANDEM_PYTHON=${TANDEM_PYTHON}, but ${why}. docs/python.md says what is needed.")
  endif()
  return()
endmacro()

if(NOT Python_EXECUTABLE AND EXISTS ${python_prefix}/bin/python3)
  set(Python_EXECUTABLE ${python_prefix}/bin/python3)
endif()
find_package(Python 3.11 QUIET COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
if(NOT Python_FOUND)
  tandem_no_python("there is no Python 3.11 or newer with its headers (Debian: python3-dev)")
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_folder
  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE nanobind_result ERROR_QUIET)
if(nanobind_result EQUAL 0)
  find_package(nanobind CONFIG QUIET PATHS ${nanobind_folder} NO_DEFAULT_PATH)
endif()
if(NOT nanobind_FOUND)
  tandem_no_python("${Python_EXECUTABLE} has no nanobind: pip install 'nanobind>=3.1', or set Python_EXECUTABLE")
endif()
set(TANDEM_WITH_PYTHON ON)
message(STATUS "Python: ${Python_VERSION}, ${Python_EXECUTABLE}")
