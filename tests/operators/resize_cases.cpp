// Cases of interpolation along an axis.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

struct ResizeCase {
  std::string name;
  Shape shape;
  std::int64_t axis, size;
  double scale, shift, offset;
  std::string mode;
  double filter_scale = 1, coefficient = -0.75;
  std::int64_t exclude = 0;
};

}  // namespace

void add_resize_cases(std::vector<OperatorCase>& cases) {
  const std::vector<ResizeCase> list = {
      {"up", {2, 3, 5}, 1, 6, 2, 0.5, -0.5, "linear"},
      {"up along the last axis", {2, 5}, 1, 12, 2.4, 0.5, -0.5, "linear"},
      {"down", {8, 3}, 0, 3, 3.0 / 8, 0.5, -0.5, "linear"},
      {"down with a wider filter", {8, 3}, 0, 3, 3.0 / 8, 0.5, -0.5, "linear", 3.0 / 8},
      {"corners", {3, 4}, 1, 7, 2, 0, 0, "linear"},
      {"cubic up", {2, 4, 3}, 1, 9, 2.25, 0.5, -0.5, "cubic"},
      {"cubic down with a wider filter", {2, 9}, 1, 4, 4.0 / 9, 0.5, -0.5, "cubic", 4.0 / 9, -0.5},
      {"cubic without what is outside", {6, 2}, 0, 9, 1.5, 0.5, -0.5, "cubic", 1, -0.75, 1},
      {"far outside", {4, 2}, 0, 3, 0.01, 0, -120, "linear"},
      {"mirrored", {4, 2}, 0, 4, -1, 0, 3, "cubic"},
      {"to nothing", {4, 2}, 0, 0, 0.1, 0, 0, "linear"},
      {"nothing beside", {0, 3}, 1, 6, 2, 0.5, -0.5, "linear"},
      {"one element", {1, 2}, 0, 3, 3, 0.5, -0.5, "cubic"},
      {"long rows", {3, 40}, 0, 5, 5.0 / 3, 0.5, -0.5, "linear"}};
  for (const ResizeCase& c : list) {
    Attributes attributes{{"axis", c.axis},
                          {"size", c.size},
                          {"scale", c.scale},
                          {"shift", c.shift},
                          {"offset", c.offset},
                          {"mode", c.mode},
                          {"cubic_coeff_a", c.coefficient},
                          {"exclude_outside", c.exclude},
                          {"filter_scale", c.filter_scale}};
    cases.push_back(make_case("Resize", c.name, {uniform(c.shape)}, attributes));
    Shape y = c.shape;
    y[static_cast<std::size_t>(c.axis)] = c.size;
    attributes.set("shape", c.shape);
    cases.push_back(make_case("ResizeGrad", c.name, {uniform(y)}, attributes));
  }
  const Attributes twice{{"axis", std::int64_t{0}},
                         {"size", std::int64_t{4}},
                         {"scale", 2.0},
                         {"shift", 0.5},
                         {"offset", -0.5}};
  cases.push_back(
      expecting(make_case("Resize", "known", {values({2}, {1, 5})}, twice), {1, 2, 4, 5}));
  Attributes back = twice;
  back.set("shape", Ints{2});
  cases.push_back(expecting(make_case("ResizeGrad", "known", {values({4}, {1, 2, 3, 4})}, back),
                            {1 + 1.5 + 0.75, 0.5 + 2.25 + 4}));
}

}  // namespace tandem::testing
