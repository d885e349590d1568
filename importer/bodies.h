// Graphs inside of nodes: branches and bodies of loops, lowered into the graph around them.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "importer/node_context.h"

namespace tandem::importer {

/// A graph inside of a node, whose nodes can be lowered as often as it runs.
class Body {
 public:
  Body(NodeContext& node, const char* attribute);

  const onnx::GraphProto& graph() const { return graph_; }
  std::size_t input_count() const { return static_cast<std::size_t>(graph_.input_size()); }
  std::size_t output_count() const { return static_cast<std::size_t>(graph_.output_size()); }
  /// What its nodes read of the graph around it.
  std::vector<Term> captured() const;
  /// The outputs of one run, of which some may be bad. `part` is the run's own part of the paths:
  /// "0" gives LOOP.0.OPERATOR; "" gives the paths that nodes next to the LOOP have.
  std::vector<Term> run(const std::vector<Term>& inputs, const std::string& part);

  /// One run that counts only where `condition`, a boolean scalar that depends on data, is `taken`:
  /// elsewhere its operators see zeros, and no gradient leaves it, be it not a number.
  std::vector<Term> run_where(const Term& condition, bool taken, const std::vector<Term>& inputs,
                              const std::string& part);

 private:
  using Names = std::unordered_map<std::string, Term>;

  std::vector<Term> run(const std::vector<Term>& inputs, const std::string& part, Names captured);

  NodeContext& node_;
  const onnx::GraphProto& graph_;
  std::string attribute_;
  bool is_tame_ = false;
  std::vector<bool> repeats_;  // by node: each run has the results of the first one
  Names kept_;                 // initializers and what such nodes made
  bool is_first_ = true;
};

/// Lowers the same nodes many times: refuses more than a tenth of the nodes that a file may have.
/// In an import by stages it ends after a run that has to wait for the next stage.
class Unrolling {
 public:
  explicit Unrolling(NodeContext& node);
  /// To be called before each run of a body. False where an earlier run had nodes that could not be
  /// imported.
  bool next();
  bool is_sound() const;

 private:
  std::size_t problems() const;

  NodeContext& node_;
  std::int64_t first_node_;
  std::size_t problems_;
};

/// Checks that nodes which run whatever the condition is change no state: `check` refuses changes
/// made after this object.
class StateGuard {
 public:
  explicit StateGuard(NodeContext& node);
  void check() const;

 private:
  NodeContext& node_;
  std::vector<ValueId> finals_;
};

/// `x` where the condition is true, else `y`. Refuses what differ in type or in shape; `what` names
/// it.
Term choose(NodeContext& node, const Term& condition, const Term& x, const Term& y,
            const std::string& what);

/// The condition as a boolean scalar.
Term scalar_condition(NodeContext& node, const Term& condition);

/// Sets output i to a value that nodes since `first_node` made, or that was there before.
void out_of_body(NodeContext& node, std::size_t i, Term term, std::size_t first_node);
void out_bad(NodeContext& node);

/// Parts of extent 1 along an axis, without that axis.
std::vector<Term> unstacked(NodeContext& node, const Term& x, std::int64_t axis);
/// The parts along a new axis.
Term stacked(NodeContext& node, std::vector<Term> parts, std::int64_t axis);

}  // namespace tandem::importer
