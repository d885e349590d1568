// training_info: errors that name what is wrong with it; the parts that it is split into; Gradient
// at other values than the graph has; artifacts of onnxruntime-training.
#include "importer/training_info/training_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "engine/formats/arrays/npz_file.h"
#include "engine/graph/error.h"
#include "engine/train/graph/training_graph.h"
#include "tests/harness/folders.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace tandem::testing;

onnx::ModelProto model(const std::string& name) {
  onnx::ModelProto model;
  std::ifstream file(source_folder() + "/tests/data/training_info/" + name + ".onnx",
                     std::ios::binary);
  EXPECT_TRUE(model.ParseFromIstream(&file)) << name;
  return model;
}

TrainingImport imported_training(const onnx::ModelProto& model, std::int64_t batch = 8) {
  ImportOptions options = with_evaluator();
  options.batch = batch;
  return import_training(OnnxFile::from_bytes(model.SerializeAsString()), engine_operators(),
                         options);
}

TrainingGraph built(const TrainingImport& import) {
  RunConfig config;
  TrainingRequest request;
  request.config = &config;
  request.algorithm = import.algorithm;
  return build_training_graph(engine_operators(), import.model.graph, request);
}

/// The error that reading, importing or building the step ends with.
std::string refusal_of_training(const onnx::ModelProto& model) {
  return error_of([&] { built(imported_training(model)); });
}

onnx::TrainingInfoProto& info(onnx::ModelProto& model) { return *model.mutable_training_info(0); }

onnx::NodeProto& node(onnx::ModelProto& model, const std::string& op) {
  for (onnx::NodeProto& each : *info(model).mutable_algorithm()->mutable_node()) {
    if (each.op_type() == op) return each;
  }
  throw std::runtime_error("no " + op);
}

onnx::AttributeProto& attribute(onnx::NodeProto& node, const std::string& name) {
  for (onnx::AttributeProto& each : *node.mutable_attribute()) {
    if (each.name() == name) return each;
  }
  throw std::runtime_error("no " + name);
}

std::vector<std::string> names(const std::vector<NamedValue>& values) {
  std::vector<std::string> all;
  for (const NamedValue& value : values) all.push_back(value.name);
  return all;
}

TEST(TrainingInfoImport, IsSplitWhereItsGradientsBegin) {
  const TrainingImport import = imported_training(model("adam"));
  const TrainingAlgorithm& algorithm = *import.algorithm;
  EXPECT_EQ(algorithm.loss, "loss");
  EXPECT_THAT(algorithm.outputs, ElementsAre("logits"));
  EXPECT_THAT(names(import.model.graph.outputs), ElementsAre("logits", "loss"));
  EXPECT_THAT(names(import.model.graph.inputs), ElementsAre("x", "labels"));
  EXPECT_EQ(import.model.graph.states.size(), 4u);
  EXPECT_EQ(algorithm.graph.states.size(), 9u);  // T, and V and H of four parameters
  EXPECT_EQ(algorithm.gradients.size(), 1u);
  EXPECT_EQ(algorithm.updates.size(), 4u);
  EXPECT_EQ(algorithm.writes.size(), 13u);
  for (const State& state : import.model.graph.states) EXPECT_TRUE(state.trainable) << state.name;
  EXPECT_EQ(import.model.summary.parameters.size(), 4u);
}

TEST(TrainingInfoImport, UpdatesOfTheEngineTakeThePlaceOfNodes) {
  const Graph adam = built(imported_training(model("adam"))).graph;
  EXPECT_EQ(count_nodes(adam, "AdamUpdate"), 4);
  EXPECT_EQ(count_nodes(adam, "Assign"), 1);  // the count
  EXPECT_EQ(count_nodes(built(imported_training(model("sgd"))).graph, "SgdUpdate"), 4);
  const Graph composed = built(imported_training(model("adam_with_decay"))).graph;
  EXPECT_EQ(count_nodes(composed, "AdamUpdate"), 0);
  EXPECT_EQ(count_nodes(composed, "Assign"), 13);
  // A value that another node reads is computed.
  onnx::ModelProto read = model("sgd");
  onnx::NodeProto& more = *info(read).mutable_algorithm()->add_node();
  more.set_op_type("Identity");
  more.add_input("fc1.bias.next");
  more.add_output("copy");
  auto& state = *info(read).mutable_algorithm()->add_initializer();
  state = read.graph().initializer(1);
  state.set_name("average");
  info(read).mutable_algorithm()->add_output()->set_name("copy");
  auto& binding = *info(read).add_update_binding();
  binding.set_key("average");
  binding.set_value("copy");
  const Graph graph = built(imported_training(read)).graph;
  EXPECT_EQ(count_nodes(graph, "SgdUpdate"), 3);
  EXPECT_EQ(count_nodes(graph, "Assign"), 3);
}

