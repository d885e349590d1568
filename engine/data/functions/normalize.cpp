// normalize(mean, std): (x - mean) / std, float32, computed in double, with one number each or one
// for each index of axis 0.
#include <fmt/format.h>

#include "engine/data/functions/field_function.h"
#include "engine/data/functions/map_numbers.h"

namespace tandem::functions {
namespace {

struct Normalize final : FieldFunction {
  std::vector<double> mean, std;

  explicit Normalize(Call& call) {
    call.count(2, 2, "normalize(mean, std), numbers or one list each");
    mean = call[0].numbers;
    std = call[1].numbers;
    if (mean.empty() || mean.size() != std.size())
      throw std::invalid_argument("mean and std have different lengths");
    for (const double s : std) {
      if (!(s > 0)) throw std::invalid_argument("std must be above 0");
    }
  }

  TensorType type_of(const TensorType& from) const override {
    if (mean.size() > 1 &&
        (from.shape.empty() || from.shape[0] != static_cast<std::int64_t>(mean.size()))) {
      throw std::invalid_argument(std::to_string(mean.size()) + " means for axis 0 of " +
                                  to_string(from));
    }
    return {DType::float32, from.shape};
  }
  bool computes_numbers() const override { return true; }
  void run(const SampleArray& sample) const override {
    const auto each = sample.elements() / static_cast<std::int64_t>(mean.size());
    for (std::size_t c = 0; c < mean.size(); ++c) {
      map_numbers(sample, static_cast<std::int64_t>(c) * each, each,
                  [m = mean[c], s = std[c]](double x) { return (x - m) / s; });
    }
  }
  std::string decides_ids() const override {
    return fmt::format("normalize({}; {})", fmt::join(mean, ", "), fmt::join(std, ", "));
  }
};

}  // namespace

FieldFunctionKind normalize() {
  return {.name = "normalize", .form = "normalize(mean, std)", .read = read_call<Normalize>};
}

}  // namespace tandem::functions
