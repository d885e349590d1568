// What augmentations do to the bytes of a picture, as PIL does it: results are its to the bit.
#pragma once

#include <cstdint>
#include <span>

namespace tandem {

/// Planes of bytes one after the other; one or three of them.
struct Pixels {
  std::uint8_t* data = nullptr;
  std::int64_t channels = 0, height = 0, width = 0;

  std::int64_t plane() const { return height * width; }
  std::int64_t size() const { return channels * plane(); }
};

// Each changes the picture in place. `scratch`: as many bytes, whose contents are lost.

/// PIL's blend of `from` and the picture: from + factor (picture - from), cut to 0 to 255 and
/// rounded down. ImageEnhance's factors: 1 keeps the picture, 0 gives `from`.
void blend_pixels(Pixels picture, std::span<const std::uint8_t> from, double factor);

void adjust_brightness(Pixels picture, double factor);  // from black
/// From the mean of the grey picture, rounded.
void adjust_contrast(Pixels picture, double factor);
/// From the grey picture. One of one channel stays as it is.
void adjust_saturation(Pixels picture, double factor, std::uint8_t* scratch);
/// Moves the hue by `turn`, from -0.5 to 0.5 of a whole turn, in PIL's HSV of bytes. One of one
/// channel stays as it is.
void adjust_hue(Pixels picture, double turn);
/// From the picture smoothed by (1 1 1, 1 5 1, 1 1 1) / 13, whose edges stay.
void adjust_sharpness(Pixels picture, double factor, std::uint8_t* scratch);

void posterize(Pixels picture, int bits);         // the upper bits stay, 0 to 8 of them
void solarize(Pixels picture, double threshold);  // what is not below it becomes 255 - x
void stretch_contrast(Pixels picture);            // PIL's autocontrast: each plane from 0 to 255
void equalize(Pixels picture);                    // each plane's histogram, as PIL's ImageOps

/// Where a pixel comes from: (x, y) of the result is (a x + b y + c, d x + e y + f) of the picture,
/// from the middle of pixel to middle.
struct AffineMap {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};
/// PIL's transform without interpolation, in fixed point of 16 bits; what comes from outside is 0.
void transform_pixels(Pixels picture, const AffineMap& map, std::uint8_t* scratch);
/// PIL's rotate by degrees against the clock, about the middle.
AffineMap rotation(double degrees, std::int64_t height, std::int64_t width);

}  // namespace tandem
