// Weights of few bits: products and lookups read them packed, adapters train next to them, and
// exported files have their bytes. Values of com.microsoft's operators: microsoft_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/passes/adapted_weights.h"
#include "engine/passes/adapters/adapter_kind.h"
#include "engine/passes/lora.h"
#include "importer/export_graph.h"
#include "importer/file/onnx_content.h"
#include "importer/file/tensor_data.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Proto = onnx::TensorProto;

constexpr std::int64_t inner = 32, width = 6;

void add_tensor(ModelMaker& m, const std::string& name, std::int32_t type,
                const std::vector<std::int64_t>& dims, const std::string& bytes) {
  Proto& tensor = *m.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const std::int64_t extent : dims) tensor.add_dims(extent);
  tensor.set_raw_data(bytes);
}

void add_floats(ModelMaker& m, const std::string& name, const std::vector<std::int64_t>& dims,
                const std::vector<float>& values) {
  add_tensor(m, name, Proto::FLOAT, dims,
             std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size()));
}

/// Bytes that look random, and are the same in each run.
std::string some_bytes(std::int64_t count) {
  std::string bytes;
  std::uint32_t state = 7;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    bytes += static_cast<char>(state >> 24);
  }
  return bytes;
}

std::vector<float> some_scales(std::int64_t count) {
  std::vector<float> scales;
  for (std::int64_t i = 0; i < count; ++i) scales.push_back(0.01f * static_cast<float>(1 + i % 5));
  return scales;
}

HostTensor some_x(const Shape& shape) {
  HostTensor x(TensorType{DType::float32, shape});
  float value = -1;
  for (float& each : x.as<float>()) each = value = value > 0.9f ? -1 : value + 0.07f;
  return x;
}

/// y = x W with W [32, 6] as DequantizeLinear makes it of `type`.
struct Dequantized {
  std::int32_t type;
  std::int64_t axis, block;  // axis -1: one scale
  std::string name() const {
    return importer::onnx_type_name(type) + " axis " + std::to_string(axis) + " block " +
           std::to_string(block);
  }
  bool has_nibbles() const { return type == Proto::INT4 || type == Proto::UINT4; }
  std::vector<std::int64_t> scale_dims() const {
    if (axis < 0) return {};
    if (block == 0) return {axis == 0 ? inner : width};
    return axis == 0 ? std::vector<std::int64_t>{inner / block, width}
                     : std::vector<std::int64_t>{inner, width / block};
  }
  std::string bytes() const { return some_bytes(inner * width / (has_nibbles() ? 2 : 1)); }
  int code(std::int64_t r, std::int64_t c) const {
    const std::int64_t i = r * width + c;
    const std::string all = bytes();
    if (!has_nibbles()) {
      const char byte = all[static_cast<std::size_t>(i)];
      return type == Proto::INT8 ? static_cast<signed char>(byte)
                                 : static_cast<unsigned char>(byte);
    }
    const int byte = static_cast<unsigned char>(all[static_cast<std::size_t>(i / 2)]);
    const int code = i % 2 == 0 ? byte & 15 : byte >> 4;
    return type == Proto::INT4 && code > 7 ? code - 16 : code;
  }
  /// As ONNX defines it: code times the scale, as the zero point is 0.
  double number(std::int64_t r, std::int64_t c) const {
    const std::vector<float> scales = some_scales(1000);
    std::int64_t at = 0;
    if (axis >= 0 && block == 0) at = axis == 0 ? r : c;
    if (block > 0) at = axis == 0 ? r / block * width + c : r * (width / block) + c / block;
    return code(r, c) * static_cast<double>(scales[static_cast<std::size_t>(at)]);
  }
  ModelMaker model(const std::string& reader = "MatMul") const {
    ModelMaker m(21);
    add_tensor(m, "fc.weight_quantized", type, {inner, width}, bytes());
    add_floats(m, "fc.weight_scale", scale_dims(), some_scales(element_count(scale_dims())));
    onnx::NodeProto& node =
        m.node("DequantizeLinear", {"fc.weight_quantized", "fc.weight_scale"}, {"w"});
    if (axis >= 0) set(node, "axis", axis);
    if (block > 0) set(node, "block_size", block);
    if (reader == "Gather") {
      m.input("x", {2}, Proto::INT64);
      m.node("Gather", {"w", "x"}, {"y"});
    } else {
      m.input("x", {2, inner});
      m.node("MatMul", {"x", "w"}, {"y"});
    }
    m.output("y");
    return m;
  }
};

