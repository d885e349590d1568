// Optimizers, accumulation and clipping against the reference.
#include <gtest/gtest.h>

#include "engine/operators/update_kind.h"
#include "tests/harness/update_settings.h"
#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

std::vector<NodeInput> scalars(std::int64_t step, bool skip) {
  return {{HostTensor::from<float>({}, {0.05f})},
          {HostTensor::from<std::int64_t>({}, {step})},
          {HostTensor::from<float>({}, {0.5f})},
          {HostTensor::from<bool>({}, {skip})}};
}

std::vector<NodeInput> with_scalars(std::vector<NodeInput> inputs, std::int64_t step, bool skip) {
  for (const NodeInput& s : scalars(step, skip)) inputs.push_back(s);
  return inputs;
}

TEST(Update, Sgd) {
  for (std::int64_t n : {1, 37, 70001}) {
    for (bool skip : {false, true}) {
      const NodeInput w{random_tensor({n}, 1)}, g{random_tensor({n}, 2)}, b{random_tensor({n}, 3)};
      check({.op = "SgdUpdate",
             .inputs = with_scalars({w, g, absent_input()}, 3, skip),
             .attributes = {{"weight_decay", 0.1}},
             .unread = {1},
             .in_place = true});
      for (std::int64_t nesterov : {0, 1}) {
        for (std::int64_t step : {1, 4}) {
          check({.op = "SgdUpdate",
                 .inputs = with_scalars({w, g, b}, step, skip),
                 .attributes = {{"weight_decay", 0.1},
                                {"momentum", 0.9},
                                {"nesterov", nesterov},
                                {"dampening", nesterov ? 0.0 : 0.2}},
                 .in_place = true});
        }
      }
    }
  }
}

TEST(Update, Adam) {
  for (std::int64_t n : {1, 37, 70001}) {
    for (bool skip : {false, true}) {
      for (const char* form : {"pytorch", "onnx"}) {
        for (std::int64_t decoupled : {0, 1}) {
          check({.op = "AdamUpdate",
                 .inputs = with_scalars({{random_tensor({n}, 1)},
                                         {random_tensor({n}, 2)},
                                         {random_tensor({n}, 3)},
                                         {random_tensor({n}, 4, 0, 1)}},
                                        5, skip),
                 .attributes = {{"weight_decay", 0.01},
                                {"decoupled", decoupled},
                                {"epsilon_form", std::string(form)}},
                 .in_place = n != 37});
        }
      }
    }
  }
}

TEST(Update, Lamb) {
  for (std::int64_t n : {1, 37, 4096, 70001}) {
    for (bool skip : {false, true}) {
      for (std::int64_t correct : {0, 1}) {
        check({.op = "LambUpdate",
               .inputs = with_scalars({{random_tensor({n}, 1)},
                                       {random_tensor({n}, 2)},
                                       {random_tensor({n}, 3)},
                                       {random_tensor({n}, 4, 0, 1)}},
                                      5, skip),
               .attributes = {{"weight_decay", 0.01}, {"bias_correction", correct}},
               .in_place = n != 37});
      }
    }
  }
}

// Gradients and weights of 16 bits; if a number is rounded to the other side, the difference is
// 2^-8 or 2^-11.
class SixteenBitUpdate : public ::testing::TestWithParam<DType> {};

