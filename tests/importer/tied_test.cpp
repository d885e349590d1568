// Tied weights: initializers in the same place of an external file, Identity, names that the
// exporter lists; and the way back into a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/passes/adapters/adapter_kind.h"
#include "importer/export_graph.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace tandem::testing;

void move_outside(onnx::TensorProto& tensor, const std::string& offset) {
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] :
       {std::pair<const char*, std::string>{"location", "weights.bin"}, {"offset", offset}}) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
}

// y = x a.weight b.weight with weights [4, 4] at these offsets.
OnnxFile two_products(const ScratchFolder& folder, const std::string& a, const std::string& b) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("a.weight", {4, 4}).weight("b.weight", {4, 4});
  m.node("MatMul", {"x", "a.weight"}, {"h"});
  m.node("MatMul", {"h", "b.weight"}, {"y"});
  move_outside(*m.graph().mutable_initializer(0), a);
  move_outside(*m.graph().mutable_initializer(1), b);
  auto& type = *m.graph().mutable_output(0)->mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : {2, 4}) type.mutable_shape()->add_dim()->set_dim_value(extent);
  folder.write("weights.bin", std::string(128, '\0'));
  folder.write("model.onnx", m.bytes());
  return OnnxFile::open(folder.path() / "model.onnx");
}

// Like two_products, but the second product uses another name of the first weight.
OnnxFile two_products_by_identity() {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("a.weight", {4, 4});
  m.node("Identity", {"a.weight"}, {"b.weight"});
  m.node("Identity", {"a.weight"}, {"/b/Identity_output_0"});
  m.node("MatMul", {"x", "a.weight"}, {"h"});
  m.node("MatMul", {"h", "b.weight"}, {"y"});
  return m.file();
}

// Both products read I + a b, with a 1 at [0, 1]: the square has a 2 there.
void expect_adapters_in_both(const OnnxFile& file) {
  ScratchFolder folder;
  std::vector<float> identity(16, 0.0f);
  for (std::size_t i = 0; i < 4; ++i) identity[5 * i] = 1;
  ExportOptions options;
  options.free_batch = false;
  options.import = with_evaluator();
  AdaptedWeight weight{.name = "a.weight", .type = {DType::float32, {4, 4}}};
  weight.rule.rank = 1;
  WeightAdapters& adapters = options.adapters.emplace_back();
  adapters.weight = weight.name;
  weight.rule.kind().write(weight,
                           {HostTensor::from<float>({4, 1}, {1, 0, 0, 0}),
                            HostTensor::from<float>({1, 4}, {0, 1, 0, 0})},
                           adapters);
  const std::filesystem::path to = folder.path() / "adapted.onnx";
  export_graph(file, engine_operators(), {{"a.weight", HostTensor::from<float>({4, 4}, identity)}},
               to, options);
  const Graph graph = import_graph(OnnxFile::open(to), engine_operators(), with_evaluator()).graph;
  const HostTensor x = HostTensor::from<float>({2, 4}, {1, 1, 1, 1, 5, 1, 1, 1});
  const HostTensor y = run_graph(graph, {{"x", x}})[0].second;
  const std::vector<float> numbers(y.as<float>().begin(), y.as<float>().end());
  EXPECT_THAT(numbers, ElementsAre(1, 3, 1, 1, 5, 11, 1, 1));
}

TEST(TiedWeights, AdaptersOfOneNameReachTheReadersOfTheOther) {
  ScratchFolder folder;
  expect_adapters_in_both(two_products(folder, "0", "0"));
  expect_adapters_in_both(two_products_by_identity());
}

TEST(TiedWeights, InitializersInOnePlaceAreOneStateThereAndBack) {
  ScratchFolder folder;
  const OnnxFile file = two_products(folder, "0", "0");
  const ImportResult result = import_graph(file, engine_operators(), with_evaluator());
  ASSERT_EQ(result.graph.states.size(), 1u);
  EXPECT_EQ(result.graph.states[0].name, "a.weight");
  EXPECT_THAT(result.aliases, ElementsAre(Pair("b.weight", "a.weight")));
  EXPECT_THAT(result.summary.parameters[1].reason, HasSubstr("same tensor as 'a.weight'"));

  HostTensor value(TensorType{DType::float32, {4, 4}});
  for (std::size_t i = 0; i < 16; ++i) value.as<float>()[i] = static_cast<float>(i);
  ExportOptions options;
  options.import = with_evaluator();
  const std::filesystem::path to = folder.path() / "trained.onnx";
  export_graph(file, engine_operators(), {{"a.weight", value}}, to, options);
  const ImportResult again = import_graph(OnnxFile::open(to), engine_operators(), with_evaluator());
  ASSERT_EQ(again.graph.states.size(), 1u);
  EXPECT_EQ(std::memcmp(again.graph.states[0].start.data(), value.data(), value.bytes()), 0);
  EXPECT_EQ(again.aliases, result.aliases);
}

TEST(TiedWeights, InitializersInTwoPlacesAreTwoStates) {
  ScratchFolder folder;
  const ImportResult result =
      import_graph(two_products(folder, "0", "64"), engine_operators(), with_evaluator());
  EXPECT_EQ(result.graph.states.size(), 2u);
  EXPECT_THAT(result.aliases, IsEmpty());
}

TEST(TiedWeights, IdentityGivesAnotherName) {
  const ImportResult result =
      import_graph(two_products_by_identity(), engine_operators(), with_evaluator());
  EXPECT_THAT(result.aliases, ElementsAre(Pair("b.weight", "a.weight")));
}

TEST(TiedWeights, TheExportersListOfParametersNamesTheOthers) {
  const auto aliases = [](const char* name) {
    return import_graph(OnnxFile::open(fixtures() / name), engine_operators(), with_evaluator())
        .aliases;
  };
  EXPECT_THAT(aliases("tied_decoder_dynamo.onnx"),
              ElementsAre(Pair("token.weight", "head.weight")));
  EXPECT_THAT(aliases("gpt_dynamo.onnx"), IsEmpty());
  EXPECT_THAT(aliases("resnet18_dynamo.onnx"), IsEmpty());
}

}  // namespace
}  // namespace tandem
