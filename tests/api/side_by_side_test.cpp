// Objects of the library that exist at the same time or one after the other, and their effect on
// the threads of the program that uses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include "api/model/machine.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::cross_entropy;
using tandem::testing::digits;
using tandem::testing::error_of;
using tandem::testing::TemporaryFolder;
using tandem::testing::training_digits;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

Session with_threads(int threads, int seed = 1) {
  return Session(digits + "model.onnx", 32,
                 {cross_entropy, "optimizer.kind=adam", "optimizer.lr=0.003",
                  "threads=" + std::to_string(threads), "seed=" + std::to_string(seed),
                  "parameters.init=[{ at = \"fc1:weight\", kind = \"normal\", std = 0.1 }]"});
}

std::vector<double> losses_of(Session& session, int first, int count) {
  std::vector<double> losses;
  for (int i = first; i < first + count; ++i)
    losses.push_back(session.step(training_digits().batch(32 * i, 32)));
  return losses;
}

// ---------------------------------------------------------------- Sessions

TEST(SideBySide, SessionsInTwoThreadsAtOnce) {
  constexpr int steps = 6;
  std::vector<double> alone[2], together[2];
  for (int i = 0; i < 2; ++i) {
    Session session = with_threads(1, i + 1);
    alone[i] = losses_of(session, 0, steps);
  }
  EXPECT_NE(alone[0], alone[1]);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      Session session = with_threads(1, i + 1);
      together[i] = losses_of(session, 0, steps);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together[0], alone[0]);
  EXPECT_EQ(together[1], alone[1]);
}

// Ranks that are threads copy one Machine, and each asks for its device.
TEST(SideBySide, AMachineLooksOnceForAllThreads) {
  std::atomic<int> looks = 0;
  std::vector<DeviceBackend> backends = device_backends();
  for (DeviceBackend& backend : backends) {
    backend.look = [&looks] {
      ++looks;
      return DeviceReport{.driver = "13.0"};
    };
  }
  const Machine machine(std::move(backends));
  std::vector<std::string> drivers(8);
  std::vector<std::thread> threads;
  for (std::string& driver : drivers)
    threads.emplace_back([&, copy = machine] { driver = copy.report("emulated:0").driver; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(drivers, Each(std::string("13.0")));
  EXPECT_EQ(looks, 1);
}

TEST(SideBySide, ASessionMovesBetweenThreads) {
  Session here = with_threads(1);
  const std::vector<double> expected = losses_of(here, 0, 4);
  Session session = with_threads(1);
  std::vector<double> losses = losses_of(session, 0, 2), more;
  std::thread([&] { more = losses_of(session, 2, 2); }).join();
  losses.insert(losses.end(), more.begin(), more.end());
  EXPECT_EQ(losses, expected);
}

TEST(SideBySideTeams, SessionsOfOtherThreadCountsTakeTurns) {
  std::vector<double> alone[2], turns[2];
  for (int i = 0; i < 2; ++i) {
    Session session = with_threads(i + 1);
    alone[i] = losses_of(session, 0, 6);
  }
  Session sessions[2] = {with_threads(1), with_threads(2)};
  for (int step = 0; step < 6; ++step) {
    for (int i = 0; i < 2; ++i) turns[i].push_back(losses_of(sessions[i], step, 1)[0]);
  }
  EXPECT_EQ(turns[0], alone[0]);
  EXPECT_EQ(turns[1], alone[1]);
}

// ---------------------------------------------------------------- threads of the program

/// A denormal number for each thread of a team of two: 0 where denormals are flushed.
std::vector<float> denormals() {
  std::vector<float> products(2, -1);
#pragma omp parallel num_threads(2)
  {
    volatile float small = 1e-30f, smaller = 1e-10f;
    products[static_cast<std::size_t>(omp_get_thread_num())] = small * smaller;
  }
  return products;
}

TEST(SideBySideTeams, AThreadAndItsTeamStayAsTheyWere) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  ASSERT_THAT(denormals(), Each(::testing::Gt(0.0f)));
  TemporaryFolder folder;
  const auto expect_unchanged = [](const char* after) {
    EXPECT_EQ(omp_get_max_threads(), 3) << after;
    EXPECT_THAT(denormals(), Each(::testing::Gt(0.0f))) << after;
  };
  Session session = with_threads(2);
  expect_unchanged("a constructor");
  losses_of(session, 0, 2);
  expect_unchanged("steps");
  session.predict(training_digits().image(0, 5));
  expect_unchanged("a prediction");
  auto wrong = training_digits().batch(0, 32);
  wrong["labels"] = Tensor::copy_of({32}, std::vector<std::int64_t>(32, 11));
  error_of([&] { session.step(wrong); }, ErrorKind::data);
  expect_unchanged("a step with a bad label");
  TrainOptions options;
  options.run_dir = folder / "run";
  options.overrides = {"steps=3", "threads=2"};
  options.on_progress = [&](const Progress&) { expect_unchanged("a step, in on_progress"); };
  Trainer trainer(digits + "train.toml", options);
  trainer.run();
  expect_unchanged("a run");
  omp_set_num_threads(before);
}

// ---------------------------------------------------------------- stopping

class StopTest : public ::testing::Test {
 protected:
  TrainOptions options(const std::string& run) {
    TrainOptions options;
    options.run_dir = folder_ / run;
    options.overrides = {"steps=4", "log.every=1 steps", "threads=1"};
    return options;
  }
  static TrainResult run(const TrainOptions& options) {
    return Trainer(digits + "train.toml", options).run();
  }

  TemporaryFolder folder_;
};

TEST_F(StopTest, EndsOneTrainerAndNoLaterOne) {
  TrainOptions first = options("first");
  first.on_progress = [&](const Progress& p) {
    if (p.step == 2) first.stop.request_stop();
  };
  const TrainResult stopped = run(first);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.steps, 2u);
  const TrainResult later = run(options("later"));
  EXPECT_FALSE(later.interrupted);
  EXPECT_EQ(later.steps, 4u);

  TrainOptions resumed = options("first");
  resumed.resume = true;
  EXPECT_EQ(run(resumed).loss, later.loss);
}

