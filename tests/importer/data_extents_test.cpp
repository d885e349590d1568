// Models in which data decides extents, imported stage by stage: what they compute (onnxruntime's
// numbers, written by tests/scripts/data_extents.py), how many stages that takes, and what is
// refused without stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/formats/files.h"
#include "tests/harness/folders.h"
#include "tests/importer/differences.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const HostTensor& tensor_named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return tensor;
  }
  throw std::runtime_error("nothing is called " + name);
}

struct StagedRun {
  NamedTensors outputs;
  int stages = 0;                  // before the whole graph
  std::vector<std::size_t> nodes;  // in each graph
};

/// What a runner does with the requests of imports, on reference kernels.
StagedRun run_in_stages(const OnnxFile& file, const NamedTensors& fed) {
  StagedRun run;
  StageValues values;
  ImportOptions options = with_evaluator();
  options.batch = fed[0].second.shape()[0];
  options.training = false;
  for (; run.stages < 60; ++run.stages) {
    options.stage = &values;
    const ImportResult import = import_graph(file, engine_operators(), options);
    run.nodes.push_back(import.graph.nodes.size());
    NamedTensors inputs = fed;
    for (const auto& [key, tensor] : values.fed) inputs.emplace_back(stage_name(key), tensor);
    const NamedTensors made = run_graph(import.graph, inputs);
    if (import.stage.requests.empty()) {
      run.outputs = made;
      return run;
    }
    const auto value_of = [&](const std::string& key) -> HostTensor {
      if (const auto at = values.known.find(key); at != values.known.end()) return at->second;
      if (const auto at = values.fed.find(key); at != values.fed.end()) return at->second;
      if (const State* state = import.graph.find_state(key)) return state->start;
      if (import.graph.find_output(stage_name(key)) != nullptr)
        return tensor_named(made, stage_name(key));
      return tensor_named(fed, key);
    };
    const StageValues before = values;
    for (const StageRequest& request : import.stage.requests) {
      std::vector<HostTensor> reads;
      for (const std::string& key : request.reads) reads.push_back(value_of(key));
      if (request.makes.empty()) {
        for (std::size_t i = 0; i < reads.size(); ++i)
          values.known.emplace(request.reads[i], reads[i]);
        continue;
      }
      const std::vector<HostTensor> results = request.make(reads);
      for (std::size_t i = 0; i < results.size(); ++i)
        values.fed.emplace(request.makes[i], results[i]);
    }
    for (const std::string& key : import.stage.carried) values.fed.emplace(key, value_of(key));
    if (values.known.size() + values.fed.size() == before.known.size() + before.fed.size())
      throw std::runtime_error("a stage has made nothing new");
  }
  throw std::runtime_error("too many stages");
}

class DataExtents : public ::testing::TestWithParam<Json> {
 protected:
  OnnxFile file() const { return OnnxFile::from_bytes(model_bytes(GetParam().at("model"))); }
};

TEST_P(DataExtents, ComputesWhatOnnxruntimeDoes) {
  const OnnxFile model = file();
  for (const Json& run : GetParam().at("runs")) {
    SCOPED_TRACE(run.at("inputs").dump());
    const NamedTensors got = run_in_stages(model, tensors_of(run.at("inputs"))).outputs;
    expect_near(got, tensors_of(run.at("outputs")), 1e-6);
  }
}

TEST_P(DataExtents, NeedsStagesForWhateverIsFed) {
  ImportOptions options = with_evaluator();
  options.batch = GetParam().at("runs")[0].at("inputs")[0].at("shape")[0];
  const StageValues nothing;
  options.stage = &nothing;
  EXPECT_FALSE(import_graph(file(), engine_operators(), options).stage.requests.empty());
}

std::vector<Json> extent_cases() {
  const std::string path = source_folder() + "/tests/data/data_extents.json";
  return Json::parse(read_file(path)).get<std::vector<Json>>();
}

INSTANTIATE_TEST_SUITE_P(All, DataExtents, ::testing::ValuesIn(extent_cases()),
                         [](const auto& info) {
                           return info.param.at("name").template get<std::string>();
                         });

const Json& case_of(const std::string& name) {
  static const std::vector<Json> all = extent_cases();
  for (const Json& json : all) {
    if (json.at("name") == name) return json;
  }
  throw std::runtime_error("there is no case " + name);
}

StagedRun first_run(const std::string& name) {
  const Json& json = case_of(name);
  return run_in_stages(OnnxFile::from_bytes(model_bytes(json.at("model"))),
                       tensors_of(json.at("runs")[0].at("inputs")));
}

TEST(DataExtentStages, ComeOneAfterAnotherWhereOneChoiceIsBehindAnother) {
  EXPECT_EQ(first_run("rows_of_a_mask").stages, 1);
  EXPECT_EQ(first_run("nested").stages, 2);
  EXPECT_EQ(first_run("functions").stages, 1) << "both calls at once";
}

// What the first stage has computed is an input of the second one, whose graph does not have it.
TEST(DataExtentStages, ComputeNothingTwice) {
  const StagedRun run = first_run("nested");
  ASSERT_EQ(run.nodes.size(), 3u);
  EXPECT_LE(run.nodes[2], 5u) << "Gather, ReduceMax, Expand and what changes shapes";
}

