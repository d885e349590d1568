// Labels and lookup indices that come straight from the data: a run checks all of them before its
// first step, a Session those of each step.
#pragma once

#include <memory>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/graph/graph.h"
#include "engine/passes/pass.h"
#include "engine/train/divergence/label_checks.h"

namespace tandem {

/// What the values of fields have to be, determined once for a graph, for checks of any number of
/// sources. Configuration and graph outlive it.
class FieldChecks {
 public:
  FieldChecks(const RunConfig& config, const Graph& forward, const Evaluator& evaluate = {});
  ~FieldChecks();

  /// As check_integer_fields says.
  void check(const DataSource& source) const;

 private:
  struct Found;
  const RunConfig& config_;
  const Graph& forward_;
  std::unique_ptr<const Found> found_;
};

/// Labels of cross-entropy terms must be classes of their logits (or ignored), and at least one of
/// them has to count; those of binary ones from 0 to 1, signs -1 or 1, targets of kl_div no
/// negative numbers; lengths of recurrent layers from 1 to the number of steps; indices of lookups
/// in parameters must be rows of the table, from 0, or, in fields with `out_of_range = "zero"`,
/// name none (absent_id). Reads these fields whole. Throws Error{data} with file:row of the first
/// bad ones. `forward`: the imported graph, for any batch size. `evaluate` computes which columns
/// of an input look up rows of which table, through slices and sums with constants; where it is
/// empty those are not checked.
void check_integer_fields(const RunConfig& config, const Graph& forward, const DataSource& source,
                          const Evaluator& evaluate = {});

/// Means over labels, straight from the data, that losses inside the model take.
std::vector<LabelMean> label_means(const Graph& forward);

/// The rows of the first table that a field's ids look up; 0 where they look up none.
std::int64_t looked_up_rows(const Graph& forward, const std::string& field);

/// The tables that a field's ids look up.
std::vector<std::string> looked_up_tables(const Graph& forward, const std::string& field);

/// Fields with `out_of_range = "zero"` look up zeros in place of what the table lacks: their ids
/// become absent_id. Throws Error{usage} where such a field looks nothing up, where its tables have
/// different numbers of rows, or where casts between it and its lookups leave no such id. Null
/// stays null.
std::shared_ptr<const DataSource> zero_out_of_range(const RunConfig& config, const Graph& forward,
                                                    std::shared_ptr<const DataSource> source);

}  // namespace tandem
