// Training with ids that no row of the table has: works as with a frozen row of zeros after the
// other rows, which such ids stand for, on every placement; and nothing counts them as rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "api/model/engine.h"
#include "engine/formats/arrays/npy.h"
#include "engine/graph/builder.h"
#include "engine/operators/tables/rows.h"
#include "engine/train/tables/id_source.h"
#include "engine/train/tables/row_counts.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::SmallModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::int64_t absent_ids_batch = 8, absent_ids_fields = 3, absent_ids_rows = 200,
                       absent_ids_columns = 10;
constexpr std::int64_t none = absent_id<std::int64_t>;

/// ids [8, 3] -> lookup in table.weight [200, 10] -> three classes. `padded`: the frozen
/// padding.weight follows the table.
std::string model_with_absent_ids(bool padded) {
  SmallModel model;
  model.input("ids", {absent_ids_batch, absent_ids_fields}, 7)
      .weight("table.weight", {absent_ids_rows, absent_ids_columns}, 0.5f)
      .weight("classes.weight", {absent_ids_fields * absent_ids_columns, 3}, 0.5f);
  if (padded) {
    model.weight("padding.weight", {1, absent_ids_columns}, 0)
        .node("Concat", "padding", {"table.weight", "padding.weight"}, "all_rows", {{"axis", 0}});
  }
  return model.node("Gather", "embedding", {padded ? "all_rows" : "table.weight", "ids"}, "rows")
      .node("Flatten", "flatten", {"rows"}, "flat")
      .node("MatMul", "classes", {"flat", "classes.weight"}, "logits")
      .output("logits", {absent_ids_batch, 3})
      .bytes();
}

/// A third of the ids is in the table's first half, the others are outside the table.
std::vector<std::int64_t> some_ids(std::int64_t samples) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < samples * absent_ids_fields; ++i) {
    const std::int64_t outside[] = {absent_ids_rows, -1, 1 << 20, none, absent_ids_rows + 7};
    ids.push_back(i * 5 % 3 == 0 ? i * 37 % (absent_ids_rows / 2) : outside[i % 5]);
  }
  return ids;
}

bool is_row(std::int64_t id) { return id >= 0 && id < absent_ids_rows; }

class AbsentIdsTest : public ::testing::Test {
 protected:
  AbsentIdsTest() {
    constexpr std::int64_t samples = 5 * absent_ids_batch;
    for (const bool padded : {false, true}) {
      const std::string name = padded ? "padded" : "absent";
      write(name + ".onnx", model_with_absent_ids(padded));
      write(name + ".toml", "model = \"" + name + R"(.onnx"
batch_size = 8
steps = 7
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.5
[eval]
metrics = [ "loss" ]
[data]
kind = "npz"
[data.train]
files = [ ")" + name + R"(.npz" ]
[data.eval]
files = [ ")" + name + R"(.npz" ]
[data.fields]
labels = "labels"
ids = { from = "ids")" + (padded ? "" : ", out_of_range = \"zero\"") +
                                " }\n");
      std::vector<std::int64_t> ids = some_ids(samples);
      for (std::int64_t& id : ids) {
        if (padded && !is_row(id)) id = absent_ids_rows;
      }
      HostTensor labels(TensorType{DType::int32, {samples}});
      for (std::int64_t i = 0; i < samples; ++i) labels.as<std::int32_t>()[i] = i % 3;
      write_npz(folder_ / (name + ".npz"),
                {{"ids", HostTensor::from<std::int64_t>({samples, absent_ids_fields}, ids)},
                 {"labels", labels}});
    }
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }

  struct Trained {
    double loss = 0, evaluated = 0;
    std::vector<float> table;
  };
  Trained train(const std::string& name, std::vector<std::string> overrides,
                const std::vector<std::string>& place = {}) {
    TrainOptions options;
    options.run_dir = folder_ / ("run" + std::to_string(++runs_));
    options.overrides = std::move(overrides);
    if (!place.empty()) {
      options.devices = {"gpu=emulated:0,memory=64MiB"};
      options.place = place;
    }
    const TrainResult result = Trainer(folder_ / (name + ".toml"), options).run();
    Trained trained{result.loss, result.evaluation.at("loss"), {}};
    const std::string weights = folder_ / ("weights" + std::to_string(runs_) + ".npz");
    export_run(options.run_dir, weights);
    for (const NamedTensor& tensor : read_npz(weights)) {
      if (tensor.name != "table.weight") continue;
      const auto values = tensor.tensor.as<float>();
      trained.table.assign(values.begin(), values.end());
    }
    return trained;
  }
  std::vector<float> start() const {
    return Session(folder_ / "absent.onnx", absent_ids_batch,
                   {"optimizer.kind=sgd",
                    "loss.terms=[{kind=\"softmax_cross_entropy\", "
                    "logits=\"logits\", labels=\"labels\"}]"})
        .parameters()
        .at("table.weight")
        .floats();
  }
  /// Rows that no id refers to must keep their bits.
  void expect_untouched(const std::vector<float>& table) const {
    ASSERT_EQ(table.size(), static_cast<std::size_t>(absent_ids_rows * absent_ids_columns));
    std::vector<bool> touched(static_cast<std::size_t>(absent_ids_rows));
    for (const std::int64_t id : some_ids(5 * absent_ids_batch)) {
      if (is_row(id)) touched[static_cast<std::size_t>(id)] = true;
    }
    const std::vector<float> before = start();
    int moved = 0;
    for (std::size_t row = 0; row < touched.size(); ++row) {
      const std::size_t first = row * static_cast<std::size_t>(absent_ids_columns);
      const bool same = std::memcmp(&table[first], &before[first], 4 * absent_ids_columns) == 0;
      EXPECT_TRUE(same || touched[row]) << "row " << row;
      moved += !same;
    }
    EXPECT_GT(moved, 30);
  }

  tandem::testing::TemporaryFolder folder_;
  int runs_ = 0;
};

