// Types of network, each with the optimizer and schedule that it is usually trained with.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/init/draft.h"
#include "api/init/facts.h"

namespace tandem::api {

/// The guessed length of a run.
struct RunLength {
  std::int64_t batch = 0, steps = 0;
  bool is_counted = true;  // false: the number of samples is an estimate or a lower bound
  /// Steps of warm-up: a tenth of the run, 1,000 at most.
  std::int64_t warmup() const;
};

struct Network {
  std::string_view name;  // for people: "a convolutional network"
  bool (*is)(const ModelFacts& model) = nullptr;
  /// Sets the keys of [optimizer].
  void (*optimize)(const ModelFacts& model, const RunLength& length,
                   GuessedSection& optimizer) = nullptr;
  // Samples per step: the data set's number of samples / `samples_a_step`, within these bounds.
  std::int64_t least_batch = 8, most_batch = 128, samples_a_step = 50;
};

/// All types, in the order in which they are tried; the first that matches a model is used.
std::span<const Network> all_networks();
const Network& network_of(const ModelFacts& model);

/// Selectors of these tables: "tables.*:weight" for several whose names differ only in numbers.
std::vector<std::string> table_selectors(const ModelFacts& model,
                                         const std::vector<const TableFacts*>& tables);

/// "0.05"
std::string rate(double value);

}  // namespace tandem::api
