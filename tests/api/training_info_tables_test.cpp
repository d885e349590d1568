// Embedding tables of models with ONNX's training_info: an update that changes nothing where the
// gradient is 0 only processes the looked-up rows, with the results of the dense update.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/arrays/npz_file.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"

namespace tandem::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string info_table_folder = source_folder() + "/tests/data/training_info/";
constexpr std::int64_t info_table_steps = 5, info_table_batch = 6;

const NpzFile& expected_tables() {
  static const NpzFile file(info_table_folder + "tables.npz");
  return file;
}

std::vector<std::int64_t> part_of(const std::string& name, std::int64_t step, std::int64_t count) {
  const HostTensor all = expected_tables().read(name, DType::int64);
  const auto part = all.as<std::int64_t>().subspan(static_cast<std::size_t>(step * count),
                                                   static_cast<std::size_t>(count));
  return {part.begin(), part.end()};
}

class TrainingInfoTables : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainingInfoTables, AgreeWithTheDenseUpdate) {
  const std::string name = GetParam();
  Session session(info_table_folder + "table_" + name + ".onnx", info_table_batch, {});
  const HostTensor losses = expected_tables().read(name + "/losses", DType::float64);
  for (std::int64_t step = 0; step < info_table_steps; ++step) {
    const double loss = session.step(
        {{"ids",
          Tensor::copy_of({info_table_batch, 2}, part_of("ids", step, 2 * info_table_batch))},
         {"labels",
          Tensor::copy_of({info_table_batch}, part_of("labels", step, info_table_batch))}});
    EXPECT_NEAR(loss, losses.as<double>()[static_cast<std::size_t>(step)], 2e-6) << step;
  }
  const auto made = session.parameters();
  for (const char* parameter : {"table.weight", "fc.weight"}) {
    const HostTensor wanted = expected_tables().read(name + "/" + parameter, DType::float64);
    const std::vector<float> values = made.at(parameter).floats();
    ASSERT_EQ(values.size(), wanted.as<double>().size());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], wanted.as<double>()[i], 5e-6) << parameter << " " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Updates, TrainingInfoTables,
                         ::testing::Values("sgd", "adagrad", "momentum"),
                         [](const auto& info) { return info.param; });

std::string training_stage(const std::string& name, std::int64_t samples) {
  InspectOptions options;
  options.stage = "training";
  options.bind = {{"batch", samples}};
  return inspect(info_table_folder + "table_" + name + ".onnx", options).text;
}

TEST(TrainingInfoTablesTest, OnlyWhatKeepsStillIsUpdatedByRows) {
  for (const std::string name : {"sgd", "adagrad"}) {
    EXPECT_THAT(training_stage(name, info_table_batch), HasSubstr("RowsUpdate")) << name;
    // With that many ids it costs more than the dense form.
    EXPECT_THAT(training_stage(name, 60), Not(HasSubstr("RowsUpdate"))) << name;
  }
  // A velocity moves rows that were not looked up.
  EXPECT_THAT(training_stage("momentum", info_table_batch), Not(HasSubstr("RowsUpdate")));
}

}  // namespace
}  // namespace tandem::api
