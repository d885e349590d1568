// color_jitter(brightness=b, contrast=c, saturation=s, hue=h): torchvision's ColorJitter. Factors
// are drawn from max(0, 1 - b) to 1 + b, or from a list [least, most]; the hue is turned by -h to
// h, h at most 0.5. The four come in an order that is drawn, too.
#include <array>
#include <utility>

#include "engine/data/functions/pixel_function.h"

namespace tandem::functions {
namespace {

struct FactorRange {
  double least = 1, most = 1;
  bool changes() const { return least != 1 || most != 1; }
};

FactorRange take_factors(Call& call, const char* name) {
  const auto numbers = call.take_numbers(name);
  if (!numbers) return {};
  const std::vector<double>& n = *numbers;
  const FactorRange range = n.size() == 1   ? FactorRange{std::max(0.0, 1 - n[0]), 1 + n[0]}
                            : n.size() == 2 ? FactorRange{n[0], n[1]}
                                            : FactorRange{1, 0};
  if ((n.size() == 1 && n[0] < 0) || range.least < 0 || range.least > range.most) {
    throw std::invalid_argument("`" + std::string(name) +
                                "` is a number from 0 on, or [least, most]");
  }
  return range;
}

struct ColorJitter final : PixelFunction {
  FactorRange brightness, contrast, saturation;
  double least_turn = 0, most_turn = 0;

  explicit ColorJitter(Call& call) {
    brightness = take_factors(call, "brightness");
    contrast = take_factors(call, "contrast");
    saturation = take_factors(call, "saturation");
    if (const auto turns = call.take_numbers("hue")) {
      if (turns->size() == 1) least_turn = -turns->at(0), most_turn = turns->at(0);
      if (turns->size() == 2) least_turn = turns->at(0), most_turn = turns->at(1);
      const bool is_range = !turns->empty() && turns->size() <= 2 && least_turn <= most_turn;
      if (!is_range || least_turn < -0.5 || most_turn > 0.5)
        throw std::invalid_argument("`hue` is a number from 0 to 0.5, or [least, most]");
    }
    call.count(0, 0, "color_jitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1)");
  }

  void change(Pixels picture, RandomStream& random, std::uint8_t* scratch) const override {
    std::array<int, 4> order{0, 1, 2, 3};
    for (std::size_t i = 4; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    const double light = random.between(brightness.least, brightness.most);
    const double depth = random.between(contrast.least, contrast.most);
    const double colour = random.between(saturation.least, saturation.most);
    const double turn = random.between(least_turn, most_turn);
    for (const int which : order) {
      if (which == 0 && brightness.changes()) adjust_brightness(picture, light);
      if (which == 1 && contrast.changes()) adjust_contrast(picture, depth);
      if (which == 2 && saturation.changes()) adjust_saturation(picture, colour, scratch);
      if (which == 3 && most_turn > least_turn) adjust_hue(picture, turn);
    }
  }
};

}  // namespace

FieldFunctionKind color_jitter() {
  return {.name = "color_jitter",
          .form = "color_jitter(brightness=b, contrast=c, saturation=s, hue=h)",
          .read = read_call<ColorJitter>,
          .is_random = true};
}

}  // namespace tandem::functions
