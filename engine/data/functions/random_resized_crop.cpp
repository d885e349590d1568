// random_resized_crop(size, scale=[0.08, 1], ratio=[3/4, 4/3]): torchvision's RandomResizedCrop. A
// part of that share of the area and with that ratio of width to height, both drawn, the ratio by
// its logarithm, becomes (height, width) with the antialiased bilinear filter. Where ten draws do
// not lie inside, the largest part in the middle whose ratio is allowed.
#include <cmath>
#include <cstring>

#include "engine/data/functions/planes.h"
#include "engine/formats/images/resample.h"

namespace tandem::functions {
namespace {

struct CropWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

struct RandomResizedCrop final : ImageFunction {
  double least_area = 0.08, most_area = 1, least_ratio = 3.0 / 4.0, most_ratio = 4.0 / 3.0;

  explicit RandomResizedCrop(Call& call) {
    const auto take = [&](const char* name, double& least, double& most) {
      const auto numbers = call.take_numbers(name);
      if (!numbers) return;
      if (numbers->size() != 2 || !(numbers->at(0) > 0) || numbers->at(0) > numbers->at(1)) {
        throw std::invalid_argument("`" + std::string(name) + "` is [least, most], above 0");
      }
      least = numbers->at(0), most = numbers->at(1);
    };
    take("scale", least_area, most_area);
    take("ratio", least_ratio, most_ratio);
    if (most_area > 1) throw std::invalid_argument("`scale` is a part of the area, at most 1");
    read_size(call, "random_resized_crop(224, scale=[0.08, 1], ratio=[3/4, 4/3])");
  }

  TensorType type_of(const TensorType& from) const override {
    if (from.dtype != DType::uint8 && from.dtype != DType::float32)
      throw std::invalid_argument("acts on uint8 and float32, this is " + to_string(from));
    return ImageFunction::type_of(from);
  }
  bool takes_any_size() const override { return true; }

  CropWindow draw(std::int64_t height, std::int64_t width, RandomStream& random) const {
    const auto h = static_cast<double>(height), w = static_cast<double>(width);
    const auto up_to = [&](std::int64_t most) {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most) + 1));
    };
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double area = h * w * random.between(least_area, most_area);
      const double ratio = std::exp(random.between(std::log(least_ratio), std::log(most_ratio)));
      const auto cut_width = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * ratio)));
      const auto cut_height = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / ratio)));
      if (cut_width < 1 || cut_width > width || cut_height < 1 || cut_height > height) continue;
      const std::int64_t top = up_to(height - cut_height);
      return {top, up_to(width - cut_width), cut_height, cut_width};
    }
    CropWindow middle{0, 0, height, width};
    const auto rounded = [](double x) {
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::nearbyint(x)));
    };
    if (w / h < least_ratio) middle.height = std::min(height, rounded(w / least_ratio));
    if (w / h > most_ratio) middle.width = std::min(width, rounded(h * most_ratio));
    middle.top = (height - middle.height) / 2;
    middle.left = (width - middle.width) / 2;
    return middle;
  }

  void run(const SampleArray& sample) const override {
    const Planes in(sample.type.shape);
    RandomStream random = sample.random();
    const CropWindow window = draw(in.height, in.width, random);
    const PlanePart part{in.count,    in.height * in.width, in.width,    window.top,
                         window.left, window.height,        window.width};
    if (sample.type.dtype == DType::uint8) {
      resample_planes(sample.as<std::uint8_t>(), part, height, width, sample.to<std::uint8_t>());
    } else {
      resample_planes(sample.as<float>(), part, height, width, sample.to<float>());
    }
  }
};

}  // namespace

FieldFunctionKind random_resized_crop() {
  return {.name = "random_resized_crop",
          .form = "random_resized_crop(size, scale=[0.08, 1], ratio=[3/4, 4/3])",
          .read = read_call<RandomResizedCrop>,
          .is_random = true};
}

}  // namespace tandem::functions
