// Cases of look-ups and updates by places, running sums, largest elements, interpolation and
// sampling.
#include "engine/operators/tables/rows.h"
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

void add_flat_indices(std::vector<OperatorCase>& cases) {
  const auto add = [&](const std::string& name, CaseInput indices, Ints extents, Ints strides,
                       Ints positions) -> OperatorCase& {
    cases.push_back(make_case("FlatIndices", name, {std::move(indices)},
                              {{"extents", std::move(extents)},
                               {"strides", std::move(strides)},
                               {"position_strides", std::move(positions)}}));
    return cases.back();
  };
  add("pairs", typed(DType::int64, {4, 5, 2}, -3, 3), {3, 4}, {4, 1}, {0, 0});
  add("int32", typed(DType::int32, {7, 1}, -7, 7), {7}, {3}, {0});
  add("batches", typed(DType::int64, {3, 2, 2}, -2, 2), {2, 2}, {2, 1}, {4, 0});
  add("no places", typed(DType::int64, {0, 2}), {2, 2}, {2, 1}, {0});
  add("one place", typed(DType::int64, {3}, -2, 2), {2, 2, 2}, {4, 2, 1}, {});
  // Of x [3, 4]: (1, -1) and (-3, 2); then column 2 of row 0, column -1 of row 1.
  add("known pairs", values({2, 2}, {1, -1, -3, 2}, DType::int64), {3, 4}, {4, 1}, {0}).expected = {
      7, 2};
  add("known columns", values({2, 1, 1}, {2, -1}, DType::int32), {4}, {1}, {4, 0}).expected = {2,
                                                                                               7};
  const double absent = static_cast<double>(absent_id<std::int64_t>);
  add("absent", values({2, 2}, {absent, 1, 2, 1}, DType::int64), {3, 4}, {4, 1}, {0}).expected = {
      absent, 9};
}

void add_scatters(std::vector<OperatorCase>& cases) {
  const auto add = [&](const std::string& reduction, const std::string& name, CaseInput x,
                       CaseInput indices, CaseInput updates) -> OperatorCase& {
    cases.push_back(make_case("ScatterRows", reduction + " " + name,
                              {std::move(x), std::move(indices), std::move(updates)},
                              {{"reduction", reduction}}));
    return cases.back();
  };
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    const Fill fill = reduction == "max" || reduction == "min" ? Fill::distinct : Fill::uniform;
    const auto numbers = [&](Shape shape) { return filled(std::move(shape), fill); };
    add(reduction, "once", numbers({6, 3}), values({3}, {4, 0, -1}, DType::int64), numbers({3, 3}));
    add(reduction, "again", numbers({4, 2, 3}), values({5}, {1, 3, 1, -1, 1}, DType::int32),
        numbers({5, 2, 3}));
    add(reduction, "elements", numbers({9}), typed(DType::int64, {20}, -9, 9), numbers({20}));
    add(reduction, "nothing", numbers({3, 2}), typed(DType::int64, {0}), numbers({0, 2}));
    add(reduction, "wide", numbers({5, 70}), values({4}, {2, 2, -5, 4}, DType::int64),
        numbers({4, 70}));
    add(reduction, "int64", typed(DType::int64, {4}), values({3}, {1, 1, 2}, DType::int64),
        typed(DType::int64, {3}));
    add(reduction, "float16", typed(DType::float16, {4}, -1, 1),
        values({3}, {1, 1, 2}, DType::int64), typed(DType::float16, {3}, -1, 1))
        .tolerance = 1e-2;
  }
  add("none", "bool", typed(DType::boolean, {5}), values({2}, {1, -1}, DType::int64),
      typed(DType::boolean, {2}));
  const CaseInput x = values({3}, {1, 2, -3}), u = values({3}, {5, -4, 0.5});
  const double absent = static_cast<double>(absent_id<std::int32_t>);
  const auto known = [&](const char* reduction, std::vector<double> y) {
    add(reduction, "known", x, values({3}, {1, 1, 2}, DType::int32), u).expected = y;
    y[1] = 2;  // as it was
    add(reduction, "absent", x, values({3}, {absent, absent, 2}, DType::int32), u).expected = y;
  };
  known("none", {1, -4, 0.5});
  known("add", {1, 3, -2.5});
  known("mul", {1, -40, -1.5});
  known("max", {1, 5, 0.5});
  known("min", {1, -4, -3});
  // Products with zeros: none, one, two in a row's factors.
  add("mul", "zeros", values({4}, {2, 0, 3, 0}), values({4}, {0, 0, 2, 3}, DType::int64),
      values({4}, {0, 5, 7, 0}))
      .expected = {0, 0, 21, 0};
}

