// Cases of ids that name no row, for every operator that reads ids or groups of them, in both
// integer types.
#include <cmath>

#include "engine/operators/tables/rows.h"
#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

constexpr DType types_of_ids[] = {DType::int32, DType::int64};

double none_of(DType ids) { return static_cast<double>(absent_id_of(ids)); }

void add_absent_lookups(Cases& cases, DType type) {
  const double none = none_of(type);
  const auto add = [&](Shape shape, std::int64_t axis, Shape ids_shape, std::vector<double> ids) {
    const std::string name = "absent " + to_string(shape) + " axis " + std::to_string(axis) +
                             " by " + std::string(name_of(type)) + to_string(ids_shape);
    const CaseInput indices = valued(ids_shape, std::move(ids), type);
    Shape y(shape.begin(), shape.begin() + axis);
    y.insert(y.end(), ids_shape.begin(), ids_shape.end());
    y.insert(y.end(), shape.begin() + axis + 1, shape.end());
    add_case(cases, "Gather", name, {random_input(shape), indices}, {{"axis", axis}});
    add_case(cases, "GatherGrad", name, {random_input(y), indices},
             {{"axis", axis}, {"shape", shape}});
  };
  add({6}, 0, {5}, {none, 3, none, 3, -1});
  add({6, 3}, 0, {2, 2}, {0, none, 5, none});
  add({7, 2, 5}, 0, {2, 3}, {6, none, none, -7, 2, 6});
  add({7, 33}, 0, {4}, {none, none, none, 1});
  add({3, 4}, 0, {2}, {none, none});
  add({4, 5}, 0, {}, {none});
  add({4, 5, 3}, 1, {3}, {4, none, -5});
  add_case(cases, "Gather", "absent bool by " + std::string(name_of(type)),
           {valued({2, 2}, {1, 1, 1, 0}, DType::boolean), ints({1, none}, type)});
  cases.back().expected = {1, 0, 0, 0};

  // bfloat16 rows, unchanged and widened to float32; also rows longer than a kernel's zero buffer.
  for (const std::int64_t columns : {1, 5, 24, 300}) {
    CaseInput table = random_input({7, columns});
    table.dtype = DType::bfloat16;
    const CaseInput some = ints({none, 3, none, 6, -1}, type);
    const std::string rows =
        " rows of " + std::to_string(columns) + " by " + std::string(name_of(type));
    add_case(cases, "Gather", "absent bfloat16" + rows, {table, some});
    add_case(cases, "Gather", "absent widened" + rows, {table, some},
             {{"to", std::string("float32")}});
    add_case(cases, "Gather", "absent float32" + rows, {random_input({7, columns}), some});
  }

  const std::vector<double> x = pattern(6), dy = pattern(6, 1);
  const CaseInput ids = ints({2, none, -1}, type);
  add_case(cases, "Gather", "absent known " + std::string(name_of(type)), {patterned({3, 2}), ids});
  cases.back().expected = {x[4], x[5], 0, 0, x[4], x[5]};
  add_case(cases, "GatherGrad", "absent known " + std::string(name_of(type)),
           {patterned({3, 2}, 1), ids}, {{"axis", 0}, {"shape", Ints{3, 2}}});
  cases.back().expected = {0, 0, 0, 0, dy[0] + dy[4], dy[1] + dy[5]};
}

