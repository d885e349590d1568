// Steps on several devices allocate no memory on the heap, whatever the policy does.
//
// Calls by any thread count: by the thread that launches and computes on the host, and by the
// accelerator's threads. There are two exceptions. The check of the order of accesses, which keeps
// vector clocks, is switched off; it is a tool of tests, and the clock of virtual time, the queues,
// events and copies stay as they are. And oneDNN's `execute` builds a map of its arguments on the
// heap: networks with convolutions have all of them on the accelerator, so that the launching
// thread must still count nothing, and the others at most that map for each call.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/end_to_end/graph_watch.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/harness/allocation_count.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

// Graphs are captured in the third and fourth step, since fed batches use two buffers in turn.
constexpr int allocation_steps = 10, first_counted = 4, calls_of_onednn = 24;

struct Mode {
  std::string name;
  std::vector<std::string> rules, settings = {};
};

struct AllocationCase {
  std::string network;
  Mode mode;
};
std::string name_of(const AllocationCase& c) { return c.network + "_" + c.mode.name; }
void PrintTo(const AllocationCase& c, std::ostream* stream) { *stream << name_of(c); }

class AllocationTest : public ::testing::TestWithParam<AllocationCase> {
 protected:
  AllocationTest() : fixture_(read_fixture(GetParam().network)), batch_(fixture_["batch"]) {
    for (const auto& [name, all] : read_feeds(fixture_)) {
      TensorType type = all.type();
      type.shape[0] = batch_;
      HostTensor first(type);
      std::memcpy(first.data(), all.data(), first.bytes());
      feeds_[name] = std::move(first);
    }
  }

  PlacedTraining training() {
    const Mode& mode = GetParam().mode;
    std::ofstream policy(folder_ / "policy.toml");
    policy << "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }\n"
           << "rules = [\n  { at = \"**\", on = \"gpu\" },\n";
    for (const std::string& rule : mode.rules) policy << "  { " << rule << " },\n";
    policy << "]\n";
    policy.close();
    std::vector<std::string> settings = settings_of(fixture_["optimizers"][4], fixture_, false);
    settings.push_back("policy=" + Json(folder_ / "policy.toml").dump());
    settings.insert(settings.end(), mode.settings.begin(), mode.settings.end());
    const std::string model = fixture_["files"]["logits"]["torchscript"];
    return PlacedTraining(parity_folder() + model, batch_, settings, feeds_,
                          {.check_order = false, .placing = watched(graphs_)});
  }

  Json fixture_;
  std::int64_t batch_;
  PlacedTraining::Feeds feeds_;
  TemporaryFolder folder_;
  GraphWatch graphs_;
};

/// Number of copies, of kernels per device, and of oneDNN's kernels among them.
struct Work {
  int copies = 0, kernels[2] = {0, 0}, onednn[2] = {0, 0};
};

Work work_of(const PlacedTraining& training) {
  Work work;
  for (const Program* program : training.programs()) {
    for (const Queue& queue : program->plan().queues) {
      for (const Instruction& i : queue.instructions) {
        work.copies += i.kind == Instruction::Kind::copy;
        if (i.kind != Instruction::Kind::run) continue;
        ++work.kernels[queue.device];
        const Kernel& kernel = *program->lowered().nodes[i.node.index].kernel;
        work.onednn[queue.device] += kernel.name.starts_with("onednn.");
      }
    }
  }
  return work;
}

TEST(AllocationCount, SeesEveryThread) {
  if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has its own heap";
  const AllocationCount count;
  const auto allocate = [] {
    void* volatile bytes = std::malloc(16);
    std::free(bytes);
  };
  std::int64_t by_other = 0;
  std::thread([&] {
    const AllocationCount own;
    allocate();
    by_other = own.own_calls();
  }).join();
  const std::int64_t here = count.own_calls();
  allocate();
  EXPECT_EQ(count.own_calls(), here + 1);
  EXPECT_EQ(by_other, 1);
  EXPECT_GE(count.calls(), here + 2);
}

TEST_P(AllocationTest, StepsAllocateNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has its own heap";
  PlacedTraining training = this->training();
  const Work work = work_of(training);
  EXPECT_GT(work.copies, 0);
  EXPECT_GT(work.kernels[1], 0);
  ASSERT_EQ(work.onednn[0], 0);
  for (int step = 0; step < allocation_steps; ++step) {
    const AllocationCount count;
    const double loss = training.step(feeds_);
    training.synchronize();
    EXPECT_GT(loss, 0);
    if (step < first_counted) continue;
    EXPECT_EQ(count.own_calls(), 0) << "step " << step + 1;
    EXPECT_LE(count.calls(), calls_of_onednn * work.onednn[1]) << "step " << step + 1;
  }
  if (GetParam().mode.name == "gpu") {
    EXPECT_EQ(graphs_.launches, static_cast<std::uint64_t>(allocation_steps - 2));
  }
}

const std::string bfloat16_setting = "precision.compute=bfloat16";

const Mode all_on_gpu{"gpu", {}};
const Mode split_operators{"split", {R"(at = "**", op = "MatMul", run = "cpu")"}};
const Mode weights_away{"weights_away", {R"(at = "**:*", on = "cpu", lookahead = 0)"}};
const Mode state_away{"state_away", {R"(at = "**:*", state = "cpu")"}};
const Mode half_precision{"bfloat16", {R"(at = "**:*", state = "cpu")"}, {bfloat16_setting}};
const Mode clipped{"clipped", {R"(at = "**:*", state = "cpu")"}, {"optimizer.clip_norm=1.0"}};
const Mode recomputed{"recompute", {R"(at = "**", acts = "recompute")"}};
const Mode offloaded{"offload", {R"(at = "**", acts = "offload")"}};
const Mode micro_batches{"micro_batches", {R"(at = "**:*", state = "cpu")"}, {"micro_batch=4"}};
const Mode everything{
    "everything",
    {R"(at = "**", acts = "recompute")",
     R"(at = "**", op = "MatMul", run = "cpu", acts = "offload")", R"(at = "**:*", state = "cpu")"},
    {"micro_batch=2", bfloat16_setting}};

std::vector<AllocationCase> allocation_cases() {
  std::vector<AllocationCase> list;
  for (const char* network : {"mlp", "gpt", "encoder", "tied_decoder"}) {
    for (const Mode& mode : {all_on_gpu, split_operators, weights_away, state_away, half_precision,
                             clipped, recomputed, offloaded, micro_batches, everything}) {
      list.push_back({network, mode});
    }
  }
  for (const char* network : {"lenet5", "conv_bn"}) {
    for (const Mode& mode :
         {all_on_gpu, weights_away, half_precision, recomputed, offloaded, micro_batches}) {
      list.push_back({network, mode});
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Policies, AllocationTest, ::testing::ValuesIn(allocation_cases()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tandem::testing
