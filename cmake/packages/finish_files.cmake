# Completes the files of the Debian packages before cpack packs them: licences, changelog, compression, modes and times.
# Files get the time SOURCE_DATE_EPOCH, so that the same source gives the same bytes.

cmake_policy(VERSION 3.25)

set(kinds "")
if(CPACK_TANDEM_CUDA)
  set(kinds --with cuda)
endif()

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(pair program:tandem library:libtandem development:libtandem-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 package)
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component})
  set(documents ${root}/usr/share/doc/${package})
  run(python3 ${CPACK_TANDEM_SOURCE}/packaging/parts.py copyright --to ${documents}/copyright ${kinds})
  run(python3 ${CPACK_TANDEM_SOURCE}/packaging/debian/changelog.py --version ${CPACK_TANDEM_VERSION}
    --maintainer ${CPACK_PACKAGE_CONTACT} --to ${documents}/changelog.Debian)
  if(component STREQUAL "library")
    run(python3 ${CPACK_TANDEM_SOURCE}/packaging/parts.py sbom --to ${documents}/tandem.spdx.json ${kinds})
    run(python3 ${CPACK_TANDEM_SOURCE}/packaging/parts.py notices --onednn ${CPACK_TANDEM_ONEDNN}
      --onnx ${CPACK_TANDEM_ONNX} --to ${documents}/notices)
  endif()
  file(GLOB copies ${root}/usr/lib/tandem/libdnnl.so.* ${root}/usr/lib/*/tandem/libdnnl.so.*)
  if(copies)
    run(strip --strip-unneeded ${copies})
  endif()
  file(GLOB pages ${root}/usr/share/man/man1/*.1)
  run(gzip -9n ${documents}/changelog.Debian ${pages})
  run(find ${root} -type d -exec chmod 755 {} +)
  run(find ${root} -type f -not -path */bin/* -exec chmod 644 {} +)
  if(DEFINED ENV{SOURCE_DATE_EPOCH})
    run(find ${root} -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +)
  endif()
endforeach()
