// Pictures as planes of bytes, and what their files say about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/error.h"

namespace tandem {

/// Planes one after the other, each row-major: [channels, height, width].
struct Image {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;

  std::int64_t plane() const { return height * width; }
  /// Reuses the memory that there is; the pixels are then undefined.
  void resize(std::int64_t c, std::int64_t h, std::int64_t w) {
    channels = c, height = h, width = w;
    pixels.resize(static_cast<std::size_t>(c * h * w));
  }
};

enum class ImageFormat : std::uint8_t { jpeg, png };

struct ImageHeader {
  ImageFormat format = ImageFormat::jpeg;
  std::int64_t height = 0, width = 0;
  bool has_colour = false;
  bool has_alpha = false;  // a channel of its own; colours of a palette may have some, too
};

/// Twice PIL's MAX_IMAGE_PIXELS: above it PIL refuses to decode.
inline constexpr std::int64_t most_pixels = 178'956'970;
inline constexpr std::uint64_t most_image_bytes = std::uint64_t{1} << 30;  // limit of a file's size

/// Frees the memory of a thread's buffer where it is so large that few pictures need it.
inline void release_large(std::vector<std::uint8_t>& buffer) {
  if (buffer.capacity() > std::size_t{1} << 26) std::vector<std::uint8_t>().swap(buffer);
}

/// What is wrong with a picture, as Error{data} with its path.
[[noreturn]] void refuse_image(const std::string& path, std::string message,
                               std::string expected = "", std::string got = "",
                               std::string fix = "");
/// Refuses extents of 0, and more pixels than `most_pixels`.
void check_extents(const std::string& path, std::uint64_t height, std::uint64_t width);

}  // namespace tandem
