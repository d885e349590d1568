// ONNX's own node tests, written as files by a script: imported, evaluated on reference kernels,
// compared.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "engine/graph/error.h"
#include "importer/file/onnx_content.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/all.h"
#include "tests/harness/folders.h"
#include "tests/importer/node_case.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using namespace tandem::testing;

// Operators that import reads and for which ONNX has no case that could pass here, with the reason.
const std::map<std::string, std::string>& without_case() {
  static const std::map<std::string, std::string> operators{
      {"GlobalLpPool", "ONNX has none"},
      {"Multinomial", "ONNX has none"},
      {"MaxRoiPool", "ONNX has none"},
      {"SequenceAt", "there is none"},
      {"SequenceConstruct", "there is none"},
      {"SequenceErase", "there is none"},
      {"ConcatFromSequence", "there is none"},
      {"Optional", "there is none"},
      {"RandomUniform", "its numbers are not reproducible"},
      {"RandomNormal", "its numbers are not reproducible"},
      {"RandomUniformLike", "its numbers are not reproducible"},
      {"RandomNormalLike", "its numbers are not reproducible"},
  };
  return operators;
}

// Whether a case of the operator in a supported type has to pass. Each operator has one that does.
bool is_promised(const onnx::NodeProto& node) {
  return node.domain().empty() && importer::find_lowering(node.op_type()) != nullptr &&
         without_case().count(node.op_type()) == 0;
}

// Cases of promised operators that Tandem refuses, each with the reason that its message has to
// give.
const std::map<std::string, std::string>& refused_cases() {
  static const std::map<std::string, std::string> cases{};
  return cases;
}

struct Outcome {
  enum Kind { passed, failed, refused_type, unsupported } kind = failed;
  std::string why;
};

// Inputs that some node reads as a setting.
std::set<std::string> setting_inputs(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : graph.node()) {
    for (int i = 0; i < node.input_size(); ++i) {
      if (importer::is_setting(node.op_type(), static_cast<std::size_t>(i)))
        names.insert(node.input(i));
    }
  }
  return names;
}

// `of_largest`: zeros by the formula were expected with the rounding error of the largest numbers.
std::string difference_from_expected(const HostTensor& got, const HostTensor& want,
                                     bool of_largest = false) {
  if (!(got.type() == want.type()))
    return fmt::format("type {} instead of {}", to_string(got.type()), to_string(want.type()));
  const bool half = want.dtype() == DType::float16 || want.dtype() == DType::bfloat16;
  const double relative = half ? 1e-2 : 1e-3;
  double absolute = half ? 1e-3 : 1e-7;
  for (std::int64_t i = 0; of_largest && i < want.type().elements(); ++i) {
    absolute = std::max(absolute, 1e-7 * std::abs(want.number(i)));
  }
  for (std::int64_t i = 0; i < want.type().elements(); ++i) {
    const double a = got.number(i), b = want.number(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b || std::abs(a - b) <= absolute + relative * std::abs(b)) continue;
    return fmt::format("element {}: {} instead of {}", i, a, b);
  }
  return "";
}

// ratio, scale and mask where the mask comes from numpy's random numbers.
std::string dropout_difference(const HostTensor& x, const NamedTensors& got, double ratio) {
  std::int64_t kept = 0;
  const HostTensor& y = got[0].second;
  for (std::int64_t i = 0; i < x.type().elements(); ++i) {
    const bool keeps = y.number(i) != 0;
    kept += keeps;
    const double want = keeps ? x.number(i) / (1 - ratio) : 0;
    if (std::abs(y.number(i) - want) > 1e-5 * (1 + std::abs(want)))
      return fmt::format("element {} is not scaled", i);
    if (got.size() > 1 && (got[1].second.number(i) != 0) != keeps)
      return fmt::format("mask of element {}", i);
  }
  const double share = static_cast<double>(kept) / static_cast<double>(x.type().elements());
  return std::abs(share - (1 - ratio)) < 0.2 ? ""
                                             : fmt::format("{} of the elements were kept", share);
}

