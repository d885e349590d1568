// Rows of host tables that are copied a step ahead: the same losses to the last bit, each row sent
// once, never one that a step has changed, and copies that nothing waits for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/end_to_end/rows_ahead_model.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

constexpr int steps_ahead = 10;

/// Steps with hand-made feeds, and how many bytes each one sent to the device.
struct SteppedRun {
  explicit SteppedRun(const std::vector<std::string>& keys, bool apart = false)
      : training(model, batch_size, keys, feeds_of(1), placed_options()), apart_(apart) {}

  void step() {
    const int number = static_cast<int>(losses.size()) + 1;
    const PlacedTraining::Feeds next = feeds_of(number + 1, apart_);
    losses.push_back(training.step(feeds_of(number, apart_), &next));
    training.synchronize();
    const std::uint64_t all = training.devices()[1]->counters().bytes_to_device;
    sent.push_back(all - sent_before_);
    sent_before_ = all;
  }
  SteppedRun& finish() {
    while (losses.size() < std::size_t{steps_ahead}) step();
    EXPECT_EQ(training.monitor().order_errors(), std::vector<std::string>());
    return *this;
  }
  std::vector<std::string> ahead_states() const {
    std::vector<std::string> names;
    for (const State& state : training.program().lowered().graph.states) {
      if (state.derived.is<PrefetchedRows>()) names.push_back(state.name);
    }
    return names;
  }

  PlacedTraining training;
  std::vector<double> losses;
  std::vector<std::uint64_t> sent;

 private:
  bool apart_;
  std::uint64_t sent_before_ = 0;
};

TEST(RowsAhead, LossesAreTheSameToTheLastBit) {
  for (const std::string more : {"optimizer.clip_norm=0.05", "optimizer.weight_decay=0.0"}) {
    SCOPED_TRACE(more);
    SteppedRun plain(settings("", {more})), fetched(settings(ahead, {more}));
    EXPECT_TRUE(plain.ahead_states().empty()) << "it is for those who ask";
    EXPECT_THAT(fetched.ahead_states(),
                ::testing::UnorderedElementsAre(
                    HasSubstr("/ahead_rows"), HasSubstr("/ahead_count"), HasSubstr("/ahead_step"),
                    "wide.weight/ahead_values", "deep.weight/ahead_values"))
        << "both tables are looked up by the same ids";
    EXPECT_NO_THROW(verify(fetched.training.program().lowered().graph));
    EXPECT_EQ(fetched.finish().losses, plain.finish().losses);
  }
}

// Fetched rows are kept as bfloat16 until the step that reads them, whatever it computes in.
TEST(RowsAhead, GoesWithSplitTables) {
  const std::string split =
      "parameters.storage=[{at=\"{wide,deep}:weight\", kind=\"split_bfloat16\"}]";
  for (const std::string compute : {"float32", "bfloat16"}) {
    SCOPED_TRACE(compute);
    const std::vector<std::string> more{split, "precision.compute=" + compute};
    SteppedRun plain(settings("", more)), fetched(settings(ahead, more));
    EXPECT_EQ(fetched.finish().losses, plain.finish().losses);
    const Graph& graph = fetched.training.program().lowered().graph;
    const State* values = graph.find_state("deep.weight/ahead_values");
    ASSERT_NE(values, nullptr);
    EXPECT_EQ(graph.type(values->initial).dtype, DType::bfloat16);
  }
}

// The early rows of a step are those that the next one needs and that it does not change itself;
// the late ones are all others.
TEST(RowsAhead, EachRowCrossesOnce) {
  for (const bool apart : {false, true}) {
    SCOPED_TRACE(apart ? "no row in two batches in turn" : "common rows");
    SteppedRun plain(settings(""), apart), fetched(settings(ahead), apart);
    plain.finish();
    fetched.finish();
    std::uint64_t early = 0, common = 0;
    for (int step = 1; step <= steps_ahead; ++step) {
      const Rows now = rows_of(feeds_of(step, apart)), next = rows_of(feeds_of(step + 1, apart));
      const std::uint64_t late = now.size() - early;
      EXPECT_EQ(late == 0, apart && step > 1) << "step " << step;
      early = 0;
      for (const std::int64_t row : next) early += now.count(row) == 0;
      common += next.size() - early;
      // Without lookahead: every row. With it: the late rows, an index for each row, the early
      // rows.
      const std::uint64_t others = plain.sent[step - 1] - now.size() * row_bytes;
      EXPECT_EQ(fetched.sent[step - 1], others + (late + early) * row_bytes + 4 * now.size())
          << "step " << step;
    }
    EXPECT_EQ(common == 0, apart);
  }
}

// A run that fetches nothing, because the next ids are unknown, is right as well.
TEST(RowsAhead, TheNextIdsMayBeUnknown) {
  SteppedRun plain(settings("")), fetched(settings(ahead));
  plain.finish();
  for (int step = 1; step <= steps_ahead; ++step) {
    const PlacedTraining::Feeds feeds = feeds_of(step), next = feeds_of(step + 1);
    const double loss = fetched.training.step(feeds, step % 3 == 0 ? nullptr : &next);
    EXPECT_EQ(loss, plain.losses[step - 1]) << "step " << step;
  }
}

