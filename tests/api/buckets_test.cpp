// data.buckets from the files to a trained model: a free dimension of the ONNX file has the length
// of each step, and elsewhere the longest length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class BucketsTest : public ::testing::Test {
 protected:
  BucketsTest() {
    std::ofstream(folder_ / "model.onnx", std::ios::binary)
        << tandem::testing::SmallModel()
               .free_input("x", {"batch", "sequence"})
               .integer("axes", 1)
               .weight("w", {1, 2}, 0.1f)
               .node("ReduceSum", "sums", {"x", "axes"}, "sum")
               .node("MatMul", "classes", {"sum", "w"}, "logits")
               .free_output("logits", {"batch", "classes"})
               .bytes();
    std::ofstream rows(folder_ / "rows.jsonl");
    for (int i = 0; i < 90; ++i) {
      Json numbers = Json::array(), ids = Json::array();
      for (int k = 0; k <= i % 12; ++k) {
        numbers.push_back(i % 2 == 0 ? -1 : 1);
        ids.push_back((i * 5 + k * 3) % 19 + 1);
      }
      rows << Json{{"x", numbers}, {"ids", ids}, {"label", i % 2}}.dump() << "\n";
    }
    std::ofstream(folder_ / "train.toml") << R"toml(model = "model.onnx"
batch_size = 8
epochs = 3
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "label" } ]
[optimizer]
kind = "sgd"
lr = 0.01
[data]
kind = "jsonl"
buckets = { field = "x", lengths = [ 3, 6, 12 ], dimension = "sequence" }
train = { files = "rows.jsonl" }
eval = { files = "rows.jsonl" }
[data.fields]
x = { from = "x", as = [ "split(',', max=12)", "float32" ] }
label = { from = "label", as = [ "int64" ] }
[eval]
metrics = [ "accuracy" ]
[log]
every = "1 steps"
)toml";
  }

  TrainOptions options(const std::string& run, std::vector<std::string> overrides = {}) {
    TrainOptions options;
    options.run_dir = folder_ / run;
    options.overrides = std::move(overrides);
    options.on_message = [this](const std::string& text) { told_ += text + "\n"; };
    return options;
  }
  void train(const TrainOptions& how) { Trainer(folder_ / "train.toml", how).run(); }
  std::string weights(const std::string& run, const std::string& step = "00000036") {
    return read_file(folder_ / run + "/checkpoints/step-" + step + "/model.safetensors");
  }

  tandem::testing::TemporaryFolder folder_;
  std::string told_;
};

TEST_F(BucketsTest, AModelTrainsAndIsEvaluated) {
  train(options("run"));
  EXPECT_THAT(told_, HasSubstr("buckets    24 samples up to 3, 24 up to 6, 42 up to 12"));
  const Json metrics = Json::parse(evaluate_run(folder_ / "run", {}).json)["metrics"];
  EXPECT_TRUE(std::isfinite(metrics["loss"].get<double>()));
  EXPECT_EQ(metrics["accuracy"], 1);  // the sign of the sum is the label
}

TEST_F(BucketsTest, ARunThatStoppedGoesOn) {
  train(options("whole"));
  train(options("parts", {"steps=17"}));
  TrainOptions rest = options("parts", {"steps=36"});
  rest.resume = true;
  train(rest);
  EXPECT_EQ(weights("parts"), weights("whole"));
}

TEST_F(BucketsTest, AnExportedModelKeepsTheDimensionFree) {
  train(options("run", {"steps=1"}));
  export_run(folder_ / "run", folder_ / "out.onnx");
  EXPECT_THAT(read_file(folder_ / "out.onnx"), HasSubstr("sequence"));
}

// The number of rows that the next step looks up is the number of ids in a batch, which differs
// between buckets.
TEST_F(BucketsTest, RowsThatAreFetchedAheadAreThoseOfTheStep) {
  std::ofstream(folder_ / "ids.onnx", std::ios::binary)
      << tandem::testing::SmallModel()
             .free_input("ids", {"batch", "sequence"}, 7)
             .integer("axes", 1)
             .weight("table.weight", {20, 2}, 0.5f)
             .weight("w", {2, 2}, 0.5f)
             .node("Gather", "embedding", {"table.weight", "ids"}, "rows")
             .node("ReduceSum", "sums", {"rows", "axes"}, "sum", {{"keepdims", 0}})
             .node("MatMul", "classes", {"sum", "w"}, "logits")
             .free_output("logits", {"batch", "classes"})
             .bytes();
  std::ofstream(folder_ / "policy.toml") << R"toml(policy = 1
rules = [
  { at = "**", on = "gpu" },
  { at = "embedding", on = "cpu", ship = "rows" },
]
)toml";
  std::ofstream(folder_ / "ids.toml") << R"toml(model = "ids.onnx"
policy = "policy.toml"
batch_size = 8
steps = 24
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "label" } ]
[optimizer]
kind = "lazy_adam"
lr = 0.01
[data]
kind = "jsonl"
buckets = { field = "ids", lengths = [ 3, 6, 12 ], dimension = "sequence" }
train = { files = "rows.jsonl" }
[data.fields]
ids = { from = "ids", as = [ "split(',', max=12)", "int64" ] }
label = { from = "label", as = [ "int64" ] }
)toml";
  for (const std::string run : {"late", "ahead"}) {
    TrainOptions how = options(run);
    how.devices = {"gpu=emulated:0,memory=64MiB"};
    if (run == "ahead") how.place = {"{ at = \"embedding\", lookahead = 1 }"};
    Trainer(folder_ / "ids.toml", how).run();
  }
  EXPECT_EQ(weights("ahead", "00000024"), weights("late", "00000024"));
}

TEST_F(BucketsTest, TheDimensionIsThatOfTheModelAlone) {
  const auto refusal = [&](const std::string& key) {
    return error_of([&] { train(options("none", {key})); }, ErrorKind::usage);
  };
  EXPECT_THAT(refusal("data.buckets.dimension=seqence"), HasSubstr("seqence"));
  EXPECT_THAT(refusal("model.bind={ sequence = 12 }"),
              AllOf(HasSubstr("model.bind gives this dimension a length of its own"),
                    HasSubstr("sequence")));
  EXPECT_THAT(refusal("data.buckets.lengths=[3, 6]"),
              HasSubstr("the last bucket is not as long as the samples"));
}

}  // namespace
}  // namespace tandem::api
