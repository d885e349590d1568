#include "engine/train/loading/load_weights.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/formats/transposed_matrix.h"
#include "engine/graph/shard_conversion.h"

namespace tandem {
namespace {

/// The value for a state. For a sharded table only this rank's rows are made where the file has it
/// as pages; other tensors are whole for a while.
HostTensor value_for(const WeightsFile& file, const WeightsMatch::Pair& pair) {
  const State& state = *pair.state;
  const DType as = state.shard ? state.shard->whole.dtype : state.start.dtype();
  if (state.shard && !pair.transposed) {
    if (const std::optional<HostTensor> whole = file.pages(pair.in_file)) {
      StateShard in_file = *state.shard;
      in_file.whole.dtype = whole->dtype();
      return part_of(*whole, in_file).converted(as);
    }
  }
  HostTensor value = file.read(pair.in_file, as);
  if (pair.transposed) value = transposed_matrix(value);
  return state.shard ? part_of(value, *state.shard) : value;
}

Diagnostic misfit(const LoadRule& rule, WeightsMatch& match) {
  const std::size_t count = match.differences.size();
  Diagnostic d = at(rule.where, "",
                    rule.from + " does not fit the model in " + std::to_string(count) +
                        (count == 1 ? " place:\n" : " places:\n") +
                        difference_table(match.differences) + "\n");
  d.fix = match.fix.empty() ? "rename, strip and add match the file's names; missing, unexpected "
                              "and other_shape say what may differ"
                            : std::move(match.fix);
  return d;
}

}  // namespace

std::vector<std::string> load_weights(const LoadRule& rule, const Graph& graph,
                                      const LoadingParts& parts, const WriteState& write,
                                      std::vector<Diagnostic>& problems) {
  const std::unique_ptr<WeightsFile> file = open_weights(rule.from, parts.open);
  WeightsMatch match = match_weights(*file, rule, graph, parts);
  std::vector<std::string> notes;
  if (match.covered == 0)
    problems.push_back(at(rule.where, "", "\"" + rule.at + "\" matches no parameter"));
  if (!match.differences.empty()) {
    problems.push_back(misfit(rule, match));
    return notes;
  }
  for (const WeightsMatch::Pair& pair : match.pairs)
    write(pair.state->name, value_for(*file, pair));
  notes.push_back("loaded " + std::to_string(match.pairs.size()) + " parameters from " + rule.from);
  for (const std::string& note : match.notes) notes.push_back(rule.from + ": " + note);
  for (const std::string& note : file->notes()) notes.push_back(rule.from + ": " + note);
  return notes;
}

}  // namespace tandem