class StepsOnReferenceKernels : public ::testing::TestWithParam<const char*> {};

// Compared with PyTorch's gradients and ONNX's evaluator of the update
// (tests/scripts/training_info.py).
TEST_P(StepsOnReferenceKernels, AgreeWithThePublication) {
  const std::string name = GetParam();
  const NpzFile expected(source_folder() + "/tests/data/training_info/expected.npz");
  const HostTensor x = expected.read("x", DType::float32);
  const HostTensor labels = expected.read("labels", DType::int64);
  const HostTensor losses = expected.read(name + "/losses", DType::float64);
  Graph step = built(imported_training(model(name))).graph;
  for (const State& state : step.states) step.outputs.push_back({state.name, state.final});
  for (std::size_t i = 0; i < losses.as<double>().size(); ++i) {
    HostTensor batch(TensorType{DType::float32, {8, 4}}), classes(TensorType{DType::int64, {8}});
    std::copy_n(&x.as<float>()[i * 32], 32, batch.as<float>().begin());
    std::copy_n(&labels.as<std::int64_t>()[i * 8], 8, classes.as<std::int64_t>().begin());
    for (const auto& [output, value] : run_graph(step, {{"x", batch}, {"labels", classes}})) {
      if (output == "loss") {
        EXPECT_NEAR(value.number(0), losses.as<double>()[i], 2e-6) << "step " << i + 1;
      }
      for (State& state : step.states) {
        if (state.name == output) state.start = value.clone();
      }
    }
  }
  for (const State& state : step.states) {
    if (state.kind != StateKind::parameter) continue;
    const HostTensor wanted = expected.read(name + "/" + state.name, DType::float64);
    for (std::int64_t i = 0; i < wanted.type().elements(); ++i)
      EXPECT_NEAR(state.start.number(i), wanted.number(i), 5e-6) << state.name << " " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Updates, StepsOnReferenceKernels,
                         ::testing::Values("sgd", "adam", "adam_from_zero", "adam_with_decay",
                                           "adagrad", "momentum", "nesterov"),
                         [](const auto& info) { return info.param; });

TEST(TrainingInfoImport, AnotherBatchIsAnotherStep) {
  const TrainingImport import = imported_training(model("sgd"), 3);
  EXPECT_EQ(import.model.graph.type(import.model.graph.inputs[1].value).shape, Shape{3});
  EXPECT_EQ(count_nodes(built(import).graph, "SgdUpdate"), 4);
}

// The derivative of y = a b by a is b, wherever a is; at (c, b) of z = a a b it is 2 c b.
TEST(TrainingInfoImport, GradientAtOtherValues) {
  ModelMaker m;
  m.model.mutable_opset_import()->Add()->set_domain("ai.onnx.preview.training");
  m.model.mutable_opset_import(1)->set_version(1);
  m.input("x", {2}).output("y").weight("a", {2}, 2).weight("b", {2}, 3).weight("c", {2}, 5);
  m.node("Mul", {"a", "a"}, {"aa"});
  m.node("Mul", {"aa", "b"}, {"aab"});
  m.node("Mul", {"aab", "x"}, {"y"});
  auto& training = *m.model.add_training_info();
  onnx::NodeProto& gradient = *training.mutable_algorithm()->add_node();
  gradient.set_op_type("Gradient");
  gradient.set_domain("ai.onnx.preview.training");
  gradient.add_input("c");
  gradient.add_input("b");
  gradient.add_output("dy");
  const auto list = [&](const char* name, const char* value) {
    auto& attribute = *gradient.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRINGS);
    attribute.add_strings(value);
  };
  list("xs", "a");
  list("zs", "b");
  auto& of = *gradient.add_attribute();
  of.set_name("y");
  of.set_type(onnx::AttributeProto::STRING);
  of.set_s("y");
  training.mutable_algorithm()->add_output()->set_name("dy");
  auto& binding = *training.add_update_binding();
  binding.set_key("a");
  binding.set_value("dy");
  const TrainingImport import = imported_training(m.model, 0);
  RunConfig config;
  TrainingRequest request;
  request.config = &config;
  request.algorithm = import.algorithm;
  // y has two elements, so that it is no loss to log: the sum of its elements is derived.
  EXPECT_THAT(
      error_of([&] { build_training_graph(engine_operators(), import.model.graph, request); }),
      HasSubstr("no such loss to log"));
  Graph forward = import.model.graph;
  GraphBuilder builder(engine_operators(), forward);
  builder.output("total", builder.reduce_sum(builder.graph().find_output("y")->value, {0}, false));
  config.loss.output = "total";
  Graph step = build_training_graph(engine_operators(), builder.finish(), request).graph;
  const State* a = step.find_state("a");
  step.outputs = {{"a", a->final}};
  const NamedTensors made = run_graph(step, {{"x", HostTensor::from<float>({2}, {7, 11})}});
  // weights are first, first + …: see ModelMaker::weight
  const auto b = step.find_state("b")->start.as<float>(),
             c = step.find_state("c")->start.as<float>();
  EXPECT_FLOAT_EQ(made[0].second.as<float>()[0], 2 * c[0] * b[0] * 7);
  EXPECT_FLOAT_EQ(made[0].second.as<float>()[1], 2 * c[1] * b[1] * 11);
}

