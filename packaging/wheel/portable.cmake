# Links the files of a wheel with glibc 2.28 and with static libraries, from the objects of any build.
set(TANDEM_PORTABLE "" CACHE PATH "Folder that packaging/wheel/libraries.sh made; empty: link as every program of this machine")

# tandem_link_portably(TARGET ARCHIVES…): the archives and the libraries of that folder come before all others, none of which
# is then needed, except oneDNN's and those of glibc and GCC.
function(tandem_link_portably target)
  if(NOT TANDEM_PORTABLE)
    return()
  endif()
  set(archives ${ARGN})
  foreach(library IN ITEMS protobuf fmt png16 jpeg z pcre2-8 utf8proc)
    find_library(TANDEM_STATIC_${library} NAMES lib${library}.a HINTS ${TANDEM_PORTABLE}/lib NO_CACHE REQUIRED)
    list(APPEND archives ${TANDEM_STATIC_${library}})
  endforeach()
  list(APPEND archives ${TANDEM_PORTABLE}/openmp/libgomp.so.1)
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} -Wl,--end-group)
  set(glibc ${TANDEM_PORTABLE}/glibc)
  target_link_options(${target} PRIVATE -fuse-ld=bfd -B${glibc}/ -L${glibc} -static-libstdc++
    -Wl,--as-needed,--gc-sections,--allow-shlib-undefined) # libraries of this machine need its newer glibc
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "SHARED_LIBRARY") # what that one shows is in a list
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  endif()
endfunction()
