# The port tandem for vcpkg: vcpkg install tandem --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

# ONNX's C++ library in the version that Tandem is tested with; the port of vcpkg is another one.
set(deps "${CURRENT_BUILDTREES_DIR}/deps")
vcpkg_execute_required_process(
  COMMAND "${CMAKE_COMMAND}" -E env "TANDEM_DEPS=${deps}" "CMAKE_PREFIX_PATH=${CURRENT_INSTALLED_DIR}"
    "PATH=${CURRENT_HOST_INSTALLED_DIR}/tools/protobuf:$ENV{PATH}" "${SOURCE_PATH}/tools/setup.sh" --onnx
  WORKING_DIRECTORY "${SOURCE_PATH}" LOGNAME onnx)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS "-DTANDEM_DEPS=${deps}" -DTANDEM_ONEDNN=system -DTANDEM_TESTS=OFF -DTANDEM_BENCH=OFF -DTANDEM_CUDA=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME Tandem CONFIG_PATH lib/cmake/Tandem)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES tandem AUTO_CLEAN)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
