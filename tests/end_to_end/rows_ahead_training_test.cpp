// Trainings that fetch rows a step ahead equal those that do not: with partial batches, evaluations
// and checkpoints, with several lookups, and with ids that the model computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/train/loop/trainer.h"
#include "tests/end_to_end/rows_ahead_model.h"
#include "tests/end_to_end/table_model.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/test_hooks.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

/// Whole trainings over arrays in memory, with epochs that end in a smaller batch, evaluations and
/// checkpoints.
class Trainings {
 public:
  struct Ended {
    std::vector<double> losses, evaluations;
    std::vector<std::pair<std::string, std::vector<char>>> states;
    double bytes_per_step = 0;
    std::string run_dir;
  };

  /// `stop`: after that many steps; `resume`: a run directory.
  Ended run(const std::string& lookahead, std::uint64_t stop = 0, const std::string& resume = "",
            const std::vector<std::string>& more = {}) {
    const std::string run_dir = resume.empty() ? folder_ / std::to_string(++runs_) : resume;
    std::vector<std::string> keys{
        "model=\"" + model + "\"",    "batch_size=48",          "steps=20",
        "log.every=\"1 step\"",       "eval.every=\"4 steps\"", "eval.metrics=[\"auc\"]",
        "run_dir=\"" + run_dir + "\""};
    for (const std::string& key : settings(lookahead, more)) keys.push_back(key);
    const RunConfig config = parse_run_config("steps = 1\n", folder_ / "train.toml", keys);
    const api::Engine engine;
    api::PlacedModel open(engine, config);
    Hooks hooks;
    Ended ended;
    std::uint64_t done = 0;
    hooks.on_progress = [&](const TrainingProgress& p) {
      for (const auto& [name, value] : p.values) {
        if (name == (p.evaluation ? "auc" : "loss"))
          (p.evaluation ? ended.evaluations : ended.losses).push_back(value);
      }
      done = p.step;
    };
    hooks.stop_requested = [&] { return stop > 0 && done >= stop; };
    Training training(config, open.run_parts(), data(), hooks.observer());
    ended.run_dir = training.run(resume, {}).run_dir;
    for (const std::string& name : training.states().names()) {
      const HostTensor state = training.states().read(name);
      const auto* bytes = static_cast<const char*>(state.data());
      ended.states.emplace_back(name, std::vector<char>(bytes, bytes + state.bytes()));
    }
    std::ifstream summary(ended.run_dir + "/summary.json");
    if (summary) ended.bytes_per_step = nlohmann::json::parse(summary)["copied_bytes_per_step"];
    EXPECT_EQ(engine.monitor->order_errors(), std::vector<std::string>());
    return ended;
  }

