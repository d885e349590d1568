// Operands that hold the batch which the file fixed, as one slice for each sample or as indices of
// the samples: what they become under another batch.
#pragma once

#include "importer/session.h"

namespace tandem::importer {

/// While it lives, operands of one node that have the file's batch along the batch axis, and the
/// same values for every sample of it, have this import's batch in the node's scope; an axis of
/// [samples, entries] has the entries of the file's one sample for each. So have
/// constant indices that name one sample after the other. Only where a batch is bound anew, and
/// where one reading is possible: another operand shows the axis.
class BatchOperands {
 public:
  BatchOperands(Session& session, Scope& scope, const onnx::NodeProto& node,
                const std::string& path);
  ~BatchOperands();
  BatchOperands(const BatchOperands&) = delete;
  BatchOperands& operator=(const BatchOperands&) = delete;

  bool any() const { return !changed_.empty(); }
  /// The node could be lowered with them: export has to know.
  void record();

 private:
  struct Changed {
    std::string name;
    Term before;
    bool is_own = false;  // the scope's own name, none of an outer scope
  };

  void put(const std::string& name, const Term& before, Term now);
  void follow_samples(const std::string& path);

  Session& session_;
  Scope& scope_;
  const onnx::NodeProto& node_;
  std::vector<Changed> changed_;
  std::size_t axis_ = 0;
};

/// Whether all slices of the value along the axis are equal whatever is fed: a constant that
/// repeats itself, or what is made by broadcasting.
bool is_same_along(const Graph& graph, const Term& term, std::size_t axis);

}  // namespace tandem::importer
