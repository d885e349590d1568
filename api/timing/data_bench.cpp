// `tandem data bench`: measures the rate of the loader only, by number of threads, and what limits
// it.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/data_options.h"
#include "api/program/data.h"
#include "engine/data/buckets/bucketed_order.h"
#include "engine/data/buckets/cut_source.h"
#include "engine/data/loader.h"
#include "engine/data/order/sample_order.h"
#include "kernels/cpu/cpu_device.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

using BenchJson = nlohmann::ordered_json;
using BenchClock = std::chrono::steady_clock;

constexpr int slots = 3;  // as in training
constexpr double mebibyte = 1 << 20;
constexpr double least_gain = 1.05;  // more threads are worth it above this gain

struct LoadRate {
  int threads = 0;
  double seconds = 0, samples = 0, bytes = 0;
  StageClock::Seconds stages{};  // per sample, summed over all threads
  double samples_per_second() const { return samples / seconds; }
  double mebibytes_per_second() const { return bytes / mebibyte / seconds; }
};

double bytes_of_sample(const tandem::DataSource& source) {
  double bytes = 0;
  for (const tandem::DataField& field : source.fields())
    bytes += static_cast<double>(field.sample.bytes());
  return bytes;
}

/// 1, 2, 4, …, then `most`.
std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

/// The loader's options as in training.
LoaderOptions loader_options(const RunConfig& config, const DataSets& sets) {
  LoaderOptions options;
  for (std::size_t i = 0; i < sets.train->fields().size(); ++i)
    options.fields.push_back(static_cast<int>(i));
  options.batch_size = config.batch_size;
  options.micro_batch_size = config.micro_batch_size();
  options.drop_last = config.data->drop_last;
  options.seed = config.seed;
  options.ahead = slots;
  std::shared_ptr<const SampleOrder> order = sets.order;
  if (sets.buckets) {
    order = bucketed_order(order, sets.buckets, config.batch_size,
                           config.data->shuffle.kind == ShuffleConfig::Kind::full);
    for (const std::int64_t length : sets.buckets->lengths)
      options.buckets[length] = cut_source(sets.train, sets.buckets->fields, length);
  }
  options.order = std::make_shared<OpenEpochs>(std::move(order), config.seed);
  return options;
}

LoadRate measure_loader(const DataSets& sets, LoaderOptions options, int threads, double seconds,
                        const StopToken& stop) {
  LoadTimes times;
  options.threads = threads;
  options.times = &times;
  std::vector<std::vector<HostTensor>> ring(slots);
  for (std::vector<HostTensor>& slot : ring) {
    for (const tandem::DataField& field : sets.train->fields()) {
      TensorType type = field.sample;
      type.shape.insert(type.shape.begin(), options.micro_batch_size);
      slot.emplace_back(std::move(type));
    }
  }
  Loader loader(sets.train, options, [&](int field, const MicroBatch& micro_batch) {
    return ring[micro_batch.ticket % slots][static_cast<std::size_t>(field)].data();
  });
  LoadRate rate{.threads = threads};
  double all_samples = 0;
  BenchClock::time_point start;
  for (int taken = 0;; ++taken) {
    const std::optional<MicroBatch> micro_batch = loader.next();
    if (!micro_batch || stop.stop_requested()) break;
    loader.release(micro_batch->ticket);
    const auto count = static_cast<double>(micro_batch->own.count);
    all_samples += count;
    if (taken < slots) {  // batches that were ready before the clock started
      start = BenchClock::now();
      continue;
    }
    const tandem::DataSource& from =
        micro_batch->length > 0 ? *options.buckets.at(micro_batch->length) : *sets.train;
    rate.samples += count;
    rate.bytes += count * bytes_of_sample(from);
    rate.seconds = std::chrono::duration<double>(BenchClock::now() - start).count();
    if (rate.seconds >= seconds) break;
  }
  rate.stages = times.seconds();
  for (double& stage : rate.stages) stage /= std::max(all_samples, 1.0);
  return rate;
}