TEST_F(StopTest, EndsOneOfTwoThatRunAtOnce) {
  // ONNX and oneDNN make tables at first use, protected by locks that the thread sanitizer does not
  // see, as these libraries are built without it. A step in advance makes the tables.
  Session session = with_threads(1);
  losses_of(session, 0, 1);
  TrainOptions one = options("one"), other = options("other");
  TrainResult results[2];
  std::atomic<bool> is_stopped = false;
  one.on_progress = [&](const Progress&) {
    one.stop.request_stop();
    is_stopped = true;
  };
  other.on_progress = [&](const Progress&) {
    while (!is_stopped) std::this_thread::yield();
  };
  std::thread thread([&] { results[0] = run(one); });
  results[1] = run(other);
  thread.join();
  EXPECT_TRUE(results[0].interrupted);
  EXPECT_EQ(results[0].steps, 1u);
  EXPECT_FALSE(results[1].interrupted);
  EXPECT_EQ(results[1].steps, 4u);
}

const StopToken* asked_by_signal = nullptr;

TEST_F(StopTest, ComesFromASignalHandler) {
  TrainOptions stopped = options("run");
  asked_by_signal = &stopped.stop;
  const auto before = std::signal(SIGUSR1, [](int) { asked_by_signal->request_stop(); });
  stopped.on_progress = [](const Progress&) { std::raise(SIGUSR1); };
  EXPECT_EQ(run(stopped).steps, 1u);
  std::signal(SIGUSR1, before);
}

