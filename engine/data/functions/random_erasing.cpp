// random_erasing(p=0.5, scale=[0.02, 0.33], ratio=[0.3, 3.3], value=0): torchvision's RandomErasing
// (Zhong et al. 2017, arXiv:1708.04896). With probability p a part of that share of the area and
// with that ratio of height to width, the ratio drawn by its logarithm, gets `value`, in the units
// that the function finds: a number, or a list of one a channel. After ten draws that do not lie
// inside nothing is erased.
#include <cmath>
#include <cstring>

#include "engine/data/functions/planes.h"

namespace tandem::functions {
namespace {

struct RandomErasing final : FieldFunction {
  double probability = 0.5;
  double least_area = 0.02, most_area = 0.33, least_ratio = 0.3, most_ratio = 3.3;
  std::vector<double> values{0};

  explicit RandomErasing(Call& call) {
    if (const auto p = call.take_number("p")) probability = *p;
    if (probability < 0 || probability > 1)
      throw std::invalid_argument("`p` is a probability, 0 to 1");
    const auto take = [&](const char* name, double& least, double& most) {
      const auto numbers = call.take_numbers(name);
      if (!numbers) return;
      if (numbers->size() != 2 || !(numbers->at(0) > 0) || numbers->at(0) > numbers->at(1))
        throw std::invalid_argument("`" + std::string(name) + "` is [least, most], above 0");
      least = numbers->at(0), most = numbers->at(1);
    };
    take("scale", least_area, most_area);
    take("ratio", least_ratio, most_ratio);
    if (most_area > 1) throw std::invalid_argument("`scale` is a part of the area, at most 1");
    if (auto numbers = call.take_numbers("value")) values = *std::move(numbers);
    if (values.empty()) throw std::invalid_argument("`value` is a number, or one a channel");
    call.count(0, 0, "random_erasing(p=0.5, scale=[0.02, 0.33], ratio=[0.3, 3.3], value=0)");
  }

  TensorType type_of(const TensorType& from) const override {
    if (from.shape.size() < 2 || from.elements() == 0)
      throw std::invalid_argument("an image has two axes at least, this is " + to_string(from));
    const std::int64_t planes = Planes(from.shape).count;
    if (values.size() > 1 && planes != static_cast<std::int64_t>(values.size())) {
      throw std::invalid_argument(std::to_string(values.size()) + " values for the channels of " +
                                  to_string(from));
    }
    const bool is_byte = from.dtype == DType::uint8;
    for (const double value : values) {
      if (is_byte && (value < 0 || value > 255 || value != std::floor(value)))
        throw std::invalid_argument("`value` is a whole number from 0 to 255 for uint8");
    }
    return from;
  }

  void run(const SampleArray& sample) const override {
    std::memcpy(sample.result, sample.values, sample.type.bytes());
    RandomStream random = sample.random();
    if (random.uniform() >= probability) return;
    const Planes planes(sample.type.shape);
    const double area = static_cast<double>(planes.height * planes.width);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double part = area * random.between(least_area, most_area);
      const double ratio = std::exp(random.between(std::log(least_ratio), std::log(most_ratio)));
      const auto height = static_cast<std::int64_t>(std::nearbyint(std::sqrt(part * ratio)));
      const auto width = static_cast<std::int64_t>(std::nearbyint(std::sqrt(part / ratio)));
      if (height >= planes.height || width >= planes.width) continue;
      const auto place = [&](std::int64_t rest) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rest) + 1));
      };
      const std::int64_t top = place(planes.height - height), left = place(planes.width - width);
      with_type(sample.type.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (std::int64_t plane = 0; plane < planes.count; ++plane) {
          const double value = values[values.size() > 1 ? static_cast<std::size_t>(plane) : 0];
          T* row = sample.to<T>() + (plane * planes.height + top) * planes.width + left;
          for (std::int64_t y = 0; y < height; ++y, row += planes.width)
            std::fill(row, row + width, T(static_cast<float>(value)));
        }
      });
      return;
    }
  }
};

}  // namespace

FieldFunctionKind random_erasing() {
  return {.name = "random_erasing",
          .form = "random_erasing(p=0.5, scale=[0.02, 0.33], ratio=[0.3, 3.3], value=0)",
          .read = read_call<RandomErasing>,
          .is_random = true};
}

}  // namespace tandem::functions