std::size_t bounding_stage(const LoadRate& rate) {
  const auto most = std::max_element(rate.stages.begin(), rate.stages.end());
  return static_cast<std::size_t>(most - rate.stages.begin());
}

/// The smallest number of threads beyond which more threads gain little.
const LoadRate& enough_threads(const std::vector<LoadRate>& rates) {
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    if (rates[i].samples_per_second() > least_gain * rates[chosen].samples_per_second()) chosen = i;
  }
  return rates[chosen];
}

std::string rates_text(const std::vector<LoadRate>& rates) {
  std::string text = fmt::format("{:>8} {:>12} {:>10}", "threads", "samples/s", "MiB/s");
  for (const std::string_view stage : load_stages) text += fmt::format(" {:>10}", stage);
  text += "   (us of a thread for a sample)\n";
  for (const LoadRate& rate : rates) {
    text += fmt::format("{:>8} {:>12.1f} {:>10.1f}", rate.threads, rate.samples_per_second(),
                        rate.mebibytes_per_second());
    for (const double stage : rate.stages) text += fmt::format(" {:>10.2f}", stage * 1e6);
    text += "\n";
  }
  return text;
}

BenchJson rates_json(const std::vector<LoadRate>& rates) {
  BenchJson list = BenchJson::array();
  for (const LoadRate& rate : rates) {
    BenchJson stages;
    for (std::size_t i = 0; i < load_stages.size(); ++i)
      stages[std::string(load_stages[i])] = rate.stages[i] * 1e6;
    list.push_back({{"threads", rate.threads},
                    {"samples_per_second", rate.samples_per_second()},
                    {"mib_per_second", rate.mebibytes_per_second()},
                    {"us_per_sample", std::move(stages)},
                    {"bound", load_stages[bounding_stage(rate)]}});
  }
  return list;
}

}  // namespace

Report data_bench(const std::string& config_path, const DataBenchOptions& options) {
  const RunConfig config = config_with_data(config_path, options.data);
  const DataSets sets = open_data(*config.data, data_opened_with(config, options.data));
  const int most = options.threads > 0 ? options.threads : std::max(1, usable_cores());
  const LoaderOptions loader = loader_options(config, sets);
  std::vector<LoadRate> rates;
  for (const int threads : thread_counts(most)) {
    const LoadRate rate = measure_loader(sets, loader, threads, options.seconds, options.data.stop);
    if (options.data.stop.stop_requested())
      throw Error(ErrorKind::runtime, Diagnostic{.message = "interrupted"});
    rates.push_back(rate);
  }
  const LoadRate& enough = enough_threads(rates);
  const std::size_t bound = bounding_stage(enough);
  const double whole = std::accumulate(enough.stages.begin(), enough.stages.end(), 0.0);
  const double bytes = bytes_of_sample(*sets.train);
  const double part = whole > 0 ? enough.stages[bound] / whole : 0;
  std::string text = fmt::format(
      "{}: {} samples, {} fields, {:.0f} bytes a sample, batches of {}\n", config.data->kind_name(),
      sets.train->samples(), sets.train->fields().size(), bytes, config.micro_batch_size());
  text += rates_text(rates);
  text += fmt::format(
      "bound by {}: {:.0f} % of the time of the threads; data.workers = {} gives {:.1f} samples/s",
      load_stages[bound], 100 * part, enough.threads, enough.samples_per_second());
  BenchJson json{{"kind", config.data->kind_name()}, {"samples", sets.train->samples()},
                 {"bytes_per_sample", bytes},        {"batch_size", config.micro_batch_size()},
                 {"runs", rates_json(rates)},        {"bound", load_stages[bound]},
                 {"workers", enough.threads}};
  return {text, json.dump(2, ' ', false, BenchJson::error_handler_t::replace)};
}

}  // namespace tandem::api