TEST_F(StopTest, EndsAConstructor) {
  TrainOptions stopped = options("run");
  stopped.stop.request_stop();
  EXPECT_THAT(error_of([&] { Trainer(digits + "train.toml", stopped); }, ErrorKind::runtime),
              ::testing::StartsWith("interrupted before the first step"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  // Mistakes in the configuration are still reported.
  stopped.overrides.push_back("optimizer.lrr=1");
  EXPECT_THAT(error_of([&] { Trainer(digits + "train.toml", stopped); }), HasSubstr("lrr"));
}

TEST_F(StopTest, EndsAConstructorBeforeTheNextProgram) {
  TrainOptions stopped = options("run");
  stopped.overrides.push_back("parameters.init=[{ at = \"fc1:*\", kind = \"zeros\" }]");
  int notes = 0;
  stopped.on_message = [&](const std::string& text) {
    if (!text.starts_with("initialised")) return;  // the training's programs exist
    ++notes;
    stopped.stop.request_stop();
  };
  EXPECT_THAT(error_of([&] { Trainer(digits + "train.toml", stopped); }, ErrorKind::runtime),
              ::testing::StartsWith("interrupted before the first step"));
  EXPECT_EQ(notes, 1);
}

TEST_F(StopTest, AfterTheConstructorAStepIsTakenAndSaved) {
  TrainOptions stopped = options("run");
  Trainer trainer(digits + "train.toml", stopped);
  stopped.stop.request_stop();
  const TrainResult result = trainer.run();
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.steps, 1u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/checkpoints/step-00000001"));
}

TEST_F(StopTest, CopiesOfATokenAreOne) {
  StopToken token;
  const StopToken copy = token;
  const StopToken moved = std::move(token);
  EXPECT_FALSE(copy.stop_requested());
  token.request_stop();  // NOLINT(bugprone-use-after-move): a token is copied
  EXPECT_TRUE(copy.stop_requested());
  EXPECT_TRUE(moved.stop_requested());
  EXPECT_FALSE(StopToken().stop_requested());
}

// ---------------------------------------------------------------- moved from

TEST(MovedFromTest, ASessionSaysSo) {
  Session session = with_threads(1);
  session.step(training_digits().batch(0, 32));
  Session other = std::move(session);
  const std::string is_moved = "this Session was moved from";
  const Session& constant = session;  // NOLINT(bugprone-use-after-move)
  EXPECT_THAT(error_of([&] { session.step(training_digits().batch(0, 32)); }), HasSubstr(is_moved));
  EXPECT_THAT(error_of([&] { session.predict(training_digits().image(0, 1)); }),
              HasSubstr(is_moved));
  EXPECT_THAT(error_of([&] { (void)constant.parameters(); }), HasSubstr(is_moved));
  EXPECT_THAT(error_of([&] { session.set_parameter("fc2.bias", Tensor()); }), HasSubstr(is_moved));
  EXPECT_THAT(error_of([&] { constant.save("/nowhere/x.npz"); }), HasSubstr(is_moved));
  session = std::move(other);
  EXPECT_NEAR(session.step(training_digits().batch(0, 32)), 2.3, 1);
  session = with_threads(1);  // its former state is freed
  EXPECT_NEAR(session.step(training_digits().batch(0, 32)), 2.3, 1);
}

TEST(MovedFromTest, ATrainerSaysSo) {
  const TemporaryFolder folder;
  TrainOptions options;
  options.run_dir = folder / "run";
  options.overrides = {"steps=1", "threads=1"};
  Trainer trainer(digits + "train.toml", options);
  Trainer other = std::move(trainer);
  const std::string is_moved = "this Trainer was moved from";
  EXPECT_THAT(error_of([&] { trainer.run(); }), HasSubstr(is_moved));  // NOLINT
  EXPECT_THAT(error_of([&] { (void)trainer.summary(); }), HasSubstr(is_moved));
  trainer = std::move(other);
  EXPECT_EQ(trainer.run().steps, 1u);
  EXPECT_THAT(error_of([&] { trainer.run(); }), HasSubstr("this Trainer has run already"));
  EXPECT_THAT(trainer.summary(), AllOf(HasSubstr("model"), HasSubstr("training")));
}

}  // namespace
}  // namespace tandem::api