 private:
  static DataSets data() {
    std::mt19937 random(11);
    const auto source = [&](std::int64_t samples) {
      return make_array_source(
          {{"ids", HostTensor::from<std::int64_t>({samples, fields},
                                                  zipf_ids(random, samples, 0, table_rows))},
           {"label", HostTensor::from<float>({samples}, labels(random, samples))}});
    };
    DataSets sets;
    sets.train = source(5 * batch_size + 20);
    sets.eval = source(batch_size + 30);
    return sets;
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

TEST(RowsAhead, WholeTrainingsAreTheSame) {
  Trainings trainings;
  const auto plain = trainings.run(""), fetched = trainings.run(ahead);
  ASSERT_EQ(plain.losses.size(), 20u);
  EXPECT_GE(plain.evaluations.size(), 5u);
  EXPECT_EQ(fetched.losses, plain.losses);
  EXPECT_EQ(fetched.evaluations, plain.evaluations);
  EXPECT_EQ(fetched.states, plain.states) << "also the names: what was fetched is not saved";
  for (const std::uint64_t stop : {1, 5, 6, 13}) {
    SCOPED_TRACE("stopped after step " + std::to_string(stop));
    const auto stopped = trainings.run(ahead, stop);
    const auto resumed = trainings.run(ahead, 0, stopped.run_dir);
    EXPECT_EQ(resumed.states, plain.states);
    std::vector<double> losses = stopped.losses;
    losses.insert(losses.end(), resumed.losses.begin(), resumed.losses.end());
    EXPECT_EQ(losses, plain.losses);
  }
  // A rule that thaws parameters rebuilds the programs in the middle of the run.
  const std::vector<std::string> frozen{"parameters.freeze=[{at=\"mlp.**\", until=\"7 steps\"}]"};
  EXPECT_EQ(trainings.run(ahead, 0, "", frozen).losses, trainings.run("", 0, "", frozen).losses);
}

/// Model of ids int64 ["batch"] -> y float32 ["batch", columns]: rows ids minus rows ids + offset
/// of one table.
void write_two_lookups(const std::string& path, std::int64_t columns, std::int64_t offset) {
  constexpr std::uint64_t float32 = 1, int64 = 7;
  const auto extent = static_cast<std::uint64_t>(columns);
  const auto batch_axis = ProtoWriter().bytes(2, "batch");
  const auto port = [](const std::string& name, std::uint64_t type, const ProtoWriter& shape) {
    const auto tensor = ProtoWriter().number(1, type).message(2, shape);
    return ProtoWriter().bytes(1, name).message(2, ProtoWriter().message(1, tensor));
  };
  const auto node = [](const std::string& op, const std::string& a, const std::string& b,
                       const std::string& y) {
    return ProtoWriter().bytes(1, a).bytes(1, b).bytes(2, y).bytes(3, "/" + y).bytes(4, op);
  };
  std::string bytes(sizeof offset, '\0');
  std::memcpy(bytes.data(), &offset, sizeof offset);
  const auto graph =
      ProtoWriter()
          .message(1, node("Gather", "table.weight", "ids", "first"))
          .message(1, node("Add", "ids", "offset", "others"))
          .message(1, node("Gather", "table.weight", "others", "second"))
          .message(1, node("Sub", "first", "second", "y"))
          .bytes(2, "table")
          .message(5, ProtoWriter()
                          .number(1, 1)
                          .number(1, extent)
                          .number(2, float32)
                          .bytes(8, "table.weight")
                          .bytes(9, std::string(4 * extent, '\0')))
          .message(5,
                   ProtoWriter().number(1, 1).number(2, int64).bytes(8, "offset").bytes(9, bytes))
          .message(11, port("ids", int64, ProtoWriter().message(1, batch_axis)))
          .message(12, port("y", float32,
                            ProtoWriter()
                                .message(1, batch_axis)
                                .message(1, ProtoWriter().number(1, extent))));
  const auto opset = ProtoWriter().bytes(1, "").number(2, 17);
  std::ofstream(path, std::ios::binary)
      << ProtoWriter().number(1, 8).message(7, graph).message(8, opset).text();
}

// Each of a table's two lookups changes rows that the other one reads; the second one's ids are
// computed in the graph from what is fed.
TEST(RowsAhead, TwoLookupsOfATableAndComputedIds) {
  constexpr std::int64_t samples = 24, columns = 5, few_rows = 120, offset = 20;
  TemporaryFolder folder;
  write_two_lookups(folder / "model.onnx", columns, offset);
  const auto feeds = [&](int step) {
    std::mt19937 random(static_cast<unsigned>(step));
    std::uniform_int_distribution<std::int64_t> row(0, few_rows - offset - 1);
    std::normal_distribution<float> normal;
    std::vector<std::int64_t> ids(samples);
    for (std::int64_t& id : ids) id = row(random);
    std::vector<float> targets(samples * columns);
    for (float& target : targets) target = normal(random);
    return PlacedTraining::Feeds{{"ids", HostTensor::from<std::int64_t>({samples}, ids)},
                                 {"t", HostTensor::from<float>({samples, columns}, targets)}};
  };
  const auto run = [&](const std::string& lookahead, const std::string& add_on) {
    std::ofstream(folder / "policy.toml")
        << "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = [\n"
        << "  { at = \"**\", on = \"gpu\" },\n  { at = \"**\", op = \"Add\", on = \"" << add_on
        << "\" },\n  { at = \"**\", op = \"Gather\", on = \"cpu\", ship = \"rows\"" << lookahead
        << " },\n]\n";
    PlacedTraining training(
        folder / "model.onnx", samples,
        {"parameters.shape=[{at=\"table:weight\", rows=" + std::to_string(few_rows) + "}]",
         "loss.terms=[{name=\"mse\", kind=\"mse\", predictions=\"y\", targets=\"t\"}]",
         "optimizer.kind=lazy_adam", "optimizer.lr=0.05", "policy=" + (folder / "policy.toml"),
         "data={kind=\"npz\", train={files=[\"none.npz\"]}, fields={ids=\"ids\", t=\"t\"}}"},
        feeds(1), placed_options());
    std::string text;
    for (const State& state : training.program().lowered().graph.states) {
      if (state.derived.is<PrefetchedRows>()) text += state.name + " ";
    }
    for (const std::string& note : training.program().lowered().notes) text += note + " ";
    std::vector<double> losses;
    for (int step = 1; step <= 20; ++step) {
      const PlacedTraining::Feeds next = feeds(step + 1);
      losses.push_back(training.step(feeds(step), &next));
    }
    training.synchronize();
    EXPECT_EQ(training.monitor().order_errors(), std::vector<std::string>());
    return std::pair(losses, text);
  };
  const auto [plain, no_states] = run("", "cpu");
  EXPECT_THAT(no_states, ::testing::Not(HasSubstr("ahead")));
  EXPECT_NE(plain.front(), plain.back());
  const auto [fetched, states] = run(ahead, "cpu");
  EXPECT_THAT(states, HasSubstr("table.weight/ahead_values "));
  EXPECT_THAT(states, HasSubstr("table.weight/ahead_values2 "));
  EXPECT_EQ(fetched, plain);
  const auto [partly, one] = run(ahead, "gpu");
  EXPECT_THAT(one, HasSubstr("their ids are computed on gpu"));
  EXPECT_THAT(one, HasSubstr("table.weight/ahead_values "));
  EXPECT_THAT(one, ::testing::Not(HasSubstr("table.weight/ahead_values2 ")));
  EXPECT_EQ(partly, plain);
}

}  // namespace
}  // namespace tandem::testing