void add_cum_sums(std::vector<OperatorCase>& cases) {
  const auto attributes = [](std::int64_t axis, std::int64_t exclusive, std::int64_t reverse) {
    return Attributes{{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
  };
  const std::vector<std::pair<Shape, std::int64_t>> shapes = {
      {{5}, 0}, {{3, 4}, 0}, {{3, 4}, 1}, {{2, 3, 37}, 1}, {{0, 2}, 1}, {{2, 0}, 1}, {{65, 20}, 0}};
  for (std::int64_t exclusive : {0, 1}) {
    for (std::int64_t reverse : {0, 1}) {
      const std::string kind =
          std::string(exclusive != 0 ? " exclusive" : "") + (reverse != 0 ? " reverse" : "");
      for (const auto& [shape, axis] : shapes) {
        cases.push_back(make_case("CumSum",
                                  to_string(shape) + " axis " + std::to_string(axis) + kind,
                                  {uniform(shape)}, attributes(axis, exclusive, reverse)));
      }
    }
  }
  const CaseInput x = values({2, 3}, {1, 2, 4, 8, 16, 32});
  const auto known = [&](std::int64_t exclusive, std::int64_t reverse, std::vector<double> y) {
    const std::string name = "known " + std::to_string(exclusive) + std::to_string(reverse);
    cases.push_back(
        expecting(make_case("CumSum", name, {x}, attributes(1, exclusive, reverse)), std::move(y)));
  };
  known(0, 0, {1, 3, 7, 8, 24, 56});
  known(1, 0, {0, 1, 3, 0, 8, 24});
  known(0, 1, {7, 6, 4, 56, 48, 32});
  known(1, 1, {6, 4, 0, 48, 32, 0});
  for (DType dtype : {DType::int32, DType::uint64, DType::int64}) {
    cases.push_back(make_case("CumSum", std::string(name_of(dtype)), {typed(dtype, {4, 3}, 0, 9)},
                              attributes(0, 0, 0)));
  }
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    cases.push_back(coarse(make_case("CumSum", std::string(name_of(dtype)),
                                     {typed(dtype, {4, 3}, -1, 1)}, attributes(1, 0, 0))));
  }
}

void add_top_k(std::vector<OperatorCase>& cases) {
  const auto attributes = [](std::int64_t axis, std::int64_t k, std::int64_t largest) {
    return Attributes{{"axis", axis}, {"k", k}, {"largest", largest}};
  };
  for (std::int64_t largest : {0, 1}) {
    const std::string kind = largest != 0 ? " largest" : " smallest";
    for (const auto& [shape, axis, k] :
         std::vector<std::tuple<Shape, std::int64_t, std::int64_t>>{{{7}, 0, 3},
                                                                    {{3, 5}, 1, 1},
                                                                    {{3, 5}, 0, 2},
                                                                    {{2, 4, 3}, 1, 4},
                                                                    {{2, 6}, 1, 0},
                                                                    {{0, 3}, 1, 2},
                                                                    {{40, 30}, 1, 5}}) {
      cases.push_back(make_case(
          "TopK",
          to_string(shape) + " axis " + std::to_string(axis) + " " + std::to_string(k) + kind,
          {filled(shape, Fill::distinct)}, attributes(axis, k, largest)));
    }
  }
  const CaseInput x = values({2, 4}, {3, 1, 3, 2, -1, -1, 5, 0});
  const char* ties = "at a kink: equal elements change places";
  cases.push_back(without_gradient(
      expecting(make_case("TopK", "known", {x}, attributes(1, 2, 1)), {3, 3, 5, 0}), ties));
  cases.push_back(
      without_gradient(expecting(make_case("TopK", "known smallest", {x}, attributes(1, 3, 0)),
                                 {1, 2, 3, -1, -1, 0}),
                       ties));
  cases.push_back(make_case("TopK", "int64", {typed(DType::int64, {6})}, attributes(0, 3, 1)));
  cases.push_back(
      make_case("TopK", "uint8", {typed(DType::uint8, {6}, 0, 9)}, attributes(0, 3, 0)));
  cases.push_back(make_case("TopK", "float16", {typed(DType::float16, {6})}, attributes(0, 3, 1)));
}

struct ResizeCase {
  std::string name;
  Shape shape;
  std::int64_t axis, size;
  double scale, shift, offset;
  std::string mode;
  double filter_scale = 1, coefficient = -0.75;
  std::int64_t exclude = 0;
};

void add_resizes(std::vector<OperatorCase>& cases) {
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

void add_grid_samples(std::vector<OperatorCase>& cases) {
  const auto add = [&](const std::string& name, CaseInput x, CaseInput grid,
                       const Attributes& attributes) {
    Shape y{x.shape[0], x.shape[1]};
    y.insert(y.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
    cases.push_back(make_case("GridSample", name, {x, grid}, attributes));
    cases.push_back(make_case("GridSampleGrad", name, {uniform(y), x, grid}, attributes));
  };
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      for (std::int64_t corners : {0, 1}) {
        const Attributes attributes{
            {"mode", mode}, {"padding_mode", padding}, {"align_corners", corners}};
        const std::string name = mode + " " + padding + (corners != 0 ? " corners" : "");
        add(name + " plane", uniform({2, 2, 3, 4}), uniform({2, 3, 2, 2}, -1.7, 1.7), attributes);
        add(name + " line", uniform({1, 3, 5}), uniform({1, 7, 1}, -3, 3), attributes);
        if (mode == "cubic") continue;
        add(name + " volume", uniform({1, 2, 2, 3, 2}), uniform({1, 2, 1, 2, 3}, -1.5, 1.5),
            attributes);
      }
    }
  }
  add("one element", uniform({1, 1, 1, 1}), uniform({1, 2, 2, 2}),
      {{"padding_mode", std::string("reflection")}, {"align_corners", std::int64_t{1}}});
  add("nowhere", uniform({1, 2, 3}), uniform({1, 0, 1}), {});
  // Places -0.5, 0.5, 1.5 of {1, 3}.
  const CaseInput x = values({1, 1, 2}, {1, 3}), grid = values({1, 3, 1}, {-1, 0, 1});
  const char* kink = "at a kink: the end of the axis";
  cases.push_back(without_gradient(
      expecting(make_case("GridSample", "known zeros", {x, grid}, {}), {0.5, 2, 1.5}), kink));
  cases.push_back(without_gradient(expecting(make_case("GridSample", "known border", {x, grid},
                                                       {{"padding_mode", std::string("border")}}),
                                             {1, 2, 3}),
                                   kink));
  // Places -1, 0.5, 2 mirrored at the middles of the end elements.
  cases.push_back(without_gradient(
      expecting(make_case("GridSample", "known reflection", {x, values({1, 3, 1}, {-3, 0, 3})},
                          {{"padding_mode", std::string("reflection")},
                           {"align_corners", std::int64_t{1}}}),
                {3, 2, 1}),
      kink));
}

}  // namespace

void add_index_cases(std::vector<OperatorCase>& cases) {
  add_flat_indices(cases);
  add_scatters(cases);
  add_cum_sums(cases);
  add_top_k(cases);
  add_resizes(cases);
  add_grid_samples(cases);
}

}  // namespace tandem::testing
