// Operators of ai.onnx.ml: results are onnxruntime's (tests/scripts/ml_expectations.py); weights
// that the file keeps as attributes train and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "importer/export_graph.h"
#include "tests/importer/domain_cases.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const DomainCases ml_cases{"ml_operators.json", "ai.onnx.ml", 3};

TEST(Ml, OperatorsGiveOnnxruntimesResults) { expect_onnxruntimes_results(ml_cases); }

// ZipMap makes maps, which no tensor is.
TEST(Ml, EachOperatorHasACase) { EXPECT_EQ(operators_without_case(ml_cases, "ZipMap"), ""); }

std::string error_of_ml_node(const std::function<void(ModelMaker&)>& make) {
  return error_of_nodes(ml_cases.domain, ml_cases.version, make);
}

onnx::NodeProto& ml(onnx::NodeProto& node) {
  node.set_domain("ai.onnx.ml");
  return node;
}

void set_floats(onnx::NodeProto& node, const std::string& name, const std::vector<float>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOATS);
  for (float value : values) attribute.add_floats(value);
}

void set_texts(onnx::NodeProto& node, const std::string& name,
               const std::vector<std::string>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& value : values) attribute.add_strings(value);
}

ModelMaker ml_maker() {
  ModelMaker m(17);
  onnx::OperatorSetIdProto& set = *m.model.add_opset_import();
  set.set_domain("ai.onnx.ml");
  set.set_version(3);
  return m;
}

/// x [batch, 2] → label, probabilities (a ZipMap's) of a classifier called `name`.
ModelMaker classifier(const std::string& name, const std::vector<float>& coefficients,
                      const std::vector<float>& intercepts, const std::string& transform,
                      bool text = false) {
  ModelMaker m = ml_maker();
  m.free_input("x", {"batch", "2"}).output("label").output("table");
  onnx::NodeProto& node = ml(m.node("LinearClassifier", {"x"}, {"label", "scores"}));
  node.set_name(name);
  set_floats(node, "coefficients", coefficients);
  set_floats(node, "intercepts", intercepts);
  set(node, "post_transform", transform);
  const std::vector<std::string> texts{"no", "yes", "perhaps"};
  const auto count = static_cast<std::ptrdiff_t>(std::max<std::size_t>(2, intercepts.size()));
  if (text) {
    set_texts(node, "classlabels_strings", {texts.begin(), texts.begin() + count});
    m.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::STRING);
  } else {
    std::vector<std::int64_t> labels{5, 7, 9};
    labels.resize(static_cast<std::size_t>(count));
    set(node, "classlabels_ints", labels);
  }
  onnx::NodeProto& map = ml(m.node("ZipMap", {"scores"}, {"table"}));
  if (text) {
    set_texts(map, "classlabels_strings", {texts.begin(), texts.begin() + count});
  } else {
    set(map, "classlabels_int64s", std::vector<std::int64_t>{5, 7, 9});
  }
  return m;
}

std::vector<float> start_values_of(const State& state) {
  const auto values = state.start.as<float>();
  return {values.begin(), values.end()};
}

