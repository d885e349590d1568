#include "engine/train/loop/histogram_log.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

/// Histogram of the whole state: by rows, where they can be reached without a copy of all.
Histogram histogram_of(const StateStore& states, const std::string& name) {
  constexpr std::size_t most_bytes = std::size_t{16} << 20;  // rows copied at once
  Histogram histogram;
  const auto take = [&](const HostTensor& values) {
    if (values.dtype() == DType::float32) {
      histogram.add(values.as<float>());
      return;
    }
    for (std::int64_t i = 0; i < values.type().elements(); ++i) histogram.add(values.number(i));
  };
  const TensorType& type = states.type(name);
  if (type.shape.empty() || type.elements() == 0 || !states.has_direct_rows(name)) {
    take(states.read(name));
    return histogram;
  }
  const std::int64_t rows = row_count(type);
  const std::size_t row_bytes = type.bytes() / static_cast<std::size_t>(rows);
  const auto at_once = std::max<std::int64_t>(1, static_cast<std::int64_t>(most_bytes / row_bytes));
  for (std::int64_t first = 0; first < rows; first += at_once) {
    TensorType part = type;
    part.shape[0] = std::min(at_once, rows - first);
    HostTensor values(part);
    states.read_rows(name, first, part.shape[0], values.data());
    take(values);
  }
  return histogram;
}

}  // namespace

HistogramLog::HistogramLog(const Run& run) {
  std::vector<std::string> paths;
  std::vector<const State*> parameters;
  for (const State& state : run.runner->main_program().program->lowered().graph.states) {
    if (state.kind != StateKind::parameter || !state.derived.is_saved()) continue;
    parameters.push_back(&state);
    paths.push_back(state.path);
  }
  const std::vector<std::string>& asked = run.config.log.histograms;
  std::vector<bool> is_used(asked.size(), false);
  const std::vector<Selector> selectors(asked.begin(), asked.end());
  const ParameterNames names = selectors.empty() ? ParameterNames() : ParameterNames(run.forward());
  for (const State* const parameter : parameters) {
    bool is_chosen = false;
    for (std::size_t i = 0; i < selectors.size(); ++i) {
      if (!names.covers(selectors[i], *parameter)) continue;
      is_chosen = is_used[i] = true;
    }
    if (is_chosen) parameters_.push_back({parameter->name, parameter->path});
  }
  std::vector<Diagnostic> problems;
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    if (is_used[i]) continue;
    Diagnostic& d = problems.emplace_back();
    d.path = "log.histograms";
    d.message = "\"" + selectors[i].text() + "\" matches no parameter";
    d.fix =
        did_you_mean(nearest_name(selectors[i].text(), paths), "`tandem inspect MODEL` lists them");
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

std::vector<std::string> HistogramLog::left_out(const StateStore& states) const {
  std::vector<std::string> paths;
  for (const Parameter& parameter : parameters_) {
    if (states.shard(parameter.name) != nullptr) paths.push_back(parameter.path);
  }
  return paths;
}

void HistogramLog::log(const Run& run) const {
  if (run.rank() > 0 || run.directory->logs().empty()) return;
  for (const Parameter& parameter : parameters_) {
    if (run.states.shard(parameter.name) != nullptr) continue;
    const Histogram histogram = histogram_of(run.states, parameter.name);
    for (const auto& log : run.directory->logs())
      log->add_histogram(run.position.step, parameter.path, histogram);
  }
}

}  // namespace tandem
