// Files of pictures: what their headers say, and their pixels.
#pragma once

#include <cstdint>
#include <string>

#include "engine/formats/images/image.h"

namespace tandem {

/// Reads only as much of the file as is needed to know its size, whatever its name. Throws
/// Error{data} where it is neither JPEG nor PNG, of a kind that is not read (four colours, 12 bits,
/// arithmetic codes), of no size or too large; Error{usage} where this build lacks the library for
/// it; Error{runtime} where the system does not give it.
ImageHeader read_image_header(const std::string& path);

struct ImageReading {
  int channels = 3;  // 1 or 3
  /// A JPEG is decoded at 1/2, 1/4 or 1/8 of its size where both sides stay at least this; 0: at
  /// its own size.
  std::int64_t least_height = 0, least_width = 0;
};
/// The pixels of a file, and its header. Grey becomes three equal channels, colours become PIL's
/// `L`: (19595 R + 38470 G + 7471 B) / 65536, rounded. The orientation of the camera (EXIF) is
/// ignored, as in PIL's Image.open. Throws as above, and Error{data} where the file is damaged.
ImageHeader read_image(const std::string& path, const ImageReading& how, Image& to);

/// Whether a name has the ending of JPEG or PNG, in any case; or of another format of pictures.
bool names_image(const std::string& name);
bool names_other_image(const std::string& name);

}  // namespace tandem