TEST(Ml, AttributesAreParameters) {
  const ModelMaker m = classifier("head", {1, 2, 3, 4, 5, 6}, {7, 8, 9}, "SOFTMAX");
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  const State* coefficients = result.graph.find_state("head:coefficients");
  const State* intercepts = result.graph.find_state("head:intercepts");
  ASSERT_TRUE(coefficients != nullptr && intercepts != nullptr) << to_text(result.graph);
  EXPECT_TRUE(coefficients->trainable && intercepts->trainable);
  EXPECT_EQ(coefficients->start.shape(), (Shape{3, 2}));
  EXPECT_THAT(start_values_of(*coefficients), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(start_values_of(*intercepts), ElementsAre(7, 8, 9));
  ASSERT_EQ(result.graph.outputs.size(), 2u);
  EXPECT_EQ(result.graph.type(result.graph.outputs[1].value).shape, (Shape{1, 3}));
  EXPECT_TRUE(result.graph.find_value("head:scores"));
  std::string notes;
  for (const std::string& note : result.summary.notes) notes += note + "\n";
  EXPECT_THAT(notes, AllOf(HasSubstr("losses that take logits read \"head:scores\""),
                           HasSubstr("in the order of the class labels")));
}

// The second of two rows is the parameter if the first is its negative.
TEST(Ml, MirroredRowsStayMirrored) {
  const ModelMaker m = classifier("head", {-1, 2, 1, -2}, {-3, 3}, "LOGISTIC");
  const OnnxFile file = m.file();
  const Graph graph = import_graph(file, engine_operators(), with_evaluator()).graph;
  EXPECT_EQ(graph.find_state("head:coefficients")->start.shape(), (Shape{1, 2}));
  EXPECT_THAT(start_values_of(*graph.find_state("head:coefficients")), ElementsAre(1, -2));
  EXPECT_THAT(start_values_of(*graph.find_state("head:intercepts")), ElementsAre(3));
  EXPECT_EQ(graph.type(graph.find_value("head:scores")).shape, (Shape{1, 1}));
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "trained.onnx";
  ExportOptions options;
  options.import = with_evaluator();
  options.all_states = true;
  export_graph(file, engine_operators(),
               {{"head:coefficients", HostTensor::from<float>({1, 2}, {0.5f, 4})},
                {"head:intercepts", HostTensor::from<float>({1}, {-6})}},
               to, options);
  onnx::ModelProto written;
  std::ifstream stream(to, std::ios::binary);
  ASSERT_TRUE(written.ParseFromIstream(&stream));
  // The file's own form: attributes, no initializer, one input, and the table of names.
  const onnx::NodeProto& node = written.graph().node(0);
  EXPECT_EQ(written.graph().initializer_size(), 0);
  EXPECT_THAT(node.input(), ElementsAre("x"));
  EXPECT_THAT(node.attribute(0).floats(), ElementsAre(-0.5f, -4, 0.5f, 4));
  EXPECT_THAT(node.attribute(1).floats(), ElementsAre(6, -6));
  EXPECT_EQ(written.graph().node(1).op_type(), "ZipMap");
}

// Two rows of a softmax are two weights, whatever their initial values.
TEST(Ml, MirroredRowsOfASoftmaxAreTwo) {
  const ModelMaker m = classifier("head", {-1, 2, 1, -2}, {-3, 3}, "SOFTMAX");
  const Graph graph = import_graph(m.file(), engine_operators(), with_evaluator()).graph;
  EXPECT_EQ(graph.find_state("head:coefficients")->start.shape(), (Shape{2, 2}));
}

TEST(Ml, NamesThatAreTaken) {
  ModelMaker m = classifier("", {-1, 2, 1, -2}, {-3, 3}, "SOFTMAX");
  m.weight("label:coefficients", {1, 2});
  m.node("Mul", {"x", "label:coefficients"}, {"scaled"});
  m.graph().mutable_node()->SwapElements(2, 1);
  m.graph().mutable_node()->SwapElements(1, 0);
  m.graph().mutable_node(1)->set_input(0, "scaled");
  const Graph graph = import_graph(m.file(), engine_operators(), with_evaluator()).graph;
  EXPECT_NE(graph.find_state("label:coefficients"), nullptr);
  EXPECT_NE(graph.find_state("label:coefficients_"), nullptr);
  EXPECT_NE(graph.find_state("label:intercepts"), nullptr);
}

// Labels of text that only people read are left out; those that a node reads are refused.
TEST(Ml, LabelsOfText) {
  const ModelMaker m = classifier("head", {1, 2, 3, 4}, {7, 8}, "SOFTMAX", true);
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  ASSERT_EQ(result.graph.outputs.size(), 1u);
  EXPECT_EQ(result.graph.outputs[0].name, "table");
  std::string notes;
  for (const std::string& note : result.summary.notes) notes += note + "\n";
  EXPECT_THAT(notes, HasSubstr("label: this output is text: it is left out"));
  // A copy for an output of text is not a reader.
  ModelMaker copied = m;
  copied.node("Identity", {"label"}, {"words"});
  copied.graph().mutable_output(0)->set_name("words");
  EXPECT_EQ(import_graph(copied.file(), engine_operators(), with_evaluator()).graph.outputs.size(),
            1u);
  ModelMaker read = m;
  read.node("Cast", {"label"}, {"number"});
  set(*read.graph().mutable_node(2), "to", std::int64_t{onnx::TensorProto::FLOAT});
  read.output("number");
  EXPECT_THAT(error_of([&] { import_graph(read.file(), engine_operators(), with_evaluator()); }),
              AllOf(HasSubstr("labels of text ('label')"), HasSubstr("classes of integers")));
  ModelMaker alone = m;
  alone.graph().mutable_output()->RemoveLast();
  EXPECT_THAT(error_of([&] { import_graph(alone.file(), engine_operators(), with_evaluator()); }),
              HasSubstr("all outputs of the model are text"));
}

// The 1 of 1 - p and the constants of scalers are not weights; those of layers are, whatever their
// name.
TEST(Ml, NumbersOfFormulasDoNotTrain) {
  ModelMaker m = ml_maker();
  m.input("x", {2, 4}).output("y").weight("unity", {}).weight("Mu_Mulcst", {4});
  m.weight("Ma_MatMulcst1", {4, 3}).weight("intercepts", {1, 3});
  m.node("Mul", {"x", "Mu_Mulcst"}, {"scaled"});
  m.node("MatMul", {"scaled", "Ma_MatMulcst1"}, {"product"});
  m.node("Add", {"product", "intercepts"}, {"sum"});
  m.node("Sub", {"unity", "sum"}, {"y"});
  const auto trainable = [&] {
    std::vector<std::string> names;
    const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
    for (const ParameterSummary& parameter : result.summary.parameters) {
      if (parameter.trainable) names.push_back(parameter.name);
    }
    return names;
  };
  EXPECT_THAT(trainable(), ElementsAre("unity", "Mu_Mulcst", "Ma_MatMulcst1", "intercepts"));
  m.model.set_producer_name("skl2onnx");
  EXPECT_THAT(trainable(), ElementsAre("Ma_MatMulcst1", "intercepts"));
}

// An epsilon that tf2onnx has folded is not a weight; a bias of one number is, by its name or
// place.
TEST(Ml, LoneNumbersOfTensorflowDoNotTrain) {
  ModelMaker m = ml_maker();
  m.input("x", {2, 4}).output("y").weight("dense/Cast/ReadVariableOp:0", {4, 1});
  m.weight("dense/BiasAdd/ReadVariableOp:0", {1}).weight("sub/x:0", {});
  m.weight("const_fold_opt__66", {1}).weight("const_fold_opt__67", {1, 3});
  m.weight("Squeeze:0", {1}).weight("head/MatMul/ReadVariableOp:0", {1, 1});
  m.node("MatMul", {"x", "dense/Cast/ReadVariableOp:0"}, {"product"});
  m.node("Add", {"product", "dense/BiasAdd/ReadVariableOp:0"}, {"sum"});
  m.node("Gemm", {"sum", "head/MatMul/ReadVariableOp:0", "Squeeze:0"}, {"head"});
  m.node("Sub", {"sub/x:0", "head"}, {"rest"});
  m.node("Add", {"rest", "const_fold_opt__66"}, {"moved"});
  m.node("Mul", {"moved", "const_fold_opt__67"}, {"y"});
  const auto frozen = [&] {
    std::vector<std::string> names;
    const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
    for (const ParameterSummary& parameter : result.summary.parameters) {
      if (!parameter.trainable) names.push_back(parameter.name);
    }
    return names;
  };
  EXPECT_THAT(frozen(), IsEmpty());
  m.model.set_producer_name("tf2onnx");
  EXPECT_THAT(frozen(), UnorderedElementsAre("sub/x:0", "const_fold_opt__66"));
}

TEST(Ml, OtherFormsAreRefusedByName) {
  const auto linear = [](const char* op, const std::function<void(onnx::NodeProto&)>& more) {
    return error_of_ml_node([&](ModelMaker& m) {
      onnx::NodeProto& node = ml(m.node(op, {"x"}, {"y"}));
      if (std::string(op) == "LinearClassifier") node.add_output("z");
      set_floats(node, "coefficients", {1, 2, 3, 4, 5, 6, 7, 8});
      more(node);
    });
  };
  EXPECT_THAT(linear("LinearRegressor",
                     [](auto& node) {
                       set(node, "targets", std::int64_t{2});
                       set(node, "post_transform", std::string("PROBIT"));
                     }),
              AllOf(HasSubstr("post_transform PROBIT"), HasSubstr("raw_scores")));
  EXPECT_THAT(linear("LinearRegressor", [](auto& node) { set(node, "targets", std::int64_t{3}); }),
              HasSubstr("number of coefficients"));
  EXPECT_THAT(linear("LinearRegressor", [](auto& node) { set(node, "targets", std::int64_t{0}); }),
              HasSubstr("targets"));
  EXPECT_THAT(linear("LinearRegressor", [](auto& node) { set(node, "beta", std::int64_t{3}); }),
              HasSubstr("beta"));
  EXPECT_THAT(linear("LinearClassifier",
                     [](auto& node) {
                       set(node, "classlabels_ints", std::vector<std::int64_t>{0, 1});
                     }),
              HasSubstr("number of intercepts"));
  EXPECT_THAT(linear("LinearClassifier",
                     [](auto& node) {
                       set_floats(node, "intercepts", {1, 2});
                       set(node, "classlabels_ints", std::vector<std::int64_t>{0, 1, 2});
                     }),
              HasSubstr("number of intercepts"));
  EXPECT_THAT(error_of_ml_node([](ModelMaker& m) {
                onnx::NodeProto& node = ml(m.node("Scaler", {"x"}, {"y"}));
                set_floats(node, "scale", {1, 2, 3});
              }),
              AllOf(HasSubstr("'scale'"), HasSubstr("1 or 4")));
  EXPECT_THAT(error_of_ml_node([](ModelMaker& m) {
                onnx::NodeProto& node = ml(m.node("LabelEncoder", {"x"}, {"y"}));
                set_texts(node, "keys_strings", {"a"});
                set(node, "values_int64s", std::vector<std::int64_t>{1});
              }),
              AllOf(HasSubstr("of text ('keys_strings')"), HasSubstr("vocabulary")));
  EXPECT_THAT(error_of_ml_node([](ModelMaker& m) {
                onnx::NodeProto& node = ml(m.node("OneHotEncoder", {"x"}, {"y"}));
                set(node, "cats_int64s", std::vector<std::int64_t>(5000, 1));
              }),
              HasSubstr("with 5000 keys"));
}

TEST(Ml, OperatorsThatAreMissingNameTheMend) {
  EXPECT_THAT(
      error_of_ml_node([](ModelMaker& m) { ml(m.node("TreeEnsembleRegressor", {"x"}, {"y"})); }),
      AllOf(HasSubstr("TreeEnsembleRegressor of domain 'ai.onnx.ml' is not supported"),
            HasSubstr("trees have no gradient")));
  EXPECT_THAT(error_of_ml_node([](ModelMaker& m) { ml(m.node("SVMRegressor", {"x"}, {"y"})); }),
              HasSubstr("LinearSVR"));
}

}  // namespace
}  // namespace tandem::testing
