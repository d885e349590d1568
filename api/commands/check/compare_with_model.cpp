// Compares labels and ids of the data with the classes and tables of the model, as a run does
// before its first step.
#include <algorithm>
#include <optional>
#include <utility>

#include "api/commands/check/checked_data.h"
#include "api/model/engine.h"
#include "api/model/model.h"
#include "engine/passes/pass.h"
#include "engine/train/divergence/absent_ids.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/divergence/hidden_keys.h"
#include "engine/train/graph/training_graph.h"

namespace tandem::api {
namespace {

/// Adds the diagnostics that are not among the problems yet.
void add_misfits(const Error& error, CheckedData& to) {
  to.broken = true;
  for (const Diagnostic& d : error.diagnostics()) {
    const std::string text = to_string(d);
    const bool is_known =
        std::any_of(to.problems.begin(), to.problems.end(),
                    [&](const Diagnostic& other) { return to_string(other) == text; });
    if (!is_known) to.problems.push_back(d);
  }
}

}  // namespace

void compare_with_model(const RunConfig& config, const VocabularyRows& rows,
                        const CheckedSources& sources, CheckedData& to) {
  const Engine engine(1);
  std::optional<ConfiguredModel> model;
  Graph graph;
  OpenOptions as_model;
  try {
    model.emplace(engine, config, ConfiguredModelOptions{.rows = rows});
    const Graph& imported = model->micro_batch().graph;
    PassContext context{engine.operators, engine.evaluate, {}, {}};
    graph = run_passes(keep_named_values(imported, config), context);
    as_model = open_options(config, imported);
  } catch (const Error& error) {
    to.notes.push_back("labels and ids are not compared with the model: " +
                       to_string(error.diagnostics().at(0)));
    return;
  }
  HiddenKeys hidden(graph, engine.evaluate);
  AbsentIds absent(config, graph);
  for (const std::shared_ptr<const tandem::DataSource>& source : sources(as_model)) {
    try {
      check_integer_fields(config, graph, *zero_out_of_range(config, graph, source),
                           engine.evaluate);
      hidden.add(*source);
      if (source->samples() > 0)
        absent.add(*source);
      else
        absent.add_ranges(*source);
    } catch (const Error& error) {
      add_misfits(error, to);
    }
  }
  for (std::vector<std::string> more : {absent.warnings(), hidden.warnings()})
    to.warnings.insert(to.warnings.end(), more.begin(), more.end());
}

}  // namespace tandem::api
