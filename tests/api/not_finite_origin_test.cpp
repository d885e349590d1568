// A training reports the operator of the model's file in which numbers stop being finite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::SmallModel;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* mse = R"({ kind = "mse", predictions = "out", targets = "targets" })";
constexpr const char* cross_entropy =
    R"({ kind = "softmax_cross_entropy", logits = "out", labels = "labels" })";

class NotFiniteOriginTest : public ::testing::Test {
 protected:
  /// Writes out = op(x + b) of three numbers per sample, in steps of 4 samples; x is `first` in the
  /// first step and `then` in the others.
  void write(const std::string& op, float first, float then, const std::string& term) {
    SmallModel model;
    model.input("x", {4, 3}).weight("b", {3}, 0.01f);
    model.node("Add", "bias", {"x", "b"}, "h").node(op, "body", {"h"}, "out");
    write_file(folder_ / "model.onnx", model.output("out", {4, 3}).bytes());
    HostTensor x(TensorType{DType::float32, {12, 3}}), targets(x.type());
    HostTensor labels(TensorType{DType::int64, {12}});
    for (std::size_t i = 0; i < 36; ++i) {
      x.as<float>()[i] = i < 12 ? first : then;
      targets.as<float>()[i] = 0.5f;
    }
    write_npz(folder_ / "train.npz", {{"x", x}, {"targets", targets}, {"labels", labels}});
    write_file(folder_ / "train.toml", "model = \"model.onnx\"\nbatch_size = 4\nepochs = 1\n" +
                                           ("[loss]\nterms = [ " + term) + R"toml( ]
[optimizer]
kind = "sgd"
lr   = 1e-3
[data]
kind  = "npz"
train = { files = [ "train.npz" ], shuffle = "none" }
)toml");
  }
  std::string error(std::vector<std::string> overrides = {}) {
    TrainOptions options;
    options.overrides = std::move(overrides);
    options.run_dir = folder_ / ("run-" + std::to_string(++runs_));
    return error_of([&] { Trainer(folder_ / "train.toml", options).run(); }, ErrorKind::diverged);
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

TEST_F(NotFiniteOriginTest, OfTheFirstStepIsNoLearningRates) {
  for (const std::string op : {"Log", "Sqrt"}) {
    for (const std::string term : {mse, cross_entropy}) {
      SCOPED_TRACE(op + " " + term);
      write(op, -1, -1, term);
      for (const char* more : {"threads=1", "threads=2", "micro_batch=2"}) {
        EXPECT_THAT(
            error({more}),
            AllOf(HasSubstr("the loss is not finite at step 1"),
                  HasSubstr("body: nan begins here, in " + op + ": its operand is"),
                  HasSubstr("no learning rate was used yet"), Not(HasSubstr("lower optimizer.lr"))))
            << more;
      }
    }
  }
}

TEST_F(NotFiniteOriginTest, OfALaterStep) {
  for (const std::string term : {mse, cross_entropy}) {
    SCOPED_TRACE(term);
    write("Log", 1, -1, term);
    for (const char* more : {"threads=1", "threads=2", "micro_batch=2"}) {
      EXPECT_THAT(error({more}),
                  AllOf(HasSubstr("the loss is not finite at step 2"),
                        HasSubstr("body: nan begins here, in Log: its operand is 0 or below"),
                        HasSubstr("lower optimizer.lr")))
          << more;
    }
    EXPECT_THAT(error({"checkpoint.every=\"1 steps\""}),
                HasSubstr("body: nan begins here, in Log: its operand is 0 or below"));
  }
}

// A rate at which numbers exceed the range of float32.
TEST_F(NotFiniteOriginTest, OfARateThatIsTooHigh) {
  write("Identity", 1, 1, mse);
  EXPECT_THAT(error({"optimizer.lr=1e20"}),
              AllOf(HasSubstr("the loss is not finite at step 2"),
                    HasSubstr("inf begins here, in "), HasSubstr("lower optimizer.lr")));
}

}  // namespace
}  // namespace tandem::api