// Two bags of three: one with an id that names a row twice, one whose ids name no row.
void add_absent_bags(Cases& cases, DType type) {
  const double none = none_of(type);
  const std::string name = "absent " + std::string(name_of(type));
  const CaseInput table = patterned({6, 3}),
                  ids = valued({2, 3}, {4, none, -2, none, none, none}, type),
                  weights = valued({2, 3}, {0.5, -1, 2, 2, 1, 0.25}), dy = patterned({2, 3}, 1);
  const std::vector<double> x = pattern(18), g = pattern(6, 1);
  std::vector<double> sums(6, 0.0), weighted(6, 0.0), back(18, 0.0), weighted_back(18, 0.0);
  for (std::size_t c = 0; c < 3; ++c) {
    sums[c] = 2 * x[12 + c];
    weighted[c] = 2.5 * x[12 + c];
    back[12 + c] = 2 * g[c];
    weighted_back[12 + c] = 2.5 * g[c];
  }
  const Attributes shape{{"shape", Ints{6, 3}}};
  add_case(cases, "EmbeddingBag", name, {table, ids}).expected = sums;
  add_case(cases, "EmbeddingBag", name + " weighted", {table, ids, weights}).expected = weighted;
  add_case(cases, "EmbeddingBagGrad", name, {dy, ids}, shape).expected = back;
  add_case(cases, "EmbeddingBagGrad", name + " weighted", {dy, ids, weights}, shape).expected =
      weighted_back;
  for (const Shape& row : {Shape{}, Shape{1}, Shape{3, 9}, Shape{300}}) {
    Shape larger{7}, y{2, 2};
    larger.insert(larger.end(), row.begin(), row.end());
    y.insert(y.end(), row.begin(), row.end());
    const std::string of = name + " of rows " + to_string(row);
    const CaseInput many =
        valued({2, 2, 4}, {0, none, 6, 6, none, 5, 1, -1, 2, 2, none, none, 3, 4, 0, none}, type);
    const CaseInput factors = random_input({2, 2, 4});
    const Attributes wanted{{"shape", larger}};
    add_case(cases, "EmbeddingBag", of, {random_input(larger), many});
    add_case(cases, "EmbeddingBag", of + " weighted", {random_input(larger), many, factors});
    CaseInput split = random_input(larger);
    split.dtype = DType::bfloat16;
    const Attributes widened{{"to", std::string("float32")}};
    add_case(cases, "EmbeddingBag", of + " widened", {split, many}, widened);
    CaseInput fixed_factors = factors;
    fixed_factors.fixed = true;
    add_case(cases, "EmbeddingBag", of + " weighted widened", {split, many, fixed_factors},
             widened);
    add_case(cases, "EmbeddingBagGrad", of, {random_input(y), many}, wanted);
    add_case(cases, "EmbeddingBagGrad", of + " weighted", {random_input(y), many, factors}, wanted);
  }
}

void add_groups(Cases& cases, DType type) {
  const double none = none_of(type);
  const std::string suffix = " " + std::string(name_of(type));
  const auto add = [&](const char* name, std::vector<CaseInput> ids, std::vector<double> unique,
                       std::int64_t rows) {
    OperatorCase& c =
        add_case(cases, "UniqueIndices", name + suffix, std::move(ids), {{"rows", rows}});
    c.expected = std::move(unique);
    c.tolerance = 0;  // absent ids are such large numbers
  };
  add("absent", {ints({4, none, 4, 0, none, -2, 5, none}, type)}, {0, 4, 5, -1, -1, -1}, 6);
  add("one_row_absent", {ints({none, 0, none, none}, type)}, {0}, 1);
  add("every_row_and_absent", {ints({1, none, 0, 3, 2, none}, type)}, {0, 1, 2, 3}, 4);
  add("all_absent", {ints({none, none, none}, type)}, {-1, -1, -1}, 5);
  add("two_lookups_absent", {ints({none, 3}, type), valued({2, 2}, {3, none, 1, none}, type)},
      {1, 3, -1, -1, -1, -1}, 7);
  add("few_of_many_absent", {ints({70000, none, 3, 70000}, type)}, {3, 70000, -1, -1},
      std::int64_t{1} << 40);
  const CaseInput marks = valued({6}, {0, 1, 0, 0, 0, 1}, DType::boolean);
  add_case(cases, "MarkRows", "absent" + suffix,
           {marks, ints({4, none}, type), ints({none}, type)});
  cases.back().expected = {0, 1, 0, 0, 1, 1};
}

// A table of six rows of three, and ids 4, 1, none, 0, 1, none of two lookups (four and two ids).
struct TableWithAbsentIds {
  CaseInput master = patterned({6, 3}), first = patterned({2, 2, 3}, 1),
            second = patterned({2, 3}, 2);
  std::vector<CaseInput> groups{ints({0, 1, 4, -1, -1, -1}, DType::int64),
                                ints({3, 1, 4, 0, -1, -1}), ints({0, 1, 3, 4, 4, 4, 4}),
                                valued({}, {3}, DType::int32)};

