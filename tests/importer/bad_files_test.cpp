// Files that must be refused, each with an Error that names what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "engine/graph/error.h"
#include "tests/importer/stages.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace tandem::testing;

ModelMaker relu_model() {
  ModelMaker m;
  m.input("x", {2, 3}).output("y");
  m.node("Relu", {"x"}, {"y"}).set_name("act");
  return m;
}

std::string import_error(const ModelMaker& m) {
  expect_same_diagnosis(m.bytes());
  return error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); });
}

TEST(BadFile, EmptyTruncatedAndRandom) {
  EXPECT_THAT(error_of([] { OnnxFile::from_bytes(""); }), HasSubstr("empty"));
  std::string bytes = relu_model().bytes();
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    // Some prefixes are whole messages: those may be refused later, or be fine.
    try {
      import_graph(OnnxFile::from_bytes(bytes.substr(0, cut)), engine_operators(),
                   with_evaluator());
    } catch (const Error&) {
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string noise = i % 2 == 0 ? bytes : std::string(1 + random() % 200, '\0');
    for (int k = 0; k < 4; ++k) noise[random() % noise.size()] = static_cast<char>(random());
    try {
      import_graph(OnnxFile::from_bytes(noise), engine_operators(), with_evaluator());
    } catch (const Error&) {
    }
  }
}

