// Lookups of no ids train with a policy as without one: nothing crosses, and nothing waits.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "engine/formats/arrays/npy.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

constexpr std::int64_t empty_tensors_batch = 8, empty_tensors_micro_batches = 3,
                       empty_tensors_rows = 40;

class EmptyTensorsTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }

  // x [8, 3] -> classes, plus the sum of the rows of table [40, columns] that ids [8, fields] name.
  void write_case(std::int64_t fields, std::int64_t columns) const {
    write("model.onnx", tandem::testing::SmallModel()
                            .input("ids", {empty_tensors_batch, fields}, 7)
                            .input("x", {empty_tensors_batch, 3})
                            .weight("table.weight", {empty_tensors_rows, columns}, 0.5f)
                            .weight("classes.weight", {3, 3}, 0.5f)
                            .node("Gather", "embedding", {"table.weight", "ids"}, "rows")
                            .node("ReduceSum", "sum", {"rows"}, "all", {{"keepdims", 0}})
                            .node("MatMul", "classes", {"x", "classes.weight"}, "product")
                            .node("Add", "add", {"product", "all"}, "logits")
                            .output("logits", {empty_tensors_batch, 3})
                            .bytes());
    HostTensor ids(
        TensorType{DType::int64, {empty_tensors_micro_batches * empty_tensors_batch, fields}});
    std::int64_t next = 0;
    for (std::int64_t& id : ids.as<std::int64_t>()) id = next++ % empty_tensors_rows;
    HostTensor x(
        TensorType{DType::float32, {empty_tensors_micro_batches * empty_tensors_batch, 3}});
    for (float& value : x.as<float>()) value = static_cast<float>(next++ % 7) / 7;
    HostTensor labels(
        TensorType{DType::int32, {empty_tensors_micro_batches * empty_tensors_batch}});
    for (std::int32_t& label : labels.as<std::int32_t>())
      label = static_cast<std::int32_t>(next++ % 3);
    write_npz(folder_ / "train.npz", {{"ids", ids}, {"x", x}, {"labels", labels}});
    write("train.toml", R"(model = "model.onnx"
batch_size = 8
steps = 3
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
shuffle = "none"
)");
  }

  double loss(const std::string& run, const std::vector<std::string>& rules) const {
    TrainOptions options;
    options.run_dir = folder_ / run;
    options.devices = {"gpu=emulated:0,memory=64MiB"};
    options.place = rules;
    return Trainer(folder_ / "train.toml", options).run().loss;
  }

  void expect_the_same() const {
    const double on_host = loss("host", {"{ at = \"**\", on = \"cpu\" }"});
    EXPECT_TRUE(std::isfinite(on_host));
    const std::string gpu = "{ at = \"**\", on = \"gpu\" }";
    EXPECT_NEAR(loss("gpu", {gpu}), on_host, 1e-6);
    for (const std::string ship : {"rows", "results"}) {
      SCOPED_TRACE(ship);
      EXPECT_NEAR(
          loss(ship, {gpu, "{ at = \"embedding\", on = \"cpu\", ship = \"" + ship + "\" }"}),
          on_host, 1e-6);
    }
    EXPECT_NEAR(loss("cache", {gpu,
                               "{ at = \"embedding\", on = \"cpu\", ship = \"rows\", cache = "
                               "\"400B\" }"}),
                on_host, 1e-6);
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(EmptyTensorsTest, BagsWithoutIds) {
  write_case(0, 4);
  expect_the_same();
}

TEST_F(EmptyTensorsTest, TablesWithoutColumns) {
  write_case(2, 0);
  expect_the_same();
}

}  // namespace
}  // namespace tandem::api
