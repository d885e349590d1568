// Notices about models before they train, and what they compute outside of training, over files
// that PyTorch's exporters and onnxruntime's quantization wrote (tests/scripts/model_notices.py).
#include "importer/model_notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "importer/export_graph.h"
#include "tests/harness/folders.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;
using namespace tandem::testing;
using Json = nlohmann::json;

const std::string notices_folder = source_folder() + "/tests/data/notices/";

Json expected_of(const std::string& part) {
  std::ifstream stream(notices_folder + "expected.json");
  Json chosen = Json::object();
  const Json all = Json::parse(stream);
  for (const auto& [name, value] : all.items()) {
    if (name.starts_with(part)) chosen[name] = value;
  }
  return chosen;
}

ImportOptions for_batch(std::int64_t batch, bool training) {
  ImportOptions options = with_evaluator();
  options.batch = batch;
  options.training = training;
  return options;
}

ImportResult import_file(const std::filesystem::path& path, const ImportOptions& options) {
  return import_graph(OnnxFile::open(path.string()), engine_operators(), options);
}

const ModelNotice* find_notice(const std::vector<ModelNotice>& notices, const std::string& kind) {
  for (const ModelNotice& notice : notices) {
    if (notice.kind == kind) return &notice;
  }
  return nullptr;
}

std::int64_t draws_in(const Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const Node& node) { return node.op->random; });
}

void expect_output(const Graph& graph, const Json& of, double tolerance) {
  const std::vector<float> x = of["x"].get<std::vector<float>>();
  const NamedTensors outputs = run_graph(graph, {{"x", HostTensor::from<float>({3, 3, 2, 2}, x)}});
  ASSERT_EQ(outputs.size(), 1u);
  const HostTensor& y = outputs[0].second;
  ASSERT_EQ(y.type().elements(), static_cast<std::int64_t>(of["y"].size()));
  for (std::int64_t i = 0; i < y.type().elements(); ++i)
    EXPECT_NEAR(y.number(i), of["y"][static_cast<std::size_t>(i)].get<double>(), tolerance);
}

TEST(RandomNumbers, AreWhatEvalGivesOutsideOfTraining) {
  const Json expected = expected_of("random/");
  ASSERT_GE(expected.size(), 28u);
  for (const auto& [name, of] : expected.items()) {
    SCOPED_TRACE(name);
    const std::string kind = of["kind"];
    const ImportResult training = import_file(notices_folder + name, for_batch(3, true));
    ASSERT_EQ(training.randomness.size(), 1u);
    const RandomUse& use = training.randomness[0];
    EXPECT_EQ(use.kind, kind);
    EXPECT_EQ(use.is_on, kind.empty());
    EXPECT_EQ(draws_in(training.graph), 1);
    const ImportResult inference = import_file(notices_folder + name, for_batch(3, false));
    EXPECT_EQ(draws_in(inference.graph), kind.empty() ? 1 : 0);
    if (!kind.empty()) expect_output(inference.graph, of, 1e-5);
  }
}

TEST(RandomNumbers, LeaveTheExportedFile) {
  const ScratchFolder scratch;
  const Json expected = expected_of("random/");
  for (const auto& [name, of] : expected.items()) {
    SCOPED_TRACE(name);
    const std::string kind = of["kind"];
    const std::filesystem::path to = scratch.path() / "exported.onnx";
    ExportOptions options;
    options.import.evaluate = reference_evaluator();
    const OnnxFile file = OnnxFile::open(notices_folder + name);
    const ExportResult result = export_graph(file, engine_operators(), {}, to, options);
    const ImportResult again = import_file(to, for_batch(3, true));
    EXPECT_EQ(draws_in(again.graph), kind.empty() ? 1 : 0);
    if (kind.empty()) {
      EXPECT_THAT(result.note, HasSubstr("draws random numbers in evaluation"));
    } else {
      EXPECT_THAT(result.note, Not(HasSubstr("random")));
      expect_output(again.graph, of, 1e-5);
    }
  }
}

