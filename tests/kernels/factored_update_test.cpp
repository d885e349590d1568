// Updates with statistics of rows and columns against the reference: parameters with any number of
// axes, matrices smaller and larger than a chunk, many at once, of 16 bits.
#include <gtest/gtest.h>

#include "engine/operators/update_kind.h"
#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

std::vector<NodeInput> with_scalars_of_third_step(std::vector<NodeInput> inputs,
                                                  bool skip = false) {
  inputs.push_back({HostTensor::from<float>({}, {0.05f})});
  inputs.push_back({HostTensor::from<std::int64_t>({}, {3})});
  inputs.push_back({HostTensor::from<float>({}, {0.5f})});
  inputs.push_back({HostTensor::from<bool>({}, {skip})});
  return inputs;
}

const UpdateKind& adafactor() { return *find_update_kind("AdafactorUpdate"); }

Attributes adafactor_settings(const Attributes& more = {}) {
  Attributes all;
  for (const AttributeSpec& spec : adafactor().attributes) all.set(spec.name, spec.value);
  for (const auto& [name, value] : more.entries()) all.set(name, value);
  return all;
}

/// Master, gradient and the states that the parameter has.
std::vector<NodeInput> parameter(const Shape& shape, unsigned seed, DType grad = DType::float32) {
  std::vector<NodeInput> inputs{{random_tensor(shape, seed)},
                                {random_tensor(shape, seed + 1).converted(grad)}};
  for (std::size_t k = 0; k < adafactor().states.size(); ++k) {
    if (adafactor().keeps_state(k, adafactor_settings(), shape))
      inputs.push_back({random_tensor(adafactor().state_shape(k, shape),
                                      seed + 2 + static_cast<unsigned>(k), 0.01, 1)});
    else
      inputs.push_back(absent_input());
  }
  return inputs;
}

/// Outputs of states that do not exist.
std::vector<int> unread(const std::vector<Shape>& shapes, bool weight = false) {
  std::vector<int> all;
  const int outputs = 1 + static_cast<int>(adafactor().states.size()) + weight;
  for (std::size_t group = 0; group < shapes.size(); ++group) {
    for (std::size_t k = 0; k < adafactor().states.size(); ++k) {
      if (!adafactor().keeps_state(k, adafactor_settings(), shapes[group]))
        all.push_back(static_cast<int>(group) * outputs + 1 + static_cast<int>(k));
    }
  }
  return all;
}

const std::vector<Shape> shapes{{},
                                {1},
                                {37},
                                {70001},
                                {1, 37},
                                {37, 1},
                                {3, 5},
                                {300, 200},
                                {3, 40000},
                                {20000, 3},
                                {2, 150, 130},
                                {5, 4, 30},
                                {40, 9, 3, 3},
                                {2, 3, 90, 70},
                                {4, 6000, 1, 2}};

TEST(FactoredUpdate, AsTheReferenceOfEveryShape) {
  const Attributes other = adafactor_settings(
      {{"weight_decay", 0.1}, {"beta2_decay", -0.5}, {"eps1", 0.5}, {"eps2", 2.0}, {"d", 1.25}});
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(to_string(shape));
    for (const Attributes& attributes : {adafactor_settings(), other}) {
      for (const bool skip : {false, true}) {
        check({.op = adafactor().op,
               .inputs = with_scalars_of_third_step(parameter(shape, 1), skip),
               .attributes = attributes,
               .unread = unread({shape}),
               .in_place = !skip && shape.size() % 2 == 0,
               .same_of_any_threads = true});
      }
    }
  }
}

TEST(FactoredUpdate, GradientsOfSixteenBitsInAndWeightsOut) {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(to_string(shape));
      check({.op = adafactor().op,
             .inputs = with_scalars_of_third_step(parameter(shape, 1, dtype)),
             .attributes = adafactor_settings({{"weight", std::string(name_of(dtype))}}),
             .unread = unread({shape}, true),
             .tolerance = dtype == DType::bfloat16 ? 4e-3 : 5e-4});
    }
  }
}

TEST(FactoredUpdate, Grouped) {
  const std::vector<std::vector<Shape>> groups{
      {{5000}, {1}, {0}, {40000}, {}}, {{30, 40}, {1, 7}, {0, 3}, {200, 150}, {4, 3, 3, 3}}};
  for (const std::vector<Shape>& group : groups) {
    std::vector<NodeInput> inputs;
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (const NodeInput& input : parameter(group[i], 10 * static_cast<unsigned>(i)))
        inputs.push_back(input);
    }
    check(
        {.op = "GroupedUpdate",
         .inputs = with_scalars_of_third_step(inputs),
         .attributes = {{"op", adafactor().op}, {"count", static_cast<std::int64_t>(group.size())}},
         .unread = unread(group)});
  }
}

}  // namespace
}  // namespace tandem::testing
