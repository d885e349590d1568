// Warnings about sequences that are longer than the model's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/formats/arrays/npy.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Lengths, OneThatIsTooLargeIsNamed) {
  const tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "model.onnx", std::ios::binary)
      << tandem::testing::SmallModel()
             .input("x", {2, 5, 3})
             .input("lengths", {2}, 6)
             .weight("rnn.w", {1, 4, 3}, 0.5f)
             .weight("rnn.r", {1, 4, 4}, 0.5f)
             .weight("classes.weight", {20, 3}, 0.5f)
             .node("RNN", "rnn", {"x", "rnn.w", "rnn.r", "", "lengths"}, "y",
                   {{"hidden_size", 4}, {"layout", 1}})
             .node("Flatten", "flatten", {"y"}, "flat")
             .node("MatMul", "classes", {"flat", "classes.weight"}, "logits")
             .output("logits", {2, 3})
             .bytes();
  std::ofstream(folder / "train.toml") << R"(model = "model.onnx"
batch_size = 2
steps = 1
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
)";
  write_npz(folder / "train.npz", {{"x", HostTensor(TensorType{DType::float32, {2, 5, 3}})},
                                   {"lengths", HostTensor::from<std::int32_t>({2}, {5, 6})},
                                   {"labels", HostTensor(TensorType{DType::int64, {2}})}});
  const std::string text =
      tandem::testing::error_of([&] { Trainer(folder / "train.toml", {}).run(); }, ErrorKind::data);
  EXPECT_THAT(text, AllOf(HasSubstr("rnn"), HasSubstr("a length of rnn, which has 5 steps"),
                          HasSubstr("got 6")));
}

}  // namespace
}  // namespace tandem::api
