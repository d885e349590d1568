#include "engine/formats/images/image_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

#include "engine/formats/byte_stream.h"
#include "engine/formats/images/decoders.h"
#include "engine/graph/host_memory.h"

namespace tandem {

void refuse_image(const std::string& path, std::string message, std::string expected,
                  std::string got, std::string fix) {
  throw Error(ErrorKind::data, Diagnostic{.message = std::move(message),
                                          .file = path,
                                          .expected = std::move(expected),
                                          .got = std::move(got),
                                          .fix = std::move(fix)});
}

void check_extents(const std::string& path, std::uint64_t height, std::uint64_t width) {
  const std::string got = std::to_string(height) + " x " + std::to_string(width);
  if (height == 0 || width == 0) refuse_image(path, "a picture without pixels", "", got);
  constexpr auto most = static_cast<std::uint64_t>(most_pixels);
  if (height > most || width > most || height * width > most) {
    refuse_image(path, "the picture is too large: it may be made to fill the memory",
                 "at most " + std::to_string(most) + " pixels", got);
  }
}

namespace {

std::uint32_t big_endian(const std::uint8_t* at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | at[i];
  return value;
}

void require(const std::string& path, const DecoderProblem& problem) {
  if (*problem.what == '\0') return;
  throw Error(ErrorKind::usage, Diagnostic{.message = std::string("images: ") + problem.what,
                                           .file = path,
                                           .fix = problem.fix});
}

/// Refuses a size that so few packed bytes cannot have, before memory is taken for it. `least`: the
/// fewest bytes that the picture takes in the file.
void check_packed(const InputFile& file, const ImageHeader& header, std::uint64_t least) {
  if (file.size() >= least) return;
  refuse_image(
      file.path(),
      "the file is cut off, or its header is wrong: so few bytes cannot unpack to its size",
      "at least " + std::to_string(least) + " bytes for " + std::to_string(header.height) + " x " +
          std::to_string(header.width),
      std::to_string(file.size()) + " bytes");
}

ImageHeader png_header(const InputFile& file) {
  require(file.path(), png_problem());
  std::uint8_t head[26];  // signature, length and name of IHDR, width, height, depth, colours
  if (file.read_at(0, head, sizeof head) < sizeof head)
    refuse_image(file.path(), "a damaged PNG: the file is cut off in its header");
  if (big_endian(head + 8, 4) != 13 || std::memcmp(head + 12, "IHDR", 4) != 0)
    refuse_image(file.path(), "a damaged PNG: it does not begin with IHDR");
  ImageHeader header{.format = ImageFormat::png};
  const std::uint32_t width = big_endian(head + 16, 4), height = big_endian(head + 20, 4);
  check_extents(file.path(), height, width);
  header.height = height;
  header.width = width;
  header.has_colour = (head[25] & 2) != 0;
  header.has_alpha = (head[25] & 4) != 0;
  // Deflate makes at most 1032 bytes of one.
  const std::uint64_t channels = (head[25] & 1) != 0
                                     ? 1  // numbers of a palette
                                     : (header.has_colour ? 3u : 1u) + (header.has_alpha ? 1u : 0u);
  check_packed(file, header, (std::uint64_t{width} * head[24] * channels + 7) / 8 * height / 1032);
  return header;
}

/// Whether the marker is that of the segment with the size: SOF0 to SOF15, without DHT, JPG and
/// DAC, which lie among them.
bool is_frame(std::uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

ImageHeader frame_header(const InputFile& file, std::uint8_t marker, std::uint64_t at) {
  const std::string& path = file.path();
  std::uint8_t frame[6];  // precision, height, width, components
  if (file.read_at(at, frame, sizeof frame) < sizeof frame)
    refuse_image(path, "a damaged JPEG: the file is cut off in its header");
  if (marker > 0xc2) {
    refuse_image(path, "a JPEG without loss, in layers or with arithmetic codes is not read",
                 "a baseline or progressive one", "", "store it as PNG");
  }
  if (frame[0] != 8)
    refuse_image(path, "a JPEG of other than 8 bits", "8", std::to_string(frame[0]));
  if (frame[5] == 4) {
    refuse_image(path, "a JPEG of four colours (CMYK) is not read", "grey or RGB", "CMYK",
                 "convert it to RGB");
  }
  if (frame[5] != 1 && frame[5] != 3)
    refuse_image(path, "a JPEG of other channels", "1 or 3", std::to_string(frame[5]));
  ImageHeader header{.format = ImageFormat::jpeg};
  const std::uint32_t height = big_endian(frame + 1, 2), width = big_endian(frame + 3, 2);
  check_extents(path, height, width);
  header.height = height;
  header.width = width;
  header.has_colour = frame[5] == 3;
  // A block of 64 numbers, which covers up to 32 x 16 pixels, takes at least a bit.
  check_packed(file, header, std::uint64_t{height} * width / (8 * 32 * 16));
  return header;
}

ImageHeader jpeg_header(const InputFile& file) {
  require(file.path(), jpeg_problem());
  constexpr int most_segments = 10'000;
  std::uint64_t at = 2;
  for (int i = 0; i < most_segments; ++i) {
    std::uint8_t head[4];  // 0xff, marker, length of two bytes, which count themselves
    if (file.read_at(at, head, 2) < 2) break;
    if (head[0] != 0xff)
      refuse_image(file.path(), "a damaged JPEG: a segment does not begin with 0xff");
    if (head[1] == 0xff) {  // fill bytes
      ++at;
      continue;
    }
    const bool is_alone = head[1] == 0x01 || (head[1] >= 0xd0 && head[1] <= 0xd8);
    if (is_alone) {
      at += 2;
      continue;
    }
    if (head[1] == 0xd9 || head[1] == 0xda)
      refuse_image(file.path(), "a damaged JPEG: pixels come before their size");
    if (file.read_at(at + 2, head + 2, 2) < 2) break;
    const std::uint32_t length = big_endian(head + 2, 2);
    if (length < 2) refuse_image(file.path(), "a damaged JPEG: a segment of no length");
    if (is_frame(head[1])) return frame_header(file, head[1], at + 4);
    at += 2 + length;
  }
  refuse_image(file.path(), "a damaged JPEG: the file ends before its size");
}

/// Makes three equal planes of one.
void to_colours(Image& image) {
  const auto plane = static_cast<std::size_t>(image.plane());
  image.resize(3, image.height, image.width);
  std::memcpy(image.pixels.data() + plane, image.pixels.data(), plane);
  std::memcpy(image.pixels.data() + 2 * plane, image.pixels.data(), plane);
}

void to_grey(Image& image) {
  const auto plane = static_cast<std::size_t>(image.plane());
  std::uint8_t* const red = image.pixels.data();
  const std::uint8_t *green = red + plane, *blue = green + plane;
  for (std::size_t i = 0; i < plane; ++i) {
    const unsigned sum = red[i] * 19595u + green[i] * 38470u + blue[i] * 7471u + 0x8000u;
    red[i] = static_cast<std::uint8_t>(sum >> 16);
  }
  image.resize(1, image.height, image.width);
}

bool ends_in(const std::string& name, std::initializer_list<std::string_view> endings) {
  std::string low = name.substr(name.size() - std::min<std::size_t>(name.size(), 6));
  for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return low.ends_with(ending); });
}

/// 1, 2, 4 or 8: the largest at which the sides stay what they have to be.
int part_of(const ImageHeader& header, const ImageReading& how) {
  if (header.format != ImageFormat::jpeg || how.least_height <= 0 || how.least_width <= 0) return 1;
  for (const int part : {8, 4, 2}) {
    if ((header.height + part - 1) / part >= how.least_height &&
        (header.width + part - 1) / part >= how.least_width)
      return part;
  }
  return 1;
}

ImageHeader header_of(const InputFile& file) {
  std::uint8_t head[8] = {};
  const std::size_t got = file.read_at(0, head, sizeof head);
  constexpr std::uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (got == 8 && std::memcmp(head, png, 8) == 0) return png_header(file);
  if (got >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff) return jpeg_header(file);
  refuse_image(file.path(), got == 0 ? "the file is empty" : "this is neither a JPEG nor a PNG",
               "JPEG or PNG", "", "convert it, or take it out of the folder");
}

}  // namespace

