// What one import knows while it goes through the file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/builder.h"
#include "importer/batch/sample_traits.h"
#include "importer/file/onnx_content.h"
#include "importer/import_graph.h"
#include "importer/paths.h"

namespace tandem::importer {

struct ChosenRows;      // importer/chosen_rows.h
struct CountedExtents;  // importer/chosen_rows.h

/// The value that an ONNX name refers to.
struct Term {
  TensorType type;
  ValueId id;                                         // -1: not placed in the graph (yet)
  std::shared_ptr<const HostTensor> constant;         // known before the run
  std::shared_ptr<const std::vector<Term>> sequence;  // a sequence of tensors instead of a tensor
  std::shared_ptr<const ChosenRows> rows;             // rows that data chooses along an axis
  std::shared_ptr<const CountedExtents> counts;       // which of its integers are numbers of those
  SampleTraits samples;                               // where a batch is bound anew
  std::string key;                                    // in an import by stages: its name there
  bool none = false;                                  // an optional without a value
  bool bad = false;                                   // made by a node that could not be imported

  bool is_constant() const { return constant != nullptr; }
};

/// Shapes and reshape targets of an import with another batch, by value name.
struct BatchRecord {
  std::int64_t batch = 1;      // the batch that the file fixed
  std::int64_t new_batch = 1;  // the batch of this import
  std::unordered_map<std::string, Shape> shapes;
  std::unordered_map<std::string, Ints> targets;
};

/// Where the batch is in a value that a Reshape has made: in this axis, after that many elements of
/// it. 12: the axis counts [12, batch, ...].
struct BatchPlace {
  std::size_t axis = 0;
  std::int64_t before = 1;
};

/// One problem with the Error's parts kept.
struct Report {
  Problem problem;
  Diagnostic diagnostic;
};

/// For people: what is computed more than the file shows, there and at this many more paths.
struct Note {
  std::string path, text;
  int more = 0;
};

struct Session {
  const OnnxFile::Content& file;
  const OperatorSet& operators;
  const ImportOptions& options;
  GraphBuilder builder;

  ModulePaths modules;
  PathCounter paths;
  std::function<void()>
      next_part;  // the nodes made from here on are another operator of the same scope
  std::vector<Report> reports;
  std::vector<Note> notes;
  std::vector<BatchRewrite> rewrites;
  std::unordered_map<std::string, std::string> raw_names;  // the file's names of operators, by path
  BatchRecord record;                                      // shapes and targets of this import
  /// The record of the file's own batch, where it is re-bound.
  const BatchRecord* old_batch = nullptr;
  std::map<std::pair<std::int32_t, Shape>, BatchPlace>
      batch_places;        // not in front of their axis; by operand of the Reshape and its target
  std::int64_t nodes = 0;  // lowered so far
  std::int64_t file_nodes = 0;  // nodes of the file itself, without those inside functions
  int scopes = 0;               // numbers the names inside function calls
  std::unordered_map<const HostTensor*, std::pair<std::shared_ptr<const HostTensor>, ValueId>>
      placed;                                           // constants that are in the graph
  std::unordered_map<std::string, std::size_t> states;  // by initializer: index in the graph
  StageImport stage;                                    // what an import by stages needs and gives
  std::map<std::string, ValueId> stage_outputs;         // by key: what its requests read
  std::map<std::string, ValueId> stage_inputs;          // by key: what earlier stages made
  /// Masks of chosen rows, by what made them.
  std::map<std::vector<std::int64_t>, ValueId> row_masks;
  std::size_t asked = 0;  // how often a node could not be lowered before more is known
  int looking = 0;        // at bodies of nodes that are not lowered: they ask for nothing
  std::vector<BatchNormUse> batch_norms;
  bool widens = false;  // what has 16 bits in the file is float32 in the graph

  Session(const OnnxFile::Content& content, const OperatorSet& set,
          const ImportOptions& constraints)
      : file(content),
        operators(set),
        options(constraints),
        builder(set),
        modules(*content.model) {}

  /// The value in the graph; constants are placed on first use.
  ValueId place(const Term& term);
  Term constant(HostTensor tensor) const;
  Term value(ValueId id) const;
  /// The type in the graph of what has that type in the file.
  DType type_in_graph(DType in_file) const {
    const bool is_half = in_file == DType::float16 || in_file == DType::bfloat16;
    return widens && is_half ? DType::float32 : in_file;
  }
  /// Runs an operator: on constants now where that is cheap enough, else as a node of the graph.
  std::vector<Term> apply(std::string_view op, const std::vector<Term>& inputs,
                          const Attributes& attributes);
  void report(const char* kind, const std::string& op, Diagnostic diagnostic);
  void note(const std::string& path, const std::string& text);

  // Imports by stages
  /// What an earlier stage has made under this key: an input of the graph, or a constant once its
  /// value has to be known.
  Term stage_input(const std::string& key);
  /// Where earlier stages have computed what `key` names, that takes the place of the term. Inputs
  /// and states keep the key that they have: they are not computed under another one.
  void settle(const std::string& key, Term& term);
  void request(StageRequest request, const std::vector<Term>& reads);
  /// The next stage reads this term.
  void carry(const Term& term);

 private:
  bool fold(std::string_view op, const std::vector<Term>& inputs, const Attributes& attributes,
            std::vector<Term>& outputs);
  void check_size(const TensorType& type, std::string_view op) const;
};

/// Names visible to a list of nodes.
struct Scope {
  const Scope* outer = nullptr;  // scope around a graph in a node; functions have none
  const Opsets* opsets = nullptr;
  std::unordered_map<std::string, Term> names;
  /// Attributes of the function call.
  std::unordered_map<std::string, const onnx::AttributeProto*> attributes;
  std::string path;    // path of the function call or of one run of a body; "" in the main graph
  std::string module;  // scope of the node that has the body, which names in it may repeat
  std::string prefix;  // makes value names of this scope unique in records
  std::string key;     // in front of value names: the same in each import by stages
  bool main = false;
  bool in_function = false;
  bool fixed_path = false;  // ONNX's own definition of an operator: all its parts have its path
  int depth = 0;

  const Term* find(const std::string& name) const {
    const auto at = names.find(name);
    if (at != names.end()) return &at->second;
    return outer != nullptr ? outer->find(name) : nullptr;
  }
};

/// What a value is called in the graph. A loss that names chosen rows would take what was not
/// chosen as well: they have no name of the file's.
inline std::string name_in_graph(const std::string& name, const Term& term) {
  return term.rows ? name + " (chosen)" : name;
}

/// What names a node in keys of stages: the first output that it has; "" if none.
std::string first_output(const onnx::NodeProto& node);

/// The scope of a graph inside of a node, which sees what is around it.
Scope inside(const Scope& outer, Session& session);

}  // namespace tandem::importer