TEST(BadTrainingInfo, Bindings) {
  onnx::ModelProto m = model("adam");
  info(m).mutable_update_binding(0)->set_key("fc1.weigth");
  EXPECT_THAT(refusal_of_training(m), AllOf(HasSubstr("training_info.update_binding"),
                                            HasSubstr("a key that is no initializer"),
                                            HasSubstr("did you mean 'fc1.weight'?")));
  m = model("adam");
  info(m).mutable_update_binding(0)->set_value("gradient.fc1.weight");
  EXPECT_THAT(refusal_of_training(m),
              AllOf(HasSubstr("the binding of 'fc1.weight' has a value that is no output"),
                    HasSubstr("got 'gradient.fc1.weight'")));
  m = model("adam");
  info(m).mutable_update_binding(1)->set_key("fc1.weight");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("two bindings have the key 'fc1.weight'"));
  m = model("adam");
  info(m).mutable_update_binding(1)->set_value("fc1.weight.next");
  EXPECT_THAT(refusal_of_training(m),
              AllOf(HasSubstr("'fc1.weight.next' has another type than 'fc1.bias'"),
                    HasSubstr("expected float32[6], got float32[4, 6]")));
  m = model("adam");
  info(m).clear_update_binding();
  EXPECT_THAT(refusal_of_training(m), HasSubstr("no step would change anything"));
}

TEST(BadTrainingInfo, CyclicUpdates) {
  onnx::ModelProto m = model("sgd");
  // Two states that would exchange their values.
  auto& algorithm = *info(m).mutable_algorithm();
  algorithm.add_output()->set_name("fc1.bias");
  auto& other = *algorithm.add_initializer();
  other = m.graph().initializer(1);
  other.set_name("other");
  algorithm.add_output()->set_name("other");
  for (int i = 0; i < info(m).update_binding_size(); ++i) {
    if (info(m).update_binding(i).key() == "fc1.bias")
      info(m).mutable_update_binding(i)->set_value("other");
  }
  auto& binding = *info(m).add_update_binding();
  binding.set_key("other");
  binding.set_value("fc1.bias");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("the update is cyclic"));
  // Nodes that wait for each other.
  m = model("sgd");
  node(m, "Mul").set_input(0, "fc2.bias.next");
  EXPECT_THAT(refusal_of_training(m),
              HasSubstr("input 'fc2.bias.next' is made by no node before this one"));
}