std::vector<Dequantized> dequantized_forms() {
  std::vector<Dequantized> forms;
  for (const std::int32_t type : {Proto::INT8, Proto::UINT8, Proto::INT4, Proto::UINT4}) {
    for (const auto& [axis, block] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {-1, 0}, {0, 0}, {1, 0}, {0, 16}, {1, 2}})
      forms.push_back({type, axis, block});
  }
  return forms;
}

Graph after_passes(Graph graph) {
  PassContext context{engine_operators(), reference_evaluator(), {}, {}};
  return run_passes(std::move(graph), context);
}

void expect_near(const HostTensor& got, const std::vector<double>& want) {
  ASSERT_EQ(got.type().elements(), static_cast<std::int64_t>(want.size()));
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got.number(static_cast<std::int64_t>(i)), want[i], 1e-5) << i;
}

TEST(PackedWeights, ProductsReadThemAsTheFileHasThem) {
  for (const Dequantized& form : dequantized_forms()) {
    SCOPED_TRACE(form.name());
    const Graph graph =
        import_graph(form.model().file(), engine_operators(), with_evaluator()).graph;
    const State* weight = graph.find_state("fc.weight_quantized");
    ASSERT_NE(weight, nullptr) << to_text(graph);
    EXPECT_EQ(weight->path, "fc:weight");
    EXPECT_FALSE(weight->trainable);
    EXPECT_EQ(weight->held_by, HeldBy::model);
    EXPECT_EQ(std::string(static_cast<const char*>(weight->start.data()), weight->start.bytes()),
              form.bytes());
    const Graph packed = after_passes(graph);
    EXPECT_EQ(count_nodes(packed, "PackedMatMul"), 1) << to_text(packed);
    EXPECT_EQ(count_nodes(packed, "Unpack"), 0) << to_text(packed);
    const HostTensor x = some_x({2, inner});
    std::vector<double> want;
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t n = 0; n < width; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k) sum += x.number(i * inner + k) * form.number(k, n);
        want.push_back(sum);
      }
    }
    expect_near(run_graph(graph, {{"x", x}})[0].second, want);
    expect_near(run_graph(packed, {{"x", x}})[0].second, want);
  }
}

TEST(PackedWeights, LookupsUnpackTheirRows) {
  for (const Dequantized& form : dequantized_forms()) {
    SCOPED_TRACE(form.name());
    const Graph graph =
        import_graph(form.model("Gather").file(), engine_operators(), with_evaluator()).graph;
    const Graph packed = after_passes(graph);
    const HostTensor rows = HostTensor::from<std::int64_t>({2}, {30, 3});
    std::vector<double> want;
    for (const std::int64_t r : {30, 3}) {
      for (std::int64_t c = 0; c < width; ++c) want.push_back(form.number(r, c));
    }
    expect_near(run_graph(packed, {{"x", rows}})[0].second, want);
    if (form.axis == 0 && form.block > 0) continue;  // rows share scales with others
    for (const Node& node : packed.nodes) {
      if (node.op->name != "Unpack") continue;
      EXPECT_EQ(packed.type(node.outputs[0]).shape, (Shape{2, width})) << to_text(packed);
    }
  }
}

