// Batches for models/dlrm, whose graph splits the ids of its tables.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "tests/harness/folders.h"

namespace tandem::testing {

inline const std::string dlrm_model = source_folder() + "/models/dlrm/model.onnx";
constexpr std::int64_t dlrm_batch = 48;

/// Small ids occur many times.
inline std::map<std::string, HostTensor> dlrm_feeds(int step) {
  std::mt19937 random(static_cast<unsigned>(step) + 3);
  std::normal_distribution<float> normal;
  std::vector<float> dense(dlrm_batch * 13), labels(dlrm_batch);
  for (float& number : dense) number = normal(random);
  for (float& label : labels) label = normal(random) < -0.5f ? 1.0f : 0.0f;
  std::vector<std::int64_t> ids(dlrm_batch * 26);
  for (std::int64_t& id : ids)
    id = std::min<std::int64_t>(99, static_cast<std::int64_t>(std::abs(normal(random)) * 9));
  return {{"dense", HostTensor::from<float>({dlrm_batch, 13}, dense)},
          {"categories", HostTensor::from<std::int64_t>({dlrm_batch, 26}, ids)},
          {"label", HostTensor::from<float>({dlrm_batch, 1}, labels)}};
}

/// Keys of train.toml; `kind`: the optimizer of the tables.
inline std::vector<std::string> dlrm_settings(const std::string& kind,
                                              const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{
      "loss.terms=[{name=\"loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
      "labels=\"label\"}]",
      "optimizer.kind=adam", "optimizer.groups=[{at=\"tables.*:weight\", kind=\"" + kind + "\"}]",
      "optimizer.lr=0.01"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

}  // namespace tandem::testing
