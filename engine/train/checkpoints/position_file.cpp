// state.json: what a checkpoint has besides tensors.
#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/formats/run_format.h"
#include "engine/train/checkpoints/checkpoint_format.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *larger = "larger", *smaller = "smaller";
constexpr std::uint64_t most_samples = std::uint64_t{1} << 62;
constexpr std::size_t most_entries = 1'000'000, longest_name = 65536;

void expect_at_most(const JsonItem& entries, std::size_t most) {
  if (entries.size() > most) entries.refuse("too many entries", fmt::format("at most {}", most));
}

/// Texts by name; without the key there are none.
template <class Read>
auto entries_of(const JsonItem& root, const char* key, Read read) {
  std::map<std::string, decltype(read(root))> entries;
  const std::optional<JsonItem> found = root.find(key);
  if (!found) return entries;
  expect_at_most(*found, most_entries);
  for (const auto& [name, item] : found->object()) {
    if (name.empty() || name.size() > longest_name)
      item.refuse("not a name", fmt::format("1 to {} bytes", longest_name));
    entries.emplace(name, read(item));
  }
  return entries;
}

void read_best(const JsonItem& best, TrainingPosition& p) {
  p.best = best.at("value").number(std::numeric_limits<double>::lowest(),
                                   std::numeric_limits<double>::max());
  p.best_step = best.at("step").natural(1, p.evaluated);
  const JsonItem metric = best.at("metric");
  p.best_metric = metric.text();
  if (p.best_metric.empty()) metric.refuse("not the name of a metric");
  const JsonItem better = best.at("better");
  const std::string which = better.text();
  if (which != larger && which != smaller)
    better.refuse("not a value that can be here", "larger or smaller");
  p.larger_is_better = which == larger;
  p.best_measures = entries_of(best, "measures", [](const JsonItem& item) { return item.text(); });
}

std::vector<BatchStretch> read_batches(const JsonItem& list, const TrainingPosition& p) {
  expect_at_most(list, most_entries);
  std::vector<BatchStretch> batches;
  for (const JsonItem& item : list.list()) {
    const std::uint64_t from = batches.empty() ? 0 : batches.back().from_step + 1;
    BatchStretch stretch;
    stretch.from_step = item.at("from_step").natural(from, batches.empty() ? 0 : p.step);
    stretch.batch_size = static_cast<std::int64_t>(item.at("batch_size").natural(1));
    stretch.samples = static_cast<std::int64_t>(item.at("samples").natural(1));
    stretch.drop_last = item.at("drop_last").boolean();
    batches.push_back(stretch);
  }
  if (batches.empty()) list.refuse("the batch size of the run is missing", "an entry");
  if (batches.back().batch_size != p.batch_size)
    list.refuse("ends with another batch_size", std::to_string(p.batch_size));
  return batches;
}

/// The place of a run is where its batches lead.
void expect_place_of_batches(const JsonItem& root, const TrainingPosition& p) {
  DataPosition at;
  std::uint64_t seen = 0;
  const JsonItem list = root.at("batches"), data = root.at("data");
  for (std::size_t i = 0; i < p.batches.size(); ++i) {
    const BatchStretch& stretch = p.batches[i];
    const std::uint64_t end = i + 1 < p.batches.size() ? p.batches[i + 1].from_step : p.step;
    const std::optional<StepsTaken> taken = after_steps(
        at, end - stretch.from_step, stretch.samples, stretch.batch_size, stretch.drop_last);
    if (!taken || taken->samples > most_samples - seen)
      list.items()[i].refuse("no run can have made steps of these batches");
    at = taken->end;
    seen += taken->samples;
  }
  constexpr const char* another = "not the position after the batches of the run";
  if (p.data.epoch != at.epoch) data.at("epoch").refuse(another, std::to_string(at.epoch));
  if (p.data.sample != at.sample) data.at("sample").refuse(another, std::to_string(at.sample));
  if (p.samples != seen)
    root.at("samples").refuse("not the samples of the run's batches", std::to_string(seen));
}

// A step takes at least one sample, an epoch at least one step.
void expect_counts_that_fit(const JsonItem& root, const TrainingPosition& p) {
  const auto epoch = static_cast<std::uint64_t>(p.data.epoch),
             sample = static_cast<std::uint64_t>(p.data.sample);
  const JsonItem data = root.at("data"), samples = root.at("samples");
  const std::uint64_t steps = epoch + (sample > 0 ? 1 : 0);
  if (steps > p.step) {
    data.at("epoch").refuse("more epochs than steps", fmt::format("at most {}", p.step));
  }
  const std::uint64_t least = std::max(p.step, epoch + sample);
  if (p.samples < least || (p.step == 0 && p.samples > 0)) {
    samples.refuse("not a possible number of samples after this many steps",
                   p.step == 0 ? "0" : fmt::format("at least {}", least));
  }
}