/// y = x Wᵀ with W [6, 32] as MatMulNBits of 4 bits reads it.
ModelMaker nbits_model(std::int64_t block = 16) {
  ModelMaker m(21);
  onnx::OperatorSetIdProto& domain = *m.model.add_opset_import();
  domain.set_domain("com.microsoft");
  domain.set_version(1);
  add_tensor(m, "fc.MatMul.weight_Q4", Proto::UINT8, {width, inner / 16, 8},
             some_bytes(width * inner / 2));
  add_floats(m, "fc.MatMul.weight_scales", {width, inner / 16}, some_scales(width * inner / 16));
  m.input("x", {2, inner});
  onnx::NodeProto& node =
      m.node("MatMulNBits", {"x", "fc.MatMul.weight_Q4", "fc.MatMul.weight_scales"}, {"y"});
  node.set_domain("com.microsoft");
  node.set_name("/fc/MatMul_Q4");
  set(node, "N", width);
  set(node, "K", inner);
  set(node, "bits", std::int64_t{4});
  set(node, "block_size", block);
  m.output("y");
  return m;
}

/// y = x W as quantize_dynamic writes it.
ModelMaker dynamic_model() {
  ModelMaker m(17);
  add_tensor(m, "fc.weight_quantized", Proto::INT8, {inner, width}, some_bytes(inner * width));
  add_floats(m, "fc.weight_scale", {}, {0.02f});
  add_tensor(m, "fc.weight_zero_point", Proto::INT8, {}, std::string(1, '\3'));
  m.input("x", {2, inner});
  m.node("DynamicQuantizeLinear", {"x"}, {"q", "q_scale", "q_zero"});
  m.node("MatMulInteger", {"q", "fc.weight_quantized", "q_zero", "fc.weight_zero_point"}, {"sums"});
  set(m.node("Cast", {"sums"}, {"floats"}), "to", std::int64_t{Proto::FLOAT});
  m.node("Mul", {"q_scale", "fc.weight_scale"}, {"scales"});
  m.node("Mul", {"floats", "scales"}, {"y"});
  m.output("y");
  return m;
}

TEST(PackedWeights, DynamicProductsDoNotRoundTheirInput) {
  const Graph graph = after_passes(
      import_graph(dynamic_model().file(), engine_operators(), with_evaluator()).graph);
  EXPECT_EQ(count_nodes(graph, "PackedMatMul"), 1) << to_text(graph);
  EXPECT_EQ(graph.nodes.size(), 2u) << to_text(graph);  // and a Reshape of the scale
  const std::string bytes = some_bytes(inner * width);
  const HostTensor x = some_x({2, inner});
  std::vector<double> want;
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t n = 0; n < width; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        const auto code = static_cast<signed char>(bytes[static_cast<std::size_t>(k * width + n)]);
        sum += x.number(i * inner + k) * (code - 3) * static_cast<double>(0.02f);
      }
      want.push_back(sum);
    }
  }
  expect_near(run_graph(graph, {{"x", x}})[0].second, want);
}

