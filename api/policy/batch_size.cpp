#include "api/policy/batch_size.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/policy/policy_case.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

constexpr std::int64_t largest_power = 1 << 16;

/// Ascending, without duplicates. A batch has at least one sample per rank, and at most all samples
/// of the data.
std::vector<std::int64_t> sizes_to_try(const RunConfig& config, std::int64_t samples, int ranks) {
  std::vector<std::int64_t> sizes = config.batch_choice.sizes;
  if (sizes.empty()) {
    for (std::int64_t size = 1; size <= std::min(samples, largest_power); size *= 2) {
      if (size >= ranks) sizes.push_back(size);
    }
    if (sizes.empty()) sizes.push_back(std::max<std::int64_t>(1, ranks));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

DataSets data_for_plans(const RunConfig& config, const DataOpener& open) {
  if (!config.data) return {};
  const Engine engine(config.threads);
  return ModelData(std::make_shared<ConfiguredModel>(engine, config), open).sets();
}

bool plan_fits(const RunConfig& config, std::int64_t size, const PolicyOptions& options,
               const DataSets& sets) {
  try {
    CaseOptions reads;
    if (sets.train) reads.sets = &sets;
    return PolicyCase(with_batch_size(config, size), options, reads).plan().fits();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::does_not_fit) throw;
    return false;
  }
}

}  // namespace

std::int64_t fitting_batch_size(const RunConfig& config, const PolicyOptions& options,
                                const DataOpener& open) {
  const DataSets sets = data_for_plans(config, open);
  const std::int64_t samples = sets.train ? sets.epoch_samples() : largest_power;
  const std::vector<std::int64_t> sizes = sizes_to_try(config, samples, options.ranks);
  if (!plan_fits(config, sizes.front(), options, sets)) {
    throw Error(ErrorKind::does_not_fit,
                Diagnostic{.message = "no batch size fits the devices",
                           .file = config.file,
                           .path = "batch_size",
                           .expected = "a plan within their memory",
                           .got = std::to_string(sizes.front()) + " needs more",
                           .fix = "`tandem policy plan` shows what takes it"});
  }
  // Memory grows with the batch size, so this bisects between one that fits and one that does not.
  std::size_t fits = 0, too_large = sizes.size();
  while (fits + 1 < too_large) {
    const std::size_t middle = (fits + too_large) / 2;
    (plan_fits(config, sizes[middle], options, sets) ? fits : too_large) = middle;
  }
  return sizes[fits];
}

std::string batch_size_text(const RunConfig& open, std::int64_t size) {
  return fmt::format("batch_size {}: the largest {} whose memory plan fits the devices", size,
                     open.batch_choice.sizes.empty() ? "power of two" : "of the list");
}

RunConfig with_batch_size(RunConfig config, std::int64_t size) {
  config.batch_size = size;
  config.batch_choice = {};
  return config;
}

RunConfig with_fitting_batch_size(RunConfig config, const PolicyOptions& options,
                                  const std::function<void(const std::string&)>& on_message) {
  if (!config.batch_choice.is_open) return config;
  const std::int64_t size = fitting_batch_size(config, options);
  if (on_message) on_message(batch_size_text(config, size));
  return with_batch_size(std::move(config), size);
}

}  // namespace tandem::api
