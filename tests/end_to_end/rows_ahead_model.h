// Wide & Deep with its tables on the host, sent as rows; neighbouring steps share rows, or none.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <set>

#include "tests/end_to_end/placed_training.h"
#include "tests/harness/folders.h"

namespace tandem::testing {

using Rows = std::set<std::int64_t>;

constexpr std::int64_t batch_size = 48, fields = 39, table_rows = 5000;
constexpr std::uint64_t row_bytes = 4 * (4 + 1);  // deep and wide table together
inline const std::string model = source_folder() + "/models/wide_deep/model.onnx";

/// Ids of one batch: Zipf-like over rows [first, first + count).
inline std::vector<std::int64_t> zipf_ids(std::mt19937& random, std::int64_t samples,
                                          std::int64_t first, std::int64_t count) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(samples * fields));
  for (std::int64_t& id : ids) {
    const double drawn = std::pow(static_cast<double>(count), uniform(random));
    id = first + std::min(static_cast<std::int64_t>(drawn), count) - 1;
  }
  return ids;
}

inline std::vector<float> labels(std::mt19937& random, std::int64_t samples) {
  std::bernoulli_distribution clicked(0.3);
  std::vector<float> values(static_cast<std::size_t>(samples));
  for (float& label : values) label = clicked(random) ? 1.0f : 0.0f;
  return values;
}

/// The feeds of a step. Neighbouring steps share rows, or none if `apart`.
inline PlacedTraining::Feeds feeds_of(int step, bool apart = false) {
  std::mt19937 random(static_cast<unsigned>(step) + 7);
  const std::int64_t count = apart ? table_rows / 2 : table_rows,
                     first = apart ? step % 2 * count : 0;
  return {{"ids", HostTensor::from<std::int64_t>({batch_size, fields},
                                                 zipf_ids(random, batch_size, first, count))},
          {"label", HostTensor::from<float>({batch_size}, labels(random, batch_size))}};
}

inline Rows rows_of(const PlacedTraining::Feeds& feeds) {
  const auto ids = feeds.at("ids").as<std::int64_t>();
  return {ids.begin(), ids.end()};
}

/// Keys of train.toml: tables on the host, sent as rows; with `lookahead` in the rule if it is
/// given.
inline std::vector<std::string> settings(const std::string& lookahead,
                                         const std::vector<std::string>& more = {},
                                         const std::string& device = "") {
  static int number = 0;
  const std::string path =
      ::testing::TempDir() + "rows_ahead_" + std::to_string(++number) + ".toml";
  std::ofstream(path) << "policy = 1\ndevices = { gpu = { use = \"emulated:0\"" << device
                      << " } }\nrules = [\n  { at = \"**\", on = \"gpu\" },\n"
                      << "  { at = \"{wide,deep}.**\", on = \"cpu\", ship = \"rows\"" << lookahead
                      << " },\n]\n";
  std::vector<std::string> all{
      "loss.terms=[{name=\"wide_loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
      "labels=\"label\"}]",
      "optimizer.kind=adam",
      "optimizer.lr=3e-3",
      "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, l1=1e-8, l2=1e-8, "
      "initial_accumulator=1.0}, {at=\"deep:*\", kind=\"lazy_adam\"}]",
      "data={kind=\"npz\", train={files=[\"none.npz\"]}, eval={files=[\"none.npz\"]}, "
      "fields={ids=\"ids\", label=\"label\"}}",
      "policy=" + path};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline const std::string ahead = ", lookahead = 1";

inline PlacedOptions placed_options() {
  PlacedOptions options;
  options.rows_ahead = true;
  return options;
}

}  // namespace tandem::testing
