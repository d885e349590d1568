// ONNX model → Graph in normal form, with the user's dimensions bound; and what `inspect` says
// about it.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "engine/graph/structures/out_of_line.h"
#include "engine/graph/structures/where.h"
#include "engine/operators/operator.h"
#include "engine/passes/adapters/weight_adapters.h"
#include "engine/passes/pass.h"
#include "engine/passes/randomness.h"
#include "importer/file/onnx_file.h"
#include "importer/stages.h"

namespace tandem {

/// Tables for which the file holds a placeholder get `rows` rows, which start at zero. A table that
/// already has that many keeps the file's values.
struct RowsRule {
  std::string at;  // a selector
  std::int64_t rows = 0;
  Where where = {};
};

/// The mode of operators whose path a selector matches. If several rules match, the last one
/// counts.
struct OperatorRule {
  std::string at;
  std::string mode;
};

struct ImportOptions {
  COPIED_OUT_OF_LINE(ImportOptions);

  /// By the names in the file: extents of free dimensions, values of `bindable_inputs`.
  std::vector<std::pair<std::string, std::int64_t>> bind;
  /// Axis 0 of every fed input. 0: as the file says; 1 where the file leaves it free.
  std::int64_t batch = 0;
  /// "train": normalise by the batch in training, whatever the file says; "inference": by the
  /// running statistics; "file": as each node says.
  std::string batch_norm = "train";
  /// False: Dropout passes its input on, BatchNormalization reads the running statistics, and
  /// random numbers that `randomness` of the result says are off are left out.
  bool training = true;
  /// Computes constants. Without it nothing folds, and computed shapes are errors.
  Evaluator evaluate;
  /// Inputs of the graph that are not fed but always have this value.
  std::vector<std::pair<std::string, HostTensor>> constants;
  /// The last rule that covers a parameter counts; only Gather along axis 0 may read it.
  std::vector<RowsRule> rows;
  /// Parameters that get another shape than in the file and start at zero, by name.
  std::map<std::string, Shape> resized;
  /// Nodes that cannot be imported: false throws all of them as one Error at the end, true returns
  /// them in `problems` together with what could be imported.
  bool collect_problems = false;
  /// What has been computed of the batch so far; outlives the import: where data decides extents
  /// the graph ends there (ImportResult::stage). Null: such nodes are problems.
  const StageValues* stage = nullptr;
  /// Rules that replace `batch_norm` for some BatchNormalizations.
  std::vector<OperatorRule> batch_norm_rules;
  /// Random numbers outside of training: "known" leaves out those of a known form, "train" others
  /// too, "always" none. Without a rule "known".
  std::vector<OperatorRule> random_rules;
  /// Buffers that were recognised by name or values and train all the same, as selectors.
  std::vector<std::string> trained_buffers;
  /// Matrices of 16 bits have 16 bits in the graph, too, and Unpack makes them float32 where they
  /// are read; otherwise they are float32.
  bool keeps_16_bits = false;
};

/// Something that keeps a model from being trained.
struct Problem {
  // "unsupported_operator", "bad_operator", "free_dimension", "unsupported_type",
  // "missing_gradient" or "nothing_trainable"
  std::string kind;
  std::string op;    // as the file calls it, other domains than ai.onnx in front: "DOMAIN::NAME"
  std::string path;  // path of the first such node
  std::string reason;
  std::string fix;
  std::int64_t count = 1;  // nodes
};

struct PortSummary {
  std::string name;
  std::string dtype;
  std::vector<std::string> dims;  // as in the file: "batch", "784", "?"
  Shape bound;                    // extents in the graph
  bool has_bound = false;
};

struct ParameterSummary {
  std::string name;  // the initializer's
  std::string path;  // "fc1:weight"
  TensorType type;
  StateKind kind = StateKind::parameter;
  bool in_graph = false;  // a State of the graph; false: a constant, or read by nothing
  bool trainable = false;
  std::string reason;
  bool is_recognised_buffer = false;  // by its name or its values, not by what the file says
  bool trained_by_rule = false;       // it would be, without ImportOptions::trained_buffers
  std::string doubt;                  // why it may be a buffer although it trains
};

/// Weights that are whole numbers of few bits: no step changes them.
struct QuantizedWeights {
  std::int64_t numbers = 0;
  std::string types;                   // "int8, uint4"
  std::vector<std::string> operators;  // types of operators that read them, each once
};

struct ModelSummary {
  std::int64_t ir_version = 0;
  int opset = 0;
  std::string producer;
  std::vector<PortSummary> inputs;  // fed ones
  std::vector<PortSummary> outputs;
  std::vector<ParameterSummary> parameters;       // all float initializers, in the file's order
  std::map<std::string, std::int64_t> operators;  // by type, functions not expanded
  std::int64_t nodes = 0;                         // nodes that were read, functions expanded
  std::vector<Problem> problems;                  // causes first, missing operators before others
  std::vector<std::string>
      notes;  // "PATH and 3 more: what is computed that the file does not show"
};

/// "3 operators are missing (7 of 512 nodes)"; "" where none is.
std::string missing_operators(const ModelSummary& summary);

/// An operator whose constant target held the file's fixed batch and was changed.
struct BatchRewrite {
  std::string output;  // the ONNX value that the operator makes
  Shape old_target;    // all extents known
  std::size_t axis = 0;
  bool in_main_graph = true;
  bool has_free_form = true;  // a target without the batch, as Reshape and Expand have
};

/// A BatchNormalization of the file.
struct BatchNormUse {
  std::string path;
  bool file_trains = false;  // its training_mode, or what older versions have for it
  bool trains = false;       // whether it trains in a training step
};

struct ImportResult {
  COPIED_OUT_OF_LINE(ImportResult);

  Graph graph;
  ModelSummary summary;
  std::vector<BatchRewrite> rewrites;
  /// ONNX node names by path.
  std::unordered_map<std::string, std::string> raw_names;
  /// Other names that the file has for a state: {"head.weight", "token.weight"}.
  std::map<std::string, std::string> aliases;
  std::int64_t file_batch = 0;  // axis 0 of the inputs as fixed in the file; 0 where it is free
  StageImport stage;            // what an import by stages (ImportOptions::stage) gives
  QuantizedWeights quantized;
  std::vector<RandomUse> randomness;  // in the graph, or in what it was before parts were left out
  std::vector<BatchNormUse> batch_norms;
};

/// Parameters and running statistics become states; integer initializers and small computed values
/// constants. The graph is verified and holds nothing that reaches no output.
ImportResult import_graph(const OnnxFile& file, const OperatorSet& operators,
                          const ImportOptions& options);

}  // namespace tandem
