// What the import of a model in ONNX's text form reports, as tests/expected/import has it.
#include <gtest/gtest.h>

#include <sstream>

#include "importer/file/onnx_file.h"
#include "tests/harness/expected_output.h"
#include "tests/importer/stages.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

/// The types of the outputs and the notes; or the errors, which each stage has to report alike.
/// Lines of `input`: "--opset N", "--nodes N" (the limit of a file), "--batch_norm WORD", "--batch
/// N" and "--bind NAME=N"; the others are the graph without its name, between
/// the texts "before" and "after".
std::string said_of_import(const ExpectedCase& of, const std::string& input) {
  std::string graph = of.text("before"), opset = "20";
  ImportOptions options = with_evaluator();
  FileLimits limits;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    const std::string option = line.substr(0, space), value = line.substr(space + 1);
    if (option == "--opset") {
      opset = value;
    } else if (option == "--nodes") {
      limits.nodes = std::stoll(value);
    } else if (option == "--batch_norm") {
      options.batch_norm = value;
    } else if (option == "--batch") {
      options.batch = std::stoll(value);
    } else if (option == "--bind") {
      const std::size_t is = value.find('=');
      options.bind.emplace_back(value.substr(0, is), std::stoll(value.substr(is + 1)));
    } else {
      graph += line + "\n";
    }
  }
  const std::string bytes = model_bytes("<ir_version: 10, opset_import: [\"\": " + opset +
                                        "]>\nm " + graph + of.text("after"));
  try {
    const ImportResult result =
        import_graph(OnnxFile::from_bytes(bytes, {}, limits), engine_operators(), options);
    std::string said;
    for (const auto& output : result.graph.outputs)
      said += output.name + ": " + to_string(result.graph.type(output.value)) + "\n";
    for (const std::string& note : result.summary.notes) said += "note: " + note + "\n";
    return said;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    const bool is_plain = input.find("\n--") == std::string::npos;
    if (is_plain || input.ends_with("--opset " + opset)) expect_same_diagnosis(bytes);
    return error.what();
  }
}

class ImportText : public ::testing::TestWithParam<ExpectedCase> {};

TEST_P(ImportText, IsAsExpected) {
  GetParam().check([&](const std::string& input) { return said_of_import(GetParam(), input); });
}

INSTANTIATE_TEST_SUITE_P(, ImportText, ::testing::ValuesIn(expected_cases("import")), name_of_case);

}  // namespace
}  // namespace tandem::testing
