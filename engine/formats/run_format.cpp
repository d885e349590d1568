#include "engine/formats/run_format.h"

#include <string>

#include <fmt/format.h>

#include "engine/graph/error.h"

namespace tandem {

void expect_run_format(const JsonItem& root) {
  const JsonItem format = root.at("format");
  if (format.as_natural() == run_format) return;
  if (!format.as_number()) format.refuse("not the number of a format", std::to_string(run_format));
  throw Error(ErrorKind::usage,
              {.message = "another version of Tandem has written this run; nothing was changed",
               .file = format.file(),
               .path = format.keys(),
               .expected = fmt::format("format {}", run_format),
               .got = "format " + format.shown(),
               .fix = "take the version that has written it, or train in a new run; a checkpoint "
                      "may also be moved elsewhere, to use the one before it"});
}

}  // namespace tandem
