// Rows of reductions, with sums in double arithmetic.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

double sum_of(const Numbers& x) {
  double total = 0;
  for (double v : x) total += v;
  return total;
}

// x [2, 3]. Axes: an attribute, from `axes_input` on an input, where noop_with_empty_axes comes
// too. Negative axes from 11 on.
void add_reductions(Rows& rows) {
  struct Reduction {
    const char* op;
    double (*f)(const Numbers&);
    int axes_input = 18;
    bool integers = true;
    bool keeps_one = true;  // the result of one number is that number
    bool small = true;      // results of integers fit into 8 bits
  };
  const std::vector<Reduction> list{
      {"ReduceSum", sum_of, 13},
      {"ReduceMean", [](const Numbers& x) { return sum_of(x) / static_cast<double>(x.size()); }, 18,
       false},
      {"ReduceMax", [](const Numbers& x) { return *std::max_element(x.begin(), x.end()); }},
      {"ReduceMin", [](const Numbers& x) { return *std::min_element(x.begin(), x.end()); }},
      {"ReduceProd",
       [](const Numbers& x) {
         double product = 1;
         for (double v : x) product *= v;
         return product;
       },
       18, true, true, false},
      {"ReduceSumSquare",
       [](const Numbers& x) {
         double total = 0;
         for (double v : x) total += v * v;
         return total;
       },
       18, true, false},
      {"ReduceL1",
       [](const Numbers& x) {
         double total = 0;
         for (double v : x) total += std::fabs(v);
         return total;
       },
       18, true, false},
      {"ReduceL2",
       [](const Numbers& x) {
         double total = 0;
         for (double v : x) total += v * v;
         return std::sqrt(total);
       },
       18, false, false},
      {"ReduceLogSum", [](const Numbers& x) { return std::log(sum_of(x)); }, 18, false, false},
      {"ReduceLogSumExp",
       [](const Numbers& x) {
         double total = 0;
         for (double v : x) total += std::exp(v);
         return std::log(total);
       },
       18, false},
  };
  for (const Reduction& reduction : list) {
    for (DType dtype : {f32, f64, bf16, i32, i64, DType::int8, DType::uint8}) {
      if (!is_float(dtype) && !reduction.integers) continue;
      if (!reduction.small && (dtype == DType::int8 || dtype == DType::uint8)) continue;
      const bool is_unsigned = dtype == DType::uint8;
      const Numbers v = is_unsigned ? Numbers{1, 2, 3, 4, 6, 5} : Numbers{1, -2, 3, 4, 6, -5};
      const HostTensor x = typed(dtype, {2, 3}, v);
      const HostTensor all = typed(dtype, {1, 1}, {reduction.f(v)});
      const Numbers by_row{reduction.f({v[0], v[1], v[2]}), reduction.f({v[3], v[4], v[5]})};
      const HostTensor kept = typed(dtype, {2, 1}, by_row), gone = typed(dtype, {2}, by_row);
      const auto add = [&](int first, int last, std::vector<HostTensor> inputs,
                           NodeAttributes attributes, HostTensor y, const char* note) {
        rows.push_back({reduction.op,
                        first,
                        last,
                        std::move(inputs),
                        std::move(attributes),
                        {std::move(y)},
                        note});
      };
      add(1, newest, {x}, {}, all, "all axes");
      const int last = reduction.axes_input - 1;
      add(1, last, {x}, {{"axes", Axes{1}}}, kept, "axes as attribute");
      add(1, last, {x}, {{"axes", Axes{1}}, {"keepdims", 0}}, gone, "without the axis");
      add(11, last, {x}, {{"axes", Axes{-1}}}, kept, "axis from the end");
      add(last + 1, newest, {x, integers({-1})}, {{"keepdims", 0}}, gone, "axes as input");
      add(last + 1, newest, {x, integers({1})}, {}, kept, "axes as input, kept");
      if (reduction.keeps_one) {
        add(last + 1, newest, {x}, {{"noop_with_empty_axes", 1}}, x, "nothing is reduced");
      }
    }
    rows.push_back({.op = reduction.op,
                    .first = reduction.axes_input,
                    .inputs = {floats({2}, {1, 2})},
                    .attributes = {{"axes", Axes{0}}},
                    .note = "axes as attribute",
                    .refused = "axes"});
  }
  for (DType dtype : {f32, f64}) {  // exponentials out of range, of all and of some
    rows.push_back({.op = "ReduceLogSumExp",
                    .inputs = {typed(dtype, {3}, {1000, 1000, -1000})},
                    .attributes = {{"keepdims", 0}},
                    .outputs = {typed(dtype, {}, {1000 + std::log(2.0)})},
                    .note = "large"});
    rows.push_back({.op = "ReduceLogSumExp",
                    .inputs = {typed(dtype, {2}, {-INFINITY, -INFINITY})},
                    .outputs = {typed(dtype, {1}, {-INFINITY})},
                    .note = "nothing"});
    rows.push_back({.op = "ReduceL2",
                    .inputs = {typed(dtype, {2}, {0, 0})},
                    .outputs = {typed(dtype, {1}, {0})},
                    .note = "zeros"});
  }
  for (const auto& [dtype, low, high] : {std::tuple{DType::int8, -128.0, 127.0},
                                         {i32, -2147483648.0, 2147483647.0},
                                         {DType::uint8, 0.0, 255.0}}) {
    const HostTensor x = typed(dtype, {3}, {high, low, 0});
    rows.push_back({.op = "ReduceMin",
                    .inputs = {x},
                    .outputs = {typed(dtype, {1}, {low})},
                    .note = "ends of the type"});
    rows.push_back({.op = "ReduceMax",
                    .inputs = {x},
                    .outputs = {typed(dtype, {1}, {high})},
                    .note = "ends of the type"});
  }
  // false < true
  const HostTensor flags = booleans({2, 2}, {0, 1, 0, 0});
  rows.push_back({.op = "ReduceMax",
                  .inputs = {flags, integers({1})},
                  .attributes = {{"keepdims", 0}},
                  .outputs = {booleans({2}, {1, 0})},
                  .note = "bool"});
  rows.push_back({.op = "ReduceMin",
                  .inputs = {flags, integers({0})},
                  .attributes = {{"keepdims", 0}},
                  .outputs = {booleans({2}, {0, 0})},
                  .note = "bool"});
}

void add_global_pools(Rows& rows) {
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {1, 2, 2, 2}, {1, 2, 3, 6, -1, -2, -3, -6});
    rows.push_back({.op = "GlobalAveragePool",
                    .inputs = {x},
                    .outputs = {typed(dtype, {1, 2, 1, 1}, {3, -3})}});
    rows.push_back(
        {.op = "GlobalMaxPool", .inputs = {x}, .outputs = {typed(dtype, {1, 2, 1, 1}, {6, -1})}});
  }
}

}  // namespace

void add_reductions_rows(std::vector<VersionRow>& rows) {
  add_reductions(rows);
  add_global_pools(rows);
}

}  // namespace tandem::testing
