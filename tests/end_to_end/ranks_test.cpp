// Ranks as threads, each computing its share of every micro-batch, train like one process on the
// whole micro-batch: losses, parameters and moments. One process is the reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <mutex>

#include "engine/plan/collectives.h"
#include "engine/plan/simulate.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/end_to_end/rows_ahead_model.h"
#include "tests/engine/plan/missing_wait.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using Feeds = PlacedTraining::Feeds;
using States = std::map<std::string, HostTensor>;

/// A model, its settings and its feeds.
struct Workload {
  std::string model;
  std::int64_t batch = 0;
  std::vector<std::string> settings;
  std::function<Feeds(int step)> feeds;
  PlacedOptions options = {};
};

struct Trained {
  std::vector<double> losses;
  States states;
};

States read_states(PlacedTraining& training) {
  training.synchronize();
  States states;
  for (const std::string& name : training.states().names()) {
    // Sums within a step differ between ranks.
    if (name.ends_with("/gradient_sum") || name.ends_with("/touched_rows")) continue;
    states.emplace(name, training.states().read(name));
  }
  return states;
}

Trained train(const Workload& run, int steps, std::shared_ptr<RankGroup> ranks = nullptr,
              const std::function<void(PlacedTraining&)>& look = {}) {
  PlacedOptions options = run.options;
  options.ranks = std::move(ranks);
  std::vector<std::string> settings = run.settings;
  settings.push_back("threads=1");
  PlacedTraining training(run.model, run.batch, settings, run.feeds(0), options);
  Trained result;
  for (int step = 0; step < steps; ++step) {
    const Feeds now = run.feeds(step), next = run.feeds(step + 1);
    result.losses.push_back(training.step(now, &next));
  }
  result.states = read_states(training);
  EXPECT_THAT(training.monitor().order_errors(), ::testing::IsEmpty());
  if (look) look(training);
  return result;
}

/// The results of all ranks, in their order.
std::vector<Trained> train_on(int ranks, const Workload& run, int steps,
                              const std::function<void(PlacedTraining&)>& look = {}) {
  std::vector<Trained> all(static_cast<std::size_t>(ranks));
  std::mutex looking;
  on_rank_threads(ranks, [&](RankGroup& group) {
    const std::shared_ptr<RankGroup> own(std::shared_ptr<void>(), &group);
    all[static_cast<std::size_t>(group.rank())] =
        train(run, steps, own, [&](PlacedTraining& training) {
          const std::lock_guard lock(looking);
          if (look && group.rank() == 0) look(training);
        });
  });
  return all;
}

double largest(const HostTensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i)
    most = std::max(most, std::abs(tensor.number(i)));
  return most;
}

void expect_equal(const Trained& ranks, const Trained& alone, double tolerance) {
  ASSERT_EQ(ranks.losses.size(), alone.losses.size());
  for (std::size_t i = 0; i < alone.losses.size(); ++i)
    EXPECT_NEAR(ranks.losses[i], alone.losses[i], tolerance * std::abs(alone.losses[i]) + 1e-9)
        << "step " << i + 1;
  for (const auto& [name, expected] : alone.states) {
    const auto found = ranks.states.find(name);
    ASSERT_NE(found, ranks.states.end()) << name;
    const double allowed = tolerance * std::max(largest(expected), 1.0);
    double worst = 0;
    for (std::int64_t i = 0; i < expected.type().elements(); ++i)
      worst = std::max(worst, std::abs(found->second.number(i) - expected.number(i)));
    EXPECT_LE(worst, allowed) << name;
  }
}

/// Steps of several ranks must equal those of one, and all ranks must have the same bits in the
/// end.
void expect_as_alone(const Workload& run, std::initializer_list<int> counts,
                     double tolerance = 1e-6,
                     const std::function<void(PlacedTraining&)>& look = {}) {
  constexpr int steps = 4;
  const Trained alone = train(run, steps);
  for (const int ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const std::vector<Trained> all = train_on(ranks, run, steps, look);
    for (const Trained& one : all) {
      expect_equal(one, alone, tolerance);
      EXPECT_EQ(one.losses, all[0].losses);
      for (const auto& [name, value] : all[0].states) {
        EXPECT_EQ(std::memcmp(one.states.at(name).data(), value.data(), value.bytes()), 0) << name;
      }
    }
  }
}

