// Unusual forms of files that onnx.checker and onnxruntime accept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/graph/error.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace tandem::testing;

// y = x + w, with w in a file of its own.
ModelMaker model_with_external(const std::string& location, const std::string& length = "") {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").weight("w", {2, 3});
  m.node("Add", {"x", "w"}, {"y"});
  onnx::TensorProto& tensor = *m.graph().mutable_initializer(0);
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  if (!length.empty()) add("length", length);
  return m;
}

const std::vector<float> weights{1, 2, 3, 4, 5, 6};

std::string weight_bytes() {
  std::string bytes(sizeof(float) * weights.size(), '\0');
  std::memcpy(bytes.data(), weights.data(), bytes.size());
  return bytes;
}

HostTensor zeros_2_3() { return HostTensor::from<float>({2, 3}, std::vector<float>(6, 0)); }

void expect_weights(const OnnxFile& file) {
  const ImportResult result = import_graph(file, engine_operators(), with_evaluator());
  const HostTensor y = run_graph(result.graph, {{"x", zeros_2_3()}}).at(0).second;
  for (std::size_t i = 0; i < weights.size(); ++i)
    EXPECT_EQ(y.number(static_cast<std::int64_t>(i)), weights[i]);
}

TEST(ValidFile, LocationsBelowTheFolder) {
  for (const std::string location : {"w.bin", "sub/w.bin", "./w.bin", "sub//w.bin", "sub/../w.bin",
                                     "my w%20x.bin", "gewichte-ü-数据.bin"}) {
    SCOPED_TRACE(location);
    ScratchFolder folder;
    std::filesystem::create_directory(folder.path() / "sub");
    const std::filesystem::path plain = std::filesystem::path(location).lexically_normal();
    folder.write(plain.string(), weight_bytes());
    folder.write("model.onnx", model_with_external(location).bytes());
    expect_weights(OnnxFile::open(folder.path() / "model.onnx"));
  }
}

TEST(ValidFile, LengthOfZeroMeansAll) {
  ScratchFolder folder;
  folder.write("w.bin", weight_bytes());
  folder.write("model.onnx", model_with_external("w.bin", "0").bytes());
  expect_weights(OnnxFile::open(folder.path() / "model.onnx"));
}

// snapshots/REVISION holds links into blobs, as huggingface_hub writes them; data in a folder of
// the repository as well.
TEST(ValidFile, LinksOfAHubsCache) {
  for (const std::string location : {"model.onnx_data", "onnx/model.onnx_data"}) {
    SCOPED_TRACE(location);
    ScratchFolder folder;
    const std::filesystem::path blobs = folder.path() / "blobs",
                                revision = folder.path() / "snapshots/rev";
    std::filesystem::create_directories(blobs);
    std::filesystem::create_directories((revision / location).parent_path());
    folder.write("blobs/h1", model_with_external(location).bytes());
    folder.write("blobs/h2", weight_bytes());
    std::filesystem::create_symlink("../../blobs/h1", revision / "model.onnx");
    std::filesystem::create_symlink(blobs / "h2", revision / location);
    expect_weights(OnnxFile::open(revision / "model.onnx"));
    EXPECT_EQ(external_files(revision / "model.onnx"),
              std::vector<std::filesystem::path>{revision / location});
  }
}

TEST(ValidFile, ModelIsALink) {
  ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "store");
  std::filesystem::create_directory(folder.path() / "project");
  folder.write("store/model.onnx", model_with_external("w.bin").bytes());
  folder.write("store/w.bin", weight_bytes());
  std::filesystem::create_symlink("../store/model.onnx", folder.path() / "project/mine.onnx");
  expect_weights(OnnxFile::open(folder.path() / "project/mine.onnx"));
  EXPECT_EQ(external_files(folder.path() / "project/mine.onnx"),
            std::vector<std::filesystem::path>{folder.path() / "store/w.bin"});
}

