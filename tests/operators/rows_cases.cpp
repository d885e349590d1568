// Cases of row-sparse gradients: ids grouped by row, operators that read the groups, and sums of
// looked-up rows.
#include <cmath>
#include <numeric>

#include "engine/operators/update_kind.h"
#include "tests/harness/update_settings.h"
#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

void add_unique(Cases& cases) {
  const Attributes rows{{"rows", 6}};
  const auto add = [&](const char* name, std::vector<CaseInput> ids, std::vector<double> unique,
                       const Attributes& attributes) {
    add_case(cases, "UniqueIndices", name, std::move(ids), attributes).expected = std::move(unique);
  };
  add("duplicates", {ints({4, 1, 4, 0, 1, 4, 5}, DType::int64)}, {0, 1, 4, 5, -1, -1}, rows);
  add("negative", {ints({-1, 5, 2, -4})}, {2, 5, -1, -1}, rows);
  add("all_equal", {ints({3, 3, 3, 3, 3})}, {3, -1, -1, -1, -1}, rows);
  add("all_different", {ints({5, 3, 1, 0, 2, 4}, DType::int64)}, {0, 1, 2, 3, 4, 5}, rows);
  add("two_lookups", {valued({2, 2}, {2, 0, 2, 1}, DType::int64), ints({1, 5}, DType::int64)},
      {0, 1, 2, 5, -1, -1}, rows);
  add("two_types",
      {valued({2, 2}, {2, 0, -4, 1}, DType::int64), ints({1, -1, 2}), ints({4}, DType::int64)},
      {0, 1, 2, 4, 5, -1}, rows);
  add("none", {ints({}, DType::int64)}, {}, rows);
  add("quiet", {ints({3, 1, 3}, DType::int64)}, {1, 3, -1}, {{"rows", 6}, {"quiet", 1}});
  add("few_of_many", {ints({70000000000, 3, 70000000000}, DType::int64)}, {3, 70000000000, -1},
      {{"rows", std::int64_t{1} << 40}});
}

void add_marks(Cases& cases) {
  const CaseInput marks = valued({6}, {0, 1, 0, 0, 0, 1}, DType::boolean);
  add_case(cases, "MarkRows", "adds", {marks, ints({4, 1}), ints({-2}, DType::int64)});
  cases.back().expected = {0, 1, 0, 0, 1, 1};
  add_case(cases, "MarkRows", "first", {marks, ints({3, 3})}, {{"first", 1}});
  cases.back().expected = {0, 0, 0, 1, 0, 0};
  add_case(cases, "TouchedRows", "some", {marks});
  cases.back().expected = {1, 5, -1, -1, -1, -1};
  add_case(cases, "GatherRows", "all",
           {patterned({6, 2}), ints({0, 2, 5}, DType::int64), count_of(3)});
  const std::vector<double> p = pattern(12);
  cases.back().expected = {p[0], p[1], p[4], p[5], p[10], p[11]};
  add_case(cases, "TouchedRows", "none", {valued({3}, {0, 0, 0}, DType::boolean)});
  cases.back().expected = {-1, -1, -1};
}