// Draws of 0 and 1 from numpy's random numbers: the probabilities say how many are 1.
std::string bernoulli_difference(const HostTensor& x, const HostTensor& y, const HostTensor& want) {
  if (!(y.type() == want.type()))
    return fmt::format("type {} instead of {}", to_string(y.type()), to_string(want.type()));
  double mean = 0, variance = 0, ones = 0;
  for (std::int64_t i = 0; i < x.type().elements(); ++i) {
    const double p = x.number(i), value = y.number(i);
    if (value != 0 && value != 1) return fmt::format("element {} is {}", i, value);
    mean += p;
    variance += p * (1 - p);
    ones += value;
  }
  return std::abs(ones - mean) <= 5 * std::sqrt(variance) ? "" : fmt::format("{} are 1", ones);
}

bool has_unsupported_type(const std::string& text) {
  return text.find("element type") != std::string::npos ||
         text.find("not a tensor") != std::string::npos;
}

// Settings may also be computed from inputs: then all integers and single numbers that are fed are
// known, and at last all that is fed.
ImportResult import_case(const OnnxFile& file, ImportOptions options, const NamedTensors& feeds) {
  for (bool with_floats : {false, true}) {
    try {
      return import_graph(file, engine_operators(), options);
    } catch (const Error& error) {
      const std::string why = error.what();
      if (why.find("before the run") == std::string::npos &&
          why.find("data decides") == std::string::npos)
        throw;
    }
    options.constants.clear();
    for (const auto& feed : feeds) {
      if (with_floats || !is_float(feed.second.dtype()) || feed.second.type().elements() == 1)
        options.constants.push_back(feed);
    }
  }
  return import_graph(file, engine_operators(), options);
}

Outcome run_case(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  ImportOptions options = with_evaluator();
  options.batch_norm = "file";
  options.training = name.find("training") != std::string::npos;
  NamedTensors feeds;
  try {
    const NodeCase node_case = read_case(folder);
    const OnnxFile file = OnnxFile::from_bytes(node_case.model.SerializeAsString());
    const onnx::GraphProto& graph = file.content().model->graph();
    for (const auto& [input, tensor] : node_case.feeds)
      feeds.emplace_back(input, importer::read_tensor(tensor, file.content(), input).clone());
    const std::set<std::string> settings = setting_inputs(graph);
    for (const auto& feed : feeds) {
      if (settings.count(feed.first) > 0) options.constants.push_back(feed);
    }
    const ImportResult result = import_case(file, options, feeds);
    const NamedTensors got = run_graph(result.graph, feeds);
    const bool random =
        name.rfind("test_training_dropout", 0) == 0 && name.find("zero_ratio") == std::string::npos;
    if (random) {
      double ratio = 0.5;
      for (const Node& node : result.graph.nodes) {
        if (node.op->name == "Dropout") ratio = node.attributes.number("ratio");
      }
      const std::string why = dropout_difference(feeds[0].second, got, ratio);
      return {why.empty() ? Outcome::passed : Outcome::failed, why};
    }
    if (node_case.wants.size() != static_cast<std::size_t>(graph.output_size()))
      return {Outcome::failed, "no expected output"};
    for (const auto& [output, tensor] : node_case.wants) {
      const HostTensor want = importer::read_tensor(tensor, file.content(), output);
      const auto at = std::find_if(got.begin(), got.end(),
                                   [&output = output](const auto& g) { return g.first == output; });
      const bool is_bernoulli = name.rfind("test_bernoulli", 0) == 0;
      const std::string why =
          at == got.end() ? "the output is missing"
          : is_bernoulli
              ? bernoulli_difference(feeds[0].second, at->second, want)
              : difference_from_expected(at->second, want, name.rfind("test_dft", 0) == 0);
      if (!why.empty()) return {Outcome::failed, output + ": " + why};
    }
    return {Outcome::passed, ""};
  } catch (const Error& error) {
    const std::string text = error.what();
    if (has_unsupported_type(text)) return {Outcome::refused_type, text};
    return {Outcome::unsupported, text};
  } catch (const std::exception& error) {  // no kernel
    return {Outcome::failed, error.what()};
  }
}