  std::vector<CaseInput> inputs(std::vector<CaseInput> states,
                                const std::vector<CaseInput>& gradients) const {
    std::vector<CaseInput> all{master};
    all.insert(all.end(), states.begin(), states.end());
    all.insert(all.end(), groups.begin(), groups.end());
    all.push_back(valued({}, {0.25}));
    all.push_back(valued({}, {3}, DType::int64));
    all.push_back(valued({}, {0.5}));
    all.push_back(valued({}, {0}, DType::boolean));
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }
  std::vector<CaseInput> norm(const std::vector<CaseInput>& gradients) const {
    std::vector<CaseInput> all{groups[1], groups[2], groups[3]};
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }
};

void add_absent_updates(Cases& cases) {
  const TableWithAbsentIds table;
  const std::vector<double> a = pattern(12, 1), b = pattern(6, 2), bag = pattern(6, 3);
  const std::vector<double> factors{0.5, -1, 3, 2};
  std::vector<double> plain(18, 0.0), weighted(18, 0.0);
  for (std::size_t c = 0; c < 3; ++c) {
    plain[c] = a[9 + c];                    // row 0: position 3
    plain[3 + c] = a[3 + c] + b[c];         // row 1: positions 1 and 4
    plain[12 + c] = a[c];                   // row 4: position 0
    weighted[c] = factors[3] * bag[3 + c];  // bags of two: position 3 is in the second
    weighted[3 + c] = factors[1] * bag[c] + b[c];
    weighted[12 + c] = factors[0] * bag[c];
  }
  const auto add = [&](const std::string& name, const std::vector<CaseInput>& gradients,
                       Attributes attributes, const std::vector<double>& sum) {
    Attributes settings = attributes;
    settings.set("op", std::string("SgdUpdate"));
    add_case(cases, "RowsUpdate", name, table.inputs({absent()}, gradients), settings);
    cases.back().expected = pattern(18);
    for (std::size_t i = 0; i < 18; ++i) cases.back().expected[i] -= 0.25 * 0.5 * sum[i];
    attributes.set("columns", std::int64_t{3});
    add_case(cases, "RowsSumOfSquares", name, table.norm(gradients), attributes);
    double squares = 0;
    for (const double x : sum) squares += x * x;
    cases.back().expected = {squares};
  };
  add("absent", {table.first, table.second}, {}, plain);
  add("absent_in_weighted_bags", {patterned({2, 3}, 3), table.second, valued({2, 2}, factors)},
      {{"bags", Ints{2, 1}}, {"weighted", Ints{1, 0}}}, weighted);

  CaseInput square = patterned({6, 3}, 4);
  for (double& v : square.values) v = std::fabs(v);
  const std::vector<CaseInput> moments{patterned({6, 3}, 3), square};
  const std::vector<CaseInput> gradients{table.first, table.second};
  for (const std::int64_t lazy : {1, 0}) {
    add_case(cases, "RowsUpdate", lazy != 0 ? "absent_lazy_adam" : "absent_adam",
             table.inputs(moments, gradients), {{"op", std::string("AdamUpdate")}, {"lazy", lazy}});
  }
  TableWithAbsentIds none = table;
  none.groups = {ints({-1, -1, -1, -1, -1, -1}, DType::int64), ints({-1, -1, -1, -1, -1, -1}),
                 ints({0, 0, 0, 0, 0, 0, 0}), valued({}, {0}, DType::int32)};
  add_case(cases, "RowsUpdate", "all_absent", none.inputs({absent()}, gradients),
           {{"op", std::string("SgdUpdate")}});
  cases.back().expected = pattern(18);
  add_case(cases, "RowsSumOfSquares", "all_absent", none.norm(gradients), {{"columns", 3}});
  cases.back().expected = {0};
}

}  // namespace

void add_absent_id_cases(Cases& cases) {
  for (const DType type : types_of_ids) {
    add_absent_lookups(cases, type);
    add_absent_bags(cases, type);
    add_groups(cases, type);
  }
  add_absent_updates(cases);
}

}  // namespace tandem::testing
