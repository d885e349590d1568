// Cases of sampling at given positions.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

void add_grid_sample_cases(std::vector<OperatorCase>& cases) {
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
  // Samples {1, 3} at positions -0.5, 0.5 and 1.5.
  const CaseInput x = values({1, 1, 2}, {1, 3}), grid = values({1, 3, 1}, {-1, 0, 1});
  const char* kink = "at a kink: the end of the axis";
  cases.push_back(without_gradient(
      expecting(make_case("GridSample", "known zeros", {x, grid}, {}), {0.5, 2, 1.5}), kink));
  cases.push_back(without_gradient(expecting(make_case("GridSample", "known border", {x, grid},
                                                       {{"padding_mode", std::string("border")}}),
                                             {1, 2, 3}),
                                   kink));
  // Positions -1, 0.5 and 2, mirrored at the centres of the end elements.
  cases.push_back(without_gradient(
      expecting(make_case("GridSample", "known reflection", {x, values({1, 3, 1}, {-3, 0, 3})},
                          {{"padding_mode", std::string("reflection")},
                           {"align_corners", std::int64_t{1}}}),
                {3, 2, 1}),
      kink));
}

}  // namespace tandem::testing