// More marks than one thread handles, and not a multiple of what is checked at once.
void add_many_marks(Cases& cases) {
  constexpr std::int64_t rows = 10'007;
  std::vector<double> marks(rows), first(rows), touched;
  for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = i < 5'000 && i * i % 7 == 2;
  std::vector<double> ids, added = marks;
  for (std::int64_t i = 0; i < 20'000; ++i) {
    const std::int64_t row = i * i % 9'973;
    ids.push_back(static_cast<double>(i % 3 == 0 ? row - rows : row));
    added[static_cast<std::size_t>(row)] = first[static_cast<std::size_t>(row)] = 1;
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (added[i] != 0) touched.push_back(static_cast<double>(i));
  }
  const auto marked = [&](const std::vector<double>& values) {
    return valued({rows}, values, DType::boolean);
  };
  add_case(cases, "MarkRows", "adds_many", {marked(marks), ints(ids), ints(ids, DType::int64)});
  cases.back().expected = added;
  add_case(cases, "MarkRows", "first_of_many", {marked(marks), ints(ids)}, {{"first", 1}});
  cases.back().expected = std::move(first);
  constexpr std::int64_t large = 140'001;  // a large table for so few ids
  std::vector<double> sparse(large);
  ids.resize(8'200);
  for (double& id : ids) {
    id = std::fmod(std::abs(id) * 7'919, static_cast<double>(large));
    sparse[static_cast<std::size_t>(id)] = 1;
  }
  add_case(cases, "MarkRows", "few_of_many",
           {valued({large}, std::vector<double>(large), DType::boolean), ints(ids)});
  cases.back().expected = std::move(sparse);
  touched.resize(rows, -1);
  add_case(cases, "TouchedRows", "many", {marked(added)}).expected = std::move(touched);
  std::vector<double> all(rows);
  std::iota(all.begin(), all.end(), 0);
  add_case(cases, "TouchedRows", "all", {marked(std::vector<double>(rows, 1))}).expected = all;
}

// A table of six rows of three, and ids 4, 1, 4, 0, 1, 4 of two lookups (four and two ids).
struct SmallTable {
  CaseInput master = patterned({6, 3}), first = patterned({2, 2, 3}, 1),
            second = patterned({2, 3}, 2);
  std::vector<CaseInput> groups{ints({0, 1, 4, -1, -1, -1}, DType::int64), ints({3, 1, 4, 0, 2, 5}),
                                ints({0, 1, 3, 6, 6, 6, 6}), count_of(3)};

  std::vector<CaseInput> inputs(std::vector<CaseInput> states, double step,
                                bool skip = false) const {
    std::vector<CaseInput> all{master};
    all.insert(all.end(), states.begin(), states.end());
    all.insert(all.end(), groups.begin(), groups.end());
    all.push_back(valued({}, {0.25}));
    all.push_back(valued({}, {step}, DType::int64));
    all.push_back(valued({}, {0.5}));
    all.push_back(valued({}, {skip ? 1.0 : 0.0}, DType::boolean));
    all.push_back(first);
    all.push_back(second);
    return all;
  }
  /// The gradient for a dense update.
  std::vector<double> dense() const {
    const double rows[6] = {4, 1, 4, 0, 1, 4};
    const std::vector<double> a = pattern(12, 1), b = pattern(6, 2);
    std::vector<double> sum(18, 0.0);
    for (std::size_t p = 0; p < 6; ++p) {
      for (std::size_t c = 0; c < 3; ++c) {
        const double dy = p < 4 ? a[p * 3 + c] : b[(p - 4) * 3 + c];
        sum[static_cast<std::size_t>(rows[p]) * 3 + c] += dy;
      }
    }
    return sum;
  }
};

void add_updates(Cases& cases) {
  const SmallTable table;
  const CaseInput mean = patterned({6, 3}, 3);
  CaseInput square = patterned({6, 3}, 4);
  for (double& v : square.values) v = std::fabs(v);
  const std::string sgd = "SgdUpdate", adam = "AdamUpdate";
  std::vector<double> plain = pattern(18);
  for (std::size_t i = 0; i < 18; ++i) plain[i] -= 0.25 * 0.5 * table.dense()[i];
  const auto add = [&](const char* name, std::vector<CaseInput> inputs, Attributes attributes) {
    add_case(cases, "RowsUpdate", name, std::move(inputs), std::move(attributes));
  };
  add("sgd", table.inputs({absent()}, 3), {{"op", sgd}});
  cases.back().expected = plain;
  add("sgd_every_row", table.inputs({absent()}, 3), {{"op", sgd}, {"lazy", 0}});
  cases.back().expected = plain;
  add("sgd_decay", table.inputs({absent()}, 3), {{"op", sgd}, {"weight_decay", 0.1}, {"lazy", 0}});
  cases.back().expected = plain;
  for (std::size_t i = 0; i < 18; ++i) cases.back().expected[i] -= 0.25 * 0.1 * pattern(18)[i];
  // A split master, whose tails keep the sums exact.
  SmallTable split = table;
  split.master.dtype = DType::bfloat16;
  std::vector<double> tails(18);
  for (std::size_t i = 0; i < 18; ++i) tails[i] = 256.0 * (static_cast<double>(i * 29 % 101) - 50);
  const CaseInput tail = valued({6, 3}, tails, DType::int16);
  add("split_sgd", split.inputs({absent(), tail}, 3), {{"op", sgd}, {"split", 1}});
  add("split_every_row", split.inputs({absent(), tail}, 3),
      {{"op", sgd}, {"split", 1}, {"lazy", 0}});
  CaseInput float_mean = mean, float_square = square;
  float_mean.fixed = float_square.fixed = true;
  add("split_skipped", split.inputs({float_mean, float_square, tail}, 7, true),
      {{"op", adam}, {"split", 1}});
  cases.back().expected = pattern(18);
  add("momentum", table.inputs({mean}, 3), {{"op", sgd}, {"momentum", 0.9}, {"lazy", 0}});
  add("lazy_adam", table.inputs({mean, square}, 7), {{"op", adam}});
  add("adam", table.inputs({mean, square}, 7), {{"op", adam}, {"lazy", 0}, {"weight_decay", 0.1}});
  add("skipped", table.inputs({mean, square}, 7, true), {{"op", adam}});
  cases.back().expected = pattern(18);
  const CaseInput row_sum = valued({6}, {0.5, 0.25, 1, 2, 0.75, 0.125});
  const Attributes adagrad{{"lr_decay", 0.5}, {"weight_decay", 0.1}, {"epsilon", 1e-3}};
  Attributes ftrl{{"l1", 0.2},
                  {"l2", 0.1},
                  {"beta", 1.0},
                  {"l21", 0.1},
                  {"lr_power", -0.7},
                  {"l2_shrinkage", 0.01},
                  {"dialect", std::string("tensorflow")}};
  const auto of = [](Attributes settings, const char* op) {
    settings.set("op", std::string(op));
    return settings;
  };
  add("adagrad", table.inputs({square}, 3), of(adagrad, "AdagradUpdate"));
  add("rowwise_adagrad", table.inputs({row_sum}, 3), of(adagrad, "RowwiseAdagradUpdate"));
  add("ftrl", table.inputs({square, mean}, 3), of(ftrl, "FtrlUpdate"));
  add("group_ftrl", table.inputs({square, mean}, 3), of(ftrl, "GroupFtrlUpdate"));
  for (const UpdateSettings& tried : settings_to_try()) {
    const UpdateKind& kind = *find_update_kind(tried.op);
    if (kind.whole_tensor) continue;
    std::vector<CaseInput> states;
    for (std::size_t k = 0; k < kind.states.size(); ++k) {
      const bool by_row = kind.states[k].shape == StateShape::one_per_row;
      if (!kind.keeps_state(k, tried.settings, Shape{4, 3}))
        states.push_back(absent());
      else
        states.push_back(by_row ? row_sum : square);
      // The mean of squares is larger than the square of the mean, and no sum with a gradient is 0.
      for (double& x : states.back().values) x += k == 0 ? 2.0 : 0.01;
    }
    Attributes settings = tried.settings;
    settings.set("op", tried.op);
    for (const std::int64_t lazy : {0, 1}) {
      settings.set("lazy", lazy);
      add(("tried_" + tried.name + (lazy != 0 ? "" : "_every_row")).c_str(),
          table.inputs(states, 7), settings);
    }
  }
  Attributes every;
  every.set("op", adam);
  every.set("beta1", 0.5);
  every.set("beta2", 0.75);
  every.set("decoupled", std::int64_t{1});
  every.set("bias_correction", std::int64_t{0});
  every.set("epsilon_form", std::string("onnx"));
  add("adam_settings", table.inputs({mean, square}, 7), every);
  add("nesterov", table.inputs({mean}, 3),
      {{"op", sgd}, {"momentum", 0.9}, {"nesterov", 1}, {"lazy", 0}});
  add("dampened", table.inputs({mean}, 3),
      {{"op", sgd}, {"momentum", 0.9}, {"dampening", 0.5}, {"lazy", 0}});
  double squares = 0;
  for (double g : table.dense()) squares += g * g;
  add_case(cases, "RowsSumOfSquares", "two_lookups",
           {table.groups[1], table.groups[2], table.groups[3], table.first, table.second},
           {{"columns", 3}});
  cases.back().expected = {squares};
  add_case(cases, "RowsSumOfSquares", "one_column",
           {ints({1, 0, 2}), ints({0, 2, 3, 3}), count_of(2), valued({3, 1}, {1, 2, 4})},
           {{"columns", 1}});
  cases.back().expected = {25};
}

// Sums of gradients by group; every position is in a group.
void add_sums(Cases& cases) {
  const std::vector<CaseInput> groups{ints({1, 3, 0, 2}), ints({0, 2, 4}), count_of(2)};
  const auto add = [&](const char* name, std::vector<CaseInput> gradients, Attributes attributes,
                       std::vector<double> expected) {
    std::vector<CaseInput> inputs = groups;
    inputs.insert(inputs.end(), gradients.begin(), gradients.end());
    add_case(cases, "RowsSum", name, std::move(inputs), std::move(attributes)).expected =
        std::move(expected);
  };
  const CaseInput dy = valued({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  add("rows", {dy}, {{"shape", Ints{2, 2}}}, {10, 12, 6, 8});
  add("bags", {valued({2, 2}, {1, 2, 3, 4})},
      {{"shape", Ints{2, 2}}, {"bags", Ints{2}}, {"weighted", Ints{0}}}, {4, 6, 4, 6});
  add("weighted_bags", {valued({2, 2}, {1, 2, 3, 4}), valued({2, 2}, {1, 2, -1, 3})},
      {{"shape", Ints{2, 2}}, {"bags", Ints{2}}, {"weighted", Ints{1}}}, {11, 16, -2, -2});
  add("one_column", {valued({4}, {1, 2, 3, 4})}, {{"shape", Ints{2}}}, {6, 4});
}

// `SmallTable` again, but ids 4, 1 and ids 4, 0 are two bags: each sum has one dy, which goes
// to both rows, times the row's weight.
void add_bag_updates(Cases& cases) {
  const SmallTable table;
  const CaseInput dy = patterned({2, 3}, 3), weights = valued({2, 2}, {0.5, -1, 0, 2});
  const std::vector<double> a = pattern(6, 3), b = pattern(6, 2);
  std::vector<double> weighted(18, 0.0), plain(18, 0.0);
  const std::size_t rows[6] = {4, 1, 4, 0, 1, 4};
  for (std::size_t p = 0; p < 6; ++p) {
    for (std::size_t c = 0; c < 3; ++c) {
      weighted[rows[p] * 3 + c] +=
          p < 4 ? weights.values[p] * a[p / 2 * 3 + c] : b[(p - 4) * 3 + c];
      plain[rows[p] * 3 + c] += a[p / 3 * 3 + c];  // two bags of three
    }
  }
  const auto update = [&](const char* name, const std::vector<CaseInput>& gradients,
                          Attributes attributes, const std::vector<double>& sum) {
    std::vector<CaseInput> inputs = table.inputs({absent()}, 3);
    inputs.resize(inputs.size() - 2);
    inputs.insert(inputs.end(), gradients.begin(), gradients.end());
    std::vector<CaseInput> norm{table.groups[1], table.groups[2], table.groups[3]};
    norm.insert(norm.end(), gradients.begin(), gradients.end());
    Attributes settings = attributes;
    settings.set("op", std::string("SgdUpdate"));
    add_case(cases, "RowsUpdate", name, std::move(inputs), std::move(settings));
    cases.back().expected = pattern(18);
    for (std::size_t i = 0; i < 18; ++i) cases.back().expected[i] -= 0.25 * 0.5 * sum[i];
    attributes.set("columns", std::int64_t{3});
    add_case(cases, "RowsSumOfSquares", name, std::move(norm), std::move(attributes));
    double squares = 0;
    for (double g : sum) squares += g * g;
    cases.back().expected = {squares};
  };
  update("weighted_bags", {dy, table.second, weights},
         {{"bags", Ints{2, 1}}, {"weighted", Ints{1, 0}}}, weighted);
  update("bags", {dy}, {{"bags", Ints{3}}, {"weighted", Ints{0}}}, plain);
}

void add_bags(Cases& cases) {
  const CaseInput table = patterned({6, 3}),
                  ids = valued({2, 3}, {4, 1, -2, 0, 4, 5}, DType::int64);
  const CaseInput weights = valued({2, 3}, {0.5, -1, 0, 2, 1, 0.25});
  const std::size_t rows[6] = {4, 1, 4, 0, 4, 5};
  const std::vector<double> x = pattern(18), dy = pattern(6, 1);
  std::vector<double> sums(6, 0.0), weighted(6, 0.0), back(18, 0.0), weighted_back(18, 0.0);
  for (std::size_t p = 0; p < 6; ++p) {
    for (std::size_t c = 0; c < 3; ++c) {
      const std::size_t y = p / 3 * 3 + c, row = rows[p] * 3 + c;
      sums[y] += x[row];
      weighted[y] += weights.values[p] * x[row];
      back[row] += dy[y];
      weighted_back[row] += weights.values[p] * dy[y];
    }
  }
  add_case(cases, "EmbeddingBag", "sums", {table, ids}).expected = sums;
  add_case(cases, "EmbeddingBag", "weighted", {table, ids, weights}).expected = weighted;
  const CaseInput bags = valued({2, 2, 2}, {0, 3, 3, 3, 5, 1, 2, 0}, DType::int32);
  add_case(cases, "EmbeddingBag", "one_column", {random_input({6, 1}), bags});
  add_case(cases, "EmbeddingBag", "one_column_weighted",
           {random_input({6, 1}), bags, random_input({2, 2, 2})});
  add_case(cases, "EmbeddingBag", "numbers",
           {random_input({6}), ints({2, 2, 5, 0}), random_input({4})});
  add_case(cases, "EmbeddingBag", "one_each", {random_input({6, 2}), ints({3}, DType::int64)});
  const CaseInput many = indices({4, 5}, 7);
  add_case(cases, "EmbeddingBag", "long_rows", {random_input({7, 3, 9}), many});
  CaseInput stored = random_input({7, 3, 9});
  stored.dtype = DType::bfloat16;
  const Attributes widened{{"to", std::string("float32")}};
  add_case(cases, "EmbeddingBag", "of_bfloat16", {stored, many}, widened);
  add_case(cases, "EmbeddingBag", "long_rows_weighted",
           {random_input({7, 3, 9}), many, random_input({4, 5})});

  const CaseInput gradient = patterned({2, 3}, 1);
  const Attributes shape{{"shape", Ints{6, 3}}}, longer{{"shape", Ints{7, 3, 9}}};
  add_case(cases, "EmbeddingBagGrad", "sums", {gradient, ids}, shape).expected = back;
  add_case(cases, "EmbeddingBagGrad", "weighted", {gradient, ids, weights}, shape).expected =
      weighted_back;
  add_case(cases, "EmbeddingBagGrad", "long_rows", {random_input({4, 3, 9}), many}, longer);
  add_case(cases, "EmbeddingBagGrad", "long_rows_weighted",
           {random_input({4, 3, 9}), many, random_input({4, 5})}, longer);
}

}  // namespace

void add_rows_cases(Cases& cases) {
  add_bags(cases);
  add_bag_updates(cases);
  add_unique(cases);
  add_marks(cases);
  add_many_marks(cases);
  add_updates(cases);
  add_sums(cases);
}

}  // namespace tandem::testing
