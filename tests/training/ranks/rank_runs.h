// Whole trainings of the small network on ranks that are threads.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/harness/rank_threads.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem::testing {

/// What each rank has done and reported.
struct RankRuns {
  std::vector<Trained> ranks;
  std::vector<std::string> errors;  // "" for ranks that threw nothing

  const Trained& first() const { return ranks[0]; }
};

class RankTraining : public TrainingRun {
 protected:
  using Forward = std::function<Graph(const OperatorSet&, std::int64_t batch)>;
  struct Options {
    int ranks = 2;
    std::vector<std::string> keys;
    std::string resume;
    std::function<bool(int rank, std::uint64_t step)> stops;  // after this step, as a signal would
    std::function<void(int rank, RunConfig&)> change;
    Shardings shards;
    std::function<void(RunParts&)> change_parts;
  };

  /// One process where `ranks` is 1.
  RankRuns run_ranks(const Options& options) {
    RankRuns runs;
    runs.ranks.resize(static_cast<std::size_t>(options.ranks));
    if (options.ranks == 1) {
      run_one(options, 0, new_engine(), one_rank(), runs.ranks[0]);
      runs.errors = {""};
      return runs;
    }
    runs.errors = RankThreads(options.ranks).run([&](RankGroup& group) {
      SmallEngine& engine = new_engine();
      engine.cpu->join(group.make_communicator());
      run_one(options, group.rank(), engine, group.rendezvous(),
              runs.ranks[static_cast<std::size_t>(group.rank())]);
    });
    return runs;
  }

  Forward forward_ = [](const OperatorSet& operators, std::int64_t batch) {
    return small_network(operators, batch);
  };

 private:
  SmallEngine& new_engine() {
    const std::lock_guard lock(mutex_);
    return engines_.emplace_back();
  }
  void run_one(const Options& options, int rank, SmallEngine& engine,
               std::shared_ptr<Rendezvous> ranks, Trained& run) {
    Hooks hooks;
    std::uint64_t done = 0;
    hooks.on_progress = [&](const TrainingProgress& p) {
      (p.evaluation ? run.evaluations : run.steps).push_back(p);
    };
    hooks.on_message = [&](const std::string& text) { run.messages.push_back(text); };
    hooks.stop_requested = [&] { return options.stops && options.stops(rank, done++); };
    RunConfig config = small_config(folder_.path(), options.keys);
    if (options.change) options.change(rank, config);
    RunParts parts = engine.parts();
    if (ranks->ranks() > 1) parts.shards = options.shards;
    parts.ranks = std::move(ranks);
    own_model(parts).make_graph = [this, &engine](const ForwardKey& key) {
      const std::int64_t batch = key.samples;
      return forward_(engine.operators, batch);
    };
    if (options.change_parts) options.change_parts(parts);
    run.training = std::make_unique<Training>(std::move(config), parts, DataSets{train_, eval_},
                                              hooks.observer());
    run.result = run.training->run(options.resume, {});
  }

  std::deque<SmallEngine> engines_;  // outlive the trainings, and stay where they are
  std::mutex mutex_;
};

}  // namespace tandem::testing