TEST(BadFile, LyingLengthAndSize) {
  EXPECT_THAT(error_of([] { OnnxFile::from_bytes(std::string("\x3a\xff\xff\xff\xff\x07", 6)); }),
              HasSubstr("not an ONNX model"));
  const std::string whole = relu_model().bytes();
  EXPECT_THAT(error_of([&] { OnnxFile::from_bytes(whole.substr(0, whole.size() - 3)); }),
              HasSubstr("the file is not an ONNX model, or it is damaged: got " +
                        std::to_string(whole.size() - 3) +
                        " bytes (one that was cut short looks so: copy it again"));
  FileLimits small;
  small.file_bytes = 10;
  EXPECT_THAT(error_of([&] { relu_model().file(small); }), HasSubstr("too large"));
  small = {};
  small.messages = 3;
  EXPECT_THAT(error_of([&] { relu_model().file(small); }), HasSubstr("too many parts"));
  ScratchFolder folder;
  EXPECT_THAT(error_of([&] { OnnxFile::open(folder.path()); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of([&] { OnnxFile::open(folder.path() / "none.onnx"); }),
              HasSubstr("cannot open"));
}

// If in If in If ...
ModelMaker nested(int levels) {
  ModelMaker m;
  m.input("x", {2}).output("y");
  onnx::TensorProto& yes = *m.graph().add_initializer();
  yes.set_name("yes");
  yes.set_data_type(onnx::TensorProto::BOOL);
  yes.add_int32_data(1);
  onnx::NodeProto* node = &m.node("If", {"yes"}, {"y"});
  for (int i = 0; i < levels; ++i) {
    const std::string inner = "y" + std::to_string(i);
    onnx::NodeProto* next = nullptr;
    for (const char* name : {"then_branch", "else_branch"}) {
      onnx::AttributeProto& attribute = *node->add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::GRAPH);
      onnx::GraphProto& graph = *attribute.mutable_g();
      graph.set_name("branch");
      onnx::NodeProto& body = *graph.add_node();
      body.add_output(inner);
      graph.add_output()->set_name(inner);
      if (next == nullptr && i + 1 < levels) {
        body.set_op_type("If");
        body.add_input("yes");
        next = &body;
      } else {
        body.set_op_type("Relu");
        body.add_input("x");
      }
    }
    node = next;
  }
  return m;
}

TEST(BadFile, Nesting) {
  const ImportResult result = import_graph(nested(20).file(), engine_operators(), with_evaluator());
  EXPECT_EQ(result.graph.nodes.size(), 1u);
  error_of([] { nested(40).file(); });
  error_of([] { nested(300).file(); });
}

onnx::FunctionProto& function(ModelMaker& m, const std::string& name) {
  onnx::FunctionProto& f = *m.model.add_functions();
  f.set_name(name);
  f.set_domain("own");
  f.add_input("a");
  f.add_output("b");
  f.add_opset_import()->set_version(20);
  onnx::OperatorSetIdProto& own = *f.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  return f;
}

void call(onnx::FunctionProto& f, const std::string& op, const std::string& from,
          const std::string& to) {
  onnx::NodeProto& node = *f.add_node();
  node.set_op_type(op);
  if (op != "Relu") node.set_domain("own");
  node.add_input(from);
  node.add_output(to);
}

ModelMaker calls(const std::string& name) {
  ModelMaker m;
  onnx::OperatorSetIdProto& own = *m.model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  m.input("x", {2}).output("y");
  m.node(name, {"x"}, {"y"}).set_domain("own");
  return m;
}

TEST(BadFile, FunctionCycleChainAndDoubling) {
  ModelMaker cycle = calls("f");
  call(function(cycle, "f"), "f", "a", "b");
  EXPECT_THAT(import_error(cycle), HasSubstr("calls itself"));

  ModelMaker chain = calls("f0");
  for (int i = 0; i < 3000; ++i) {
    call(function(chain, "f" + std::to_string(i)), i == 2999 ? "Relu" : "f" + std::to_string(i + 1),
         "a", "b");
  }
  EXPECT_THAT(import_error(chain), HasSubstr("too deeply"));

  ModelMaker bomb = calls("f0");
  for (int i = 0; i < 25; ++i) {
    onnx::FunctionProto& f = function(bomb, "f" + std::to_string(i));
    const std::string inner = i == 24 ? "Relu" : "f" + std::to_string(i + 1);
    call(f, inner, "a", "c");
    call(f, inner, "c", "b");
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of([&] { import_graph(bomb.file(), engine_operators(), with_evaluator()); }),
              HasSubstr("too large"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

onnx::TensorProto& external(ModelMaker& m, const std::string& location, const std::string& offset,
                            const std::string& length) {
  onnx::TensorProto& tensor = *m.graph().mutable_initializer(0);
  tensor.clear_raw_data();
  tensor.clear_external_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    if (value == "-") return;
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  add("offset", offset);
  add("length", length);
  return tensor;
}

ModelMaker add_model() {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").weight("w", {2, 3});
  m.node("Add", {"x", "w"}, {"y"});
  return m;
}

TEST(BadFile, ExternalLocations) {
  ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "in");
  std::filesystem::create_directory(folder.path() / "in/sub");
  folder.write("in/data.bin", std::string(64, '\1'));
  folder.write("outside.bin", std::string(64, '\1'));
  std::filesystem::create_symlink(folder.path() / "outside.bin", folder.path() / "in/link.bin");
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "in/up");
  std::filesystem::create_hard_link(folder.path() / "outside.bin", folder.path() / "in/hard.bin");
  ASSERT_EQ(::mkfifo((folder.path() / "in/fifo").c_str(), 0600), 0);
  const auto open = [&](const std::string& location, const std::string& offset = "-",
                        const std::string& length = "-") {
    ModelMaker m = add_model();
    external(m, location, offset, length);
    folder.write("in/model.onnx", m.bytes());
    return OnnxFile::open(folder.path() / "in/model.onnx");
  };
  open("data.bin");
  open("data.bin", "40", "24");
  open("data.bin", "3");  // not aligned: copied
  for (const std::string& location :
       {std::string("../outside.bin"), std::string("sub/../../outside.bin"),
        (folder.path() / "outside.bin").string(), std::string(""), std::string("#x"),
        std::string("data.bin\0x", 10), std::string("sub//data.bin"), std::string("link.bin"),
        std::string("up/outside.bin"), std::string("hard.bin"), std::string("fifo"),
        std::string("sub"), std::string("missing.bin"), std::string("/dev/zero")}) {
    EXPECT_THAT(error_of([&] { open(location); }), HasSubstr("w: ")) << location;
  }
  EXPECT_THAT(error_of([&] { open("data.bin", "-8"); }), HasSubstr("offset"));
  EXPECT_THAT(error_of([&] { open("data.bin", "0x10"); }), HasSubstr("decimal"));
  EXPECT_THAT(error_of([&] { open("data.bin", "41"); }), HasSubstr("ends before"));
  EXPECT_THAT(error_of([&] { open("data.bin", "18446744073709551615", "24"); }),
              HasSubstr("ends before"));
  EXPECT_THAT(error_of([&] { open("data.bin", "99999999999999999999"); }), HasSubstr("decimal"));
  EXPECT_THAT(error_of([&] { open("data.bin", "0", "25"); }), HasSubstr("length"));
  EXPECT_THAT(error_of([&] { open("data.bin", "0", "4611686018427387904"); }), HasSubstr("length"));
  ModelMaker m = add_model();
  external(m, "data.bin", "0", "24");
  EXPECT_THAT(error_of([&] { m.file(); }), HasSubstr("without a folder"));
}

// Changes the only weight of a model and returns the error.
std::string tensor_error(const std::function<void(onnx::TensorProto&)>& change) {
  ModelMaker m = add_model();
  change(*m.graph().mutable_initializer(0));
  return import_error(m);
}

TEST(BadFile, TensorSizes) {
  const auto dims = [](std::vector<std::int64_t> extents) {
    return [extents](onnx::TensorProto& t) {
      t.clear_dims();
      for (std::int64_t extent : extents) t.add_dims(extent);
    };
  };
  EXPECT_THAT(tensor_error(dims({std::int64_t{1} << 32, std::int64_t{1} << 32})),
              HasSubstr("bad shape"));
  EXPECT_THAT(tensor_error(dims({-1, 6})), HasSubstr("bad shape"));
  EXPECT_THAT(tensor_error(dims({std::int64_t{1} << 39})), HasSubstr("bad shape"));
  EXPECT_THAT(tensor_error(dims({0, std::int64_t{1} << 62, 8})), HasSubstr("bad shape"));
  EXPECT_THAT(tensor_error(dims(std::vector<std::int64_t>(100000, 1))), HasSubstr("too many axes"));
  EXPECT_THAT(tensor_error([](auto& t) { t.mutable_raw_data()->pop_back(); }),
              HasSubstr("raw_data"));
  EXPECT_THAT(tensor_error([](auto& t) { t.mutable_raw_data()->append("abcd"); }),
              HasSubstr("raw_data"));
  EXPECT_THAT(tensor_error([](auto& t) { t.clear_raw_data(); }), HasSubstr("number of elements"));
  EXPECT_THAT(tensor_error([](auto& t) { t.add_float_data(1); }), HasSubstr("several places"));
  EXPECT_THAT(tensor_error([](auto& t) {
                t.clear_raw_data();
                t.add_int32_data(1);
              }),
              HasSubstr("number of elements"));
  EXPECT_THAT(tensor_error([](auto& t) {
                t.clear_raw_data();
                for (int i = 0; i < 5; ++i) t.add_float_data(1);
              }),
              HasSubstr("number of elements"));
  EXPECT_THAT(tensor_error([](auto& t) { t.mutable_segment()->set_begin(0); }),
              HasSubstr("segments"));
}

TEST(BadFile, ElementTypes) {
  for (int type : {0, 999, static_cast<int>(onnx::TensorProto::STRING),
                   static_cast<int>(onnx::TensorProto::COMPLEX64),
                   static_cast<int>(onnx::TensorProto::FLOAT4E2M1),
                   static_cast<int>(onnx::TensorProto::INT4)}) {
    EXPECT_THAT(tensor_error([&](auto& t) { t.set_data_type(type); }), HasSubstr("element type"))
        << type;
    ModelMaker m;
    m.input("x", {2}, type).output("y");
    m.node("Identity", {"x"}, {"y"});
    EXPECT_THAT(import_error(m), HasSubstr("element type")) << type;
  }
  EXPECT_THAT(tensor_error([](auto& t) {
                t.clear_raw_data();
                t.set_data_type(onnx::TensorProto::UINT8);
                for (int i = 0; i < 6; ++i) t.add_int32_data(300);
              }),
              HasSubstr("does not fit"));
}

TEST(BadFile, NamesAndOrder) {
  ModelMaker unmade;
  unmade.input("x", {2}).output("y");
  unmade.node("Relu", {"a"}, {"y"});
  EXPECT_THAT(import_error(unmade), HasSubstr("before"));

  ModelMaker cycle;
  cycle.input("x", {2}).output("y");
  cycle.node("Add", {"x", "y"}, {"a"});
  cycle.node("Relu", {"a"}, {"y"});
  EXPECT_THAT(import_error(cycle), HasSubstr("'y'"));

  ModelMaker twice = relu_model();
  twice.node("Neg", {"x"}, {"y"});
  EXPECT_THAT(import_error(twice), HasSubstr("two values"));

  ModelMaker shadow = relu_model();
  shadow.weight("y", {2});
  EXPECT_THAT(import_error(shadow), HasSubstr("two values"));

  ModelMaker same = add_model();
  same.weight("w", {2, 3});
  EXPECT_THAT(import_error(same), HasSubstr("two initializers"));

  ModelMaker attribute = relu_model();
  set(*attribute.graph().mutable_node(0), "a", std::int64_t{1});
  set(*attribute.graph().mutable_node(0), "a", std::int64_t{2});
  EXPECT_THAT(import_error(attribute), HasSubstr("twice"));

  ModelMaker no_maker = relu_model();
  no_maker.output("z");
  EXPECT_THAT(import_error(no_maker), HasSubstr("no node makes"));

  ModelMaker undefined;
  undefined.output("y");
  undefined.node("Relu", {"nothing"}, {"y"});
  EXPECT_THAT(import_error(undefined), HasSubstr("'nothing'"));

  ModelMaker bytes = relu_model();
  bytes.graph().mutable_node(0)->set_name("\xff\xfe");
  EXPECT_THAT(import_error(bytes), HasSubstr("UTF-8"));

  // Too long forms, a half of a surrogate pair, beyond Unicode, control characters.
  for (const char* name : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xf7\xbf\xbf\xbf", "\x7f", "\xc2\x9b", "\xc3", "a\nb"}) {
    bytes.graph().mutable_node(0)->set_name(name);
    EXPECT_THAT(import_error(bytes), HasSubstr("UTF-8"));
  }
  for (const char* name :
       {"\xc2\xa0", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    bytes.graph().mutable_node(0)->set_name(name);
    EXPECT_NO_THROW(bytes.file()) << name;
  }
  ModelMaker dimension = relu_model();
  dimension.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("\xff");
  EXPECT_THAT(import_error(dimension), HasSubstr("the name of a dimension"));

  ModelMaker reserved;
  reserved.input("x", {2}).output("y").weight("__metadata__", {2});
  reserved.node("Add", {"x", "__metadata__"}, {"y"});
  EXPECT_THAT(import_error(reserved), HasSubstr("rename the initializer"));

  ModelMaker empty = relu_model();
  empty.model.clear_graph();
  EXPECT_THAT(import_error(empty), HasSubstr("no graph"));

  ModelMaker clash = add_model();
  clash.input("w", {3, 2});
  EXPECT_THAT(import_error(clash), HasSubstr("not that of the input"));
}

TEST(BadFile, Versions) {
  for (std::int64_t version :
       {std::int64_t{9999}, std::int64_t{-5}, (std::int64_t{1} << 33) + 13, std::int64_t{0}}) {
    ModelMaker m = relu_model();
    m.model.mutable_opset_import(0)->set_version(version);
    EXPECT_THAT(import_error(m), HasSubstr("operator set")) << version;
  }
  ModelMaker ir = relu_model();
  ir.model.set_ir_version(1000);
  EXPECT_THAT(import_error(ir), HasSubstr("ir_version"));
  ModelMaker op = relu_model();
  op.graph().mutable_node(0)->set_op_type("Frobnicate");
  EXPECT_THAT(import_error(op), HasSubstr("no operator Frobnicate"));
  ModelMaker domain = relu_model();
  domain.graph().mutable_node(0)->set_domain("com.example");
  EXPECT_THAT(import_error(domain), HasSubstr("com.example"));
  ModelMaker none = relu_model();
  none.model.clear_opset_import();
  EXPECT_THAT(import_error(none), HasSubstr("no version"));
  ModelMaker newer(13);
  newer.input("x", {2}).output("y");
  newer.node("Gelu", {"x"}, {"y"});
  EXPECT_THAT(import_error(newer), HasSubstr("no operator Gelu"));
}

TEST(BadFile, SparseInitializers) {
  ModelMaker m = relu_model();
  m.graph().add_sparse_initializer()->mutable_values()->set_name("s");
  EXPECT_THAT(import_error(m), HasSubstr("sparse"));
}

}  // namespace
}  // namespace tandem
