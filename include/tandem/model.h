// What is in a model: inputs, outputs, parameters, and what keeps it from being trained.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tandem/dtype.h"
#include "tandem/error.h"

namespace tandem::api::inline v1 {

/// How a model's file is read.
struct ModelOptions {
  std::vector<std::pair<std::string, std::int64_t>> bind;  ///< free dimensions, e.g. {"batch", 32}
  std::string batch_norm = "train";  ///< of every BatchNormalization; or "inference", or "file": as each of them says
  std::vector<std::string> without;  ///< passes to leave out, of `pass_names`
  /// Numbers of rows of tables, by selector: {"{wide,deep}:weight", 184968}. The last one that covers a table counts.
  std::vector<std::pair<std::string, std::int64_t>> rows;
};
/// An input or an output of a model.
struct ModelPort {
  std::string name;
  std::optional<DType> dtype;                                 ///< none: an output that could not be imported
  std::vector<std::variant<std::int64_t, std::string>> dims;  ///< outermost first; names of free ones, or "?"
};
/// A float initializer of a model.
struct ModelParameter {
  std::string name;  ///< the initializer's, in the file
  std::string path;  ///< by the module that reads it, "fc1:weight": what selectors match
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  bool trains = false, is_buffer = false;           ///< is_buffer: a running statistic
  std::string reason;                               ///< why it trains, or does not
  std::vector<std::string> read_by, further_names;  ///< paths of operators; more paths of its own
};

/// An ONNX model as Tandem reads it. Copies are cheap and share one state that never changes, so that threads may use
/// them at the same time.
class Model {
 public:
  /// Throws Error{usage} where the file cannot be read as a model at all, and for an unknown pass. What only blocks
  /// training is no error: `problems` has it.
  explicit Model(const std::string& path, const ModelOptions& options = {});
  const std::vector<ModelPort>& inputs() const&;  ///< those that are fed
  const std::vector<ModelPort>& outputs() const&;
  const std::vector<ModelParameter>& parameters() const&;  ///< in the order of the file
  /// Everything that blocks training, missing operators first. `path` is that of the first operator that is concerned.
  const std::vector<Diagnostic>& problems() const&;
  const std::string& json() const&;  ///< one object, as docs/formats.md says
  // What a temporary returns is a copy.
  std::vector<ModelPort> inputs() && { return std::as_const(*this).inputs(); }
  std::vector<ModelPort> outputs() && { return std::as_const(*this).outputs(); }
  std::vector<ModelParameter> parameters() && { return std::as_const(*this).parameters(); }
  std::vector<Diagnostic> problems() && { return std::as_const(*this).problems(); }
  std::string json() && { return std::as_const(*this).json(); }
  bool trains() const { return problems().empty(); }
  /// For people. `list_parameters`: each parameter has a line; else they are only counted.
  const std::string& text(bool list_parameters = false) const;
  const std::string& path() const;  ///< that of the file, absolute
  const ModelOptions& options() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Passes that `ModelOptions::without` may name: over the forward graph, then of lowering.
std::vector<std::string> pass_names();

struct InspectOptions : ModelOptions {
  std::string stage;  ///< "" = summary; "graph" | "training" | "placement" | "lowered" | "plan": that stage as text
  bool parameters = false;  ///< the text lists every parameter; else it counts them
};
struct InspectReport {
  std::string text;  ///< for people; a stage is followed by what blocks training, or is only that where it prevents it
  std::string json;  ///< one object, as docs/formats.md says
  bool blocks_training = false;  ///< some operator or gradient is missing
};
/// What `Model` tells, or a stage. Throws as `Model` does, and Error{usage} for an unknown stage.
InspectReport inspect(const std::string& model_path, const InspectOptions& options = {});

}  // namespace tandem::api::inline v1