std::vector<Launch> collectives_of(const Plan& plan) {
  std::vector<Launch> all;
  for (const Launch& launch : plan.launches) {
    if (plan.queues[launch.queue].instructions[launch.index].kind == Instruction::Kind::collective)
      all.push_back(launch);
  }
  return all;
}

class RanksTest : public ::testing::Test {
 protected:
  /// Writes a policy with these rules after "everything on the accelerator".
  std::string policy(const std::string& rules = "") {
    const std::string path = folder_ / ("policy" + std::to_string(++policies_) + ".toml");
    std::ofstream(path) << "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = "
                           "\"256MiB\" } }\nrules = [\n  { at = \"**\", on = \"gpu\" },\n"
                        << rules << "]\n";
    return "policy=" + Json(path).dump();
  }

  /// The fixture `mlp`, with only `samples` of each batch if that is not 0.
  Workload mlp(std::vector<std::string> more, std::int64_t samples = 0) const {
    return network("mlp", std::move(more), samples);
  }
  Workload network(const std::string& name, std::vector<std::string> more,
                   std::int64_t samples = 0) const {
    const Json fixture = read_fixture(name);
    const std::int64_t stored = fixture["batch"], batch = samples > 0 ? samples : stored;
    std::vector<std::string> settings{
        "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=" +
        fixture["loss"]["logits"].dump() + ", labels=" + fixture["loss"]["labels"].dump() + "}]"};
    settings.insert(settings.end(), more.begin(), more.end());
    const auto all = read_feeds(fixture);
    return {parity_folder() + fixture["files"]["logits"]["torchscript"].get<std::string>(), batch,
            settings, [all, stored, batch](int step) {
              Feeds feeds;
              for (const auto& [name, whole] : all) {
                Shape shape = whole.shape();
                shape[0] = batch;
                HostTensor rows(TensorType{whole.dtype(), shape});
                const std::size_t row = rows.bytes() / static_cast<std::size_t>(batch);
                std::memcpy(rows.data(),
                            static_cast<const std::byte*>(whole.data()) +
                                static_cast<std::size_t>(step * stored) * row,
                            rows.bytes());
                feeds[name] = std::move(rows);
              }
              return feeds;
            }};
  }

  /// Wide & Deep; if `placed`, tables are on the host and everything else on the accelerator.
  static Workload wide_deep(bool placed, std::vector<std::string> more = {}) {
    std::vector<std::string> settings = testing::settings("", more);
    if (!placed)
      std::erase_if(settings, [](const std::string& key) { return key.starts_with("policy="); });
    return {model, batch_size, settings, [](int step) { return feeds_of(step); }};
  }

  TemporaryFolder folder_;
  int policies_ = 0;
  const std::string sgd_ = "optimizer.kind=sgd", adam_ = "optimizer.kind=adam";
};

TEST_F(RanksTest, GradientsAreThoseOfTheWholeBatchOnTheHost) {
  expect_as_alone(mlp({sgd_, "optimizer.lr=0.1", "optimizer.momentum=0.9"}), {2, 4});
}

TEST_F(RanksTest, GradientsAreThoseOfTheWholeBatchOnAccelerators) {
  expect_as_alone(mlp({sgd_, "optimizer.lr=0.1", "optimizer.momentum=0.9", policy()}), {2, 4});
}

TEST_F(RanksTest, StatesOnTheHostAreUpdatedThere) {
  const std::string rules = "  { at = \"**:*\", state = \"cpu\" },\n";
  expect_as_alone(mlp({sgd_, "optimizer.lr=0.1", "optimizer.momentum=0.9", policy(rules)}), {2});
}

TEST_F(RanksTest, SharesMayDifferByASample) {
  expect_as_alone(mlp({sgd_, "optimizer.lr=0.1"}, 7), {2, 3});
}

TEST_F(RanksTest, MicroBatchesAreSharedOutOneByOne) {
  const std::string half = "micro_batch=" + std::to_string(mlp({}).batch / 2);
  expect_as_alone(mlp({sgd_, "optimizer.lr=0.1", half}), {2});
  expect_as_alone(mlp({sgd_, "optimizer.lr=0.1", half, policy()}), {2});
}