// mode "train" replaces random numbers by their mean: z = mu for a variational encoder.
TEST(RandomNumbers, FollowRules) {
  const std::string name = notices_folder + "random/reparametrized.torchscript.onnx";
  ImportOptions options = for_batch(3, false);
  options.random_rules = {{"middle.**", "train"}};
  const ImportResult mean = import_file(name, options);
  EXPECT_EQ(draws_in(mean.graph), 0);
  EXPECT_FALSE(mean.randomness.at(0).is_on);
  const ScratchFolder scratch;
  ExportOptions exporting;
  exporting.import = options;
  exporting.import.batch = 0;
  export_graph(OnnxFile::open(name), engine_operators(), {}, scratch.path() / "e.onnx", exporting);
  const ImportResult exported = import_file(scratch.path() / "e.onnx", for_batch(3, true));
  EXPECT_EQ(draws_in(exported.graph), 0);
  const std::vector<float> x(36, 0.25f);
  const auto value = [&](const Graph& graph) {
    return run_graph(graph, {{"x", HostTensor::from<float>({3, 3, 2, 2}, x)}})[0].second.number(5);
  };
  EXPECT_NEAR(value(exported.graph), value(mean.graph), 1e-6);

  options.random_rules = {{"**", "train"}, {"middle.*", "always"}};  // the last one counts
  const ImportResult always =
      import_file(notices_folder + "random/depth_rows.dynamo.onnx", options);
  EXPECT_EQ(draws_in(always.graph), 1);
  EXPECT_EQ(find_notice(model_notices(always), "random_on"), nullptr);  // it is meant
}

// The mean of DropBlock's numbers leaves out no block.
TEST(RandomNumbers, OfDropBlockAreOffByARule) {
  const Json expected = expected_of("random/drop_block");
  ASSERT_EQ(expected.size(), 4u);
  for (const auto& [name, of] : expected.items()) {
    SCOPED_TRACE(name);
    ImportOptions options = for_batch(3, false);
    EXPECT_EQ(draws_in(import_file(notices_folder + name, options).graph), 1);
    options.random_rules = {{"middle.**", "train"}};
    expect_output(import_file(notices_folder + name, options).graph, of, 1e-5);
  }
}

TEST(RandomNumbers, AreNamed) {
  const ImportResult gumbel =
      import_file(notices_folder + "random/gumbel.dynamo.onnx", for_batch(3, true));
  const std::vector<ModelNotice> notices = model_notices(gumbel);
  const ModelNotice* on = find_notice(notices, "random_on");
  ASSERT_NE(on, nullptr);
  EXPECT_TRUE(on->is_warning);
  EXPECT_THAT(in_one_line(*on),
              AllOf(HasSubstr("1 operator draws random numbers in evaluation"),
                    HasSubstr("middle.RandomUniformLike (RandomUniformLike)"),
                    HasSubstr("{ at = \"middle.RandomUniformLike\", mode = \"train\" }")));
  EXPECT_EQ(find_notice(notices, "random_off"), nullptr);
}

TEST(Buffers, OfClassicExportsDoNotTrainWhereThatIsSure) {
  const Json expected = expected_of("buffers/");
  for (const auto& [name, of] : expected.items()) {
    SCOPED_TRACE(name);
    // The exporter calls the mean of an axis as the buffer is called; onnx.checker refuses it, too.
    if (name == "buffers/normalized.dynamo.onnx") continue;
    const ImportResult model = import_file(notices_folder + name, for_batch(2, true));
    std::vector<std::string> doubtful, sure;
    for (const ParameterSummary& p : model.summary.parameters) {
      const auto is_in = [&](const char* key) {
        return std::find(of[key].begin(), of[key].end(), p.name) != of[key].end();
      };
      if (is_in("trains")) {
        EXPECT_TRUE(p.trainable) << p.name << ": " << p.reason;
      }
      if (p.is_recognised_buffer) sure.push_back(p.name);
      if (!p.doubt.empty()) doubtful.push_back(p.name);
      if (is_in("buffers") && name.find("dynamo") != std::string::npos) {
        EXPECT_FALSE(p.trainable) << p.name;
      }
    }
    if (name.find("dynamo") != std::string::npos) {  // whose files say what is a buffer
      EXPECT_THAT(sure, IsEmpty());
      continue;
    }
    EXPECT_THAT(sure, UnorderedElementsAreArray(of["sure"].get<std::vector<std::string>>()));
    EXPECT_THAT(doubtful,
                UnorderedElementsAreArray(of["doubtful"].get<std::vector<std::string>>()));
    const std::vector<ModelNotice> notices = model_notices(model);
    EXPECT_EQ(find_notice(notices, "buffers") != nullptr, !sure.empty());
    EXPECT_EQ(find_notice(notices, "possible_buffers") != nullptr, !doubtful.empty());
  }
}

