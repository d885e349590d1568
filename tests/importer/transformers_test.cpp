// Small networks of transformers as exporters and onnxruntime write them
// (tests/scripts/transformer_models.py): PyTorch's results, each layer's attention as one operator,
// gradients of all parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/passes/pass.h"
#include "tests/harness/folders.h"
#include "tests/importer/json_nodes.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;

class Transformers : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path =
        source_folder() + "/tests/data/transformers/" + std::string(GetParam());
    expected_ = Json::parse(read_file(path + ".json"));
    const OnnxFile file = OnnxFile::open(path + ".onnx");
    before_ = import_graph(file, engine_operators(), with_evaluator()).graph;
    PassContext context{engine_operators(), {}, {}, {}};
    after_ = run_passes(before_, context);
  }
  void expect_output(const Graph& graph) {
    NamedTensors feeds;
    for (const auto& [name, entry] : expected_.at("inputs").items()) {
      feeds.emplace_back(name, tensor_of(entry));
    }
    const HostTensor got = run_graph(graph, feeds).at(0).second;
    const HostTensor want = tensor_of(expected_.at("output"));
    ASSERT_EQ(got.type(), want.type());
    for (std::int64_t i = 0; i < want.type().elements(); ++i) {
      EXPECT_NEAR(got.number(i), want.number(i), 1e-5) << i;
    }
  }

  Json expected_;
  Graph before_, after_;
};

TEST_P(Transformers, GiveTheResultsOfPyTorch) {
  expect_output(before_);
  expect_output(after_);
}

TEST_P(Transformers, HaveOneAttentionALayer) {
  const auto count = [&](const char* op) {
    return std::count_if(after_.nodes.begin(), after_.nodes.end(),
                         [&](const Node& node) { return node.op->name == op; });
  };
  EXPECT_EQ(count("Attention"), expected_.at("attention").get<int>()) << to_text(after_);
  EXPECT_EQ(count("Softmax"), 0) << to_text(after_);
}

TEST_P(Transformers, TrainAllParameters) {
  GraphBuilder builder(engine_operators(), after_);
  const ValueId y = builder.graph().outputs[0].value;
  const std::vector<GradientSeed> seeds{{y, builder.filled(1, builder.type(y))}};
  std::vector<ValueId> wanted;
  std::vector<std::string> names;
  for (const State& state : builder.graph().states) {
    if (!state.trainable) continue;
    wanted.push_back(state.initial);
    names.push_back(state.name);
  }
  EXPECT_GE(wanted.size(), 12u);
  const std::vector<ValueId> gradients = add_gradients(builder, seeds, wanted);
  for (std::size_t i = 0; i < gradients.size(); ++i) EXPECT_TRUE(gradients[i]) << names[i];
}

INSTANTIATE_TEST_SUITE_P(All, Transformers,
                         ::testing::Values("bert_dynamo", "bert_torchscript", "bert_eager",
                                           "llama_dynamo", "bert_onnxruntime"));

}  // namespace
}  // namespace tandem::testing
