// rand_augment(num_ops=2, magnitude=9): torchvision's RandAugment (Cubuk et al. 2019,
// arXiv:1909.13719), one operation of the list below after another, each drawn from all of them.
// Magnitudes are of 31 steps, from nothing (0) to the most (30); black comes in from outside.
#include <cmath>
#include <span>

#include "engine/data/functions/pixel_function.h"

namespace tandem::functions {
namespace {

constexpr int last_step = 30;

/// What an operation is given: its share of the most, 0 to 1, negative where it goes the other way.
struct AugmentStep {
  Pixels picture;
  double part;
  std::uint8_t* scratch;
};

struct AugmentOperation {
  bool is_signed;
  void (*run)(const AugmentStep&);
};

/// The largest shift, as a share of the image's size: 150 of 331 pixels.
constexpr double most_moved = 150.0 / 331.0;

void move_by(const AugmentStep& s, double x, double y) {
  transform_pixels(s.picture, {.c = -std::trunc(x), .f = -std::trunc(y)}, s.scratch);
}

// In the order of torchvision's list.
constexpr AugmentOperation augment_operations[] = {
    {false, [](const AugmentStep&) {}},
    {true,
     [](const AugmentStep& s) { transform_pixels(s.picture, {.b = 0.3 * s.part}, s.scratch); }},
    {true,
     [](const AugmentStep& s) { transform_pixels(s.picture, {.d = 0.3 * s.part}, s.scratch); }},
    {true,
     [](const AugmentStep& s) {
       move_by(s, most_moved * static_cast<double>(s.picture.width) * s.part, 0);
     }},
    {true,
     [](const AugmentStep& s) {
       move_by(s, 0, most_moved * static_cast<double>(s.picture.height) * s.part);
     }},
    {true,
     [](const AugmentStep& s) {
       transform_pixels(s.picture, rotation(30 * s.part, s.picture.height, s.picture.width),
                        s.scratch);
     }},
    {true, [](const AugmentStep& s) { adjust_brightness(s.picture, 1 + 0.9 * s.part); }},
    {true, [](const AugmentStep& s) { adjust_saturation(s.picture, 1 + 0.9 * s.part, s.scratch); }},
    {true, [](const AugmentStep& s) { adjust_contrast(s.picture, 1 + 0.9 * s.part); }},
    {true, [](const AugmentStep& s) { adjust_sharpness(s.picture, 1 + 0.9 * s.part, s.scratch); }},
    {false,
     [](const AugmentStep& s) {
       posterize(s.picture, 8 - static_cast<int>(std::nearbyint(4 * s.part)));
     }},
    {false, [](const AugmentStep& s) { solarize(s.picture, 255 * (1 - s.part)); }},
    {false, [](const AugmentStep& s) { stretch_contrast(s.picture); }},
    {false, [](const AugmentStep& s) { equalize(s.picture); }},
};

struct RandAugment final : PixelFunction {
  std::int64_t operations = 2, magnitude = 9;

  explicit RandAugment(Call& call) {
    if (const auto n = call.take_number("num_ops")) operations = whole(*n, 1, "`num_ops`");
    if (const auto n = call.take_number("magnitude")) magnitude = whole(*n, 0, "`magnitude`");
    if (operations > 100) throw std::invalid_argument("`num_ops` is at most 100");
    if (magnitude > last_step) throw std::invalid_argument("`magnitude` is at most 30");
    call.count(0, 0, "rand_augment(num_ops=2, magnitude=9)");
  }

  void change(Pixels picture, RandomStream& random, std::uint8_t* scratch) const override {
    for (std::int64_t i = 0; i < operations; ++i) {
      const AugmentOperation& drawn =
          augment_operations[random.below(std::size(augment_operations))];
      double part = static_cast<double>(magnitude) / last_step;
      if (drawn.is_signed && random.below(2) == 1) part = -part;
      drawn.run({picture, part, scratch});
    }
  }
};

}  // namespace

FieldFunctionKind rand_augment() {
  return {.name = "rand_augment",
          .form = "rand_augment(num_ops=2, magnitude=9)",
          .read = read_call<RandAugment>,
          .is_random = true};
}

}  // namespace tandem::functions
