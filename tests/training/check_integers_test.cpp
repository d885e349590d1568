// Ids of the data that no row of a table has: refused, or given zeros where the field says so.
#include "engine/training/check_integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "engine/graph/builder.h"
#include "engine/operators/rows.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

constexpr std::int64_t none = absent_id<std::int64_t>, narrow_none = absent_id<std::int32_t>;

/// Look-ups of `ids` [4]: one in tables of each count of rows, each after these casts.
Graph look_ups(DType ids, const std::vector<std::pair<std::int64_t, std::vector<DType>>>& tables) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  const ValueId input = b.input("ids", {ids, {4}});
  for (const auto& [rows, casts] : tables) {
    const std::string name = "table" + std::to_string(rows);
    State table;
    table.name = name;
    table.trainable = true;
    table.start = HostTensor(TensorType{DType::float32, {rows, 2}});
    const ValueId weights = b.state(std::move(table));
    ValueId indices = input;
    for (const DType cast : casts)
      indices = b.add_node("Cast", {indices}, {{"to", std::string(name_of(cast))}});
    b.set_scope({"embedding" + std::to_string(rows)});
    b.output(name, b.add_node("Gather", {weights, indices}));
  }
  return b.finish();
}

RunConfig config_of(const std::string& field) {
  return parse_run_config(
      "model = 'm.onnx'\nsteps = 1\n[optimizer]\nkind = 'sgd'\n[data]\nkind = 'npz'\n"
      "[data.train]\nfiles = ['a.npz']\n[data.fields]\n" +
          field + "\n",
      "/folder/train.toml");
}
const char* const zero = "ids = { from = 'ids', out_of_range = 'zero' }";

std::shared_ptr<const DataSource> source_of(DType type, const std::vector<std::int64_t>& ids) {
  const auto count = static_cast<std::int64_t>(ids.size());
  return make_array_source({{"ids", HostTensor::from<std::int64_t>({count}, ids).converted(type)}});
}

std::vector<std::int64_t> read(const DataSource& source) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples()));
  std::iota(all.begin(), all.end(), 0);
  HostTensor values(TensorType{source.fields()[0].sample.dtype, {source.samples()}});
  source.fill(0, all, nullptr, values.data());
  return values.integers();
}

TEST(OutOfRange, ZeroGivesTheIdOfNoRow) {
  const std::vector<std::int64_t> ids{0, 4, 5, -1, 3, 1 << 20};
  const auto wide = zero_out_of_range(config_of(zero), look_ups(DType::int64, {{5, {}}}),
                                      source_of(DType::int64, ids));
  EXPECT_THAT(read(*wide), ElementsAre(0, 4, none, none, 3, none));
  const auto narrow = zero_out_of_range(config_of(zero), look_ups(DType::int32, {{5, {}}}),
                                        source_of(DType::int32, ids));
  EXPECT_THAT(read(*narrow), ElementsAre(0, 4, narrow_none, narrow_none, 3, narrow_none));
  const auto least = zero_out_of_range(config_of(zero), look_ups(DType::int64, {{5, {}}, {4, {}}}),
                                       source_of(DType::int64, ids));
  EXPECT_THAT(read(*least), ElementsAre(0, none, none, none, 3, none));
  const auto kept = zero_out_of_range(config_of("ids = 'ids'"), look_ups(DType::int64, {{5, {}}}),
                                      source_of(DType::int64, ids));
  EXPECT_EQ(read(*kept), ids);
}

// A cast to int32 keeps the least int32, and no value of an int32 becomes the least int64.
TEST(OutOfRange, TheIdOfNoRowIsThatOfTheLookUp) {
  const std::vector<std::int64_t> ids{0, 9};
  const Graph narrowed = look_ups(DType::int64, {{5, {DType::int32}}});
  const auto source = zero_out_of_range(config_of(zero), narrowed, source_of(DType::int64, ids));
  EXPECT_THAT(read(*source), ElementsAre(0, narrow_none));
  check_integer_fields(config_of(zero), narrowed, *source);

  const auto refusal = [&](DType type, const Graph& graph) {
    return error_of([&] { zero_out_of_range(config_of(zero), graph, source_of(type, ids)); });
  };
  EXPECT_THAT(refusal(DType::int32, look_ups(DType::int32, {{5, {DType::int64}}})),
              AllOf(HasSubstr("train.toml:10"), HasSubstr("data.fields.ids"),
                    HasSubstr("no id of this field names no row"),
                    HasSubstr("expected int64 ids, as embedding5 takes them, got int32")));
  EXPECT_THAT(refusal(DType::int64, look_ups(DType::int64, {{5, {DType::int32, DType::int64}}})),
              HasSubstr("names no row"));
  EXPECT_THAT(refusal(DType::int64, look_ups(DType::int64, {{5, {}}, {6, {DType::int32}}})),
              HasSubstr("expected int32 ids, as embedding6 takes them, got int64"));
  EXPECT_THAT(refusal(DType::int16, look_ups(DType::int64, {{5, {}}})), HasSubstr("got int16"));
}

TEST(OutOfRange, DataMayHoldTheIdOfNoRow) {
  const auto checked = [](DType type, const Graph& graph, const std::vector<std::int64_t>& ids) {
    return error_of(
        [&] { check_integer_fields(config_of("ids = 'ids'"), graph, *source_of(type, ids)); });
  };
  const Graph wide = look_ups(DType::int64, {{5, {}}}), narrow = look_ups(DType::int32, {{5, {}}});
  EXPECT_EQ(checked(DType::int64, wide, {0, none, 4}), "no error");
  EXPECT_EQ(checked(DType::int32, narrow, {0, narrow_none, 4}), "no error");
  EXPECT_THAT(checked(DType::int64, wide, {0, none + 1, 4}), HasSubstr("out of range"));
  EXPECT_THAT(checked(DType::int64, wide, {0, narrow_none, 4}), HasSubstr("got -2147483648"));
  EXPECT_THAT(
      checked(DType::int32, look_ups(DType::int32, {{5, {DType::int64}}}), {0, narrow_none, 4}),
      HasSubstr("got -2147483648"));
}

// A bounded field is checked within its bound, and the id of no row is no class.
TEST(OutOfRange, ABoundedFieldIsCheckedByWhatItGives) {
  const auto source = zero_out_of_range(config_of(zero), look_ups(DType::int64, {{5, {}}}),
                                        source_of(DType::int64, {0, 4, 5}));
  source->check_range(0, 5, &none);
  EXPECT_THAT(error_of([&] { source->check_range(0, 9, nullptr); }), HasSubstr("got 5"));
  EXPECT_THAT(error_of([&] { source->check_range(0, 3, &none); }), HasSubstr("got 4"));
  check_integer_fields(config_of(zero), look_ups(DType::int64, {{5, {}}}), *source);
}

}  // namespace
}  // namespace tandem
