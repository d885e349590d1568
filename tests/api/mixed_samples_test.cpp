// Models in which samples of a batch interact: a step that is cut into micro-batches gives a
// warning, or is refused where the model's own loss would not add up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::SmallModel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class MixedSamplesTest : public ::testing::Test {
 protected:
  MixedSamplesTest() {
    std::ofstream rows(folder_ / "rows.jsonl");
    for (int i = 0; i < 16; ++i)
      rows << Json{{"x", {0.1 * i, 1 - 0.2 * i, 0.5, -1}}, {"label", i % 3}}.dump() << "\n";
  }

  /// The messages of a run with two micro-batches per step, for h = x w, a node and what follows
  /// it.
  std::string told(const SmallModel& model, const std::string& loss) {
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << model.bytes();
    std::ofstream(folder_ / "train.toml")
        << "model = { file = \"model.onnx\", bind = { width = 4 } }\n" + loss + R"toml(
batch_size = 8
micro_batch = 4
steps = 2
[optimizer]
kind = "sgd"
lr = 0.01
[data]
kind = "jsonl"
train = { files = "rows.jsonl" }
[data.fields]
x = { from = "x", as = [ "split(',', max=4)", "float32" ] }
label = { from = "label", as = [ "int64" ] }
)toml";
    TrainOptions options;
    options.run_dir = folder_ / ("run" + std::to_string(++runs_));
    Trainer trainer(folder_ / "train.toml", options);
    trainer.run();
    return trainer.summary();
  }

  static SmallModel start() {
    return SmallModel()
        .free_input("x", {"batch", "width"})
        .weight("w", {4, 3}, 0.5f)
        .node("MatMul", "dense", {"x", "w"}, "h");
  }

  tandem::testing::TemporaryFolder folder_;
  int runs_ = 0;
  const std::string cross_entropy_ =
      R"(loss = { terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "y", labels = "label" } ] })";
};

TEST_F(MixedSamplesTest, OfASampleAloneNothingIsSaid) {
  const SmallModel model = start().node("Softmax", "shares", {"h"}, "y", {{"axis", 1}});
  const std::string logits =
      R"(loss = { terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "h", labels = "label" } ] })";
  EXPECT_THAT(told(SmallModel(model).free_output("h", {"batch", "classes"}), logits),
              Not(HasSubstr("samples of a batch are combined")));
  const SmallModel own =
      SmallModel(model).node("ReduceMean", "mean", {"y"}, "loss", {{"keepdims", 0}});
  EXPECT_THAT(told(SmallModel(own).output("loss", {}), ""),
              Not(HasSubstr("samples of a batch are combined")));
}

TEST_F(MixedSamplesTest, LogitsOfAllSamplesAreTold) {
  const SmallModel centred = start()
                                 .integer("zero", 0)
                                 .node("ReduceMean", "means", {"h", "zero"}, "mean")
                                 .node("Sub", "centred", {"h", "mean"}, "y")
                                 .free_output("y", {"batch", "classes"});
  EXPECT_THAT(told(centred, cross_entropy_),
              AllOf(HasSubstr("warning"), HasSubstr("means"), HasSubstr("ReduceMean"),
                    HasSubstr("not that of the whole batch")));
  const SmallModel shared = start()
                                .node("Softmax", "along", {"h"}, "y", {{"axis", 0}})
                                .node("Exp", "exp", {"y"}, "z")
                                .free_output("z", {"batch", "classes"});
  std::string of_z = cross_entropy_;
  of_z.replace(of_z.find("\"y\""), 3, "\"z\"");
  EXPECT_THAT(told(shared, of_z), AllOf(HasSubstr("along"), HasSubstr("Softmax")));
}

TEST_F(MixedSamplesTest, AnOwnLossThatDoesNotAddUpIsRefused) {
  const SmallModel of_means =
      start()
          .integer("zero", 0)
          .node("ReduceMean", "means", {"h", "zero"}, "mean", {{"keepdims", 0}})
          .node("ReduceSum", "sum", {"mean"}, "loss", {{"keepdims", 0}})
          .output("loss", {});
  EXPECT_THAT(error_of([&] { told(of_means, ""); }),
              AllOf(HasSubstr("means"), HasSubstr("micro_batch"), HasSubstr("do not add up")));
  const SmallModel of_pairs = start()
                                  .node("Transpose", "turned", {"h"}, "t")
                                  .node("MatMul", "pairs", {"h", "t"}, "p")
                                  .node("Tanh", "tanh", {"p"}, "q")
                                  .node("ReduceSum", "sum", {"q"}, "loss", {{"keepdims", 0}})
                                  .output("loss", {});
  EXPECT_THAT(error_of([&] { told(of_pairs, ""); }), HasSubstr("pairs"));
}

}  // namespace
}  // namespace tandem::api