TEST_F(RanksTest, NormsAreOfAllRanks) {
  expect_as_alone(mlp({sgd_, "optimizer.lr=0.1", "optimizer.clip_norm=0.1"}), {2}, 1e-6,
                  [](PlacedTraining& training) {
                    EXPECT_GT(training.output("gradient_norm"), 0.1f) << "nothing was clipped";
                  });
}

TEST_F(RanksTest, AStepThatOverflowsOnOneRankIsSkippedOnAll) {
  Workload run = mlp({sgd_, "optimizer.lr=0.1", "precision.compute=float16", policy()});
  // Only one sample of the second rank exceeds float16.
  const auto feeds = run.feeds;
  const std::int64_t batch = run.batch;
  run.feeds = [feeds, batch](int step) {
    Feeds poisoned = feeds(step);
    for (auto& [name, tensor] : poisoned) {
      if (tensor.dtype() == DType::float32 && step % 2 == 1)
        tensor.as<float>()[tensor.type().elements() / batch * (batch - 1)] = 1e30f;
    }
    return poisoned;
  };
  const std::vector<Trained> all = train_on(2, run, 6);
  const std::string skipped = "optimizer.skipped_steps";
  EXPECT_GE(all[0].states.at(skipped).number(0), 3);
  for (const auto& [name, value] : all[0].states)
    EXPECT_EQ(std::memcmp(all[1].states.at(name).data(), value.data(), value.bytes()), 0) << name;
}

TEST_F(RanksTest, RowsOfTablesAreGathered) { expect_as_alone(wide_deep(false), {2, 4}, 2e-6); }

TEST_F(RanksTest, RowsOfTablesAreGatheredFromAccelerators) {
  expect_as_alone(wide_deep(true), {2}, 2e-6);
}

TEST_F(RanksTest, SharesOfRowsMayDifferByASample) {
  Workload run = wide_deep(false);
  run.batch = 7;
  run.feeds = [](int step) {
    Feeds feeds = feeds_of(step);
    std::vector<std::int64_t> ids(feeds.at("ids").as<std::int64_t>().begin(),
                                  feeds.at("ids").as<std::int64_t>().begin() + 7 * fields);
    std::vector<float> labels(feeds.at("label").as<float>().begin(),
                              feeds.at("label").as<float>().begin() + 7);
    return Feeds{{"ids", HostTensor::from<std::int64_t>({7, fields}, ids)},
                 {"label", HostTensor::from<float>({7}, labels)}};
  };
  expect_as_alone(run, {2, 3}, 2e-6);
}

TEST_F(RanksTest, MarkedRowsAreThoseOfAllRanks) {
  expect_as_alone(wide_deep(false, {"micro_batch=24"}), {2}, 2e-6);
}

TEST_F(RanksTest, ConvolutionsAndAttentionTrainAsOnOneProcess) {
  for (const std::string name : {"lenet5", "gpt"}) {
    SCOPED_TRACE(name);
    expect_as_alone(network(name, {sgd_, "optimizer.lr=0.05"}), {2}, 5e-6);
    expect_as_alone(network(name, {sgd_, "optimizer.lr=0.05", policy()}), {2}, 5e-6);
  }
}

// Running statistics are included. The key has no effect in one process.
TEST_F(RanksTest, BatchNormalizationTakesStatisticsOfAllRanks) {
  const std::vector<std::string> keys{sgd_, "optimizer.lr=0.05", "model.sync_batch_norm=true"};
  expect_as_alone(network("conv_bn", keys), {2, 4}, 1e-5);
  expect_as_alone(network("conv_bn", keys, 7), {3}, 1e-5);
  std::vector<std::string> placed = keys;
  placed.push_back(policy());
  expect_as_alone(network("conv_bn", placed), {2}, 1e-5);
}

TEST_F(RanksTest, BatchNormalizationOfEachRankIsItsOwnByDefault) {
  const Workload run = network("conv_bn", {sgd_, "optimizer.lr=0.05"});
  const Trained alone = train(run, 2);
  const std::vector<Trained> all = train_on(2, run, 2);
  EXPECT_EQ(all[0].losses, all[1].losses);
  EXPECT_GT(std::abs(all[0].losses[0] - alone.losses[0]), 1e-5 * alone.losses[0]);
}

