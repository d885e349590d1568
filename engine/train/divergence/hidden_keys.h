// Samples in which attention sees no key: masks that depend only on data, computed before a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/graph/graph.h"
#include "engine/passes/pass.h"

namespace tandem {

/// Masks of attention that are computed only from the data: what Attention adds to its scores, and
/// the input of a Softmax that is Add(scores, mask) or Where(mask, scores, -infinity).
class HiddenKeys {
 public:
  /// `forward`: after the forward passes; outlives it, as `evaluate` does. An empty `evaluate`:
  /// nothing is checked.
  HiddenKeys(const Graph& forward, const Evaluator& evaluate);

  /// Checks samples of the source; reads the fields that masks are made of. Samples with equal
  /// masks are checked once, and of very many different ones only the first.
  void add(const DataSource& source);
  /// A sentence for each mask that leaves samples without a key, with the first one's file and row.
  std::vector<std::string> warnings() const;

 private:
  enum class Form : std::uint8_t { added, hides_where_true, hides_where_false };
  /// The result of a query without a key: nan with -infinity at each key; 0 where the operator, or
  /// the model after it, makes it so; the mean of hidden keys where these have finite numbers.
  enum class Result : std::uint8_t { ordinary, mean, zero, nan };
  struct Mask {
    ValueId value;
    Form form = Form::added;
    double hidden = 0;                // the score of a hidden key, where the mask is boolean
    bool gives_zeros = false;         // Attention, and a Softmax whose nan is replaced
    std::vector<std::string> paths;   // operators that read it
    std::vector<std::string> inputs;  // inputs of the graph that it is computed from
  };
  struct Found {
    std::int64_t samples = 0;
    Result result = Result::ordinary;  // the worst of them
    std::string first;                 // file and row
  };

  void find_masks();
  void find_masks(const Node& softmax, ValueId scores, bool gives_zeros, int depth);
  /// False where it is not a mask that depends only on the data.
  bool add_mask(const Node& node, ValueId value, Form form, double hidden, bool gives_zeros);
  bool is_of_data(ValueId value, std::vector<std::string>& inputs) const;
  Result result_of(const Mask& mask, const HostTensor& values, std::int64_t sample,
                   std::int64_t samples) const;

  const Graph& graph_;
  const Evaluator& evaluate_;
  std::vector<Mask> masks_;
  std::vector<Found> found_;  // by mask
  std::int64_t looked_at_ = 0;
};

}  // namespace tandem