TEST(ValidFile, LinkWithinTheFolder) {
  ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "parts");
  folder.write("model.onnx", model_with_external("w.bin").bytes());
  folder.write("parts/w.bin", weight_bytes());
  std::filesystem::create_symlink("parts/w.bin", folder.path() / "w.bin");
  expect_weights(OnnxFile::open(folder.path() / "model.onnx"));
}

TEST(ValidFile, LinksOutOfTheFoldersAreRefused) {
  ScratchFolder folder;
  for (const char* name : {"in", "in/sub", "out", "blobs"})
    std::filesystem::create_directory(folder.path() / name);
  folder.write("out/w.bin", weight_bytes());
  folder.write("in/model.onnx", model_with_external("w.bin").bytes());
  std::filesystem::create_symlink("../out/w.bin", folder.path() / "in/w.bin");
  const std::string plain = error_of([&] { OnnxFile::open(folder.path() / "in/model.onnx"); });
  EXPECT_THAT(plain, HasSubstr("a link out of the folder"));
  EXPECT_THAT(plain, HasSubstr("cp -rL"));

  folder.write("in/deep.onnx", model_with_external("sub/up/w.bin").bytes());
  std::filesystem::create_directory_symlink(folder.path() / "out", folder.path() / "in/sub/up");
  EXPECT_THAT(error_of([&] { OnnxFile::open(folder.path() / "in/deep.onnx"); }),
              HasSubstr("a link out of the folder"));

  // The model is a link into blobs, its data one out of both folders.
  folder.write("blobs/h1", model_with_external("w.bin").bytes());
  std::filesystem::create_symlink("../blobs/h1", folder.path() / "in/hub.onnx");
  EXPECT_THAT(error_of([&] { OnnxFile::open(folder.path() / "in/hub.onnx"); }),
              HasSubstr("a link out of the folder"));
  std::filesystem::create_symlink("nowhere", folder.path() / "in/dangling.bin");
  folder.write("in/dangling.onnx", model_with_external("dangling.bin").bytes());
  EXPECT_THAT(error_of([&] { OnnxFile::open(folder.path() / "in/dangling.onnx"); }),
              HasSubstr("No such file"));
}

// [1, 0, 2], by places and by coordinates, as an initializer and as a constant's value.
TEST(ValidFile, SparseTensors) {
  for (const bool is_flat : {true, false}) {
    onnx::SparseTensorProto sparse;
    sparse.mutable_values()->set_name("s");
    sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
    sparse.mutable_values()->add_dims(2);
    for (const float value : {1.0f, 2.0f}) sparse.mutable_values()->add_float_data(value);
    sparse.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
    sparse.mutable_indices()->add_dims(2);
    if (!is_flat) sparse.mutable_indices()->add_dims(2);
    for (const std::int64_t at :
         is_flat ? std::vector<std::int64_t>{0, 5} : std::vector<std::int64_t>{0, 0, 1, 2})
      sparse.mutable_indices()->add_int64_data(at);
    sparse.add_dims(2);
    sparse.add_dims(3);
    for (const bool is_initializer : {true, false}) {
      ModelMaker m;
      m.input("x", {2, 3}).output("y");
      if (is_initializer) {
        *m.graph().add_sparse_initializer() = sparse;
      } else {
        onnx::AttributeProto& value = *m.node("Constant", {}, {"s"}).add_attribute();
        value.set_name("sparse_value");
        value.set_type(onnx::AttributeProto::SPARSE_TENSOR);
        *value.mutable_sparse_tensor() = sparse;
      }
      m.node("Add", {"x", "s"}, {"y"});
      const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
      const HostTensor y = run_graph(result.graph, {{"x", zeros_2_3()}}).at(0).second;
      const float wanted[] = {1, 0, 0, 0, 0, 2};
      for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.number(i), wanted[i]) << i;
    }
    sparse.mutable_indices()->set_int64_data(is_flat ? 1 : 2, is_flat ? 6 : 2);
    ModelMaker outside;
    outside.input("x", {2, 3}).output("y");
    *outside.graph().add_sparse_initializer() = sparse;
    outside.node("Add", {"x", "s"}, {"y"});
    EXPECT_THAT(error_of([&] { outside.file(); }), HasSubstr("s: sparse tensor: index"));
  }
  ModelMaker huge;
  huge.input("x", {2}).output("y");
  onnx::SparseTensorProto& sparse = *huge.graph().add_sparse_initializer();
  sparse.mutable_values()->set_name("s");
  sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(0);
  sparse.add_dims(std::int64_t{1} << 35);
  huge.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(error_of([&] { huge.file(); }), HasSubstr("too large"));
}

