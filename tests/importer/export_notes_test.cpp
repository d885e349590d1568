// Notes on files whose export has lost something, over files that PyTorch's exporters wrote; none
// for those that have lost nothing (tests/scripts/export_notes.py).
#include "importer/export_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/harness/folders.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace tandem::testing;

const std::string folder = source_folder() + "/tests/data/exports/";

std::vector<ExportNote> notes_of_file(const OnnxFile& file) {
  return export_notes(file, import_graph(file, engine_operators(), with_evaluator()));
}
std::vector<ExportNote> notes_of(const std::string& name) {
  return notes_of_file(OnnxFile::open(folder + name));
}

std::string text_of(const std::string& name, const std::string& kind) {
  for (const ExportNote& note : notes_of(name)) {
    if (note.kind == kind) return note.text + " | " + note.fix;
  }
  return "";
}

TEST(ExportNotes, AreRightOfEveryFile) {
  std::ifstream stream(folder + "expected.json");
  const auto expected = nlohmann::json::parse(stream);
  ASSERT_GE(expected.size(), 60u);
  for (const auto& [name, of] : expected.items()) {
    SCOPED_TRACE(name);
    bool for_inference = false, untied = false;
    nlohmann::json padding_rows = nlohmann::json::array();
    for (const ExportNote& note : notes_of(name)) {
      for_inference = for_inference || note.kind == "for_inference";
      untied = untied || note.kind == "untied";
      if (note.kind == "padding_row") padding_rows.push_back({note.parameter, note.row});
      EXPECT_FALSE(note.fix.empty());
    }
    EXPECT_EQ(for_inference, of["for_inference"].get<bool>());
    EXPECT_EQ(untied, of["untied"].get<bool>());
    EXPECT_EQ(padding_rows, of["padding_rows"]);
  }
}

TEST(ExportNotes, SayWhatIsLost) {
  EXPECT_THAT(text_of("cnn_norm.dynamo_default.onnx", "for_inference"),
              AllOf(HasSubstr("4 of the model's parameters are not in it (features.1.weight, …)"),
                    HasSubstr("2 BatchNormalizations are folded"),
                    HasSubstr("dynamo=True, optimize=False")));
  EXPECT_THAT(text_of("cnn_norm.torchscript_default.onnx", "for_inference"),
              AllOf(HasSubstr("2 Convs have weights"), HasSubstr("do_constant_folding=False")));
  EXPECT_THAT(text_of("gpt.dynamo_default.onnx", "for_inference"),
              AllOf(HasSubstr("(position.weight, …)"), HasSubstr("does not train")));
  EXPECT_THAT(text_of("gpt.torchscript_default.onnx", "for_inference"),
              AllOf(HasSubstr("computed tensor does not train (onnx::Add_"),
                    HasSubstr("are the same tensors now")));
  EXPECT_THAT(text_of("bag_padding.torchscript.onnx", "padding_row"),
              AllOf(HasSubstr("table:weight: only row 0 is zeros"),
                    HasSubstr("fixed_rows = [ { at = \"table:weight\", rows = [ 0 ] } ]")));
  EXPECT_THAT(text_of("bag_padding.dynamo.onnx", "padding_row"),
              HasSubstr("row 0 is the model's padding_idx"));
}

// An exporter may fold BatchNormalization and leave Dropout where it is.
TEST(ExportNotes, SayNothingOfADropoutThatIsThere) {
  const std::string name = "cnn_norm.torchscript_default.onnx";
  const std::string lost = "Dropout, if the model has it, is gone";
  EXPECT_THAT(text_of(name, "for_inference"), HasSubstr(lost));
  std::ifstream stream(folder + name, std::ios::binary);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromIstream(&stream));
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::NodeProto& head = *graph.mutable_node(graph.node_size() - 1);
  const std::string output = head.output(0);
  ASSERT_EQ(output, graph.output(0).name());
  head.set_output(0, "scores");
  onnx::NodeProto& dropout = *graph.add_node();
  dropout.set_op_type("Dropout");
  dropout.set_name("dropout");
  dropout.add_input("scores");
  dropout.add_output(output);
  const ScratchFolder scratch;
  const auto path = scratch.write("model.onnx", model.SerializeAsString());
  const std::vector<ExportNote> notes = notes_of_file(OnnxFile::open(path));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].kind, "for_inference");
  EXPECT_THAT(notes[0].text, Not(HasSubstr("Dropout")));
}

}  // namespace
}  // namespace tandem
