// Trained weights back into the user's file: values, inference form, free batch, external data,
// checker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "engine/graph/error.h"
#include "importer/export_graph.h"
#include "onnx/checker.h"
#include "tests/harness/failing_files.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace tandem::testing;

onnx::ModelProto load_model(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&stream));
  return model;
}

ExportOptions with_import() {
  ExportOptions options;
  options.import = with_evaluator();
  return options;
}

NamedTensors feeds_of(const Graph& graph) {
  NamedTensors feeds;
  for (const NamedValue& input : graph.inputs) {
    const TensorType& type = graph.type(input.value);
    HostTensor numbers(TensorType{DType::float64, type.shape});
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      numbers.as<double>()[static_cast<std::size_t>(i)] =
          is_float(type.dtype) ? static_cast<double>(i % 13) / 8 - 0.7 : static_cast<double>(i % 5);
    }
    feeds.emplace_back(input.name, numbers.converted(type.dtype));
  }
  return feeds;
}

void expect_equal(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].second.type(), b[k].second.type());
    for (std::int64_t i = 0; i < a[k].second.type().elements(); ++i) {
      ASSERT_EQ(a[k].second.number(i), b[k].second.number(i)) << a[k].first << " " << i;
    }
  }
}

class ExportFixture : public ::testing::TestWithParam<const char*> {};

