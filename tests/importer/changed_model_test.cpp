// A model file that is changed after its run was trained: eval, predict, export and --resume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "onnx/onnx_pb.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/importer/support.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string digits = source_folder() + "/models/digits/";

onnx::ModelProto parse_model(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&stream));
  return model;
}

onnx::NodeProto& of_type(onnx::ModelProto& model, const std::string& op) {
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() == op) return node;
  }
  throw std::runtime_error("no " + op);
}

onnx::AttributeProto& attribute_or_new(onnx::NodeProto& node, const std::string& name) {
  for (onnx::AttributeProto& a : *node.mutable_attribute()) {
    if (a.name() == name) return a;
  }
  onnx::AttributeProto& added = *node.add_attribute();
  added.set_name(name);
  return added;
}

void set_graph(onnx::NodeProto& node, const char* name, const char* op, float alpha) {
  onnx::AttributeProto& a = attribute_or_new(node, name);
  a.set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& graph = *a.mutable_g();
  graph.set_name(name);
  graph.add_output()->set_name(name);
  onnx::NodeProto& inner = *graph.add_node();
  inner.set_op_type(op);
  inner.set_name(std::string(name) + "/" + op);
  inner.add_input("scaled");
  inner.add_output(name);
  onnx::AttributeProto& slope = attribute_or_new(inner, "alpha");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(alpha);
}

/// The committed digits; after fc1 also a Mul by a Constant, and an If with two LeakyRelu.
onnx::ModelProto digits_model() {
  onnx::ModelProto model = parse_model(digits + "model.onnx");
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::TensorProto& yes = *graph.add_initializer();
  yes.set_name("yes");
  yes.set_data_type(onnx::TensorProto::BOOL);
  yes.add_int32_data(1);
  const auto add = [&](const char* op, const std::vector<std::string>& inputs,
                       const char* output) -> onnx::NodeProto& {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(op);
    node.set_name(op);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  };
  // logits = fc2(chosen) comes last.
  const onnx::NodeProto fc2 = graph.node(graph.node_size() - 1);
  graph.mutable_node()->RemoveLast();
  onnx::AttributeProto& value = attribute_or_new(add("Constant", {}, "factor"), "value_float");
  value.set_type(onnx::AttributeProto::FLOAT);
  value.set_f(1.5);
  add("Mul", {fc2.input(0), "factor"}, "scaled");
  onnx::NodeProto& choice = add("If", {"yes"}, "chosen");
  set_graph(choice, "then_branch", "LeakyRelu", 0.25);
  set_graph(choice, "else_branch", "LeakyRelu", 0.125);
  *graph.add_node() = fc2;
  graph.mutable_node(graph.node_size() - 1)->set_input(0, "chosen");
  return model;
}

struct ModelEdit {
  std::string name;
  std::function<void(onnx::ModelProto&)> edit;
  std::string told;  // what is reported about the first difference
};
void PrintTo(const ModelEdit& edit, std::ostream* stream) { *stream << edit.name; }

