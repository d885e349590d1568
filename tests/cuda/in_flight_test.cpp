// Two steps in flight on a GPU, over the fake runtime: what is enqueued before the first step's
// loss is read, what the host waits for, and that no bit of the results changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "kernels/cuda/device/cuda_stream.h"
#include "kernels/shared/block/step_context.h"
#include "tests/cuda/support/fake_device.h"
#include "tests/cuda/support/fake_machine.h"
#include "tests/cuda/support/fake_waiting.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class InFlight : public ::testing::Test {
 protected:
  PlacedTraining training(FakeMachine& machine, const std::string& rules = "") {
    const std::string path = folder_ / "policy.toml";
    std::ofstream(path)
        << "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }\n"
        << "rules = [\n  { at = \"**\", on = \"gpu\" },\n"
        << rules << "]\n";
    PlacedOptions options;
    options.placing = machine.placing();
    return network_.training(path, {}, options);
  }

  /// The losses, with a step in flight (`ahead`) or each step awaited; `states` gets the states.
  std::vector<double> losses(PlacedTraining& training, int steps, bool ahead,
                             std::map<std::string, std::vector<std::byte>>& states) {
    std::vector<double> losses;
    for (int step = 0; step < steps; ++step) {
      training.launch(network_.batch_of(step));
      if (step > 0 || !ahead) losses.push_back(training.finish());
    }
    if (ahead) losses.push_back(training.finish());
    for (const std::string& name : training.states().names()) {
      const HostTensor value = training.states().read(name);
      const auto* from = static_cast<const std::byte*>(value.data());
      states[name].assign(from, from + value.bytes());
    }
    training.synchronize();
    EXPECT_THAT(training.monitor().order_errors(), IsEmpty());
    return losses;
  }

  NetworkCase network_{PolicyCase{"mlp", 0}};
  TemporaryFolder folder_;
};

/// The calls that begin with the text.
std::vector<std::string> beginning(const std::vector<std::string>& calls, const std::string& text) {
  std::vector<std::string> found;
  for (const std::string& call : calls) {
    if (call.starts_with(text)) found.push_back(call);
  }
  return found;
}

bool mention(const std::vector<std::string>& calls, const std::string& event) {
  return std::any_of(calls.begin(), calls.end(), [&](const std::string& call) {
    return (call + " ").find(event + " ") != std::string::npos;
  });
}

/// The event that is recorded after the last copy of a GPU to the host: "event 12".
std::string read_event(const std::vector<std::string>& calls) {
  std::string event;
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
    if (calls[i].find("GPU to host") == std::string::npos) continue;
    for (std::size_t j = i + 1; j < calls.size(); ++j) {
      if (!calls[j].starts_with("record event")) continue;
      event = calls[j].substr(7, calls[j].find(" stream") - 7);
      break;
    }
  }
  return event;
}

TEST_F(InFlight, TheNextStepIsEnqueuedBeforeALossIsRead) {
  FakeMachine machine({.late = true}, true);
  {
    PlacedTraining steps = training(machine);
    ASSERT_EQ(steps.program().steps_in_flight(), 2);
    const auto calls_of = [&](const auto& action) {
      machine.runtime->clear_calls();
      action();
      std::vector<std::string> calls = machine.runtime->calls();
      std::erase_if(calls, [](const std::string& call) { return call.starts_with("set_card"); });
      return calls;
    };
    int step = 0;
    const auto launch = [&] { steps.launch(network_.batch_of(step++)); };
    launch();
    for (int i = 0; i < 4; ++i) {  // so that both graphs are captured
      launch();
      steps.finish();
    }
    // The last turn launched step k; this one launches k + 1.
    for (int turn = 0; turn < 2; ++turn) {
      const std::vector<std::string> first = calls_of(launch);
      const std::vector<std::string> read = calls_of([&] { steps.finish(); });
      const std::vector<std::string> second = calls_of(launch);
      const std::vector<std::string> next_read = calls_of([&] { steps.finish(); });
      for (const std::vector<std::string>& launched : {first, second}) {
        EXPECT_THAT(launched, Contains(HasSubstr("host to GPU")));
        EXPECT_EQ(beginning(launched, "launch_graph").size(), 1u);
        EXPECT_THAT(launched, Not(Contains(StartsWith("synchronize"))));
        // Nor does it query a step that is not over.
        EXPECT_THAT(beginning(launched, "query"), IsEmpty());
      }
      EXPECT_NE(beginning(first, "launch_graph"), beginning(second, "launch_graph"));
      // Each step's loss is waited for once; nothing else is waited for.
      const std::string loss = read_event(first);
      ASSERT_NE(loss, "");
      EXPECT_FALSE(mention(read, loss));
      EXPECT_FALSE(mention(second, loss));
      ASSERT_FALSE(next_read.empty());
      std::size_t waits = 0;
      while (waits < next_read.size() && mention({next_read[waits]}, loss)) ++waits;
      EXPECT_GE(waits, 1u) << next_read[0];
      for (std::size_t i = waits; i < next_read.size(); ++i) {  // these are known to be over
        EXPECT_THAT(next_read[i], StartsWith("query"));
        EXPECT_EQ(std::count(next_read.begin(), next_read.end(), next_read[i]), 1);
      }
    }
    steps.finish();
    steps.synchronize();
  }
}