/// What evaluations have made of learning rates.
PlateauStates read_plateaus(const JsonItem& root, std::uint64_t evaluations) {
  constexpr double most = std::numeric_limits<double>::max();
  return entries_of(root, "plateaus", [&](const JsonItem& item) {
    PlateauState state;
    state.scale = item.at("scale").number(0, 1);
    if (const auto best = item.find("best")) state.best = best->number(-most, most);
    state.bad_evaluations =
        static_cast<std::int64_t>(item.at("bad_evaluations").natural(0, evaluations));
    state.cooldown = static_cast<std::int64_t>(item.at("cooldown").natural());
    return state;
  });
}

}  // namespace

std::string position_text(const TrainingPosition& p) {
  Json json;
  json["format"] = run_format;
  json["step"] = p.step;
  json["data"] = {{"epoch", p.data.epoch}, {"sample", p.data.sample}};
  json["samples"] = p.samples;
  json["seed"] = p.seed;
  json["held_out"] = p.held_out;
  json["batch_size"] = p.batch_size;
  for (const BatchStretch& stretch : p.batches) {
    json["batches"].push_back({{"from_step", stretch.from_step},
                               {"batch_size", stretch.batch_size},
                               {"samples", stretch.samples},
                               {"drop_last", stretch.drop_last}});
  }
  if (p.best) {
    json["best"] = {{"value", *p.best},
                    {"step", p.best_step},
                    {"metric", p.best_metric},
                    {"better", p.larger_is_better ? larger : smaller}};
    if (!p.best_measures.empty()) json["best"]["measures"] = p.best_measures;
  }
  json["evaluations_without_better"] = p.evaluations_without_better;
  json["evaluated"] = p.evaluated;
  if (p.skipped_in_a_row > 0) json["skipped_in_a_row"] = p.skipped_in_a_row;
  json["finished"] = p.finished;
  if (!p.vocabularies.empty()) json["vocabularies"] = p.vocabularies;
  if (!p.optimizers.empty()) json["optimizers"] = p.optimizers;
  if (!p.functions.empty()) json["functions"] = p.functions;
  if (!p.thawed.empty()) json["thawed"] = p.thawed;
  if (!p.missed_steps.empty()) json["missed_steps"] = p.missed_steps;
  if (!p.frozen.empty()) json["frozen"] = p.frozen;
  for (const auto& [name, state] : p.plateaus) {
    Json& plateau = json["plateaus"][name];
    plateau = {{"scale", state.scale},
               {"bad_evaluations", state.bad_evaluations},
               {"cooldown", state.cooldown}};
    if (state.best) plateau["best"] = *state.best;
  }
  return json.dump(2) + "\n";
}

TrainingPosition read_position(const std::string& file) {
  const JsonFile json(file);
  const JsonItem root = json.root();
  expect_run_format(root);
  TrainingPosition p;
  p.step = root.at("step").natural(0, most_checkpoint_step);
  p.data.epoch = static_cast<std::int64_t>(root.at("data").at("epoch").natural());
  p.data.sample = static_cast<std::int64_t>(root.at("data").at("sample").natural());
  p.samples = root.at("samples").natural(0, most_samples);
  p.seed = root.at("seed").natural();
  const JsonItem held_out = root.at("held_out");
  p.held_out = held_out.number(0, 1);
  if (p.held_out == 1) held_out.refuse("all samples are held out", "less than 1");
  p.batch_size = static_cast<std::int64_t>(root.at("batch_size").natural(1));
  p.batches = read_batches(root.at("batches"), p);
  p.evaluated = root.at("evaluated").natural(0, p.step);
  if (const auto best = root.find("best")) read_best(*best, p);
  p.evaluations_without_better = static_cast<std::int64_t>(
      root.at("evaluations_without_better").natural(0, p.best ? p.evaluated - p.best_step : 0));
  if (const auto skipped = root.find("skipped_in_a_row"))
    p.skipped_in_a_row = static_cast<std::int64_t>(skipped->natural(0, p.step));
  p.finished = root.at("finished").boolean();
  p.vocabularies = entries_of(root, "vocabularies", [](const JsonItem& i) { return i.sha256(); });
  p.optimizers = entries_of(root, "optimizers", [](const JsonItem& i) { return i.text(); });
  p.functions = entries_of(root, "functions", [](const JsonItem& i) { return i.any_text(); });
  p.thawed = entries_of(root, "thawed", [](const JsonItem& i) { return i.boolean(); });
  p.missed_steps = entries_of(root, "missed_steps", [&](const JsonItem& item) {
    return static_cast<std::int64_t>(item.natural(1, p.step));
  });
  p.frozen = entries_of(root, "frozen", [](const JsonItem& i) { return i.sha256(); });
  p.plateaus = read_plateaus(root, p.step);
  expect_counts_that_fit(root, p);
  expect_place_of_batches(root, p);
  return p;
}

}  // namespace tandem
