// Formulas of Pillow: ImageEnhance.py, ImageOps.py, Image.py (rotate) and, of src/libImaging,
// Blend.c, Convert.c (rgb2hsv_row, hsv2rgb), Filter.c and Geometry.c (affine_fixed).
#include "engine/data/images/pixel_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

namespace tandem {
namespace {

using Histogram = std::array<std::int64_t, 256>;
using ByteMap = std::array<std::uint8_t, 256>;

std::uint8_t cut_to_byte(float value) {
  return value <= 0 ? 0 : value >= 255 ? 255 : static_cast<std::uint8_t>(value);
}
std::uint8_t int_to_byte(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

void apply_map(const ByteMap& map, std::uint8_t* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = map[values[i]];
}

/// `of(x)` for every value that a byte has.
template <class F>
ByteMap map_of(F of) {
  ByteMap map{};
  for (int x = 0; x < 256; ++x) map[static_cast<std::size_t>(x)] = of(x);
  return map;
}

Histogram histogram_of(const std::uint8_t* values, std::int64_t count) {
  Histogram histogram{};
  for (std::int64_t i = 0; i < count; ++i) ++histogram[values[i]];
  return histogram;
}

std::uint8_t grey_of(int red, int green, int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}
std::uint8_t grey_at(const Pixels& picture, std::int64_t i) {
  if (picture.channels == 1) return picture.data[i];
  const std::int64_t plane = picture.plane();
  return grey_of(picture.data[i], picture.data[plane + i], picture.data[2 * plane + i]);
}

/// The blend with a constant depends only on each value, so that a table of 256 bytes serves.
void blend_from(Pixels picture, int from, double factor) {
  const auto alpha = static_cast<float>(factor);
  const auto start = static_cast<float>(from);
  apply_map(
      map_of([&](int x) { return cut_to_byte(start + alpha * (static_cast<float>(x) - start)); }),
      picture.data, picture.size());
}

struct Triple {
  std::uint8_t x, y, z;
};

Triple hsv_of(std::uint8_t r, std::uint8_t g, std::uint8_t b) {
  const std::uint8_t most = std::max({r, g, b}), least = std::min({r, g, b});
  if (most == least) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const float saturation = range / static_cast<float>(most);
  const float red = static_cast<float>(most - r) / range;
  const float green = static_cast<float>(most - g) / range;
  const float blue = static_cast<float>(most - b) / range;
  float hue;
  if (r == most) {
    hue = blue - green;
  } else if (g == most) {
    hue = static_cast<float>(2.0 + red - blue);
  } else {
    hue = static_cast<float>(4.0 + green - red);
  }
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  return {int_to_byte(static_cast<int>(hue * 255.0)),
          int_to_byte(static_cast<int>(saturation * 255.0)), most};
}

Triple rgb_of(std::uint8_t h, std::uint8_t s, std::uint8_t v) {
  if (s == 0) return {v, v, v};
  const double sixths = h * 6.0 / 255.0;
  const int sector = static_cast<int>(std::floor(sixths));
  const auto rest = static_cast<double>(static_cast<float>(sixths - sector));
  const auto part = static_cast<double>(static_cast<float>(s / 255.0));
  const auto made = [&](double x) { return int_to_byte(static_cast<int>(std::round(v * x))); };
  const std::uint8_t p = made(1.0 - part), q = made(1.0 - part * rest);
  const std::uint8_t t = made(1.0 - part * (1.0 - rest));
  switch (sector % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

/// One plane smoothed; its edges stay.
void smooth(const std::uint8_t* from, std::int64_t height, std::int64_t width, std::uint8_t* to) {
  std::memcpy(to, from, static_cast<std::size_t>(height * width));
  constexpr float side = 1.0f / 13.0f, middle = 5.0f / 13.0f;
  for (std::int64_t y = 1; y + 1 < height; ++y) {
    for (std::int64_t x = 1; x + 1 < width; ++x) {
      float sum = 0.5f;
      for (std::int64_t dy = -1; dy <= 1; ++dy) {
        const std::uint8_t* row = from + (y + dy) * width + x;
        sum += static_cast<float>(row[-1]) * side;
        sum += static_cast<float>(row[0]) * (dy == 0 ? middle : side);
        sum += static_cast<float>(row[1]) * side;
      }
      to[y * width + x] = cut_to_byte(sum);
    }
  }
}

std::int64_t to_fixed(double value) {
  return static_cast<std::int64_t>(std::floor(value * 65536.0 + 0.5));
}

}  // namespace

void blend_pixels(Pixels picture, std::span<const std::uint8_t> from, double factor) {
  const auto alpha = static_cast<float>(factor);
  for (std::int64_t i = 0; i < picture.size(); ++i) {
    const auto start = static_cast<float>(from[static_cast<std::size_t>(i)]);
    picture.data[i] = cut_to_byte(start + alpha * (static_cast<float>(picture.data[i]) - start));
  }
}

void adjust_brightness(Pixels picture, double factor) { blend_from(picture, 0, factor); }

void adjust_contrast(Pixels picture, double factor) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < picture.plane(); ++i) sum += grey_at(picture, i);
  const double mean = static_cast<double>(sum) / static_cast<double>(picture.plane());
  blend_from(picture, static_cast<int>(mean + 0.5), factor);
}

void adjust_saturation(Pixels picture, double factor, std::uint8_t* scratch) {
  if (picture.channels == 1) return;
  const std::int64_t plane = picture.plane();
  for (std::int64_t i = 0; i < plane; ++i) scratch[i] = grey_at(picture, i);
  const std::span<const std::uint8_t> grey(scratch, static_cast<std::size_t>(plane));
  for (std::int64_t c = 0; c < 3; ++c)
    blend_pixels({picture.data + c * plane, 1, picture.height, picture.width}, grey, factor);
}

void adjust_hue(Pixels picture, double turn) {
  if (picture.channels == 1) return;
  const auto by = static_cast<std::uint8_t>(static_cast<int>(turn * 255));  // modulo 256
  const std::int64_t plane = picture.plane();
  std::uint8_t *red = picture.data, *green = red + plane, *blue = green + plane;
  for (std::int64_t i = 0; i < plane; ++i) {
    const Triple hsv = hsv_of(red[i], green[i], blue[i]);
    const Triple rgb = rgb_of(static_cast<std::uint8_t>(hsv.x + by), hsv.y, hsv.z);
    red[i] = rgb.x, green[i] = rgb.y, blue[i] = rgb.z;
  }
}

void adjust_sharpness(Pixels picture, double factor, std::uint8_t* scratch) {
  for (std::int64_t c = 0; c < picture.channels; ++c) {
    const std::int64_t start = c * picture.plane();
    smooth(picture.data + start, picture.height, picture.width, scratch + start);
  }
  blend_pixels(picture, {scratch, static_cast<std::size_t>(picture.size())}, factor);
}

void posterize(Pixels picture, int bits) {
  const int kept = ~((1 << (8 - bits)) - 1);
  apply_map(map_of([&](int x) { return static_cast<std::uint8_t>(x & kept); }), picture.data,
            picture.size());
}

void solarize(Pixels picture, double threshold) {
  apply_map(map_of([&](int x) { return static_cast<std::uint8_t>(x < threshold ? x : 255 - x); }),
            picture.data, picture.size());
}

void stretch_contrast(Pixels picture) {
  for (std::int64_t c = 0; c < picture.channels; ++c) {
    std::uint8_t* plane = picture.data + c * picture.plane();
    const auto [least, most] = std::minmax_element(plane, plane + picture.plane());
    if (least == plane + picture.plane() || *most <= *least) continue;
    const double scale = 255.0 / (*most - *least), offset = -*least * scale;
    apply_map(map_of([&](int x) { return int_to_byte(static_cast<int>(x * scale + offset)); }),
              plane, picture.plane());
  }
}

void equalize(Pixels picture) {
  for (std::int64_t c = 0; c < picture.channels; ++c) {
    std::uint8_t* plane = picture.data + c * picture.plane();
    const Histogram histogram = histogram_of(plane, picture.plane());
    const auto last = std::find_if(histogram.rbegin(), histogram.rend(),
                                   [](std::int64_t count) { return count > 0; });
    if (last == histogram.rend() || *last == picture.plane()) continue;
    const std::int64_t step = (picture.plane() - *last) / 255;
    if (step == 0) continue;
    std::int64_t sum = step / 2;
    apply_map(map_of([&](int x) {
                const std::int64_t value = sum / step;
                sum += histogram[static_cast<std::size_t>(x)];
                return int_to_byte(static_cast<int>(std::min<std::int64_t>(value, 255)));
              }),
              plane, picture.plane());
  }
}

void transform_pixels(Pixels picture, const AffineMap& map, std::uint8_t* scratch) {
  const std::int64_t a = to_fixed(map.a), b = to_fixed(map.b);
  const std::int64_t d = to_fixed(map.d), e = to_fixed(map.e);
  const std::int64_t start_x = to_fixed(map.c + map.a * 0.5 + map.b * 0.5);
  const std::int64_t start_y = to_fixed(map.f + map.d * 0.5 + map.e * 0.5);
  std::memcpy(scratch, picture.data, static_cast<std::size_t>(picture.size()));
  for (std::int64_t y = 0; y < picture.height; ++y) {
    for (std::int64_t x = 0; x < picture.width; ++x) {
      const std::int64_t from_x = (start_x + a * x + b * y) >> 16;
      const std::int64_t from_y = (start_y + d * x + e * y) >> 16;
      const bool is_inside =
          from_x >= 0 && from_x < picture.width && from_y >= 0 && from_y < picture.height;
      for (std::int64_t c = 0; c < picture.channels; ++c) {
        const std::int64_t plane = c * picture.plane();
        picture.data[plane + y * picture.width + x] =
            is_inside ? scratch[plane + from_y * picture.width + from_x] : 0;
      }
    }
  }
}

AffineMap rotation(double degrees, std::int64_t height, std::int64_t width) {
  // PIL rounds both to 15 decimals, so that a quarter turn is one.
  const auto rounded = [](double x) { return std::nearbyint(x * 1e15) / 1e15; };
  const double angle = -degrees * std::numbers::pi / 180;
  AffineMap map;
  map.a = rounded(std::cos(angle)), map.b = rounded(std::sin(angle));
  map.d = rounded(-std::sin(angle)), map.e = rounded(std::cos(angle));
  const double x = static_cast<double>(width) / 2, y = static_cast<double>(height) / 2;
  map.c = map.a * -x + map.b * -y + x;
  map.f = map.d * -x + map.e * -y + y;
  return map;
}

}  // namespace tandem
