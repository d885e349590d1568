// The libraries that decode pictures. Where a build lacks one, no_NAME.cpp replaces NAME.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/formats/images/image.h"

namespace tandem {

/// The bytes of a file, and the path for messages.
struct ImageBytes {
  const std::string& path;
  std::span<const std::uint8_t> bytes;
};

/// "" where this build decodes the format; else what is missing and how to get it.
struct DecoderProblem {
  const char* what = "";
  const char* fix = "";
};
DecoderProblem jpeg_problem();
DecoderProblem png_problem();

/// One or three channels, as the file has them; alpha is left out, palettes become colours, of 16
/// bits the upper 8 stay. `to` grows where it has to. Throws Error{data} with the path where the
/// file is damaged, cut off or of a kind that is not read. The header has been checked.
///
/// `part`: 1, 2, 4 or 8; the sides become 1 / part of what they are, rounded up, by the smaller
/// transform that JPEG has for that.
void decode_jpeg(const ImageBytes& file, int part, Image& to);
void decode_png(const ImageBytes& file, Image& to);

}  // namespace tandem