ImageHeader read_image_header(const std::string& path) { return header_of(InputFile(path)); }

ImageHeader read_image(const std::string& path, const ImageReading& how, Image& to) {
  thread_local std::vector<std::uint8_t> content;
  const InputFile file(path);
  const ImageHeader header = header_of(file);
  if (file.size() > most_image_bytes) {
    refuse_image(path, "the file is too large", "at most 1 GiB",
                 std::to_string(file.size()) + " bytes");
  }
  // Rows as the library gives them, and planes; a progressive JPEG also has two bytes a number.
  // Small pictures are not worth the question.
  const auto pixels = static_cast<std::size_t>(header.height * header.width);
  const std::size_t bytes = file.size() + pixels * 3 * 4;
  constexpr std::size_t worth_asking = std::size_t{1} << 26;
  if (bytes > worth_asking) {
    expect_memory(bytes, {.message = "the picture needs more memory than there is",
                          .file = path,
                          .got = std::to_string(bytes) + " bytes"});
  }
  content.resize(file.size());
  if (file.read_at(0, content.data(), content.size()) < content.size())
    refuse_image(path, "the file became shorter while it was read");
  if (header.format == ImageFormat::jpeg) {
    decode_jpeg({path, content}, part_of(header, how), to);
  } else {
    decode_png({path, content}, to);
  }
  release_large(content);
  if (to.channels < how.channels) to_colours(to);
  if (to.channels > how.channels) to_grey(to);
  return header;
}

bool names_image(const std::string& name) { return ends_in(name, {".jpg", ".jpeg", ".png"}); }

bool names_other_image(const std::string& name) {
  return ends_in(name,
                 {".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp", ".avif", ".heic"});
}

}  // namespace tandem