TEST(BadTrainingInfo, Gradients) {
  onnx::ModelProto m = model("adam");
  attribute(node(m, "Gradient"), "y").set_s("lost");
  EXPECT_THAT(refusal_of_training(m),
              AllOf(HasSubstr("gradient: Gradient: y names no value before it"),
                    HasSubstr("did you mean 'loss'?")));
  m = model("adam");
  attribute(node(m, "Gradient"), "xs").set_strings(0, "fc3.weight");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("Gradient: xs names no value before it"));
  m = model("adam");
  attribute(node(m, "Gradient"), "xs").set_strings(0, "T");
  node(m, "Gradient").set_input(0, "T");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("Gradient cannot derive by 'T'"));
  m = model("adam");
  attribute(node(m, "Gradient"), "xs").mutable_strings()->RemoveLast();
  EXPECT_THAT(refusal_of_training(m), HasSubstr("not one input for each name of xs and zs"));
  m = model("adam");  // a state that the loss does not read
  attribute(node(m, "Gradient"), "xs").set_strings(0, "fc1.weight.V");
  node(m, "Gradient").set_input(0, "fc1.weight.V");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("does not depend on"));
  m = model("adam");
  attribute(node(m, "Gradient"), "y").set_s("logits");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("the model's training has no such loss to log"));
}

TEST(BadTrainingInfo, Optimizers) {
  onnx::ModelProto m = model("adam");
  node(m, "Adam").mutable_input()->RemoveLast();
  EXPECT_THAT(refusal_of_training(m), HasSubstr("R and T, then 4 tensors for each parameter"));
  m = model("adam");
  node(m, "Adam").set_input(1, "R");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("T, the count of updates"));
  m = model("momentum");
  attribute(node(m, "Momentum"), "mode").set_s("standrad");
  EXPECT_THAT(refusal_of_training(m),
              HasSubstr("expected \"standard\" or \"nesterov\", got \"standrad\""));
}

TEST(BadTrainingInfo, GraphsAndNumber) {
  onnx::ModelProto m = model("adam");
  *m.add_training_info() = m.training_info(0);
  EXPECT_THAT(refusal_of_training(m),
              AllOf(HasSubstr("several algorithms of training"), HasSubstr("got 2")));
  m = model("adam");
  node(m, "SoftmaxCrossEntropyLoss").set_output(0, "logits");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("two values are called 'logits'"));
  m = model("initialization");
  info(m).mutable_initialization()->add_input()->set_name("seed");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("the initialization graph has an input"));
  m = model("initialization");
  info(m).mutable_initialization_binding(0)->set_value("draw");
  EXPECT_THAT(refusal_of_training(m), AllOf(HasSubstr("training_info.initialization_binding"),
                                            HasSubstr("did you mean 'drawn'?")));
  m = model("initialization");
  info(m).mutable_initialization_binding(0)->set_value("quarter");
  EXPECT_THAT(refusal_of_training(m), HasSubstr("'quarter' has another type than 'fc1.weight'"));
}

// A file of many short parts in training_info does not count as a small one.
TEST(BadTrainingInfo, PartsAreCounted) {
  onnx::ModelProto m = model("sgd");
  for (int i = 0; i < 1000; ++i) info(m).mutable_algorithm()->add_node()->set_op_type("Relu");
  FileLimits limits;
  limits.messages = 1000;
  EXPECT_THAT(error_of([&] { OnnxFile::from_bytes(m.SerializeAsString(), {}, limits); }),
              HasSubstr("too many parts"));
}

TEST(TrainingArtifacts, NameTheForwardModel) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y");
  m.node("Relu", {"x"}, {"r"});
  onnx::NodeProto& gradient = m.node("ReluGrad", {"x", "r"}, {"y"});
  gradient.set_domain("com.microsoft");
  EXPECT_THAT(error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); }),
              AllOf(HasSubstr("artifact of onnxruntime-training"),
                    HasSubstr("com.microsoft::ReluGrad"), HasSubstr("give the forward model")));
  const std::string checkpoint = std::string("\x18\0\0\0ODTC", 8) + std::string(100, '\0');
  EXPECT_THAT(error_of([&] { OnnxFile::from_bytes(checkpoint); }),
              AllOf(HasSubstr("checkpoint of onnxruntime-training"), HasSubstr("forward model")));
}

}  // namespace
}  // namespace tandem