// So is a run that fetches rows which are never used.
TEST(RowsAhead, TheNextIdsMayBeWrong) {
  SteppedRun plain(settings("")), fetched(settings(ahead));
  plain.finish();
  for (int step = 1; step <= steps_ahead; ++step) {
    const PlacedTraining::Feeds feeds = feeds_of(step), next = feeds_of(step + 1 + step % 4);
    EXPECT_EQ(fetched.training.step(feeds, &next), plain.losses[step - 1]) << "step " << step;
  }
}

HostTensor changed(HostTensor values, float by) {
  for (float& value : values.as<float>()) value += by;
  return values;
}

// The comparisons above do depend on what was fetched.
TEST(RowsAhead, AStaleRowWouldShow) {
  SteppedRun plain(settings("")), stale(settings(ahead));
  plain.finish();
  for (int step = 0; step < 4; ++step) stale.step();
  EXPECT_EQ(stale.losses.back(), plain.losses[3]);
  StateStore& states = stale.training.states();
  const std::string name = "deep.weight/ahead_values";
  states.write(name, changed(states.read(name), 0.25f));
  stale.step();
  EXPECT_GT(std::fabs(stale.losses.back() - plain.losses[4]), 1e-5 * std::fabs(plain.losses[4]));
}

// Rows that were fetched for another step are not used.
TEST(RowsAhead, OfAnotherStepNothingIsUsed) {
  SteppedRun plain(settings("")), fetched(settings(ahead));
  plain.finish();
  for (int step = 0; step < 4; ++step) fetched.step();
  StateStore& states = fetched.training.states();
  std::string step_name;
  for (const std::string& name : fetched.ahead_states()) {
    if (name.ends_with("/ahead_step")) step_name = name;
  }
  EXPECT_EQ(states.read(step_name).number(0), 5);
  states.write(step_name, HostTensor::from<std::int64_t>({}, {4}));
  const std::string name = "deep.weight/ahead_values";
  states.write(name, changed(states.read(name), 0.25f));
  fetched.step();
  EXPECT_EQ(fetched.losses.back(), plain.losses[4]);
}

// Values that are written between steps, as by a checkpoint, are used at once.
TEST(RowsAhead, WhatIsWrittenIsSeen) {
  SteppedRun plain(settings("")), fetched(settings(ahead));
  for (SteppedRun* run : {&plain, &fetched}) {
    for (int step = 0; step < 4; ++step) run->step();
    StateStore& states = run->training.states();
    states.write("deep.weight", changed(states.read("deep.weight"), 0.25f));
    run->step();
    const HostTensor row = changed(HostTensor(TensorType{DType::float32, {1, 4}}), 0.5f);
    for (std::int64_t r = 0; r < table_rows; r += 3)
      states.write_rows("deep.weight", r, 1, row.data());
    run->finish();
  }
  EXPECT_EQ(fetched.losses, plain.losses);
  EXPECT_NE(plain.losses[4], SteppedRun(settings("")).finish().losses[4]);
}

/// Seconds in which spans of both overlap.
double together(const std::vector<TraceSpan>& a, const std::vector<TraceSpan>& b) {
  double sum = 0;
  for (const TraceSpan& x : a) {
    for (const TraceSpan& y : b)
      sum += std::max(0.0, std::min(x.end, y.end) - std::max(x.start, y.start));
  }
  return sum;
}
double length(const std::vector<TraceSpan>& spans) {
  double sum = 0;
  for (const TraceSpan& span : spans) sum += span.end - span.start;
  return sum;
}

/// Measures seconds per step on the virtual clock, in steps whose neighbours share no row.
class Clocked {
 public:
  Clocked(const std::string& lookahead, const std::string& link)
      : training_(model, batch_size, settings(lookahead, {}, link), feeds_of(1), options()) {
    run(2);
    OrderChecker& monitor = training_.monitor();
    monitor.start_trace(100000);
    const double begin = monitor.virtual_time();
    run(steps_ahead);
    seconds = (monitor.virtual_time() - begin) / steps_ahead;
    std::set<std::string> early;  // names of the copied values
    const Graph& graph = training_.program().lowered().graph;
    for (const State& state : graph.states) {
      if (state.derived.is<PrefetchedRows>() &&
          graph.node(graph.value(state.final).producer).op->name == "Transfer") {
        const Node& copy = graph.node(graph.value(state.final).producer);
        early.insert(graph.value(copy.inputs[0]).name);
      }
    }
    for (const TraceSpan& span : monitor.trace()) {
      if (monitor.lane_name(span.lane) == "gpu") computing.push_back(span);
      if (early.contains(std::string(span.name))) ahead_copies.push_back(span);
    }
    EXPECT_EQ(monitor.order_errors(), std::vector<std::string>());
  }

  double seconds = 0;
  std::vector<TraceSpan> computing, ahead_copies;