// An extent of -1 is free, a domain that nothing uses has any version, of two imports of a domain
// the last one counts, an output may be listed twice.
TEST(ValidFile, OddDeclarations) {
  ModelMaker m;
  m.input("x", {-1, 3}).output("y").output("y").weight("w", {3}, 1.0f);
  m.node("Add", {"x", "w"}, {"y"});
  for (const auto& [domain, version] :
       {std::pair<const char*, int>{"com.example", 0}, {"com.other", 1}, {"com.other", 3}}) {
    onnx::OperatorSetIdProto& import = *m.model.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  onnx::OperatorSetIdProto& again = *m.model.add_opset_import();
  again.set_domain("ai.onnx");
  again.set_version(18);
  ImportOptions options = with_evaluator();
  options.batch = 2;
  const ImportResult result = import_graph(m.file(), engine_operators(), options);
  EXPECT_EQ(result.summary.opset, 18);
  EXPECT_EQ(result.file_batch, 0);
  ASSERT_EQ(result.graph.outputs.size(), 1u);
  EXPECT_EQ(run_graph(result.graph, {{"x", zeros_2_3()}}).at(0).second.shape(), (Shape{2, 3}));
}

// y = 2 w (x + w) and what casts make of it: the file has 16 bits throughout, the graph float32.
// Numbers that float16 cannot hold pass: 2048 + 1 is 2048 there.
TEST(ValidFile, WeightsOf16BitsAreFloat32InTheGraph) {
  constexpr auto half = onnx::TensorProto::FLOAT16;
  ModelMaker m;
  m.input("x", {2, 3}, half).output("y").output("t");
  const auto add = [&](const char* name, const Shape& shape, const std::vector<int>& bits) {
    onnx::TensorProto& tensor = *m.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(half);
    for (const std::int64_t extent : shape) tensor.add_dims(extent);
    for (const int each : bits) tensor.add_int32_data(each);
  };
  add("w", {3, 2}, {0x3c00, 0x4400, 0x4000, 0x4500, 0x4200, 0x4600});  // 1 4, 2 5, 3 6
  onnx::AttributeProto& value = *m.node("Constant", {}, {"two"}).add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(half);
  value.mutable_t()->add_int32_data(0x4000);
  set(m.node("Transpose", {"w"}, {"t"}), "perm", std::vector<std::int64_t>{1, 0});
  set(m.node("Cast", {"t"}, {"f"}), "to", std::int64_t{onnx::TensorProto::FLOAT});
  set(m.node("Cast", {"f"}, {"h"}), "to", std::int64_t{half});
  m.node("Add", {"x", "h"}, {"sum"});
  m.node("Mul", {"sum", "two"}, {"twice"});
  m.node("Mul", {"twice", "h"}, {"y"});
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  for (const Value& each : result.graph.values) EXPECT_EQ(each.type.dtype, DType::float32);
  const HostTensor x = HostTensor::from<float>({2, 3}, {2048, 0, 0, 0, 0, 0});
  const HostTensor y = run_graph(result.graph, {{"x", x}}).at(0).second;
  const float expected[] = {4098, 8, 18, 32, 50, 72};
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.number(i), expected[i]) << i;
  ASSERT_EQ(result.summary.notes.size(), 1u);
  EXPECT_THAT(result.summary.notes[0], HasSubstr("16 bits"));
}

