// reshape(3, 32, 32): to that shape; one extent may be -1.
#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct Reshape final : FieldFunction {
  Shape shape;

  explicit Reshape(Call& call) {
    call.count(1, 16, "reshape(3, 32, 32)");
    int open = 0;
    for (const double extent : call.numbers()) {
      shape.push_back(extent == -1 ? -1 : whole(extent, 1, "an extent"));
      open += extent == -1;
    }
    if (open > 1) throw std::invalid_argument("only one extent can be -1");
  }

  TensorType type_of(const TensorType& from) const override {
    std::int64_t known = 1;
    for (const std::int64_t extent : shape) known *= extent == -1 ? 1 : extent;
    TensorType to{from.dtype, shape};
    for (std::int64_t& extent : to.shape) {
      if (extent == -1) extent = from.elements() / known;
    }
    if (to.elements() != from.elements()) {
      throw std::invalid_argument("the elements of " + to_string(from) + " do not make " +
                                  to_string(shape));
    }
    return to;
  }
  bool only_copies(const TensorType&) const override { return true; }
  void run(const SampleArray&) const override {}
};

}  // namespace

FieldFunctionKind reshape() {
  return {
      .name = "reshape", .form = "reshape(…)", .read = read_call<Reshape>, .before_augment = true};
}

}  // namespace tandem::functions
