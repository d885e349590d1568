// A build without libjpeg: decoders.h says what is missing and how to get it.
#include "engine/formats/images/decoders.h"

namespace tandem {

DecoderProblem jpeg_problem() {
  return {"this build lacks libjpeg",
          "install libjpeg-dev (tools/setup.sh does) and build Tandem again"};
}

void decode_jpeg(const ImageBytes& file, int, Image&) {
  const DecoderProblem problem = jpeg_problem();
  throw Error(ErrorKind::usage,
              Diagnostic{.message = problem.what, .file = file.path, .fix = problem.fix});
}

}  // namespace tandem
