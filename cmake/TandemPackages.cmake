# The Debian packages that `cpack -G DEB` makes of an installation: tandem, libtandem, libtandem-dev (docs/packages.md).

set(TANDEM_MAINTAINER "Tandem maintainers <maintainers@tandem.invalid>" CACHE STRING "Maintainer in the packages")
set(TANDEM_DEBIAN_REVISION 1 CACHE STRING "Revision of the Debian packages, for example 1~deb12")

# The recipe of a first training comes with the program.
set(digits ${PROJECT_SOURCE_DIR}/models/digits)
install(FILES ${digits}/model.onnx ${digits}/digits_train.npz ${digits}/digits_test.npz ${digits}/train.toml
  ${digits}/policy.toml ${digits}/README.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tandem/examples/digits COMPONENT program)

# What only packages hold; cmake/packages/finish_files.cmake adds the texts of licences.
set(debian ${PROJECT_BINARY_DIR}/debian)
foreach(pair program:tandem library:libtandem development:libtandem-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 package)
  if(EXISTS ${PROJECT_SOURCE_DIR}/packaging/debian/${package}.overrides)
    install(FILES ${PROJECT_SOURCE_DIR}/packaging/debian/${package}.overrides COMPONENT ${component} EXCLUDE_FROM_ALL
      DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME ${package})
  endif()
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  file(READ ${PROJECT_SOURCE_DIR}/packaging/debian/${package}.txt text)
  string(REGEX REPLACE "\n$" "" text "${text}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${text}")
endforeach()

set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VENDOR Tandem)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # the first line of each text above
set(CPACK_PACKAGE_CONTACT "${TANDEM_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_GENERATOR DEB)
set(CPACK_THREADS 1) # the same bytes on every machine
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/packages/dependencies.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packages/finish_files.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${TANDEM_DEBIAN_REVISION})
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${debian}/shlibs ${debian}/triggers)

# Versions before 1.0 promise no stable binary interface: programs need the library of their own version.
set(version "${PROJECT_VERSION}-${TANDEM_DEBIAN_REVISION}")
file(WRITE ${debian}/shlibs "libtandem ${PROJECT_VERSION_MAJOR} libtandem (= ${version})\n")
file(WRITE ${debian}/triggers "activate-noawait ldconfig\n")

# For the two scripts above.
set(CPACK_TANDEM_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_TANDEM_BINARY ${PROJECT_BINARY_DIR})
set(CPACK_TANDEM_VERSION ${version})
set(CPACK_TANDEM_CUDA ${TANDEM_WITH_CUDA})
set(CPACK_TANDEM_ONEDNN ${onednn_prefix})
set(CPACK_TANDEM_ONNX ${onnx_prefix})
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