class ChangedModelTest : public ::testing::TestWithParam<ModelEdit> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    for (const char* file : {"digits_train.npz", "digits_test.npz"})
      fs::copy(digits + file, *folder_ / file);
    save(digits_model());
    write_file(*folder_ / "train.toml", R"toml(model = "model.onnx"
batch_size = 32
steps = 4
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
[data]
kind = "npz"
[data.train]
files = [ "digits_train.npz" ]
[data.eval]
files = [ "digits_test.npz" ]
[data.fields]
image  = { from = "images", as = [ "scale(1/16)" ] }
labels = "labels"
[eval]
metrics = [ "accuracy" ]
[checkpoint]
every = "2 steps"
keep  = 0
)toml");
    TrainOptions options;
    options.run_dir = *folder_ / "run";
    Trainer(*folder_ / "train.toml", options).run();
  }
  static void TearDownTestSuite() { folder_.reset(); }

  void SetUp() override {
    save(digits_model());
    fs::remove_all(*folder_ / "copy");
    fs::copy(*folder_ / "run", *folder_ / "copy", fs::copy_options::recursive);
  }

  static void save(const onnx::ModelProto& model) {
    std::ofstream stream(*folder_ / "model.onnx", std::ios::binary);
    ASSERT_TRUE(model.SerializeToOstream(&stream));
  }
  static void change(const std::function<void(onnx::ModelProto&)>& edit) {
    onnx::ModelProto model = digits_model();
    edit(model);
    save(model);
  }

  Report evaluate(bool accepts = false, const std::string& checkpoint = "latest") {
    TrainedOptions options;
    options.accept_changes = accepts;
    options.checkpoint = checkpoint;
    return evaluate_run(run_, options);
  }
  Report predict(bool accepts = false) {
    PredictOptions options;
    options.accept_changes = accepts;
    options.data = {*folder_ / "digits_test.npz"};
    options.to = *folder_ / "predicted.tsv";
    return predict_run(run_, options);
  }
  std::string export_to(const std::string& name, bool accepts = false) {
    return export_run(run_, *folder_ / name, {.checkpoint = "latest", .accept_changes = accepts});
  }
  void resume(bool accepts = false, std::vector<std::string> keys = {"steps=8"}) {
    messages_.clear();
    TrainOptions options;
    options.run_dir = run_;
    options.resume = true;
    options.accept_changes = accepts;
    options.overrides = std::move(keys);
    options.on_message = [&](const std::string& text) { messages_.push_back(text); };
    Trainer(*folder_ / "train.toml", options).run();
  }
  std::string checkpoint(const char* step) { return run_ + "/checkpoints/step-0000000" + step; }

  static inline std::unique_ptr<TemporaryFolder> folder_;
  std::string run_ = *folder_ / "copy";
  std::vector<std::string> messages_;
};

TEST_P(ChangedModelTest, IsRefusedWithTheFirstDifference) {
  change(GetParam().edit);
  const auto refused = AllOf(HasSubstr(*folder_ / "model.onnx"), HasSubstr(GetParam().told),
                             HasSubstr("the model has changed since step 4 of the run was saved"),
                             HasSubstr("--accept-changes"));
  EXPECT_THAT(tandem::testing::error_of([&] { evaluate(); }), refused);
  EXPECT_THAT(tandem::testing::error_of([&] { predict(); }), refused);
  EXPECT_THAT(tandem::testing::error_of([&] { export_to("out.onnx"); }), refused);
  const auto log = read_file(run_ + "/train.log"), metrics = read_file(run_ + "/metrics.jsonl");
  EXPECT_THAT(tandem::testing::error_of([&] { resume(); }), refused);
  EXPECT_EQ(read_file(run_ + "/metrics.jsonl"), metrics);
  EXPECT_EQ(read_file(run_ + "/train.log"), log);
  EXPECT_FALSE(fs::exists(checkpoint("8")));
  EXPECT_FALSE(fs::exists(*folder_ / "out.onnx"));
  EXPECT_FALSE(fs::exists(*folder_ / "predicted.tsv"));
}

INSTANTIATE_TEST_SUITE_P(
    Edits, ChangedModelTest,
    ::testing::Values(
        ModelEdit{"pool",
                  [](onnx::ModelProto& m) { of_type(m, "MaxPool").set_op_type("AveragePool"); },
                  "operator 5 (/MaxPool): the model has changed since step 4 of the run was saved: "
                  "expected operator MaxPool, "},
        ModelEdit{"activation", [](onnx::ModelProto& m) { of_type(m, "Relu").set_op_type("Tanh"); },
                  "expected operator Relu, "},
        ModelEdit{"dilations",
                  [](onnx::ModelProto& m) {
                    onnx::NodeProto& conv = of_type(m, "Conv");
                    for (const char* name : {"dilations", "pads"}) {
                      for (auto& value : *attribute_or_new(conv, name).mutable_ints()) value = 2;
                    }
                  },
                  "operator 1 (/conv1/Conv): the model has changed since step 4 of the run was "
                  "saved: expected attribute dilations [1, 1], "},
        ModelEdit{"constant",
                  [](onnx::ModelProto& m) {
                    attribute_or_new(of_type(m, "Constant"), "value_float").set_f(2);
                  },
                  "expected attribute value_float 1.5, got attribute value_float 2"},
        ModelEdit{
            "inner_attribute",
            [](onnx::ModelProto& m) {
              attribute_or_new(
                  *attribute_or_new(of_type(m, "If"), "then_branch").mutable_g()->mutable_node(0),
                  "alpha")
                  .set_f(0.5);
            },
            "(then_branch/LeakyRelu): the model has changed since step 4 of the run was "
            "saved: expected attribute alpha 0.25, got attribute alpha 0.5"}),
    [](const auto& info) { return info.param.name; });

