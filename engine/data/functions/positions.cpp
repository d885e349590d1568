// positions(start=0): the place of each value of a sequence: start, start + 1, start + 2, …
#include <numeric>

#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct Positions final : FieldFunction {
  std::int64_t start = 0;

  explicit Positions(Call& call) {
    if (const auto first = call.take_number("start")) start = whole(*first, 0, "start");
    call.count(0, 0, "positions(start=0)");
  }

  TensorType type_of(const TensorType& from) const override {
    if (from.shape.empty())
      throw std::invalid_argument("positions takes sequences, not " + to_string(from));
    return {DType::int64, {from.shape[0]}};
  }
  void run(const SampleArray& sample) const override {
    std::int64_t* const to = sample.to<std::int64_t>();
    std::iota(to, to + sample.type.shape[0], start);
  }
};

}  // namespace

FieldFunctionKind positions() {
  return {.name = "positions", .form = "positions(start=0)", .read = read_call<Positions>};
}

}  // namespace tandem::functions
