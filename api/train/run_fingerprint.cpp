#include "api/train/run_fingerprint.h"

#include <utility>

#include <fmt/format.h>

#include "importer/file/structure.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

ModelStructure structure_for(const RunConfig& config, const OnnxFile& file) {
  std::vector<std::string> values;
  for (const LossTerm& term : config.loss.terms) {
    for (const std::string& value : term.values) {
      if (!names_teacher(value)) values.push_back(value);  // it is in another file
    }
  }
  return structure_of(file, values);
}

std::string since(const UsedCheckpoint& used) {
  return fmt::format("step {} of the run was saved", used.position.step);
}

}  // namespace

FingerprintPtr run_fingerprint(const RunConfig& config, const OnnxFile& file,
                               const DataSets& data) {
  Fingerprint result;
  result.program = version();
  result.model = structure_for(config, file);
  result.data = fingerprint_of(*config.data, data);
  return std::make_shared<const Fingerprint>(std::move(result));
}

std::vector<std::string> compare_model(const UsedCheckpoint& used, const RunConfig& config,
                                       const OnnxFile& file) {
  const Fingerprint& before = fingerprint_in(used.position.fingerprint, used.path);
  const ChangedPart model{"model", config.model.file, since(used),
                          "put back the model file that was trained"};
  std::string accepted = accept_or_refuse(
      first_difference(before.model, structure_for(config, file)), model, used.accepts_changes);
  if (accepted.empty()) return {};
  return {std::move(accepted)};
}

std::vector<std::string> compare_held_out(const UsedCheckpoint& used, const DataConfig& data,
                                          std::int64_t samples) {
  const DataFingerprint& before = fingerprint_in(used.position.fingerprint, used.path).data;
  std::optional<Difference> difference;
  if (data.eval_fraction > 0)  // the held-out data is a part of the training data
    difference = first_difference("data.train", before.train, fingerprint_of(data.train));
  if (!difference)
    difference = first_difference("data.eval", before.eval, fingerprint_of(data.eval, samples));
  if (!difference) return {};
  return {fmt::format("the held-out data has changed since {}: {}", since(used),
                      to_string(*difference))};
}

}  // namespace tandem::api