// The adapters' part is added to the product, in the graph and in the exported file, whose packed
// bytes are those of the model.
TEST(PackedWeights, AdaptersAreNodesOfExportedFiles) {
  const Dequantized blocks{Proto::INT4, 0, 16};
  for (const ModelMaker& made : {nbits_model(), dynamic_model(), blocks.model()}) {
    const OnnxFile file = made.file();
    const Graph graph = import_graph(file, engine_operators(), with_evaluator()).graph;
    LoraRequest request;
    request.rules = {{.at = "{fc,fc.MatMul}:weight", .rank = 2, .alpha = 6}};
    request.draw = [](const std::string&, const TensorType& type, double) {
      return some_x(type.shape);
    };
    const std::vector<AdaptedWeight> adapted = adapted_weights(graph, request.rules);
    ASSERT_EQ(adapted.size(), 1u);
    EXPECT_TRUE(adapted[0].is_packed);
    EXPECT_EQ(adapted[0].type.dtype, DType::float32);
    EXPECT_EQ(adapted[0].out_first, adapted[0].type.shape[0] == width);
    Graph tuned = add_lora(graph, engine_operators(), request);
    for (State& state : tuned.states) {
      if (state.name == adapted[0].b()) state.start = some_x(state.start.shape());
    }
    const NamedTensors feeds{{"x", some_x({2, inner})}};
    const HostTensor y = run_graph(tuned, feeds)[0].second;
    ASSERT_GT(std::abs(y.number(0) - run_graph(graph, feeds)[0].second.number(0)), 1e-3);
    expect_near(run_graph(after_passes(tuned), feeds)[0].second, [&] {
      std::vector<double> values;
      for (std::int64_t i = 0; i < y.type().elements(); ++i) values.push_back(y.number(i));
      return values;
    }());
    ExportOptions options;
    options.all_states = true;
    options.import = with_evaluator();
    options.adapters.push_back({adapted[0].name, adapted[0].out_first, adapted[0].rule.scale()});
    std::vector<HostTensor> parts;
    for (const std::string& part : adapted[0].parts())
      parts.push_back(tuned.find_state(part)->start);
    adapted[0].rule.kind().write(adapted[0], parts, options.adapters.back());
    const ScratchFolder folder;
    const auto to = folder.path() / "tuned.onnx";
    export_graph(file, engine_operators(), {}, to, options);
    const OnnxFile written = OnnxFile::open(to);
    for (const Proto& tensor : made.model.graph().initializer()) {
      const auto& all = written.content().model->graph().initializer();
      const auto same = std::find_if(
          all.begin(), all.end(), [&](const Proto& each) { return each.name() == tensor.name(); });
      ASSERT_NE(same, all.end()) << tensor.name();
      EXPECT_EQ(same->SerializeAsString(), tensor.SerializeAsString()) << tensor.name();
    }
    ImportOptions same = with_evaluator();
    same.batch = 2;  // the exported model leaves it free
    const Graph again = import_graph(written, engine_operators(), same).graph;
    const HostTensor from_file = run_graph(again, feeds)[0].second;
    for (std::int64_t i = 0; i < y.type().elements(); ++i)
      EXPECT_NEAR(from_file.number(i), y.number(i), 1e-5) << i;
  }
}

std::string error_of_import(const ModelMaker& made) {
  return error_of([&] { import_graph(made.file(), engine_operators(), with_evaluator()); });
}

TEST(PackedWeights, BadOnesAreRefusedByName) {
  ModelMaker nan = nbits_model();
  const float not_a_number = std::numeric_limits<float>::quiet_NaN();
  nan.graph().mutable_initializer(1)->mutable_raw_data()->replace(
      0, 4, std::string(reinterpret_cast<const char*>(&not_a_number), 4));
  EXPECT_THAT(error_of_import(nan),
              AllOf(HasSubstr("fc.MatMul.weight_scales"), HasSubstr("not finite")));
  EXPECT_THAT(error_of_import(nbits_model(32)), AllOf(HasSubstr("fc"), HasSubstr("scales")));
  EXPECT_THAT(error_of_import(nbits_model(0)), HasSubstr("block_size"));
  ModelMaker ordered = nbits_model();
  ordered.integers("order", std::vector<std::int64_t>(inner, 0));
  ordered.graph().mutable_node(0)->add_input("");
  ordered.graph().mutable_node(0)->add_input("order");
  EXPECT_THAT(error_of_import(ordered), HasSubstr("g_idx"));
  ModelMaker odd_bits = nbits_model();
  odd_bits.graph().mutable_node(0)->mutable_attribute(2)->set_i(3);
  EXPECT_THAT(error_of_import(odd_bits), HasSubstr("3 bits"));
}

TEST(PackedWeights, MagnitudesOfThemAreRefused) {
  const Graph graph =
      import_graph(nbits_model().file(), engine_operators(), with_evaluator()).graph;
  EXPECT_THAT(error_of([&] {
                adapted_weights(graph, {{.at = "{fc,fc.MatMul}:weight", .rank = 2, .dora = true}});
              }),
              AllOf(HasSubstr("packed"), HasSubstr("leave dora out")));
}

}  // namespace
}  // namespace tandem::testing
