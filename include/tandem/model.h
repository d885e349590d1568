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

namespace tandem::api {
inline namespace v1 {

/// How a model's file is read.
struct ModelOptions {
  std::vector<std::pair<std::string, std::int64_t>> bind;  // free dimensions, e.g. {"batch", 32}
  /// The mode of every BatchNormalization: "train", "inference", or "file": as each of them says.
  std::string batch_norm = "train";
  std::vector<std::string> without;  // passes to leave out, of `pass_names`
  /// Tables that get that many rows, by selector: {"{wide,deep}:weight", 184968}. The last one that
  /// covers a table counts.
  std::vector<std::pair<std::string, std::int64_t>> rows;
};

/// An input or an output of a model.
struct ModelPort {
  std::string name;
  std::optional<DType> dtype;  // none: an output that could not be imported
  /// An extent or the name of a free dimension ("?" without one) for each axis, outermost first.
  std::vector<std::variant<std::int64_t, std::string>> dims;
};

/// A float initializer of a model.
struct ModelParameter {
  std::string name;  // the initializer's, in the file
  std::string path;  // by the module that reads it, "fc1:weight": what selectors match
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  bool trains = false, is_buffer = false;           // is_buffer: a running statistic
  std::string reason;                               // why it trains, or does not
  std::vector<std::string> read_by, further_names;  // paths of operators; more paths of its own
};

/// An ONNX model as Tandem reads it. Copies are cheap and share one state that never changes, so
/// that threads may use them at the same time.
class Model {
 public:
  /// Throws Error{usage} where the file cannot be read as a model at all, and for an unknown pass.
  /// What only blocks training is no error: `problems` has it.
  explicit Model(const std::string& path, const ModelOptions& options = {});
  const std::vector<ModelPort>& inputs() const&;  // those that are fed
  std::vector<ModelPort> inputs() && { return static_cast<const Model&>(*this).inputs(); }
  const std::vector<ModelPort>& outputs() const&;
  std::vector<ModelPort> outputs() && { return static_cast<const Model&>(*this).outputs(); }
  const std::vector<ModelParameter>& parameters() const&;  // in the order of the file
  std::vector<ModelParameter> parameters() && {
    return static_cast<const Model&>(*this).parameters();
  }
  /// Everything that blocks training, missing operators first. `path` is that of the first operator
  /// that is concerned.
  const std::vector<Diagnostic>& problems() const&;
  std::vector<Diagnostic> problems() && { return static_cast<const Model&>(*this).problems(); }
  bool trains() const { return problems().empty(); }
  /// For people. `list_parameters`: each parameter has a line; else they are only counted.
  const std::string& text(bool list_parameters = false) const;
  const std::string& json() const&;  // one object, as docs/formats.md says
  std::string json() && { return static_cast<const Model&>(*this).json(); }
  const std::string& path() const;  // that of the file, absolute
  const ModelOptions& options() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Passes that `ModelOptions::without` may name: over the forward graph, then of lowering.
std::vector<std::string> pass_names();

struct InspectOptions : ModelOptions {
  /// "" = summary; "graph" | "training" | "placement" | "lowered" | "plan": that stage as text.
  std::string stage;
  bool parameters = false;  // the text lists every parameter; else it counts them
};
struct InspectReport {
  /// For people. A stage is followed by what blocks training; where that prevents the stage, the
  /// text has only what blocks training.
  std::string text;
  std::string json;              // one object, as docs/formats.md says
  bool blocks_training = false;  // some operator or gradient is missing
};
/// What `Model` tells, or one of its stages. Throws as `Model` does, and Error{usage} for an
/// unknown stage.
InspectReport inspect(const std::string& model_path, const InspectOptions& options = {});

}  // namespace v1
}  // namespace tandem::api
