// A build without libpng: decoders.h says what is missing and how to get it.
#include "engine/formats/images/decoders.h"

namespace tandem {

DecoderProblem png_problem() {
  return {"this build lacks libpng",
          "install libpng-dev (tools/setup.sh does) and build Tandem again"};
}

void decode_png(const ImageBytes& file, Image&) {
  const DecoderProblem problem = png_problem();
  throw Error(ErrorKind::usage,
              Diagnostic{.message = problem.what, .file = file.path, .fix = problem.fix});
}

}  // namespace tandem
