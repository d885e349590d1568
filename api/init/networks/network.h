// Kinds of network, each with the optimizer and schedule that it is usually trained with.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/init/draft.h"
#include "api/init/facts.h"

namespace tandem::api {

/// The length of a run, as it was guessed.
struct RunLength {
  std::int64_t batch = 0, steps = 0;
  /// Of a warm-up: a tenth of the run, 1,000 steps at most.
  std::int64_t warmup() const;
};

struct Network {
  std::string_view name;  // for people: "a convolutional network"
  bool (*is)(const ModelFacts& model) = nullptr;
  /// The keys of [optimizer].
  void (*optimize)(const ModelFacts& model, const RunLength& length,
                   GuessedSection& optimizer) = nullptr;
  // Samples of a step: `samples_a_step` of the data set, within these bounds.
  std::int64_t least_batch = 8, most_batch = 128, samples_a_step = 50;
};

/// The first one that a model is.
std::span<const Network> all_networks();
const Network& network_of(const ModelFacts& model);

/// Selectors of these tables: "tables.*:weight" for several that differ in numbers alone.
std::vector<std::string> table_selectors(const ModelFacts& model,
                                         const std::vector<const TableFacts*>& tables);

/// "0.05"
std::string rate(double value);

}  // namespace tandem::api
