// Cases of pooling in regions of feature maps. Corners avoid places where a sample changes from one
// element to the next, or where a bin's number of samples changes.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

CaseInput fixed_places(CaseInput input) {
  input.differentiable = false;  // regions have no gradient
  return input;
}

void add_aligned(std::vector<OperatorCase>& cases) {
  const CaseInput rois =
      fixed_places(values({3, 4}, {0.3, 0.2, 3.1, 3.7, -1.4, 1.1, 2.2, 6.3, 2.2, 1.7, 2.9, 2.1}));
  const CaseInput batches = values({3}, {1, 0, -1}, DType::int64);
  const auto add = [&](const std::string& name, const CaseInput& x, const Attributes& attributes) {
    Shape y{3, x.shape[1], attributes.integer("height"), attributes.integer("width")};
    cases.push_back(make_case("RoiAlign", name, {x, rois, batches}, attributes));
    cases.push_back(make_case("RoiAlignGrad", name, {uniform(y), x, rois, batches}, attributes));
  };
  for (const std::string mode : {"avg", "max"}) {
    for (std::int64_t half_pixel : {0, 1}) {
      for (std::int64_t ratio : {0, 2}) {
        const Attributes attributes{
            {"height", std::int64_t{2}}, {"width", std::int64_t{3}}, {"mode", mode},
            {"sampling_ratio", ratio},   {"spatial_scale", 1.0},     {"half_pixel", half_pixel}};
        add(mode + (half_pixel != 0 ? " half pixel" : "") + " " + std::to_string(ratio),
            filled({2, 2, 5, 4}, Fill::distinct), attributes);
      }
    }
  }
  add("scaled", uniform({2, 1, 3, 7}),
      {{"height", std::int64_t{3}}, {"width", std::int64_t{1}}, {"spatial_scale", 0.7}});
  const CaseInput x = values({1, 1, 2, 2}, {1, 2, 3, 4});
  cases.push_back(expecting(
      make_case("RoiAlign", "known",
                {x, fixed_places(values({1, 4}, {0, 0, 2, 2})), values({1}, {0}, DType::int32)},
                {{"height", std::int64_t{1}},
                 {"width", std::int64_t{2}},
                 {"sampling_ratio", std::int64_t{1}}}),
      {2, 3}));
}

void add_largest(std::vector<OperatorCase>& cases) {
  const CaseInput rois = fixed_places(
      values({3, 5}, {1, 0.3, 0.2, 3.1, 3.7, 0, -1.4, 1.1, 2.2, 6.3, 1, 2.2, 1.7, 2.9, 2.1}));
  for (const auto& [height, width, scale] : {std::tuple{std::int64_t{2}, std::int64_t{2}, 1.0},
                                             {std::int64_t{1}, std::int64_t{3}, 0.6}}) {
    cases.push_back(make_case("MaxRoiPool", std::to_string(height) + " " + std::to_string(width),
                              {filled({2, 2, 5, 4}, Fill::distinct), rois},
                              {{"height", height}, {"width", width}, {"spatial_scale", scale}}));
  }
  const auto one = [&](const char* name, const Shape& shape, std::int64_t size,
                       std::vector<double> corners) {
    const Attributes attributes{{"height", size}, {"width", size}, {"spatial_scale", 1.0}};
    cases.push_back(
        make_case("MaxRoiPool", name,
                  {filled(shape, Fill::distinct), fixed_places(values({1, 5}, std::move(corners)))},
                  attributes));
  };
  one("one row", {1, 3, 1, 6}, 2, {0, 0.2, 0.1, 4.3, 0.2});
  one("a whole map", {1, 1, 4, 3}, 3, {0, 0.1, 0.2, 2.2, 3.1});
  // A region below the image is empty.
  cases.push_back(
      expecting(make_case("MaxRoiPool", "known",
                          {values({1, 1, 2, 2}, {1, -2, -3, 4}),
                           fixed_places(values({2, 5}, {0, 1, 0, 1, 0, 0, 0, 5, 1, 6}))},
                          {{"height", std::int64_t{1}}, {"width", std::int64_t{1}}}),
                {-2, 0}));
}

}  // namespace

void add_region_cases(std::vector<OperatorCase>& cases) {
  add_aligned(cases);
  add_largest(cases);
}

}  // namespace tandem::testing
