// Real files: MNIST and CIFAR-10 from the folder of large test data, the digits from the
// repository.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/data/loader.h"
#include "engine/formats/files.h"
#include "tests/harness/folders.h"

namespace tandem {
namespace {

std::string shared_folder() {
  const char* named = std::getenv("TANDEM_SHARED");
  return named ? named : source_folder() + "/../shared";
}

const char* const head = "model = 'm.onnx'\nepochs = 1\noptimizer = { kind = 'sgd' }\n";

TEST(RealData, MnistThroughTheLoader) {
  const std::string root = shared_folder() + "/data/mnist";
  if (!path_exists(root)) GTEST_SKIP() << "no " << root << " (set TANDEM_SHARED)";
  const RunConfig config =
      parse_run_config(std::string(head) + "[data]\nkind = 'idx'\nroot = '" + root + R"toml('
[data.train]
files = { images = "train-images-idx3-ubyte.gz", labels = "train-labels-idx1-ubyte.gz" }
[data.eval]
files = { images = "t10k-images-idx3-ubyte.gz", labels = "t10k-labels-idx1-ubyte.gz" }
[data.fields]
x = { from = "images", as = [ "scale(1/255)", "normalize(0.1307, 0.3081)", "flatten" ] }
y = { from = "labels", as = [ "int64" ] }
)toml",
                       "train.toml");
  const DataSets sets = open_data(*config.data);
  EXPECT_EQ(sets.train->samples(), 60000);
  EXPECT_EQ(sets.eval->samples(), 10000);
  EXPECT_EQ(sets.train->fields()[0].sample, (TensorType{DType::float32, {784}}));
  sets.train->check_range(1, 10, nullptr);

  constexpr std::int64_t batch = 256;
  std::vector<float> images(3 * batch * 784);
  std::vector<std::int64_t> labels(3 * batch);
  Loader loader(
      sets.train,
      {.fields = {0, 1}, .batch_size = batch, .micro_batch_size = batch, .epochs = 1, .threads = 2},
      [&](int field, const MicroBatch& micro_batch) -> void* {
        const std::size_t slot = micro_batch.ticket % 3;
        if (field == 0) return &images[slot * batch * 784];
        return &labels[slot * batch];
      });
  double sum = 0, squares = 0;
  std::int64_t samples = 0;
  std::vector<std::int64_t> count(10);
  while (const auto micro_batch = loader.next()) {
    const std::size_t slot = micro_batch->ticket % 3;
    for (std::int64_t i = 0; i < micro_batch->count * 784; ++i) {
      const double v = images[slot * batch * 784 + static_cast<std::size_t>(i)];
      sum += v, squares += v * v;
    }
    for (std::int64_t i = 0; i < micro_batch->count; ++i) {
      ++count[static_cast<std::size_t>(labels[slot * batch + static_cast<std::size_t>(i)])];
    }
    samples += micro_batch->count;
    loader.release(micro_batch->ticket);
  }
  EXPECT_EQ(samples, 60000);
  EXPECT_NEAR(sum / (60000.0 * 784), 0, 1e-3);
  EXPECT_NEAR(squares / (60000.0 * 784), 1, 1e-3);
  EXPECT_EQ(count[0], 5923);
  EXPECT_EQ(count[1], 6742);
}

TEST(RealData, CifarWithAugmentation) {
  const std::string file = shared_folder() + "/data/cifar10/data_batch_1_first4000.bin";
  if (!path_exists(file)) GTEST_SKIP() << "no " << file << " (set TANDEM_SHARED)";
  const RunConfig config = parse_run_config(
      std::string(head) + "[data]\nkind = 'cifar'\n[data.train]\nfiles = ['" + file + R"toml(']
[data.eval]
fraction = 0.1
[data.fields]
x = { from = "images", as = [ "scale(1/255)" ], augment = [ "random_crop(32, padding=4)", "random_flip" ] }
y = "labels"
)toml",
      "train.toml");
  OpenOptions options;
  options.integer_types["y"] = DType::int64;
  const DataSets sets = open_data(*config.data, options);
  EXPECT_EQ(sets.train->samples(), 3600);
  EXPECT_EQ(sets.eval->samples(), 400);
  EXPECT_EQ(sets.train->fields()[0].sample, (TensorType{DType::float32, {3, 32, 32}}));
  EXPECT_EQ(sets.train->fields()[1].sample.dtype, DType::int64);
  std::vector<float> plain(3 * 32 * 32), random(plain.size());
  const std::vector<std::int64_t> one = {17};
  const Augmentation augmentation{1, 0};
  sets.train->fill(0, one, nullptr, plain.data());
  sets.train->fill(0, one, &augmentation, random.data());
  EXPECT_NE(plain, random);
}

TEST(RealData, TheDigitsOfTheRepository) {
  const RunConfig config = read_run_config(source_folder() + "/models/digits/train.toml");
  const DataSets sets = open_data(*config.data);
  EXPECT_EQ(sets.train->samples(), 1437);
  EXPECT_EQ(sets.eval->samples(), 360);
  EXPECT_EQ(sets.train->fields()[0].name, "image");
  EXPECT_EQ(sets.train->fields()[0].sample, (TensorType{DType::float32, {1, 8, 8}}));
  sets.eval->check_range(sets.eval->find_field("labels"), 10, nullptr);
}

}  // namespace
}  // namespace tandem
