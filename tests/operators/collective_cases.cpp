// Cases of operators over all ranks: the reference acts as if all ranks had the same operands, so
// sums are multiples. Ranks with different numbers are tested in tests/end_to_end.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

constexpr const char* equal_ranks =
    "differences see one rank's operand alone, and here it is that of all ranks";

Attributes over(std::int64_t ranks, const char* reduction = nullptr) {
  Attributes attributes{{"ranks", ranks}};
  if (reduction != nullptr) attributes.set("reduction", std::string(reduction));
  return attributes;
}

// With one rank, as many rows stay as are sent. The rest is filled with absent ids, and with zeros
// where the reference computes it.
void add_exchanges(std::vector<OperatorCase>& cases) {
  const auto add = [&](const char* name, CaseInput x, std::vector<double> sent,
                       std::vector<double> received, std::int64_t rows) {
    const auto ranks = static_cast<std::int64_t>(sent.size());
    const auto counts = [&](std::vector<double> numbers) {
      return values({ranks}, std::move(numbers), DType::int32);
    };
    cases.push_back(make_case("ExchangeRows", name,
                              {std::move(x), counts(std::move(sent)), counts(std::move(received))},
                              {{"ranks", ranks}, {"rows", rows}}));
    if (ranks > 1) cases.back() = without_gradient(cases.back(), equal_ranks);
  };
  add("some_rows", values({3, 2}, {1, 2, 3, 4, 5, 6}), {2}, {2}, 4);
  cases.back() = expecting(cases.back(), {1, 2, 3, 4, 0, 0, 0, 0});
  add("all_rows", uniform({4, 3}), {4}, {4}, 4);
  add("one_axis", uniform({5}), {3}, {3}, 3);
  add("none_sent", uniform({2, 3}), {0}, {0}, 2);
  add("wide_rows", uniform({3, 2, 9}), {1}, {1}, 2);
  cases.back().attributes.set("filled", 0.5);
  add("two_ranks", values({3, 2}, {1, 2, 3, 4, 5, 6}), {1, 2}, {1, 2}, 4);
  cases.back() = expecting(cases.back(), {1, 2, 1, 2, 3, 4, 0, 0});
  add("ids", values({3}, {7, 0, 9}, DType::int64), {2, 1}, {2, 0}, 3);
  cases.back() = expecting(cases.back(), {7, 0, -9223372036854775808.0});
  add("small_ids", values({3}, {7, 0, 9}, DType::int32), {0, 1}, {0, 1}, 2);
  cases.back() = expecting(cases.back(), {7, -2147483648.0});
}

// Several operands at once, and incomplete parts.
void add_parts(std::vector<OperatorCase>& cases) {
  const auto add = [&](const char* op, const char* name, std::vector<CaseInput> inputs,
                       Attributes attributes, std::vector<double> expected) {
    cases.push_back(
        expecting(without_gradient(make_case(op, name, std::move(inputs), std::move(attributes)),
                                   equal_ranks),
                  std::move(expected)));
  };
  for (const char* op : {"AllGather", "ReduceScatter"})
    cases.push_back(make_case(op, "several", {uniform({3}), uniform({2, 2})}, over(1)));
  add("AllGather", "several of two", {values({1}, {5}), values({2}, {1, 2})}, over(2), {5, 5});
  add("ReduceScatter", "several of two", {values({4}, {1, 2, 3, 4}), values({2}, {5, 6})}, over(2),
      {2, 4});
  add("ReduceScatter", "5 for three", {values({5}, {1, 2, 3, 4, 5})}, over(3), {3, 6});
  add("ReduceScatter", "rows", {values({3, 2}, {1, 2, 3, 4, 5, 6})}, over(2), {2, 4, 6, 8});
  cases.push_back(make_case("ReduceScatter", "int64", {typed(DType::int64, {7})}, over(2)));
  const auto gathered = [&](const char* name, std::vector<CaseInput> inputs, std::int64_t ranks,
                            std::vector<double> expected) {
    cases.push_back(
        expecting(make_case("GatherStates", name, std::move(inputs), over(ranks)), expected));
  };
  gathered("one", {uniform({2, 2}), values({4}, {1, 2, 3, 4})}, 1, {1, 2, 3, 4});
  gathered("two", {uniform({4}), values({2}, {1, 2})}, 2, {1, 2, 1, 2});
  gathered("not full", {uniform({5, 1}), values({2}, {1, 2})}, 3, {1, 2, 1, 2, 1});
  gathered("more ranks than elements", {uniform({2}), values({1}, {7})}, 4, {7, 7});
  gathered("several", {uniform({3}), values({2}, {1, 2}), uniform({2, 2}), uniform({2})}, 2,
           {1, 2, 1});
  cases.push_back(make_case("GatherStates", "float16",
                            {typed(DType::float16, {3, 5}), typed(DType::float16, {8})}, over(2)));
}

}  // namespace