 private:
  // The accelerator's kernels take half a millisecond each, the host's almost nothing.
  static PlacedOptions options() {
    PlacedOptions options = placed_options();
    options.profiles.resize(2);
    for (DeviceProfile& profile : options.profiles) {
      profile.flops = profile.bandwidth = 1e30;
      profile.overhead = 1e-6;
    }
    options.profiles[1].overhead = 5e-4;
    return options;
  }
  void run(int count) {
    for (int i = 0; i < count; ++i, ++step_) {
      const PlacedTraining::Feeds next = feeds_of(step_ + 1, true);
      training_.step(feeds_of(step_, true), &next);
    }
    training_.synchronize();
  }

  PlacedTraining training_;
  int step_ = 1;
};

TEST(RowsAhead, CopiesHideBehindTheStep) {
  const std::string slow = ", bandwidth = \"8MB/s\", latency = \"1us\"",
                    fast = ", bandwidth = \"1000GB/s\", latency = \"1us\"";
  const Clocked free("", fast), plain("", slow), fetched(ahead, slow);
  double copy = 0;  // seconds in which the rows of a step are copied
  for (int step = 3; step < 3 + steps_ahead; ++step) {
    copy +=
        static_cast<double>(rows_of(feeds_of(step, true)).size() * row_bytes) / 8e6 / steps_ahead;
  }
  std::printf("a step: %.3f ms, with copies %.3f ms, fetched ahead %.3f ms; rows copied %.3f ms\n",
              1e3 * free.seconds, 1e3 * plain.seconds, 1e3 * fetched.seconds, 1e3 * copy);
  EXPECT_GT(plain.seconds - free.seconds, 1.5 * copy) << "there, and their gradients back";
  EXPECT_LT(fetched.seconds, plain.seconds - 0.55 * copy)
      << "the place of each row crosses instead";
  ASSERT_EQ(fetched.ahead_copies.size(), 2u * steps_ahead);
  EXPECT_NEAR(length(fetched.ahead_copies) / steps_ahead, copy, 0.05 * copy);
  EXPECT_GT(together(fetched.ahead_copies, fetched.computing), 0.95 * length(fetched.ahead_copies));
}

// No copy of the step itself is queued after the early copies.
TEST(RowsAhead, TheStepsOwnCopiesComeFirst) {
  const SteppedRun fetched(settings(ahead));
  const Program& program = fetched.training.program();
  const Graph& graph = program.lowered().graph;
  std::set<std::int32_t> early;
  for (const State& state : graph.states) {
    if (state.derived.is<PrefetchedRows>()) early.insert(graph.value(state.final).producer.index);
  }
  int own = 0, behind = 0, copies = 0;
  for (const Queue& queue : program.plan().queues) {
    bool is_behind = false;
    for (const Instruction& instruction : queue.instructions) {
      if (!instruction.node) continue;
      const Node& node = graph.node(instruction.node);
      if (queue.name == "gpu.in") {
        const bool is_early = early.contains(instruction.node.index);
        copies += is_early;
        is_behind = is_behind || is_early;
        (is_behind ? behind : own) += !is_early;
      } else if (queue.name == "cpu") {  // updates wait for the device, which waits for no more
        if (early.contains(instruction.node.index)) {
          is_behind = true;
          continue;
        }
        const bool updates = node.op->name == "RowsUpdate";
        EXPECT_TRUE(!is_behind || updates || node.op->name == "GatherRows") << node.op->name;
      }
    }
  }
  EXPECT_EQ(copies, 2);
  EXPECT_GE(own, 7) << "ids, places, late rows, labels, rates";
  EXPECT_EQ(behind, 0);
}

TEST(RowsAhead, WhatCannotBeFetchedIsSaid) {
  const auto notes_of = [](std::int64_t samples, const std::vector<std::string>& more) {
    PlacedTraining::Feeds feeds;
    std::mt19937 random(1);
    feeds["ids"] =
        HostTensor::from<std::int64_t>({samples, fields}, zipf_ids(random, samples, 0, table_rows));
    feeds["label"] = HostTensor::from<float>({samples}, labels(random, samples));
    PlacedTraining training(model, samples, settings(ahead, more), feeds, placed_options());
    std::string notes;
    for (const std::string& note : training.program().lowered().notes) notes += note + "\n";
    return notes;
  };
  const std::string deep = "deep:weight: rows of the next step are not fetched ahead: ";
  EXPECT_THAT(notes_of(batch_size, {}), ::testing::Not(HasSubstr("fetched ahead")));
  const std::string dense = "optimizer.groups=[]";
  EXPECT_THAT(notes_of(batch_size, {dense}), HasSubstr(deep + "their gradient is dense\n"));
  EXPECT_THAT(notes_of(8, {dense}), HasSubstr(deep + "every step changes all of them\n"));
  EXPECT_THAT(notes_of(batch_size, {"micro_batch=16"}),
              HasSubstr(deep + "a step has several micro-batches\n"));
  EXPECT_THAT(notes_of(batch_size, {"parameters.freeze=[{at=\"deep\"}]"}),
              HasSubstr(deep + "a micro-batch of this program does not update them\n"));
}

}  // namespace
}  // namespace tandem::testing
