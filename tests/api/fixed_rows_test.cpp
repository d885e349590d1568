// parameters.fixed_rows compared with PyTorch's padding_idx (tests/scripts/fixed_rows.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

const std::string data = source_folder() + "/tests/data/";

TEST(FixedRowsBesidePyTorch, ThePaddingRowStaysAndTheOthersTrain) {
  const auto expected = nlohmann::json::parse(read_file(data + "fixed_rows.json"));
  const tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "train.toml")
      << "model = \"" << data << R"(exports/bag_padding.dynamo.onnx"
batch_size = 2
steps = 5
[parameters]
fixed_rows = [ { at = "table:weight", rows = [ 0 ] } ]
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "linear", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
shuffle = "none"
)";
  write_npz(folder / "train.npz",
            {{"x", HostTensor::from<std::int64_t>({10, 3}, expected["ids"])},
             {"labels", HostTensor::from<std::int64_t>({10}, expected["labels"])}});
  for (const auto& [kind, table] : expected["table"].items()) {
    SCOPED_TRACE(kind);
    TrainOptions options;
    options.run_dir = folder / kind;
    options.overrides = {"optimizer.kind=\"" + kind + "\""};
    Trainer(folder / "train.toml", options).run();
    const SafetensorsFile file(folder / kind + "/checkpoints/step-00000005/model.safetensors");
    const HostTensor* trained = file.find("table.weight");
    ASSERT_NE(trained, nullptr);
    for (std::int64_t i = 0; i < trained->type().elements(); ++i)
      EXPECT_NEAR(trained->number(i), table[static_cast<std::size_t>(i)].get<double>(), 1e-5) << i;
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(trained->number(i), 0);
  }
}

}  // namespace
}  // namespace tandem::api