TEST_F(RanksTest, AllRanksLearnWhoWantsToStop) {
  const Workload run = mlp({sgd_});
  std::vector<float> heard(3, -1);
  on_rank_threads(3, [&](RankGroup& group) {
    PlacedOptions options;
    options.ranks = std::shared_ptr<RankGroup>(std::shared_ptr<void>(), &group);
    PlacedTraining training(run.model, run.batch, run.settings, run.feeds(0), options);
    training.stop = group.rank() == 1 ? 1.0f : 0.0f;
    training.step(run.feeds(0));
    heard[static_cast<std::size_t>(group.rank())] = training.output(stop_flag);
  });
  EXPECT_THAT(heard, ::testing::Each(1.0f));
}

// Biases of a few numbers are sent with the weights: one call for all gradients of a small network.
TEST_F(RanksTest, SmallGradientsTravelAsOne) {
  for (const std::string& where : {std::string("threads=1"), policy()}) {
    train_on(2, mlp({sgd_, where}), 1, [](PlacedTraining& training) {
      const Plan& plan = training.program().plan();
      const Lowered& lowered = training.program().lowered();
      std::size_t operands = 0, calls = 0;
      for (const Launch& launch : collectives_of(plan)) {
        const NodeId node = plan.queues[launch.queue].instructions[launch.index].node;
        EXPECT_EQ(plan.queues[launch.queue].role, Queue::Role::collective);
        operands += lowered.graph.node(node).inputs.size();
        calls += collective_calls(lowered, plan, node).size();
      }
      EXPECT_GT(operands, 3u);
      EXPECT_LE(calls, 2u) << to_text(plan, lowered);
    });
  }
}

// A missing wait is found, for each wait for or by a collective operation.
TEST_F(RanksTest, AMissingWaitIsFound) {
  train_on(2, mlp({sgd_, policy()}), 1, [](PlacedTraining& training) {
    const auto is_collective = [](const Instruction& instruction) {
      return instruction.kind == Instruction::Kind::collective;
    };
    EXPECT_GE(
        expect_missed_waits(training.program().plan(), training.program().lowered(), is_collective),
        2);
  });
}

// Four ranks send the few gradients of a small network to the three others, after the message that
// says what they run.
TEST_F(RanksTest, TheCostIsThatOfTheMessages) {
  train_on(4, mlp({sgd_}), 1, [](PlacedTraining& training) {
    const Plan& plan = training.program().plan();
    const Lowered& lowered = training.program().lowered();
    DeviceProfile profile;
    profile.network_bandwidth = 1e9;
    profile.network_latency = 1e-5;
    for (const Launch& launch : collectives_of(plan)) {
      const Instruction& instruction = plan.queues[launch.queue].instructions[launch.index];
      double bytes = 0;
      for (ValueId input : lowered.graph.node(instruction.node).inputs)
        bytes += static_cast<double>(lowered.graph.type(input).bytes());
      EXPECT_DOUBLE_EQ(seconds_of(instruction, lowered, profile), 3 * bytes / 1e9 + 2.25e-5);
    }
  });
}

TEST_F(RanksTest, OneRankExchangesNothing) {
  train(mlp({sgd_}), 1, nullptr, [](PlacedTraining& training) {
    for (const Node& node : training.graph().nodes) EXPECT_NE(node.op->role, Role::collective);
  });
}

TEST_F(RanksTest, ARankThatFailsEndsTheStepOfTheOthers) {
  const Workload run = mlp({sgd_});
  const auto errors = RankThreads(2).run([&](RankGroup& group) {
    PlacedOptions options;
    options.ranks = std::shared_ptr<RankGroup>(std::shared_ptr<void>(), &group);
    PlacedTraining training(run.model, run.batch, run.settings, run.feeds(0), options);
    if (group.rank() == 1) throw Error(ErrorKind::runtime, {.message = "no memory left"});
    training.step(run.feeds(0));
  });
  EXPECT_THAT(errors[0], ::testing::HasSubstr("no memory left"));
}

}  // namespace
}  // namespace tandem::testing