void add_collective_cases(std::vector<OperatorCase>& cases) {
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{2, 0}, Shape{2, 3, 4}}) {
    cases.push_back(make_case("AllReduce", to_string(shape), {uniform(shape)}, over(1)));
    cases.push_back(make_case("AllReduce", to_string(shape) + " three", {uniform(shape)}, over(3)));
  }
  cases.push_back(
      make_case("AllReduce", "several", {uniform({3}), uniform({2, 2}), uniform({})}, over(2)));
  cases.push_back(expecting(
      make_case("AllReduce", "sum of two", {values({3}, {1, -2, 0.5})}, over(2)), {2, -4, 1}));
  for (const char* reduction : {"mean", "maximum", "minimum"}) {
    cases.push_back(expecting(
        without_gradient(
            make_case("AllReduce", reduction, {values({3}, {1, -2, 0.5})}, over(4, reduction)),
            "only a sum has one"),
        {1, -2, 0.5}));
  }
  for (DType dtype : {DType::int64, DType::float16}) {
    cases.push_back(
        make_case("AllReduce", std::string(name_of(dtype)), {typed(dtype, {3, 5})}, over(2)));
  }
  cases.push_back(make_case("AllReduce", "any", {typed(DType::boolean, {7})}, over(2, "maximum")));

  for (const Shape& shape : {Shape{3, 5}, Shape{4}, Shape{2, 0}, Shape{2, 3, 4}}) {
    cases.push_back(make_case("AllGather", to_string(shape), {uniform(shape)}, over(1)));
    cases.push_back(without_gradient(
        make_case("AllGather", to_string(shape) + " two", {uniform(shape)}, over(2)), equal_ranks));
    cases.push_back(make_case("ReduceScatter", to_string(shape), {uniform(shape)}, over(1)));
  }
  cases.push_back(
      expecting(without_gradient(make_case("AllGather", "thrice", {values({2}, {1, 2})}, over(3)),
                                 equal_ranks),
                {1, 2, 1, 2, 1, 2}));
  cases.push_back(make_case("AllGather", "int64", {typed(DType::int64, {3, 5})}, over(2)));
  cases.push_back(expecting(
      without_gradient(make_case("ReduceScatter", "two", {values({4}, {1, 2, 3, 4})}, over(2)),
                       equal_ranks),
      {2, 4}));
  Attributes promptly = over(2);
  promptly.set("prompt", std::int64_t{1});
  cases.push_back(expecting(
      without_gradient(make_case("ReduceScatter", "prompt", {values({4}, {1, 2, 3, 4})}, promptly),
                       equal_ranks),
      {2, 4}));
  cases.push_back(expecting(
      without_gradient(
          make_case("ReduceScatter", "maximum", {values({4}, {1, 2, 3, 4})}, over(2, "maximum")),
          equal_ranks),
      {1, 2}));

  for (const Shape& shape : {Shape{3, 5}, Shape{4}, Shape{2, 0}, Shape{2, 3, 4}})
    cases.push_back(make_case("AllToAll", to_string(shape), {uniform(shape)}, over(1)));
  cases.push_back(
      expecting(without_gradient(make_case("AllToAll", "two", {values({4}, {1, 2, 3, 4})}, over(2)),
                                 equal_ranks),
                {1, 2, 1, 2}));
  cases.push_back(make_case("AllToAll", "int32", {typed(DType::int32, {6, 2})}, over(3)));
  add_exchanges(cases);
  add_parts(cases);
}

}  // namespace tandem::testing