using SameModelTest = ChangedModelTest;

TEST_F(SameModelTest, OtherNamesTextsAndBatchesAreTaken) {
  change([](onnx::ModelProto& m) {
    m.set_producer_name("another exporter");
    for (onnx::NodeProto& node : *m.mutable_graph()->mutable_node()) {
      node.set_name("renamed" + node.name());
      node.set_doc_string("text");
      const auto rename = [](std::string& name) {
        if (name.starts_with("/")) name = "renamed" + name;
      };
      for (std::string& input : *node.mutable_input()) rename(input);
      for (std::string& output : *node.mutable_output()) rename(output);
    }
  });
  EXPECT_THAT(evaluate().warnings, IsEmpty());
  EXPECT_THAT(predict().warnings, IsEmpty());
  EXPECT_THAT(export_to("renamed.onnx"), Not(HasSubstr("warning")));
  resume(false, {"steps=8", "batch_size=16"});
  EXPECT_THAT(messages_, Not(Contains(HasSubstr("accepted"))));
  EXPECT_TRUE(fs::exists(checkpoint("8")));
}

TEST_F(SameModelTest, WeightsAloneAreExportedWhateverTheModelIs) {
  change([](onnx::ModelProto& m) { of_type(m, "MaxPool").set_op_type("AveragePool"); });
  EXPECT_THAT(export_to("weights.safetensors"), Not(HasSubstr("warning")));
}

TEST_F(SameModelTest, AnAcceptedChangeIsToldAndHoldsFromThenOn) {
  change([](onnx::ModelProto& m) { of_type(m, "MaxPool").set_op_type("AveragePool"); });
  const auto told = HasSubstr(
      "accepted: the model has changed since step 4 of the run was saved: operator 5 (/MaxPool): "
      "operator MaxPool, ");
  EXPECT_THAT(evaluate(true).warnings, ElementsAre(told));
  EXPECT_THAT(predict(true).warnings, ElementsAre(told));
  EXPECT_THAT(export_to("accepted.onnx", true), told);
  resume(true);
  EXPECT_THAT(messages_, Contains(told));
  EXPECT_THAT(read_file(run_ + "/train.log"), told);
  const FingerprintPtr saved = read_checkpoint(checkpoint("8")).position.fingerprint;
  ASSERT_EQ(saved->accepted.size(), 1u);
  EXPECT_EQ(saved->accepted[0].step, 4u);
  EXPECT_THAT(saved->accepted[0].text, told);
  EXPECT_THAT(evaluate().warnings, IsEmpty());
  resume(false, {"steps=10"});  // what was accepted stays known
  EXPECT_EQ(
      read_checkpoint(run_ + "/checkpoints/step-00000010").position.fingerprint->accepted.size(),
      1u);
  EXPECT_THAT(tandem::testing::error_of([&] { evaluate(false, "4"); }),
              HasSubstr("got operator AveragePool"));
}

TEST_F(SameModelTest, ADamagedFingerprintIsBadData) {
  const std::string file = checkpoint("4") + "/fingerprint.json";
  std::string text = read_file(file);
  text[text.find("Conv")] = 'K';
  write_file(file, text);
  TrainedOptions options;
  options.checkpoint = "4";
  EXPECT_THAT(tandem::testing::error_of([&] { evaluate_run(run_, options); }, ErrorKind::data),
              AllOf(HasSubstr("fingerprint.json"), HasSubstr("manifest's hash")));
}

}  // namespace
}  // namespace tandem::api