void expect_near_tables(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6) << i;
}

TEST_F(AbsentIdsTest, TrainAsAFrozenRowOfZeros) {
  const std::string freeze = "parameters.freeze=[{at=\"padding:weight\"}]";
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{},
                                             {"optimizer.kind=adagrad", "optimizer.lr=0.1"},
                                             {"optimizer.clip_norm=0.3"},
                                             {"micro_batch=4"},
                                             {"micro_batch=2", "optimizer.clip_norm=0.3"}}) {
    SCOPED_TRACE(::testing::PrintToString(more));
    std::vector<std::string> padded{freeze};
    padded.insert(padded.end(), more.begin(), more.end());
    const Trained expected = train("padded", padded), absent = train("absent", more);
    EXPECT_NEAR(absent.loss, expected.loss, 1e-6 * expected.loss);
    EXPECT_NEAR(absent.evaluated, expected.evaluated, 1e-6 * expected.evaluated);
    expect_near_tables(absent.table, expected.table);
    expect_untouched(absent.table);
  }
}

TEST_F(AbsentIdsTest, OnEveryPlacement) {
  const std::string all = "{ at = \"**\", on = \"gpu\" }";
  for (const char* kind : {"sgd", "lazy_adam"}) {
    for (const char* micro_batches : {"micro_batch=8", "micro_batch=4"}) {
      const std::vector<std::string> settings{std::string("optimizer.kind=") + kind,
                                              "optimizer.lr=0.05", "optimizer.clip_norm=0.5",
                                              micro_batches};
      const Trained expected = train("absent", settings);
      expect_untouched(expected.table);
      for (const char* table : {"on = \"gpu\"", "on = \"cpu\", ship = \"rows\"",
                                "on = \"cpu\", ship = \"results\"", "state = \"cpu\""}) {
        SCOPED_TRACE(std::string(kind) + ", " + micro_batches + ", " + table);
        const Trained placed =
            train("absent", settings, {all, std::string("{ at = \"embedding\", ") + table + " }"});
        EXPECT_NEAR(placed.loss, expected.loss, 1e-6 * expected.loss);
        EXPECT_NEAR(placed.evaluated, expected.evaluated, 1e-6 * expected.evaluated);
        expect_near_tables(placed.table, expected.table);
        expect_untouched(placed.table);
      }
    }
  }
}

TEST_F(AbsentIdsTest, OfASession) {
  Session session(folder_ / "absent.onnx", absent_ids_batch,
                  {"optimizer.kind=lazy_adam",
                   "loss.terms=[{kind=\"softmax_cross_entropy\", "
                   "logits=\"logits\", labels=\"labels\"}]"});
  const auto feeds_of = [](std::vector<std::int64_t> ids, bool labels) {
    Tensors feeds{{"ids", Tensor::copy_of({absent_ids_batch, absent_ids_fields}, std::move(ids))}};
    if (labels)
      feeds["labels"] =
          Tensor::copy_of({absent_ids_batch}, std::vector<std::int64_t>{0, 1, 2, 0, 1, 2, 0, 1});
    return feeds;
  };
  std::vector<std::int64_t> ids(absent_ids_batch * absent_ids_fields, none);
  for (const float x : session.predict(feeds_of(ids, false)).at("logits").floats()) EXPECT_EQ(x, 0);
  ids[4] = 11;
  const std::vector<float> before = session.parameters().at("table.weight").floats();
  session.step(feeds_of(ids, true));
  const std::vector<float> after = session.parameters().at("table.weight").floats();
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (i / absent_ids_columns == 11)
      EXPECT_NE(after[i], before[i]) << i;
    else
      EXPECT_EQ(after[i], before[i]) << i;
  }
  ids[5] = none + 1;
  try {
    session.predict(feeds_of(ids, false));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("ids: row 2: out of range: an index of embedding"));
  }
}

TEST(AbsentIdsCount, AreNoRows) {
  std::vector<std::int64_t> ids{none, 3, none, 3, -1};
  EXPECT_EQ(count_unique(ids, 10), 2);
  std::vector<std::int64_t> few{none, 3, none};
  EXPECT_EQ(count_unique(few, std::int64_t{1} << 40), 1);
  std::vector<std::int64_t> all(100, none);
  EXPECT_EQ(count_unique(all, 10), 0);
}

TEST(AbsentIdsCount, OfAPass) {
  const OperatorSet operators = all_operators();
  for (const DType type : {DType::int32, DType::int64}) {
    GraphBuilder b(operators);
    State table;
    table.name = "table";
    table.trainable = true;
    table.start = HostTensor(TensorType{DType::float32, {20, 1}});
    const ValueId weights = b.state(std::move(table));
    b.output("y", b.add_node("Gather", {weights, b.input("ids", {type, {4}})}));
    const std::int64_t no = absent_id_of(type);
    const HostTensor ids = HostTensor::from<std::int64_t>({4}, {no, 3, no, 5}).converted(type);
    EXPECT_THAT(
        count_unique_rows(b.finish(), *make_array_source({{"ids", ids}}), reference_evaluator()),
        ElementsAre(Pair("table", 2)));
  }
}

}  // namespace
}  // namespace tandem::api