TEST(Buffers, TrainWhereARuleSaysSo) {
  ImportOptions options = for_batch(2, true);
  options.trained_buffers = {"pe"};
  const ImportResult model =
      import_file(notices_folder + "buffers/normalized.torchscript.onnx", options);
  EXPECT_TRUE(model.graph.find_state("pe")->trainable);
  EXPECT_FALSE(model.graph.find_state("std")->trainable);
  const std::vector<ModelNotice> notices = model_notices(model);
  const ModelNotice* buffers = find_notice(notices, "buffers");
  ASSERT_NE(buffers, nullptr);
  EXPECT_THAT(in_one_line(*buffers), AllOf(HasSubstr("mean (it is the mean of an input)"),
                                           HasSubstr("parameters.train = [ \"mean\", \"std\" ]")));
  const ModelNotice* possible = find_notice(notices, "possible_buffers");
  ASSERT_NE(possible, nullptr);
  EXPECT_THAT(possible->fix, HasSubstr("parameters.freeze = [ { at = \"temperature\" } ]"));
}

TEST(Quantized, WeightsAreCounted) {
  const Json expected = expected_of("quantized/");
  for (const auto& [name, of] : expected.items()) {
    SCOPED_TRACE(name);
    ImportOptions options = for_batch(2, true);
    options.collect_problems = true;
    const ImportResult model = import_file(notices_folder + name, options);
    const std::vector<ModelNotice> notices = model_notices(model);
    const ModelNotice* notice = find_notice(notices, "quantized");
    ASSERT_NE(notice, nullptr);
    EXPECT_EQ(notice, &notices[0]);
    const auto trained = of["trained"].get<std::int64_t>();
    EXPECT_EQ(model.quantized.numbers, of["quantized"].get<std::int64_t>());
    EXPECT_EQ(model.quantized.types, of["type"].get<std::string>());
    EXPECT_EQ(notice->trained, trained);
    EXPECT_EQ(notice->all, of["float"].get<std::int64_t>() + of["quantized"].get<std::int64_t>());
    EXPECT_EQ(notice->is_warning, trained < 0.05 * static_cast<double>(notice->all));
  }
  const ImportResult plain =
      import_file(notices_folder + "buffers/learned.torchscript.onnx", for_batch(2, true));
  EXPECT_EQ(find_notice(model_notices(plain), "quantized"), nullptr);
}

TEST(BatchNormModes, AreTheFilesOrThoseOfRules) {
  const auto trained = [](const ImportOptions& options) {
    const ImportResult model = import_file(notices_folder + "batch_norm.onnx", options);
    std::vector<std::string> paths;
    for (const Node& node : model.graph.nodes) {
      if (node.op->name == "BatchNormalizationTraining") paths.push_back(node.path);
    }
    return paths;
  };
  ImportOptions options = for_batch(8, true);
  using Paths = std::vector<std::string>;
  const Paths both{"backbone.1.BatchNormalization", "neck.1.BatchNormalization"};
  EXPECT_EQ(trained(options), both);
  const ImportResult model = import_file(notices_folder + "batch_norm.onnx", options);
  const std::vector<ModelNotice> notices = model_notices(model);
  const ModelNotice* modes = find_notice(notices, "batch_norm_modes");
  ASSERT_NE(modes, nullptr);
  EXPECT_THAT(in_one_line(*modes), AllOf(HasSubstr("in training (neck.1.BatchNormalization)"),
                                         HasSubstr("model.batch_norm = \"file\"")));
  options.batch_norm = "file";
  EXPECT_EQ(trained(options), Paths{"neck.1.BatchNormalization"});
  options.batch_norm = "train";
  options.batch_norm_rules = {{"**", "file"}, {"backbone.**", "train"}, {"neck.**", "inference"}};
  EXPECT_EQ(trained(options), Paths{"backbone.1.BatchNormalization"});
  options.training = false;
  EXPECT_THAT(trained(options), IsEmpty());
}

}  // namespace
}  // namespace tandem
