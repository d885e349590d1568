// The feeds of Wide & Deep, step by step.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "tests/end_to_end/placed_training.h"

namespace tandem::testing {

constexpr std::int64_t wide_deep_batch = 48, wide_deep_fields = 39, wide_deep_rows = 5000;

// Zipf-like ids: small ones occur many times, most rows never.
inline std::vector<std::int64_t> wide_deep_ids(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<std::int64_t> ids(wide_deep_batch * wide_deep_fields);
  for (std::int64_t& id : ids) {
    const double drawn = std::pow(static_cast<double>(wide_deep_rows), uniform(random));
    id = static_cast<std::int64_t>(drawn) - 1;
  }
  return ids;
}

inline PlacedTraining::Feeds wide_deep_feeds(int step) {
  std::mt19937 random(static_cast<unsigned>(step) + 7);
  const std::vector<std::int64_t> ids = wide_deep_ids(random);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<float> labels(wide_deep_batch);
  for (float& label : labels) label = uniform(random) < 0.3 ? 1.0f : 0.0f;
  return {{"ids", HostTensor::from<std::int64_t>({wide_deep_batch, wide_deep_fields}, ids)},
          {"label", HostTensor::from<float>({wide_deep_batch}, labels)}};
}

}  // namespace tandem::testing
