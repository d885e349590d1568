# Joins the files of the page that `tandem policy page` serves into one document, as a C++ file:
#   cmake -DWEB=FOLDER -DOUT=FILE.cpp -P TandemPage.cmake
# FOLDER has page.html with @STYLE@ and @SCRIPT@, and the files that take their places, in the order of their names.
function(join_files out pattern)
  file(GLOB files ${WEB}/${pattern})
  list(SORT files)
  set(text "")
  foreach(path IN LISTS files)
    file(READ ${path} content)
    string(APPEND text "${content}")
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

file(READ ${WEB}/page.html page)
foreach(part style script)
  string(TOUPPER ${part} name)
  if(part STREQUAL "style")
    join_files(text "style/*.css")
  else()
    join_files(text "script/*.js")
  endif()
  string(FIND "${page}" "@${name}@" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${WEB}/page.html: @${name}@ is missing")
  endif()
  string(REPLACE "@${name}@" "${text}" page "${page}")
endforeach()
string(FIND "${page}" ")page\"" place)
if(NOT place EQUAL -1)
  message(FATAL_ERROR "${WEB}: a file contains )page\", which ends the text in the program")
endif()
file(WRITE ${OUT} "// Made from api/commands/page/web by cmake/TandemPage.cmake.
#include \"api/commands/page/page_document.h\"

namespace tandem::api {

const std::string_view page_document = R\"page(${page})page\";

}  // namespace tandem::api
")