// Changes every state, exports and imports again: the result computes what the changed model does.
TEST_P(ExportFixture, RoundTrip) {
  const OnnxFile file = OnnxFile::open(fixtures() / GetParam());
  ImportOptions evaluation = with_evaluator();
  evaluation.training = false;
  evaluation.batch = 2;
  ImportResult before = import_graph(file, engine_operators(), evaluation);
  NamedTensors values;
  for (State& state : before.graph.states) {
    state.start = state.start.clone();
    for (float& x : state.start.as<float>()) x = 0.5f * x + 0.01f;
    values.emplace_back(state.name, state.start);
  }
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "trained.onnx";
  ExportOptions whole = with_import();
  whole.all_states = true;
  const ExportResult written = export_graph(file, engine_operators(), values, to, whole);
  EXPECT_EQ(written.note, "");
  EXPECT_TRUE(written.batch_is_free);
  ASSERT_EQ(written.files.size(), 1u);
  EXPECT_NO_THROW(onnx::checker::check_model(to.string(), true));
  // The file already says what inference does: no option is needed.
  ImportOptions by_file = with_evaluator();
  by_file.batch_norm = "file";
  by_file.batch = 2;
  const ImportResult after = import_graph(OnnxFile::open(to), engine_operators(), by_file);
  const NamedTensors feeds = feeds_of(before.graph);
  expect_equal(run_graph(after.graph, feeds), run_graph(before.graph, feeds));
  const onnx::ModelProto a = load_model(fixtures() / GetParam()), b = load_model(to);
  EXPECT_EQ(a.opset_import(0).version(), b.opset_import(0).version());
  EXPECT_EQ(a.ir_version(), b.ir_version());
  ASSERT_EQ(a.graph().initializer_size(), b.graph().initializer_size());
  for (int i = 0; i < a.graph().initializer_size(); ++i) {
    EXPECT_EQ(a.graph().initializer(i).name(), b.graph().initializer(i).name());
  }
  for (const onnx::NodeProto& node : b.graph().node()) {
    if (node.op_type() == "BatchNormalization") {
      EXPECT_EQ(node.output_size(), 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExportFixture,
                         ::testing::Values("mlp_dynamo.onnx", "mlp_torchscript.onnx",
                                           "conv_bn_dynamo.onnx", "conv_bn_torchscript.onnx",
                                           "resnet18_torchscript.onnx", "gpt_dynamo.onnx",
                                           "encoder_torchscript.onnx", "mlp_loss_dynamo.onnx"));

// A model that grew after the training, or a checkpoint of another one: the file's own values would
// look like trained ones.
TEST(Export, StatesWithoutTrainedValuesAreRefused) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("first", {4, 3}).weight("second", {3, 5});
  m.node("MatMul", {"x", "first"}, {"a"});
  m.node("MatMul", {"a", "second"}, {"y"});
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "trained.onnx";
  ExportOptions options = with_import();
  options.all_states = true;
  const NamedTensors one{{"first", HostTensor({DType::float32, {4, 3}})}};
  const auto message = [&](const NamedTensors& values) -> std::string {
    try {
      export_graph(m.file(), engine_operators(), values, to, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(one), ::testing::AllOf(HasSubstr("no trained value"), HasSubstr("second")));
  EXPECT_FALSE(std::filesystem::exists(to));
  NamedTensors both = one;
  both.emplace_back("second", HostTensor({DType::int32, {3, 5}}));
  EXPECT_THAT(message(both), HasSubstr("type of the new value"));
  both.back().second = HostTensor({DType::float32, {3, 5}});
  EXPECT_EQ(message(both), "");
}

TEST(Export, FixedBatchBecomesFree) {
  ModelMaker m;
  m.input("x", {1, 3, 4}).output("y").weight("w", {12, 5}).integers("shape", {1, -1});
  m.node("Reshape", {"x", "shape"}, {"a"});
  m.node("MatMul", {"a", "w"}, {"y"});
  m.graph()
      .mutable_output(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->add_dim()
      ->set_dim_value(1);
  m.graph()
      .mutable_output(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->add_dim()
      ->set_dim_value(5);
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "free.onnx";
  const ExportResult written = export_graph(m.file(), engine_operators(), {}, to, with_import());
  EXPECT_TRUE(written.batch_is_free) << written.note;
  EXPECT_NO_THROW(onnx::checker::check_model(to.string(), true));
  const onnx::ModelProto model = load_model(to);
  EXPECT_EQ(model.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
  EXPECT_EQ(model.graph().output(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
  ImportOptions options = with_evaluator();
  options.batch = 9;
  const ImportResult result = import_graph(OnnxFile::open(to), engine_operators(), options);
  EXPECT_EQ(result.file_batch, 0);
  EXPECT_EQ(result.graph.type(result.graph.outputs[0].value).shape, (Shape{9, 5}));
}

// Our entries are written anew by every export; those of others stay.
TEST(Export, MetadataOfOurOwn) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("w", {4, 3});
  m.node("MatMul", {"x", "w"}, {"y"});
  onnx::StringStringEntryProto& entry = *m.model.add_metadata_props();
  entry.set_key("author");
  entry.set_value("somebody");
  ScratchFolder folder;
  ExportOptions options = with_import();
  options.metadata = {{"a", "1"}, {"b.tsv", "2"}};
  const std::filesystem::path first = folder.path() / "first.onnx",
                              second = folder.path() / "second.onnx";
  EXPECT_TRUE(m.file().metadata().empty());
  export_graph(m.file(), engine_operators(), {}, first, options);
  EXPECT_EQ(OnnxFile::open(first).metadata(), options.metadata);
  options.metadata = {{"c", "3"}};
  export_graph(OnnxFile::open(first), engine_operators(), {}, second, options);
  EXPECT_EQ(OnnxFile::open(second).metadata(), options.metadata);
  const onnx::ModelProto model = load_model(second);
  ASSERT_EQ(model.metadata_props_size(), 2);
  EXPECT_EQ(model.metadata_props(0).key(), "author");
  EXPECT_EQ(model.metadata_props(1).key(), "tandem.c");
}

// Many exporters leave the shapes of outputs out, which the checker wants to be there.
TEST(Export, WhatTheCheckerRefusedBeforeIsWrittenWithANote) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("w", {4, 3});
  m.node("MatMul", {"x", "w"}, {"y"});
  m.graph().mutable_output(0)->clear_type();
  EXPECT_ANY_THROW(onnx::checker::check_model(m.model));
  ScratchFolder folder;
  const std::filesystem::path first = folder.path() / "first.onnx",
                              second = folder.path() / "second.onnx";
  const ExportResult made = export_graph(m.file(), engine_operators(), {}, first, with_import());
  EXPECT_THAT(made.note, HasSubstr("as it refuses the one it comes from"));
  export_graph(OnnxFile::open(first), engine_operators(), {}, second, with_import());
  EXPECT_EQ(load_model(second).graph().output(0).name(), "y");
  EXPECT_FALSE(load_model(second).graph().output(0).has_type());
}

TEST(Export, BatchThatCannotBeFreedStays) {
  ModelMaker m;
  m.input("x", {2, 6}).output("y").integers("shape", {3, 4});
  m.node("Reshape", {"x", "shape"}, {"y"});
  ScratchFolder folder;
  const ExportResult written =
      export_graph(m.file(), engine_operators(), {}, folder.path() / "fixed.onnx", with_import());
  EXPECT_FALSE(written.batch_is_free);
  EXPECT_THAT(written.note, HasSubstr("Reshape"));
}

// Import gives it another batch, but the file has no form for that.
TEST(Export, BatchAmongSizesFollowsAndStays) {
  ModelMaker m;
  m.input("x", {2, 1, 3}).output("y").integers("sizes", {2, 1, 6});
  m.node("Resize", {"x", "", "", "sizes"}, {"y"});
  ImportOptions options = with_evaluator();
  options.batch = 5;
  const ImportResult result = import_graph(m.file(), engine_operators(), options);
  EXPECT_EQ(result.graph.type(result.graph.outputs[0].value).shape, (Shape{5, 1, 6}));
  ScratchFolder folder;
  const ExportResult written =
      export_graph(m.file(), engine_operators(), {}, folder.path() / "fixed.onnx", with_import());
  EXPECT_FALSE(written.batch_is_free);
  EXPECT_THAT(written.note, HasSubstr("'y' is made by an operator that holds it"));
}

TEST(Export, InferenceForm) {
  for (int opset : {9, 13, 14, 20}) {
    ModelMaker m(opset);
    m.model.set_ir_version(opset < 10 ? 4 : 8);
    m.input("x", {2, 3, 4}).output("y");
    for (const char* name : {"scale", "bias", "mean", "var"}) m.weight(name, {3});
    if (opset >= 14) {
      set(m.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"},
                 {"n", "new_mean", "new_var"}),
          "training_mode", std::int64_t{1});
    } else {
      m.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"},
             {"n", "new_mean", "new_var", "saved_mean", "saved_var"});
    }
    if (opset >= 12) {
      onnx::NodeProto& constant = m.node("Constant", {}, {"mode"});
      onnx::AttributeProto& value = *constant.add_attribute();
      value.set_name("value");
      value.set_type(onnx::AttributeProto::TENSOR);
      value.mutable_t()->set_data_type(onnx::TensorProto::BOOL);
      value.mutable_t()->add_int32_data(1);
      m.weight("ratio", {}, 0.5f);
      m.node("Dropout", {"n", "ratio", "mode"}, {"y", "mask"});
    } else {
      m.node("Dropout", {"n"}, {"y", "mask"});
    }
    ScratchFolder folder;
    const std::filesystem::path to = folder.path() / "model.onnx";
    export_graph(m.file(), engine_operators(), {}, to, with_import());
    const onnx::ModelProto model = load_model(to);
    ASSERT_EQ(model.graph().node_size(), 2) << opset;
    EXPECT_EQ(model.graph().node(0).output_size(), 1);
    const auto& attributes = model.graph().node(0).attribute();
    ASSERT_EQ(attributes.size(), opset >= 14 ? 1 : 0);
    for (const onnx::AttributeProto& attribute : attributes) {
      EXPECT_EQ(attribute.name(), "training_mode");
      EXPECT_EQ(attribute.i(), 0);
    }
    EXPECT_EQ(model.graph().node(1).output_size(), 1);
    EXPECT_LE(model.graph().node(1).input_size(), 2);
  }
}

// A setting that only training uses goes with its reader, unless another node reads it.
TEST(Export, InferenceFormLeavesNoUnreadInitializer) {
  for (const bool is_read : {false, true}) {
    ModelMaker m;
    m.input("x", {2, 3}).output("y").weight("w", {3, 3}).weight("ratio", {}, 0.5f);
    m.model.set_ir_version(3);  // initializers are inputs, too
    onnx::TensorProto& mode = *m.graph().add_initializer();
    mode.set_name("mode");
    mode.set_data_type(onnx::TensorProto::BOOL);
    mode.add_int32_data(1);
    m.input("w", {3, 3}).input("ratio", {}).input("mode", {}, onnx::TensorProto::BOOL);
    m.node("MatMul", {"x", "w"}, {"a"});
    m.node("Dropout", {"a", "ratio", "mode"}, {is_read ? "b" : "y"});
    if (is_read) {
      set(m.node("Cast", {"mode"}, {"c"}), "to", std::int64_t{onnx::TensorProto::FLOAT});
      m.node("Add", {"b", "c"}, {"y"});
    }
    ScratchFolder folder;
    const std::filesystem::path to = folder.path() / "model.onnx";
    export_graph(m.file(), engine_operators(), {}, to, with_import());
    const onnx::ModelProto model = load_model(to);
    std::vector<std::string> initializers, inputs;
    for (const auto& tensor : model.graph().initializer()) initializers.push_back(tensor.name());
    for (const auto& input : model.graph().input()) inputs.push_back(input.name());
    std::vector<std::string> kept{"w", "ratio"};
    if (is_read) kept.push_back("mode");
    EXPECT_EQ(initializers, kept);
    kept.insert(kept.begin(), "x");
    EXPECT_EQ(inputs, kept);
  }
}

TEST(Export, OutputsAreCut) {
  const OnnxFile file = OnnxFile::open(fixtures() / "mlp_loss_dynamo.onnx");
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "logits.onnx";
  ExportOptions options = with_import();
  options.outputs = {{"linear_2", {DType::float32, {16, 10}}}};
  export_graph(file, engine_operators(), {}, to, options);
  EXPECT_NO_THROW(onnx::checker::check_model(to.string(), true));
  const onnx::ModelProto model = load_model(to);
  ASSERT_EQ(model.graph().input_size(), 1);
  ASSERT_EQ(model.graph().output_size(), 1);
  EXPECT_EQ(model.graph().output(0).name(), "linear_2");
  EXPECT_TRUE(model.graph().output(0).type().tensor_type().shape().dim(0).has_dim_param());
  options.outputs = {{"nothing", {}}};
  EXPECT_THAT(error_of([&] { export_graph(file, engine_operators(), {}, to, options); }),
              HasSubstr("nothing"));
}

TEST(Export, ExternalDataAndOtherTypes) {
  ModelMaker m;
  m.input("x", {2, 300}, onnx::TensorProto::FLOAT16).output("y");
  onnx::TensorProto& big = *m.graph().add_initializer();
  big.set_name("big");
  big.set_data_type(onnx::TensorProto::FLOAT16);
  big.add_dims(300);
  big.add_dims(4);
  big.set_raw_data(std::string(2400, '\0'));
  m.node("MatMul", {"x", "big"}, {"y"});
  auto& type = *m.graph().mutable_output(0)->mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT16);
  type.mutable_shape()->add_dim()->set_dim_value(2);
  type.mutable_shape()->add_dim()->set_dim_value(4);
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "model.onnx";
  ExportOptions options = with_import();
  options.inline_bytes = 1000;
  options.external_from = 100;
  HostTensor value(TensorType{DType::float32, {300, 4}});
  for (std::size_t i = 0; i < 1200; ++i) value.as<float>()[i] = static_cast<float>(i % 7);
  const ExportResult written =
      export_graph(m.file(), engine_operators(), {{"big", value}}, to, options);
  EXPECT_EQ(written.files.size(), 2u);
  EXPECT_NO_THROW(onnx::checker::check_model(to.string(), true));
  const onnx::ModelProto again = load_model(to);
  for (const auto& entry : again.graph().initializer(0).external_data()) {
    if (entry.key() != "location") continue;
    EXPECT_EQ(entry.value(), "model.onnx.data");
  }
  // The model and its data are complete before the first of them replaces an old file.
  folder.write("model.onnx.new", "the user's");
  EXPECT_GE(expect_nothing_left(
                folder.path().string(),
                [&] {
                  export_graph(m.file(), engine_operators(), {{"big", value}}, to, options);
                }),
            8);
  EXPECT_EQ(read_file((folder.path() / "model.onnx.new").string()), "the user's");
  std::filesystem::remove(folder.path() / "model.onnx.new");
  // An export onto itself: the mapped data stays readable while it is replaced.
  const OnnxFile first = OnnxFile::open(to);
  export_graph(first, engine_operators(), {}, to, options);
  const ImportResult result =
      import_graph(OnnxFile::open(to), engine_operators(), with_evaluator());
  const HostTensor& start = result.graph.find_state("big")->start;
  ASSERT_EQ(load_model(to).graph().initializer(0).data_type(), onnx::TensorProto::FLOAT16);
  for (std::int64_t i = 0; i < 1200; ++i) ASSERT_EQ(start.number(i), static_cast<double>(i % 7));
  value.as<float>()[5] = 70000;  // the largest float16 is 65504
  EXPECT_THAT(error_of([&] {
                export_graph(m.file(), engine_operators(), {{"big", value}}, to, options);
              }),
              ::testing::AllOf(HasSubstr("big"), HasSubstr("float16"), HasSubstr("70000")));
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++files;
  EXPECT_EQ(files, 2);  // no temporary file is left
}

// y = x w with weights that go into a file of their own.
struct LargeExport {
  explicit LargeExport(float first) {
    m.input("x", {2, 300}).output("y").weight("w", {300, 4}, first);
    m.node("MatMul", {"x", "w"}, {"y"});
    auto& type = *m.graph().mutable_output(0)->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : {2, 4}) type.mutable_shape()->add_dim()->set_dim_value(extent);
    options.inline_bytes = 1000;
    options.external_from = 100;
  }
  ExportResult to(const std::filesystem::path& path) const {
    return export_graph(m.file(), engine_operators(), {}, path, options);
  }
  double first_number() const {
    return import_graph(m.file(), engine_operators(), with_evaluator())
        .graph.find_state("w")
        ->start.number(0);
  }
  ModelMaker m;
  ExportOptions options = with_import();
};

TEST(Export, DataOfAnotherModelStays) {
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "model.onnx";
  const LargeExport large(0.5f);
  const std::string small = ModelMaker().bytes();
  for (const std::string& old : {std::string(), std::string("no model"), small}) {
    folder.write("model.onnx.data", "the user's");
    if (!old.empty()) folder.write("model.onnx", old);
    const auto before = files_in(folder.path().string());
    EXPECT_THAT(error_of([&] { large.to(to); }),
                ::testing::AllOf(HasSubstr(to.string() + ".data: "),
                                 HasSubstr("there is another one of this name"),
                                 HasSubstr("the weights of the model.onnx that is replaced"),
                                 HasSubstr("export under another name, or remove the file")));
    EXPECT_EQ(files_in(folder.path().string()), before);
  }
  // Weights that fit into the model need no such file.
  export_graph(large.m.file(), engine_operators(), {}, to, with_import());
  EXPECT_EQ(read_file(to.string() + ".data"), "the user's");
  // The file belongs to the old model, whatever has become of it.
  std::filesystem::remove(to.string() + ".data");
  EXPECT_EQ(large.to(to).files.size(), 2u);
  folder.write("model.onnx.data", "cut");
  large.to(to);
  EXPECT_NO_THROW(OnnxFile::open(to));
}

TEST(Export, DataStaysWhereTheModelCannotBeReplaced) {
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "model.onnx";
  for (const float first : {1.f, 2.f}) {  // nothing there yet, then an older export
    const auto before = files_in(folder.path().string());
    set_file_hook([&](std::string_view operation, std::string_view path) {
      if (operation == "rename" && path.ends_with("model.onnx"))
        throw Error(ErrorKind::usage, Diagnostic{.message = "no such luck"});
    });
    const std::string said = error_of([&] { LargeExport(first).to(to); });
    set_file_hook({});
    EXPECT_EQ(said, "no such luck");
    EXPECT_EQ(files_in(folder.path().string()), before);
    LargeExport(first).to(to);
    EXPECT_EQ(files_in(folder.path().string()).size(), 2u);
  }
}

// A process that ends before any operation on a file leaves a model with the weights that it was
// written with: the old one or the new one.
TEST(Export, AModelHasItsOwnWeightsWheneverItEnds) {
  const LargeExport before(1), after(2);
  const double old_first = before.first_number(), new_first = after.first_number();
  ASSERT_NE(old_first, new_first);
  int stopped = 0, old_models = 0, new_models = 0;
  for (bool done = false; !done && stopped < 1000; ++stopped) {
    ScratchFolder folder;
    const std::filesystem::path to = folder.path() / "model.onnx";
    before.to(to);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int left = stopped;
      set_file_hook([&](std::string_view, std::string_view) {
        if (left-- == 0) ::_exit(1);
      });
      after.to(to);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    done = WEXITSTATUS(status) == 0;
    const ImportResult result =
        import_graph(OnnxFile::open(to), engine_operators(), with_evaluator());
    const double first = result.graph.find_state("w")->start.number(0);
    ASSERT_TRUE(first == old_first || first == new_first) << first;
    (first == old_first ? old_models : new_models) += 1;
    if (!done) continue;
    EXPECT_EQ(files_in(folder.path().string()).size(), 2u);
    // Whatever the name of its weights, the next export replaces them.
    before.to(to);
    EXPECT_EQ(files_in(folder.path().string()).size(), 2u);
    EXPECT_TRUE(std::filesystem::exists(to.string() + ".data"));
  }
  EXPECT_GE(old_models, 8);
  EXPECT_GE(new_models, 3);  // before the sync, before the old weights go, at the end
}

TEST(Export, TheWeightsKeepTheirPermissions) {
  namespace fs = std::filesystem;
  ScratchFolder folder;
  const fs::path to = folder.path() / "model.onnx";
  LargeExport(1).to(to);
  constexpr fs::perms own = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(to.string() + ".data", own);
  const ExportResult written = LargeExport(2).to(to);
  ASSERT_EQ(written.files.size(), 2u);
  EXPECT_NE(written.files[1], to.string() + ".data");
  EXPECT_EQ(fs::status(written.files[1]).permissions(), own);
}

TEST(Export, WrongValues) {
  const OnnxFile file = OnnxFile::open(fixtures() / "mlp_dynamo.onnx");
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "model.onnx";
  const HostTensor one(TensorType{DType::float32, {1}});
  EXPECT_THAT(error_of([&] {
                export_graph(file, engine_operators(), {{"nobody", one}}, to, with_import());
              }),
              HasSubstr("no initializer"));
  EXPECT_THAT(error_of([&] {
                export_graph(file, engine_operators(), {{"0.bias", one}}, to, with_import());
              }),
              HasSubstr("shape"));
  EXPECT_FALSE(std::filesystem::exists(to));
}

}  // namespace
}  // namespace tandem