// Sizes that a choice has produced itself, under the name that the file gives them.
TEST(DataExtentStages, KnowWhatTheyHaveMadeUnderAnotherName) {
  const OnnxFile file = OnnxFile::from_bytes(model_bytes(R"(<ir_version: 10, opset_import: ["": 20]>
parts (int64[N] ids, float[N] x) => (float[A] a, float[B] b)
{
  values, first, inverse, counts = Unique <sorted = 1> (ids)
  a, b = Split <axis = 0> (x, counts)
})"));
  const StagedRun run =
      run_in_stages(file, {{"ids", HostTensor::from<std::int64_t>({5}, {7, 3, 7, 7, 3})},
                           {"x", HostTensor::from<float>({5}, {1, 2, 3, 4, 5})}});
  EXPECT_EQ(run.stages, 2);
  ASSERT_EQ(tensor_named(run.outputs, "a").shape(), (Shape{2}));  // as many as there are threes
  ASSERT_EQ(tensor_named(run.outputs, "b").shape(), (Shape{3}));
  EXPECT_EQ(tensor_named(run.outputs, "a").number(1), 2);
  EXPECT_EQ(tensor_named(run.outputs, "b").number(0), 3);
}

// Nodes in a branch are looked at before any values are known, which is not yet a problem.
TEST(DataExtentStages, RefuseNoChoiceInABranchThatIsNotReached) {
  const OnnxFile file = OnnxFile::from_bytes(model_bytes(R"(<ir_version: 10, opset_import: ["": 20]>
branch (float[N] x) => (float[R] y)
<float zero = {0}, float one = {1}, int64[1] first = {0}>
{
  mask = Greater (x, zero)
  places = NonZero (mask)
  index = Squeeze (places, first)
  chosen = Gather (x, index)
  sum = ReduceSum <keepdims = 0> (chosen)
  positive = Greater (sum, zero)
  y = If (positive) <then_branch = yes () => (float[R] p) {
    high = Greater (x, one)
    at = NonZero (high)
    there = Squeeze (at, first)
    p = Gather (x, there)
  }, else_branch = no () => (float[R] q) {
    q = Neg (x)
  }>
})"));
  const StagedRun run =
      run_in_stages(file, {{"x", HostTensor::from<float>({4}, {0.5f, 2, -1, 3})}});
  ASSERT_EQ(tensor_named(run.outputs, "y").shape(), (Shape{2}));
  EXPECT_EQ(tensor_named(run.outputs, "y").number(0), 2);
  EXPECT_EQ(tensor_named(run.outputs, "y").number(1), 3);
}

TEST(DataExtentStages, OfALoopOfFewNumbersAreNotItsIterations) {
  const StagedRun small = first_run("until_it_is_small");
  EXPECT_LE(small.stages, 3);
  const StagedRun wide = first_run("until_it_settles");
  const auto iterations = case_of("until_it_settles").at("runs")[0].at("outputs")[1];
  EXPECT_EQ(wide.stages, iterations.at("shape")[0].get<int>())
      << "the condition of each iteration is a stage";
}

TEST(DataExtentStages, OfAGraphDependOnWhatIsFedByTypesAlone) {
  const Json& json = case_of("rows_of_a_mask");
  const OnnxFile file = OnnxFile::from_bytes(model_bytes(json.at("model")));
  ImportOptions options = with_evaluator();
  options.batch = 5;
  const auto text_for = [&](const std::vector<std::int64_t>& places) {
    StageValues values;
    const auto count = static_cast<std::int64_t>(places.size());
    values.fed["places#0"] = HostTensor::from({1, count}, places);
    options.stage = &values;
    const ImportResult result = import_graph(file, engine_operators(), options);
    EXPECT_TRUE(result.stage.requests.empty());
    return to_text(result.graph);
  };
  EXPECT_EQ(text_for({0, 2}), text_for({1, 4}));
  EXPECT_NE(text_for({0, 2}), text_for({0, 1, 2}));
}

TEST(DataExtentRefusals, NameTheNodeWithoutStages) {
  for (const auto& [name, reason] : std::vector<std::pair<std::string, std::string>>{
           {"trips_of_data", "number of its iterations"},
           {"until_it_is_small", "nothing bounds"},
           {"extents_of_data", "known before the run"},
           {"unique_values", "known before the run"},
           {"boxes", "known before the run"}}) {
    ImportOptions options = with_evaluator();
    options.batch = 4;
    const OnnxFile file = OnnxFile::from_bytes(model_bytes(case_of(name).at("model")));
    if (name == "boxes") options.batch = 1;
    EXPECT_THAT(error_of([&] { import_graph(file, engine_operators(), options); }),
                HasSubstr(reason))
        << name;
  }
}

// A loop without an end is refused while it is unrolled.
TEST(DataExtentRefusals, ALoopWithoutAnEndEnds) {
  const std::string path = source_folder() + "/tests/data/data_extents/endless.onnx";
  FileLimits limits;
  limits.nodes = 5000;
  const OnnxFile file = OnnxFile::from_bytes(read_file(path), {}, limits);
  const NamedTensors fed{{"x", HostTensor::from<float>({1, 2}, {1, 2})}};
  EXPECT_THAT(error_of([&] { run_in_stages(file, fed); }),
              HasSubstr("its iterations, one after the other, are more than 500 nodes"));
}

}  // namespace
}  // namespace tandem::testing
