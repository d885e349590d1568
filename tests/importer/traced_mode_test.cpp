// Normalization in files of torch.onnx.export(dynamo=True), which have no training_mode: the node's
// metadata or name gives the mode of PyTorch's module (tests/scripts/traced_batch_norm.py).
#include "importer/file/traced_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "importer/import_graph.h"
#include "importer/model_notices.h"
#include "tests/harness/folders.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tandem::testing;
using Json = nlohmann::json;
using Modes = std::map<std::string, bool>;

ImportResult traced_file(const std::string& name, const std::string& batch_norm,
                         std::vector<OperatorRule> rules = {}) {
  ImportOptions options = with_evaluator();
  options.batch = 8;
  options.batch_norm = batch_norm;
  options.batch_norm_rules = std::move(rules);
  options.collect_problems = true;
  return import_graph(OnnxFile::open(source_folder() + "/tests/data/notices/traced/" + name),
                      engine_operators(), options);
}

/// Whether each BatchNormalization is in training mode in the file.
Modes modes_of(const ImportResult& model) {
  Modes modes;
  for (const BatchNormUse& use : model.batch_norms) modes[use.path] = use.file_trains;
  return modes;
}

std::vector<std::string> trained_in(const ImportResult& model) {
  std::vector<std::string> paths;
  for (const Node& node : model.graph.nodes) {
    if (node.op->name == "BatchNormalizationTraining") paths.push_back(node.path);
  }
  return paths;
}

TEST(TracedMode, IsThatOfEachModule) {
  const ImportResult model = traced_file("kinds.onnx", "file");
  std::ifstream stream(source_folder() + "/tests/data/notices/traced/expected.json");
  Modes modes = modes_of(model);
  std::vector<std::string> dropped;
  for (const Node& node : model.graph.nodes) {
    if (node.op->name == "Dropout") dropped.push_back(node.path);
  }
  const Json expected = Json::parse(stream);  // what is iterated over must outlive the loop
  for (const auto& [module, trains] : expected["training"].items()) {
    SCOPED_TRACE(module);
    const std::string path = module + ".BatchNormalization";
    if (module.starts_with("dropout")) {
      EXPECT_EQ(std::count(dropped.begin(), dropped.end(), module + ".Dropout"), trains ? 1 : 0);
      continue;
    }
    ASSERT_EQ(modes.count(path), 1u);
    // For modules without running statistics the file computes the statistics of the batch itself.
    EXPECT_EQ(modes[path], trains && !module.starts_with("batch"));
  }
  EXPECT_THAT(model.summary.problems, ::testing::IsEmpty());
}

TEST(TracedMode, MixedModesAreKnownByMetadataOrName) {
  for (const char* name : {"mixed.onnx", "names.onnx"}) {
    SCOPED_TRACE(name);
    const ImportResult model = traced_file(name, "file");
    std::vector<bool> modes;
    for (const BatchNormUse& use : model.batch_norms) modes.push_back(use.file_trains);
    EXPECT_THAT(modes, ElementsAre(false, true));
    EXPECT_EQ(trained_in(model).size(), 1u);
    const std::vector<ModelNotice> notices = model_notices(traced_file(name, "train"));
    EXPECT_EQ(std::count_if(notices.begin(), notices.end(),
                            [](const auto& n) { return n.kind == "batch_norm_modes"; }),
              1);
  }
  EXPECT_THAT(trained_in(traced_file("mixed.onnx", "file")),
              ElementsAre("neck.1.BatchNormalization"));
  EXPECT_THAT(trained_in(traced_file("eval.onnx", "file")), ElementsAre());
}

TEST(TracedMode, ThatIsLostIsRefusedWhereTheFileDecides) {
  const ImportResult model = traced_file("stripped.onnx", "file");
  ASSERT_EQ(model.summary.problems.size(), 1u);
  const Problem& problem = model.summary.problems[0];
  EXPECT_THAT(problem.reason, HasSubstr("the file does not say whether it trains"));
  EXPECT_THAT(problem.fix, HasSubstr("{ at = \"BatchNormalization#0\", mode = \"train\" }"));
  for (const char* mode : {"train", "inference"}) {
    EXPECT_EQ(traced_file("stripped.onnx", mode).summary.problems.size(), 0u) << mode;
  }
  const std::vector<OperatorRule> rules{
      {"**", "file"}, {"BatchNormalization#0", "inference"}, {"BatchNormalization#1", "train"}};
  const ImportResult ruled = traced_file("stripped.onnx", "train", rules);
  EXPECT_EQ(ruled.summary.problems.size(), 0u);
  EXPECT_THAT(trained_in(ruled), ElementsAre("BatchNormalization#1"));
}

/// What metadata and names of nodes say about calls, as exporters of several versions note them.
TEST(TracedMode, OfCalls) {
  const auto mode = [](const std::string& call, const std::string& name = "") {
    onnx::NodeProto node;
    node.set_name(name);
    onnx::StringStringEntryProto& entry = *node.add_metadata_props();
    entry.set_key("pkg.torch.onnx.fx_node");
    entry.set_value("%y : [num_users=1] = call_function[target=torch.ops.aten." + call +
                    ", kwargs = {})");
    return importer::traced_in_training(node);
  };
  EXPECT_EQ(mode("batch_norm.default](args = (%x, %w, %b, %m, %v, True, 0.1, 1e-05, False)"), true);
  EXPECT_EQ(mode("batch_norm.default](args = (%x, %w, %b, %m, %v, False, 0.1, 1e-05, True)"),
            false);
  EXPECT_EQ(mode("_batch_norm_with_update_functional.default](args = (%x, %w, %b, %m, %v, 0.1)"),
            true);
  EXPECT_EQ(mode("_batch_norm_no_update.default](args = (%x, %w, %b, %m, %v, 0.1, 1e-05)"), false);
  EXPECT_EQ(mode("relu.default](args = (%True_1, True)"), std::nullopt);
  EXPECT_EQ(mode("relu.default](args = (%x)", "node__native_batch_norm_legit_functional_4__0"),
            true);
  EXPECT_EQ(mode("relu.default](args = (%x)", "neck.BatchNormalization"), std::nullopt);
}

}  // namespace
}  // namespace tandem
