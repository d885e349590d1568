#include "engine/train/checkpoints/best_measures.h"

#include "engine/config/keys/changed_keys.h"
#include "engine/metrics/metric.h"

namespace tandem {

std::map<std::string, std::string> best_measures(const RunConfig& config) {
  if (config.eval.best.empty()) return {};
  RunConfig deciding;
  deciding.eval.weights = config.eval.weights;
  const MetricConfig* const best = config.eval.find(config.eval.best);
  if (best != nullptr) deciding.eval.metrics = {*best};
  if (best == nullptr || best->kind->make == nullptr) deciding.loss = config.loss;  // "loss"
  std::map<std::string, std::string> settings = flat_settings(to_toml(deciding));
  std::erase_if(settings, [](const auto& setting) {
    const std::string& key = setting.first;
    return key != "eval.weights" && !key.starts_with("eval.metrics.") && !key.starts_with("loss.");
  });
  return settings;
}

}  // namespace tandem