TEST_F(InFlight, NothingChangesWithGraphsOrWithout) {
  using States = std::map<std::string, std::vector<std::byte>>;
  for (const std::string rules : {"", "  { at = \"**:*\", state = \"cpu\" },\n",
                                  "  { at = \"**\", acts = \"offload\" },\n"}) {
    std::vector<std::vector<double>> got;
    std::vector<States> states;
    for (const bool ahead : {false, true}) {
      for (const bool capture : {false, true}) {
        for (const bool late : {false, true}) {
          FakeMachine machine({.late = late});
          machine.capture = capture;
          PlacedTraining steps = training(machine, rules);
          got.push_back(losses(steps, 7, ahead, states.emplace_back()));
          if (rules.empty()) {
            EXPECT_EQ(*machine.launches, capture ? 5u : 0u);
          }
        }
      }
    }
    for (std::size_t i = 1; i < got.size(); ++i) {
      EXPECT_EQ(got[i], got[0]) << rules << i;
      EXPECT_TRUE(states[i] == states[0]) << rules << i;
    }
  }
}

// ---------------------------------------------------------------- errors of two steps

/// Reports its step as an error.
struct ReportBody {
  const cuda::DeviceStepContext* context;
  template <class Block>
  void operator()(Block& block) const {
    block.each([&](int thread) {
      if (thread == 0)
        cuda::report_error(context->error, 1, 7, static_cast<long long>(context->step));
    });
  }
};

TEST(CudaErrors, StepsUnderWayReportApart) {
  for (const bool late : {false, true}) {
    FakeDevice fake({.runtime = {.late = late}});
    const auto kernel = prepared([&](const KernelArguments& arguments) {
      const ReportBody body{reinterpret_cast<const cuda::DeviceStepContext*>(arguments.context)};
      fake.runtime->launch(host_launch("report", {1, 1, 32, 0}, body),
                           static_cast<cudaStream_t>(arguments.queue));
    });
    ErrorWord words[3];
    StepContext contexts[3];
    for (int step = 0; step < 3; ++step) {
      contexts[step].step = static_cast<std::uint64_t>(step) + 1;
      contexts[step].error = &words[step];
      if (step == 1) continue;  // a step without an error
      KernelCall call;
      call.kernel = kernel.get();
      call.arguments.context = &contexts[step];
      call.operation = {"lookup", 0, {}};
      fake.compute->run(call);
    }
    fake.compute->synchronize();
    EXPECT_EQ(words[0].value.load(), 1);
    EXPECT_EQ(words[1].packed.load(), 0);
    EXPECT_EQ(words[2].value.load(), 3);
  }
}

// ---------------------------------------------------------------- waiting

TEST(CudaWaiting, WhatIsOverIsAskedForOnce) {
  FakeDevice fake;
  const auto event = fake.device->make_event();
  fake.compute->record(*event, 1);
  fake.runtime->clear_calls();
  event->synchronize(1);
  EXPECT_EQ(beginning(fake.runtime->calls(), "query").size(), 1u);
  event->synchronize(1);
  EXPECT_EQ(beginning(fake.runtime->calls(), "query").size(), 1u);
  EXPECT_THAT(fake.runtime->calls(), Not(Contains(StartsWith("synchronize"))));
}

// The work ends only when the thread sleeps.
TEST(CudaWaiting, WhatTakesLongIsSleptFor) {
  FakeDevice fake;
  std::atomic<bool> may_end{false};
  fake.runtime->enqueue(static_cast<cuda::CudaStream&>(*fake.compute).handle(), "long",
                        [&] { work_in_turn().again = !may_end.load(); });
  const auto event = fake.device->make_event();
  fake.compute->record(*event, 1);
  fake.runtime->clear_calls();
  std::thread other([&] {
    while (beginning(fake.runtime->calls(), "synchronize event").empty()) std::this_thread::yield();
    may_end = true;
  });
  event->synchronize(1);
  other.join();
  EXPECT_FALSE(beginning(fake.runtime->calls(), "query").empty());
  EXPECT_EQ(beginning(fake.runtime->calls(), "synchronize event").size(), 1u);
}

}  // namespace
}  // namespace tandem::testing