TEST_P(SixteenBitUpdate, GradientsInAndWeightsOut) {
  const std::string type(name_of(GetParam()));
  const Attributes weight{{"weight", type}};
  const double rounding = GetParam() == DType::bfloat16 ? 4e-3 : 5e-4;
  const auto half = [](std::int64_t n, unsigned seed) {
    return NodeInput{random_tensor({n}, seed).converted(GetParam())};
  };
  for (std::int64_t n : {1, 1025, 70001}) {
    const NodeInput w{random_tensor({n}, 1)}, m{random_tensor({n}, 3)},
        v{random_tensor({n}, 4, 0, 1)};
    for (bool skip : {false, true}) {
      check({.op = "AdamUpdate",
             .inputs = with_scalars({w, half(n, 2), m, v}, 5, skip),
             .attributes = weight,
             .tolerance = rounding,
             .in_place = true});
      check({.op = "AdamUpdate", .inputs = with_scalars({w, half(n, 2), m, v}, 5, skip)});
      check({.op = "SgdUpdate",
             .inputs = with_scalars({w, half(n, 2), absent_input()}, 3, skip),
             .attributes = weight,
             .unread = {1},
             .tolerance = rounding});
    }
    // The second update overwrites the weight that it is given.
    check({.op = "GroupedUpdate",
           .inputs = with_scalars(
               {w, half(n, 2), m, v, absent_input(), m, half(n, 5), w, v, half(n, 6)}, 2, false),
           .attributes = {{"op", std::string("AdamUpdate")},
                          {"count", std::int64_t{2}},
                          {"weight", type}},
           .tolerance = rounding});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SixteenBitUpdate,
                         ::testing::Values(DType::bfloat16, DType::float16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Update, Grouped) {
  std::vector<NodeInput> adam, sgd;
  unsigned seed = 1;
  for (std::int64_t n : {5000, 1, 0, 1024, 333}) {
    for (int k = 0; k < 4; ++k) adam.push_back({random_tensor({n}, seed++, k == 3 ? 0 : -1)});
    for (int k = 0; k < 2; ++k) sgd.push_back({random_tensor({n}, seed++)});
    sgd.push_back(absent_input());
  }
  check({.op = "GroupedUpdate",
         .inputs = with_scalars(adam, 2, false),
         .attributes = {{"op", std::string("AdamUpdate")}, {"count", std::int64_t{5}}}});
  check({.op = "GroupedUpdate",
         .inputs = with_scalars(sgd, 2, false),
         .attributes = {{"op", std::string("SgdUpdate")}, {"count", std::int64_t{5}}},
         .unread = {1, 3, 5, 7, 9}});
}

// Every element-wise kind: any length, in place and not, grouped, from and to 16 bits, in any dense
// layout.
class ElementUpdates : public ::testing::TestWithParam<UpdateSettings> {};

TEST_P(ElementUpdates, AsTheReference) {
  const UpdateKind& kind = *find_update_kind(GetParam().op);
  const auto keeps = [&](std::size_t k) { return kind.keeps_state(k, GetParam().settings, {1}); };
  const auto tensors = [&](const Shape& shape, unsigned seed, DType grad = DType::float32,
                           const std::optional<Layout>& layout = {}) {
    std::vector<NodeInput> inputs{{random_tensor(shape, seed), layout},
                                  {random_tensor(shape, seed + 1).converted(grad), layout}};
    for (std::size_t k = 0; k < kind.states.size(); ++k) {
      const auto number = seed + 2 + static_cast<unsigned>(k);
      // The mean of squares is larger than the square of the mean.
      const double least = k == 0 ? 0.5 : 0.1, most = k == 0 ? 1 : 0.5;
      inputs.push_back(keeps(k) ? NodeInput{random_tensor(shape, number, least, most), layout}
                                : absent_input());
    }
    return inputs;
  };
  const auto unread_of = [&](int groups) {
    std::vector<int> unread;
    const auto outputs = 1 + kind.states.size();
    for (std::size_t k = 0; k < static_cast<std::size_t>(groups) * outputs; ++k) {
      if (k % outputs > 0 && !keeps(k % outputs - 1)) unread.push_back(static_cast<int>(k));
    }
    return unread;
  };
  const Attributes& settings = GetParam().settings;
  for (std::int64_t n : {1, 37, 70001}) {
    for (bool skip : {false, true}) {
      for (bool in_place : {false, true}) {
        check({.op = kind.op,
               .inputs = with_scalars(tensors({n}, 1), 3, skip),
               .attributes = settings,
               .unread = unread_of(1),
               .in_place = in_place});
      }
      Attributes weighted = settings;
      weighted.set("weight", std::string("bfloat16"));
      check({.op = kind.op,
             .inputs = with_scalars(tensors({n}, 1, DType::bfloat16), 3, skip),
             .attributes = weighted,
             .unread = unread_of(1),
             .tolerance = 4e-3,
             .in_place = true});
    }
  }
  const Shape image{20, 30, 3, 3};
  const std::optional<Layout> last = channels_last(image);
  std::vector<std::optional<Layout>> layouts{last};
  for (std::size_t k = 0; k < kind.states.size(); ++k)
    layouts.push_back(keeps(k) ? last : std::nullopt);
  check({.op = kind.op,
         .inputs = with_scalars(tensors(image, 1, DType::float32, last), 3, false),
         .attributes = settings,
         .output_layouts = layouts,
         .unread = unread_of(1)});
  std::vector<NodeInput> grouped;
  for (std::int64_t n : {5000, 1, 0, 1024, 333}) {
    for (NodeInput& input : tensors({n}, static_cast<unsigned>(n)))
      grouped.push_back(std::move(input));
  }
  Attributes of_group = settings;
  of_group.set("op", kind.op);
  of_group.set("count", std::int64_t{5});
  check({.op = "GroupedUpdate",
         .inputs = with_scalars(grouped, 2, false),
         .attributes = of_group,
         .unread = unread_of(5)});
}

std::vector<UpdateSettings> element_kinds() {
  std::vector<UpdateSettings> kinds = settings_to_try();
  std::erase_if(kinds,
                [](const auto& tried) { return !find_update_kind(tried.op)->elementwise(); });
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Kinds, ElementUpdates, ::testing::ValuesIn(element_kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(Update, LayoutsAndTheRest) {
  const Shape shape{20, 30, 3, 3};
  const auto input = [&](unsigned seed) {
    return NodeInput{random_tensor(shape, seed, 0, 1), channels_last(shape)};
  };
  const std::optional<Layout> last = channels_last(shape);
  check({.op = "AdamUpdate",
         .inputs = with_scalars({input(1), input(2), input(3), input(4)}, 5, false),
         .output_layouts = {last, last, last}});
  for (std::int64_t first : {0, 1}) {
    check({.op = "Accumulate",
           .inputs = {input(1), input(2)},
           .attributes = {{"first", first}},
           .output_layouts = {last}});
  }
  check({"ClipScale",
         {{HostTensor::from<float>({}, {3})}, {HostTensor::from<float>({}, {5})}},
         {{"max_norm", 1.5}}});
  check({"ClipScale",
         {{HostTensor::from<float>({}, {3})}, {HostTensor::from<float>({}, {5})}},
         {{"max_norm", 15.0}}});
}

}  // namespace
}  // namespace tandem::testing
