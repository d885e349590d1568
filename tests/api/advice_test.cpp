// Messages of a training about values that kernels found, and about free dimensions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/api/small_model.h"
#include "tests/api/trained_runs.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The id is computed inside the model, so that only the lookup sees it: 2 · 150 of 200 rows.
TEST(AdviceTest, AnIndexOutOfRangeIsToldOnce) {
  const TemporaryFolder folder;
  std::ofstream(folder / "model.onnx")
      << SmallModel()
             .input("ids", {4, 2}, 7)
             .weight("table", {200, 3}, 0.5f)
             .weight("classes", {6, 3}, 0.5f)
             .node("Add", "twice", {"ids", "ids"}, "doubled")
             .node("Gather", "look", {"table", "doubled"}, "rows")
             .node("Flatten", "flat", {"rows"}, "flattened")
             .node("MatMul", "head", {"flattened", "classes"}, "logits")
             .output("logits", {4, 3})
             .bytes();
  const std::vector<std::int64_t> ids{0, 1, 2, 3, 4, 150, 6, 7};
  write_npz(folder / "train.npz", {{"ids", HostTensor::from<std::int64_t>({4, 2}, ids)},
                                   {"labels", HostTensor::from<std::int64_t>({4}, {0, 1, 2, 0})}});
  write_file(folder / "train.toml", R"toml(model = "model.onnx"
batch_size = 4
steps = 2
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
)toml");
  try {
    testing::train(folder);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("an index is out of range at step 1"),
                                    HasSubstr("got 300"), Not(HasSubstr("got Gather"))));
  }
}

}  // namespace
}  // namespace tandem::api
