// Weights that a file has in Constant nodes: named before training, trained where a rule says so,
// and written back into the nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "importer/export_graph.h"
#include "importer/model_notices.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tandem::testing;

void constant(ModelMaker& m, const std::string& name, const std::vector<std::int64_t>& shape) {
  onnx::AttributeProto& value = *m.node("Constant", {}, {name}).add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  onnx::TensorProto& tensor = *value.mutable_t();
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) tensor.add_dims(extent), count *= extent;
  for (std::int64_t i = 0; i < count; ++i) tensor.add_float_data(0.25f * static_cast<float>(i + 1));
}

/// ((x W) * scale) V^T + shift, normalized: all but the scale of the normalization in Constant
/// nodes.
ModelMaker written_by_a_tool() {
  ModelMaker m;
  m.free_input("x", {"batch", "3"}).output("y").weight("gamma", {2});
  constant(m, "fc.W", {3, 2});
  constant(m, "scale", {2});
  constant(m, "fc2.V", {2, 2});
  constant(m, "shift", {2});
  for (const char* name : {"beta", "mean", "var"}) constant(m, name, {2});
  m.node("MatMul", {"x", "fc.W"}, {"a"});
  m.node("Mul", {"a", "scale"}, {"b"});
  m.node("Transpose", {"fc2.V"}, {"vt"});
  m.node("MatMul", {"b", "vt"}, {"c"});
  m.node("Add", {"c", "shift"}, {"d"});
  m.node("BatchNormalization", {"d", "gamma", "beta", "mean", "var"}, {"y"});
  return m;
}

const ModelNotice* constant_weights(const std::vector<ModelNotice>& notices) {
  const auto at = std::find_if(notices.begin(), notices.end(),
                               [](const auto& n) { return n.kind == "constant_weights"; });
  return at == notices.end() ? nullptr : &*at;
}

TEST(ConstantWeights, AreNamedWithTheKeyThatTrainsThem) {
  const ImportResult result =
      import_graph(written_by_a_tool().file(), engine_operators(), with_evaluator());
  const std::vector<ModelNotice> notices = model_notices(result);
  const ModelNotice* notice = constant_weights(notices);
  ASSERT_NE(notice, nullptr);
  EXPECT_THAT(notice->names, ElementsAre("fc:W", "scale", "fc2:V", "shift", "beta"));
  EXPECT_THAT(
      in_one_line(*notice),
      HasSubstr("5 tensors in the place of a weight are in a Constant node and do not train"));
  EXPECT_THAT(
      notice->fix,
      HasSubstr("parameters.train = [ \"fc:W\", \"scale\", \"fc2:V\", \"shift\", \"beta\" ]"));
  ASSERT_NE(result.graph.find_state("mean"), nullptr);  // it moves, as that of an initializer
  EXPECT_EQ(result.graph.find_state("mean")->kind, StateKind::buffer);
}

TEST(ConstantWeights, TrainWhereARuleNamesThem) {
  const OnnxFile file = written_by_a_tool().file();
  ExportOptions options;
  options.import = with_evaluator();
  options.import.trained_buffers = {"fc:W", "shift"};
  const ImportResult result = import_graph(file, engine_operators(), options.import);
  ASSERT_NE(result.graph.find_state("fc.W"), nullptr);
  EXPECT_TRUE(result.graph.find_state("fc.W")->trainable);
  EXPECT_EQ(result.graph.find_state("scale"), nullptr);
  const std::vector<ModelNotice> notices = model_notices(result);
  EXPECT_THAT(constant_weights(notices)->names, ElementsAre("scale", "fc2:V", "beta"));

  const ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "trained.onnx";
  export_graph(file, engine_operators(),
               {{"fc.W", HostTensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6})}}, to, options);
  onnx::ModelProto written;
  std::ifstream stream(to, std::ios::binary);
  ASSERT_TRUE(written.ParseFromIstream(&stream));
  EXPECT_EQ(written.graph().initializer_size(), 1);
  EXPECT_EQ(written.graph().node(0).op_type(), "Constant");
  EXPECT_EQ(written.graph().node(0).output(0), "fc.W");
  options.import.batch = 1;
  const auto y = [&](const OnnxFile& of) {
    ImportOptions inference = options.import;
    inference.training = false;
    return run_graph(import_graph(of, engine_operators(), inference).graph,
                     {{"x", HostTensor::from<float>({1, 3}, {1, 1, 1})}})[0]
        .second.number(0);
  };
  // x W = [9, 12], * scale = [2.25, 6], V's first row [0.25, 0.5]: 3.5625, + shift 0.25; then the
  // mean 0.25 and the variance 0.25 of the file, gamma 0.5 and beta 0.25.
  EXPECT_NEAR(y(OnnxFile::open(to)), 3.5625 / std::sqrt(0.25 + 1e-5) * 0.5 + 0.25, 1e-4);
}

// Those of PyTorch's exporters are constants of the code.
TEST(ConstantWeights, OfMadeUpNamesAreNoWeights) {
  ModelMaker m;
  m.free_input("x", {"batch", "3"}).output("y").weight("fc.W", {3, 2});
  constant(m, "/Constant_output_0", {2, 2});
  constant(m, "/Constant_1_output_0", {2});
  m.node("MatMul", {"x", "fc.W"}, {"a"});
  m.node("MatMul", {"a", "/Constant_output_0"}, {"b"});
  m.node("Mul", {"b", "/Constant_1_output_0"}, {"y"});
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  EXPECT_EQ(constant_weights(model_notices(result)), nullptr);
}

}  // namespace
}  // namespace tandem
