// eval and predict on models in which data decides extents. The numbers are onnxruntime's, written
// by tests/scripts/data_extents.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"
#include "tests/harness/folders.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string data_folder = source_folder() + "/tests/data/";

std::string model_named(const std::string& name) {
  return data_folder + "data_extents/" + name + ".onnx";
}

const Json& runs_of(const std::string& name) {
  static const Json all = Json::parse(read_file(data_folder + "data_extents.json"));
  for (const Json& json : all) {
    if (json.at("name") == name) return json.at("runs");
  }
  throw std::runtime_error("there is no case " + name);
}

HostTensor tensor_of(const Json& entry) {
  const auto shape = entry.at("shape").get<Shape>();
  if (entry.at("type") == "int64")
    return HostTensor::from(shape, entry.at("values").get<std::vector<std::int64_t>>());
  return HostTensor::from(shape, entry.at("values").get<std::vector<float>>());
}

/// The inputs of several runs, one after the other: each run is a batch.
std::vector<NamedTensor> inputs_of_runs(const std::string& name, const std::vector<int>& which) {
  std::vector<NamedTensor> arrays;
  for (const int run : which) {
    const Json& inputs = runs_of(name)[static_cast<std::size_t>(run)].at("inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const HostTensor next = tensor_of(inputs[i]);
      if (arrays.size() <= i) {
        arrays.push_back({inputs[i].at("name"), next});
        continue;
      }
      TensorType type = next.type();
      type.shape[0] += arrays[i].tensor.shape()[0];
      HostTensor both(type);
      auto* to = static_cast<char*>(both.data());
      std::copy_n(static_cast<const char*>(arrays[i].tensor.data()), arrays[i].tensor.bytes(), to);
      std::copy_n(static_cast<const char*>(next.data()), next.bytes(),
                  to + arrays[i].tensor.bytes());
      arrays[i].tensor = both;
    }
  }
  return arrays;
}

