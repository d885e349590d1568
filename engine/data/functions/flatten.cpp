// flatten: one axis.
#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct Flatten final : FieldFunction {
  TensorType type_of(const TensorType& from) const override {
    return {from.dtype, {from.elements()}};
  }
  bool only_copies(const TensorType&) const override { return true; }
  void run(const SampleArray&) const override {}
};

}  // namespace

FieldFunctionKind flatten() {
  return {.name = "flatten", .form = "flatten", .read = read_call<Flatten>};
}

}  // namespace tandem::functions
