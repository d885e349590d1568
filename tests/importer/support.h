// What the importer's tests share: models made in code, evaluation on reference kernels, scratch
// folders.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "importer/file/onnx_file.h"
#include "importer/import_graph.h"
#include "onnx/onnx_pb.h"

namespace tandem::testing {

const OperatorSet& engine_operators();
/// Reference kernels, row-major.
Evaluator reference_evaluator();

using NamedTensors = std::vector<std::pair<std::string, HostTensor>>;
/// The outputs of the graph, node by node on reference kernels; states have their start values.
/// Throws std::runtime_error naming the node if no kernel accepts it.
NamedTensors run_graph(const Graph& graph, const NamedTensors& inputs);
/// How many nodes of the operator the graph has.
std::int64_t count_nodes(const Graph& graph, const std::string& op);

/// The file of a model in ONNX's text form.
std::string model_bytes(const std::string& text);

/// Options that fold with reference kernels.
ImportOptions with_evaluator(ImportOptions options = {});

/// A model in the making: opset 20, IR 10, one graph.
class ModelMaker {
 public:
  explicit ModelMaker(int opset = 20);
  ModelMaker& input(const std::string& name, const std::vector<std::int64_t>& shape,
                    std::int32_t type = onnx::TensorProto::FLOAT);
  ModelMaker& free_input(const std::string& name, const std::vector<std::string>& dims,
                         std::int32_t type = onnx::TensorProto::FLOAT);
  ModelMaker& output(const std::string& name);
  ModelMaker& weight(const std::string& name, const std::vector<std::int64_t>& shape,
                     float first = 0.5f);
  ModelMaker& integers(const std::string& name, const std::vector<std::int64_t>& values);
  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs);
  OnnxFile file(const FileLimits& limits = {}) const;
  std::string bytes() const { return model.SerializeAsString(); }

  onnx::ModelProto model;
  onnx::GraphProto& graph() { return *model.mutable_graph(); }
};

void set(onnx::NodeProto& node, const std::string& name, std::int64_t value);
void set(onnx::NodeProto& node, const std::string& name, double value);
void set(onnx::NodeProto& node, const std::string& name, const std::string& value);
void set(onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values);

/// The message of the Error that `body` throws; "" and a test failure if it throws none, a test
/// failure too if it has another kind.
std::string error_of(const std::function<void()>& body, ErrorKind kind = ErrorKind::usage);

/// A folder of its own, gone at the end of the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

std::filesystem::path fixtures();  // tests/data/parity
/// A folder named by an environment variable, else `fallback` if it exists, else empty.
std::filesystem::path folder_from(const char* variable, const std::filesystem::path& fallback);

}  // namespace tandem::testing