std::vector<double> flat(const Json& nested) {
  if (!nested.is_array()) return {nested.get<double>()};
  std::vector<double> all;
  for (const Json& part : nested) {
    const std::vector<double> inner = flat(part);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

void expect_values(const std::vector<double>& got, const Json& want) {
  const auto values = want.at("values").get<std::vector<double>>();
  ASSERT_EQ(got.size(), values.size()) << want.at("name");
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(got[i], values[i], 1e-5 * (1 + std::fabs(values[i])))
        << want.at("name") << " " << i;
}

class DataExtentsTool : public ::testing::Test {
 protected:
  PredictOptions options_for(const std::string& name, const std::vector<int>& which,
                             std::int64_t batch) {
    write_npz(folder_ / "data.npz", inputs_of_runs(name, which));
    PredictOptions options;
    options.data = {folder_ / "data.npz"};
    options.batch = batch;
    options.on_message = [this](const std::string& text) { said_ += text + "\n"; };
    return options;
  }
  std::vector<std::string> lines(const std::string& name, PredictOptions options) {
    options.to = folder_ / "out.jsonl";
    predict_run(model_named(name), options);
    return lines_of(read_file(options.to));
  }
  TemporaryFolder folder_;
  std::string said_;
};

TEST_F(DataExtentsTool, PredictsBatchByBatchWhatHasNoRows) {
  for (const auto& [name, which, batch] :
       std::vector<std::tuple<std::string, std::vector<int>, std::int64_t>>{
           {"rows_of_a_mask", {0, 1, 2}, 5},
           {"unique_values", {0, 1}, 3},
           {"nested", {0, 1, 2}, 4},
           {"places_alone", {0, 1}, 3},
           {"trips_of_data", {0, 1, 2}, 3}}) {
    SCOPED_TRACE(name);
    const std::vector<std::string> got = lines(name, options_for(name, which, batch));
    ASSERT_EQ(got.size(), which.size());
    std::int64_t row = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Json line = Json::parse(got[i]);
      EXPECT_EQ(line.at("batch"), i);
      for (const Json& number : line.at("rows")) EXPECT_EQ(number, row++);
      for (const Json& want : runs_of(name)[static_cast<std::size_t>(which[i])].at("outputs"))
        expect_values(flat(line.at(want.at("name").get<std::string>())), want);
    }
  }
  EXPECT_THAT(said_, AllOf(HasSubstr("data decides extents: NonZero at"), HasSubstr("slower")));
}

TEST_F(DataExtentsTool, WritesBatchesOfArrays) {
  PredictOptions options = options_for("rows_of_a_mask", {0, 1, 2}, 5);
  options.to = folder_ / "out.npz";
  predict_run(model_named("rows_of_a_mask"), options);
  const std::vector<NamedTensor> arrays = read_npz(options.to);
  int seen = 0;
  for (std::size_t run = 0; run < 3; ++run) {
    for (const Json& want : runs_of("rows_of_a_mask")[run].at("outputs")) {
      const std::string name = want.at("name").get<std::string>() + "." + std::to_string(run);
      for (const NamedTensor& array : arrays) {
        if (array.name != name) continue;
        ++seen;
        EXPECT_EQ(array.tensor.shape(), want.at("shape").get<Shape>());
        std::vector<double> values;
        for (std::int64_t i = 0; i < array.tensor.type().elements(); ++i)
          values.push_back(array.tensor.number(i));
        expect_values(values, want);
      }
    }
  }
  EXPECT_EQ(seen, 9);
}

// In the file, y has the axis of the rows, so it is written row by row in every format.
TEST_F(DataExtentsTool, PredictsRowByRowWhatHasThem) {
  PredictOptions options = options_for("rows_of_a_mask", {0, 1}, 5);
  options.outputs = {"y"};
  const std::vector<std::string> got = lines("rows_of_a_mask", options);
  ASSERT_EQ(got.size(), 10u);
  std::vector<double> all;
  for (const std::string& line : got) {
    const std::vector<double> row = flat(Json::parse(line).at("y"));
    all.insert(all.end(), row.begin(), row.end());
  }
  expect_values({all.begin(), all.begin() + 15}, runs_of("rows_of_a_mask")[0].at("outputs")[0]);
  expect_values({all.begin() + 15, all.end()}, runs_of("rows_of_a_mask")[1].at("outputs")[0]);
  options.to = folder_ / "out.tsv";
  predict_run(model_named("rows_of_a_mask"), options);
  EXPECT_EQ(lines_of(read_file(options.to)).size(), 10u);
}

TEST_F(DataExtentsTool, RefusesFormatsWithoutBatches) {
  for (const char* to : {"out.tsv", "out.csv", "out.npy"}) {
    PredictOptions options = options_for("rows_of_a_mask", {0}, 5);
    options.to = folder_ / to;
    EXPECT_THAT(error_of([&] { predict_run(model_named("rows_of_a_mask"), options); }),
                AllOf(HasSubstr("'chosen' has no entry for each row"), HasSubstr(".jsonl or .npz"),
                      HasSubstr("--output")));
  }
  PredictOptions options = options_for("rows_of_a_mask", {0}, 5);
  options.to = folder_ / "out.jsonl";
  options.as = "class";
  EXPECT_THAT(error_of([&] { predict_run(model_named("rows_of_a_mask"), options); }),
              HasSubstr("--as"));
}

TEST_F(DataExtentsTool, EvaluatesWhatHasRows) {
  std::vector<NamedTensor> arrays = inputs_of_runs("rows_of_a_mask", {0, 1});
  arrays.push_back({"labels", HostTensor(TensorType{DType::float32, {10, 3}})});
  write_npz(folder_ / "data.npz", arrays);
  const auto config_of = [&](const std::string& value) {
    write_file(folder_ / "train.toml", "model = \"" + model_named("rows_of_a_mask") + R"("
batch_size = 5
steps = 1
[loss]
terms = [ { name = "loss", kind = "mse", predictions = ")" +
                                           value +
                                           R"(", targets = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[eval]
metrics = [ "mse" ]
[data]
kind = "npz"
[data.train]
files = [ "data.npz" ]
[data.eval]
files = [ "data.npz" ]
)");
  };
  config_of("y");
  TrainedOptions options;
  options.config = folder_ / "train.toml";
  options.data = {folder_ / "data.npz"};
  const Json metrics =
      Json::parse(evaluate_run(model_named("rows_of_a_mask"), options).json).at("metrics");
  double sum = 0;
  for (const std::size_t run : {0u, 1u}) {
    for (const double y : runs_of("rows_of_a_mask")[run].at("outputs")[0].at("values"))
      sum += y * y;
  }
  EXPECT_NEAR(metrics.at("loss").get<double>(), sum / 30, 1e-6);
  EXPECT_NEAR(metrics.at("mse").get<double>(), sum / 30, 1e-6);
  config_of("chosen");
  EXPECT_THAT(error_of([&] { evaluate_run(model_named("rows_of_a_mask"), options); }),
              AllOf(HasSubstr("chosen"), HasSubstr("data decides how long axis 0")));
}

// A mixture of experts trains equally with the rows that each expert gets and with masks over all
// rows.
TEST_F(DataExtentsTool, TrainsWhatChoosesRowsByCapacity) {
  std::vector<float> x, labels;
  for (int i = 0; i < 64 * 4; ++i) x.push_back(static_cast<float>((i * 37 + 11) % 41) / 20 - 1);
  for (int i = 0; i < 64 * 2; ++i) labels.push_back(static_cast<float>((i * 29 + 5) % 23) / 11 - 1);
  write_npz(folder_ / "data.npz", {{"x", HostTensor::from<float>({64, 4}, x)},
                                   {"labels", HostTensor::from<float>({64, 2}, labels)}});
  const auto trained = [&](const std::string& name) {
    write_file(folder_ / "train.toml", "model = \"" + model_named(name) + R"("
batch_size = 16
steps = 12
[loss]
terms = [ { name = "loss", kind = "mse", predictions = "y", targets = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[data]
kind = "npz"
[data.train]
files = [ "data.npz" ]
[data.eval]
files = [ "data.npz" ]
[eval]
every = "6 steps"
)");
    TrainOptions options;
    options.run_dir = folder_ / name;
    return Trainer(folder_ / "train.toml", options).run();
  };
  const TrainResult rows = trained("mixture_by_rows"), masks = trained("mixture_by_masks");
  EXPECT_NEAR(rows.loss, masks.loss, 1e-6);
  EXPECT_NEAR(rows.evaluation.at("loss"), masks.evaluation.at("loss"), 1e-6);
  // Its predictions need no stages.
  PredictOptions options;
  options.data = {folder_ / "data.npz"};
  options.to = folder_ / "out.npz";
  options.on_message = [this](const std::string& text) { said_ += text; };
  predict_run(folder_ / "mixture_by_rows", options);
  EXPECT_THAT(said_, ::testing::Not(HasSubstr("data decides extents")));
}

TEST_F(DataExtentsTool, RefusesWhatAsksForTooMuchMemory) {
  write_npz(folder_ / "data.npz",
            {{"x", HostTensor(TensorType{DType::float32, {1, 2}})},
             {"n", HostTensor::from<std::int64_t>({1}, {std::int64_t{1} << 20})}});
  PredictOptions options;
  options.data = {folder_ / "data.npz"};
  options.batch = 1;
  options.to = folder_ / "out.jsonl";
  EXPECT_THAT(error_of([&] { predict_run(model_named("huge"), options); }), HasSubstr("too large"));
}

}  // namespace
}  // namespace tandem::api