/// All cases where TANDEM_ONNX_NODE_TESTS names their folder; else the committed ones, unpacked
/// into a folder that goes with this object.
class Cases {
 public:
  Cases() : root_(folder_from("TANDEM_ONNX_NODE_TESTS", {})) {
    if (!root_.empty()) return;
    root_ =
        std::filesystem::temp_directory_path() / ("tandem-node-tests-" + std::to_string(getpid()));
    own_ = true;
    std::filesystem::create_directories(root_);
    const std::string packed = source_folder() + "/tests/data/onnx_node";
    for (const auto& entry : std::filesystem::directory_iterator(packed)) {
      if (entry.path().extension() != ".gz") continue;
      const std::string command =
          "cd '" + root_.string() + "' && cmake -E tar xzf '" + entry.path().string() + "'";
      EXPECT_EQ(std::system(command.c_str()), 0) << command;
    }
    std::ifstream(packed + "/count.txt") >> packed_;
  }
  ~Cases() {
    if (own_) std::filesystem::remove_all(root_);
  }
  /// How many were packed, or 0 if the cases come from a folder.
  std::size_t packed() const { return packed_; }
  std::vector<std::filesystem::path> folders() const {
    std::vector<std::filesystem::path> folders;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
      if (std::filesystem::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
    }
    std::sort(folders.begin(), folders.end());
    return folders;
  }

 private:
  std::filesystem::path root_;
  bool own_ = false;
  std::size_t packed_ = 0;
};

// The first line, without the file's folder.
std::string reason_of(const std::string& why) {
  const std::string line = why.substr(0, why.find('\n'));
  const std::string file = "/model.onnx: ";
  const std::size_t at = line.find(file);
  return at == std::string::npos ? line : line.substr(at + file.size());
}

// A file lists the cases that do not pass, each with its reason.
void expect_listed(const std::string& left_out) {
  const std::string path = source_folder() + "/tests/data/onnx_node/not_passed.txt";
  if (std::getenv("TANDEM_UPDATE_DOCS") != nullptr) std::ofstream(path) << left_out;
  std::ifstream stream(path);
  const std::string listed{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(left_out, listed) << path << " is old: run tests/check_all/onnx_nodes.sh with "
                              << "TANDEM_UPDATE_DOCS=1";
}

TEST(NodeTests, PromisedOperatorsPass) {
  const Cases cases;
  std::map<Outcome::Kind, int> counts;
  int extra = 0, promised_passed = 0;
  std::set<std::string> proven;
  std::string left_out;
  const std::vector<std::filesystem::path> folders = cases.folders();
  ASSERT_FALSE(folders.empty());
  if (cases.packed() > 0) {
    EXPECT_EQ(folders.size(), cases.packed());
  }
  for (const auto& folder : folders) {
    onnx::ModelProto model;
    std::ifstream stream(folder / "model.onnx", std::ios::binary);
    ASSERT_TRUE(model.ParseFromIstream(&stream));
    const bool must =
        std::all_of(model.graph().node().begin(), model.graph().node().end(), is_promised);
    const std::string name = folder.filename().string();
    const Outcome outcome = run_case(folder);
    ++counts[outcome.kind];
    extra += outcome.kind == Outcome::passed && !must;
    if (outcome.kind == Outcome::passed && must) {
      ++promised_passed;
      for (const onnx::NodeProto& node : model.graph().node()) proven.insert(node.op_type());
    }
    if (outcome.kind == Outcome::passed) continue;
    left_out += fmt::format("{}: {}\n", name, reason_of(outcome.why));
    if (outcome.kind == Outcome::refused_type) continue;
    const auto known = refused_cases().find(name);
    if (known != refused_cases().end()) {
      EXPECT_NE(outcome.why.find(known->second), std::string::npos) << name << ": " << outcome.why;
      continue;
    }
    // Whatever can be imported has to be right.
    EXPECT_FALSE(must || outcome.kind == Outcome::failed) << name << ": " << outcome.why;
  }
  for (const importer::Lowering& lowering : importer::all_lowerings()) {
    EXPECT_NE(proven.count(lowering.op) > 0, without_case().count(lowering.op) > 0)
        << lowering.op
        << ": a case passes, or without_case() says why none can. Cases of an operator that is new "
           "to import are packed by tests/scripts/pack_onnx_node_tests.py";
  }
  if (cases.packed() == 0) expect_listed(left_out);
  fmt::print(
      "node tests: {} cases: {} passed ({} of promised operators, {} beyond them), {} refused by "
      "type, {} unsupported, {} failed\n",
      folders.size(), counts[Outcome::passed], promised_passed, extra,
      counts[Outcome::refused_type], counts[Outcome::unsupported], counts[Outcome::failed]);
}

}  // namespace
}  // namespace tandem