// Weights of 4 and 2 bits are read as such numbers if only DequantizeLinear reads them: y = x + 0.5
// (w - zero point). The first element is in the lowest bits; a byte may be filled in part.
TEST(ValidFile, WeightsOfFourAndTwoBits) {
  struct Case {
    onnx::TensorProto::DataType type;
    std::string bytes, zero;
    std::vector<float> expected;
  };
  using Proto = onnx::TensorProto;
  const std::vector<Case> cases{
      {Proto::INT4, "\x87\xf0\x71", "\x01", {3, -4.5f, -0.5f, -1, 0, 3}},  // 7 -8 0 -1 1 7
      {Proto::UINT4, "\x87\xf0\x71", "\x01", {3, 3.5f, -0.5f, 7, 0, 3}},   // 7 8 0 15 1 7
      {Proto::INT2, std::string("\xe4\x06", 2), "\x00", {0, 0.5f, -1, -0.5f, -1, 0.5f}},
      {Proto::UINT2, std::string("\xe4\x06", 2), "\x01", {-0.5f, 0, 0.5f, 1, 0.5f, 0}}};
  for (const Case& each : cases) {
    for (const bool in_fields : {false, true}) {
      SCOPED_TRACE(onnx::TensorProto_DataType_Name(each.type));
      ModelMaker m(25);
      m.input("x", {2, 3}).output("y");
      const auto add = [&](const char* name, const Shape& shape, const std::string& bytes) {
        onnx::TensorProto& tensor = *m.graph().add_initializer();
        tensor.set_name(name);
        tensor.set_data_type(each.type);
        for (const std::int64_t extent : shape) tensor.add_dims(extent);
        for (const char byte : bytes) {
          if (in_fields) tensor.add_int32_data(static_cast<unsigned char>(byte));
        }
        if (!in_fields) tensor.set_raw_data(bytes);
      };
      add("w", {2, 3}, each.bytes);
      add("zero", {}, each.zero.empty() ? std::string(1, '\0') : each.zero);
      onnx::TensorProto& scale = *m.graph().add_initializer();
      scale.set_name("scale");
      scale.set_data_type(Proto::FLOAT);
      scale.add_float_data(0.5f);
      m.node("DequantizeLinear", {"w", "scale", "zero"}, {"d"});
      m.node("Add", {"x", "d"}, {"y"});
      const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
      const HostTensor y = run_graph(result.graph, {{"x", zeros_2_3()}}).at(0).second;
      for (std::size_t i = 0; i < each.expected.size(); ++i)
        EXPECT_EQ(y.number(static_cast<std::int64_t>(i)), each.expected[i]) << i;
    }
  }
}

// QuantizeLinear's 4-bit zero point sets the range of its result, which int8 would widen.
TEST(ValidFile, FourBitsThatAreARangeAreNamed) {
  ModelMaker m(21);
  m.input("x", {2, 3}).output("y");
  onnx::TensorProto& zero = *m.graph().add_initializer();
  zero.set_name("zero");
  zero.set_data_type(onnx::TensorProto::INT4);
  zero.set_raw_data(std::string(1, '\0'));
  onnx::TensorProto& scale = *m.graph().add_initializer();
  scale.set_name("scale");
  scale.set_data_type(onnx::TensorProto::FLOAT);
  scale.add_float_data(0.5f);
  m.node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  m.node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  EXPECT_THAT(error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); }),
              HasSubstr("INT4"));
}

// Tensors with an empty raw_data in addition to the field that they use.
TEST(ValidFile, EmptyRawData) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y");
  onnx::TensorProto& tensor = *m.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.add_dims(3);
  tensor.set_raw_data("");
  for (const float value : weights) tensor.add_float_data(value);
  m.node("Add", {"x", "w"}, {"y"});
  expect_weights(m.file());
}

}  // namespace
}  // namespace tandem
