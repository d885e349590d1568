// `bench` on several devices: a trace with a track for each queue and arrows for values that cross,
// times of queues and boundaries next to those of the cost model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/program/machine.h"
#include "engine/formats/arrays/npy.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/api/train_toml.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using Json = nlohmann::json;

constexpr std::int64_t bench_batch = 16, bench_width = 24, bench_samples = 64;
constexpr std::size_t traced_steps = 5;

/// Two layers, of which the second one and all optimizer state are on the host.
class BenchTest : public ::testing::Test {
 protected:
  BenchTest() {
    testing::SmallModel model;
    model.input("x", {bench_batch, bench_width}).output("logits", {bench_batch, bench_width});
    model.weight("first.weight", {bench_width, bench_width}, 0.1f)
        .weight("second.weight", {bench_width, bench_width}, 0.1f);
    model.node("MatMul", "first", {"x", "first.weight"}, "hidden");
    model.node("Tanh", "tanh", {"hidden"}, "active");
    model.node("MatMul", "second", {"active", "second.weight"}, "logits");
    write("model.onnx", model.bytes());
    HostTensor x(TensorType{DType::float32, {bench_samples, bench_width}}),
        labels(TensorType{DType::int32, {bench_samples}});
    std::int64_t i = 0;
    for (float& value : x.as<float>()) value = static_cast<float>(i++ % 97) / 97;
    for (std::int32_t& label : labels.as<std::int32_t>())
      label = static_cast<std::int32_t>(i++ % 9);
    write_npz(folder_ / "train.npz", {{"x", x}, {"labels", labels}});
    write("train.toml", testing::train_toml({.optimizer = "adamw"}));
    write("policy.toml", R"(policy = 1
devices = { gpu = { use = "emulated:0", memory = "64MiB" } }
rules = [
  { at = "**", on = "gpu" },
  { at = "second", on = "cpu" },
  { at = "**:*", state = "cpu" },
]
)");
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  Report run(const std::vector<std::string>& overrides = {}) {
    BenchOptions options;
    options.overrides = overrides;
    options.seconds = 0.01;
    options.trace_path = folder_ / "trace.json";
    return bench(folder_ / "train.toml", options);
  }
  Json trace() const {
    std::ifstream file(folder_ / "trace.json");
    return Json::parse(file)["traceEvents"];
  }

  testing::TemporaryFolder folder_;
};

std::vector<Json> of_phase(const Json& events, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : events) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

/// The slice of the track that contains an arrow's end.
const Json& slice_at(const std::vector<Json>& slices, const Json& end) {
  static const Json none;
  const double at = end["ts"];
  for (const Json& slice : slices) {
    const double start = slice["ts"];
    if (slice["tid"] == end["tid"] && start <= at && at <= start + slice["dur"].get<double>())
      return slice;
  }
  return none;
}

TEST_F(BenchTest, EveryTrackHasTheNameOfItsQueue) {
  run();
  const Json events = trace();
  std::map<int, std::string> names;
  for (const Json& event : of_phase(events, "M")) {
    ASSERT_EQ(event["name"], "thread_name");
    EXPECT_TRUE(names.emplace(event["tid"], event["args"]["name"]).second);
  }
  std::set<std::string> used;
  for (const Json& slice : of_phase(events, "X")) {
    ASSERT_TRUE(names.contains(slice["tid"])) << slice;
    used.insert(names[slice["tid"]]);
    EXPECT_GE(slice["dur"].get<double>(), 0);
  }
  EXPECT_THAT(used, IsSupersetOf({"cpu", "gpu", "gpu.in", "gpu.out", "cpu.feed"}));
  EXPECT_EQ(used.size(), names.size()) << "one track a queue, each with something on it";
}

TEST_F(BenchTest, CopiesCarryBytesAndArrows) {
  const Json report = Json::parse(run().json);
  const Json events = trace();
  const std::vector<Json> slices = of_phase(events, "X");
  std::vector<Json> copies;
  std::uint64_t bytes = 0;
  for (const Json& slice : slices) {
    EXPECT_EQ(slice["cat"] == "copy", slice.contains("args") && slice["args"].contains("bytes"));
    if (slice["cat"] != "copy") continue;
    EXPECT_GT(slice["args"]["bytes"], 0);
    bytes += slice["args"]["bytes"].get<std::uint64_t>();
    copies.push_back(slice);
  }
  EXPECT_EQ(copies.size(), traced_steps * report["copies"].size());
  EXPECT_EQ(bytes, traced_steps * report["transfers"]["bytes"].get<std::uint64_t>());

  std::map<int, Json> begins, ends;
  for (const Json& event : of_phase(events, "s")) begins[event["id"]] = event;
  for (const Json& event : of_phase(events, "f")) ends[event["id"]] = event;
  ASSERT_FALSE(begins.empty());
  ASSERT_EQ(begins.size(), ends.size());
  std::map<Json, int> into, out_of;  // by copy
  for (const auto& [id, begin] : begins) {
    ASSERT_TRUE(ends.contains(id));
    const Json& end = ends[id];
    EXPECT_EQ(end["bp"], "e");
    EXPECT_LE(begin["ts"], end["ts"]) << "a value is made before it is read";
    const Json &from = slice_at(slices, begin), &to = slice_at(slices, end);
    ASSERT_FALSE(from.is_null()) << begin;
    ASSERT_FALSE(to.is_null()) << end;
    EXPECT_NE(from["tid"], to["tid"]);
    EXPECT_TRUE(from["cat"] == "copy" || to["cat"] == "copy") << from << to;
    ++out_of[from];
    ++into[to];
  }
  // The first step reads weights of a step that was not traced, and the last one writes some for
  // such a step.
  std::sort(copies.begin(), copies.end(),
            [](const Json& a, const Json& b) { return a["ts"] < b["ts"]; });
  const std::size_t in_step = copies.size() / traced_steps;
  for (std::size_t i = in_step; i < copies.size() - in_step; ++i) {
    EXPECT_EQ(into[copies[i]], 1) << copies[i];
    EXPECT_GE(out_of[copies[i]], 1) << copies[i];
  }
}

/// For one step: all numbers exist, and sums over the copies equal those of the boundaries.
void expect_whole(const Report& report) {
  const Json json = Json::parse(report.json);
  std::set<std::string> queues;
  for (const Json& queue : json["queues"]) {
    queues.insert(queue["name"]);
    EXPECT_GT(queue["busy_ms"], 0);
    EXPECT_GE(queue["waiting_ms"], 0);
    EXPECT_GT(queue["predicted"]["busy_ms"], 0);
    EXPECT_LE(queue["busy_ms"].get<double>(), 100 * json["step_ms"].get<double>());
  }
  EXPECT_EQ(queues, (std::set<std::string>{"cpu", "gpu", "gpu.in", "gpu.out"}));

  std::map<std::string, std::uint64_t> bytes_of, copies_of;
  std::uint64_t bytes = 0;
  for (const Json& copy : json["copies"]) {
    EXPECT_FALSE(copy["producer"].get<std::string>().empty());
    EXPECT_FALSE(copy["consumers"].empty());
    EXPECT_GT(copy["copying_ms"], 0);
    for (const Json& times : {copy, copy["predicted"]}) {
      EXPECT_LE(times["exposed_ms"], times["copying_ms"]);
      EXPECT_LE(times["exposed_ms"], times["waiting_ms"]);
    }
    const std::string name =
        copy["from"].get<std::string>() + " > " + copy["to"].get<std::string>();
    bytes_of[name] += copy["bytes"].get<std::uint64_t>() * copy["times"].get<std::uint64_t>();
    copies_of[name] += copy["times"].get<std::uint64_t>();
  }
  for (const Json& boundary : json["boundaries"]) {
    const std::string name =
        boundary["from"].get<std::string>() + " > " + boundary["to"].get<std::string>();
    EXPECT_EQ(boundary["bytes"], bytes_of[name]);
    EXPECT_EQ(boundary["copies"], copies_of[name]);
    EXPECT_THAT(report.text, HasSubstr(name));
    bytes += boundary["bytes"].get<std::uint64_t>();
    EXPECT_GT(boundary["predicted"]["copying_ms"], 0);
  }
  EXPECT_EQ(json["boundaries"].size(), 2u);
  EXPECT_EQ(json["transfers"]["bytes"], bytes);
  EXPECT_THAT(report.text, HasSubstr("by the cost model"));
  // AdamW of two weights on the host: 28 bytes per element, and scalars.
  const double updated = json["host_updates"]["bytes"],
               least = 28.0 * 2 * bench_width * bench_width;
  EXPECT_GE(updated, least);
  EXPECT_LE(updated, least + 64);
  EXPECT_GT(json["host_updates"]["gb_per_s"], 0);
}

TEST_F(BenchTest, QueuesAndBoundariesAreMeasuredAndPredicted) { expect_whole(run()); }

TEST_F(BenchTest, OneDeviceHasOneNamedTrack) {
  write("policy.toml", "policy = 1\n");
  const Json json = Json::parse(run().json);
  EXPECT_EQ(json["queues"].size(), 1u);
  EXPECT_EQ(json["queues"][0]["name"], "cpu");
  EXPECT_EQ(json["transfers"]["bytes"], 0);
  const Json events = trace();
  ASSERT_EQ(of_phase(events, "M").size(), 1u);
  EXPECT_EQ(of_phase(events, "M")[0]["args"]["name"], "cpu");
  EXPECT_FALSE(of_phase(events, "X").empty());
}

// Micro-batches of one step are programs of their own, some of which run several times.
TEST_F(BenchTest, MicroBatchesAreMeasuredAndPredicted) {
  const std::string micro_batches = "micro_batch=4";
  const Report report = run({micro_batches});
  expect_whole(report);
  const Json json = Json::parse(report.json);
  std::set<int> times;
  for (const Json& copy : json["copies"]) times.insert(copy["times"].get<int>());
  EXPECT_EQ(times, (std::set<int>{1, 2}));  // first, twice the middle, last

  // The plan's bytes and predicted times.
  PolicyOptions options;
  options.config = folder_ / "train.toml";
  options.overrides = {micro_batches};
  const Json plan = Json::parse(policy_plan(options).json);
  const Json& traffic = plan["traffic"];
  EXPECT_EQ(json["transfers"]["bytes"],
            traffic["bytes"].get<std::uint64_t>() + traffic["scalar_bytes"].get<std::uint64_t>());
  EXPECT_NEAR(json["transfers"]["predicted"]["exposed_ms"],
              plan["time"]["exposed_copies_ms"].get<double>(), 1e-9);

  // Every operator of every micro-batch, including the update, which only the last one has.
  std::set<std::string> phases;
  for (const Json& row : json["operators"]) phases.insert(row["phase"]);
  EXPECT_EQ(phases, (std::set<std::string>{"forward", "backward", "update"}));

  const Json events = trace();
  std::set<std::string> names;
  for (const Json& event : of_phase(events, "M")) names.insert(event["args"]["name"]);
  EXPECT_THAT(names, IsSupersetOf({"cpu", "gpu", "gpu.in", "gpu.out"}));
  const std::vector<Json> slices = of_phase(events, "X");
  std::map<int, Json> begins, ends;
  for (const Json& event : of_phase(events, "s")) begins[event["id"]] = event;
  for (const Json& event : of_phase(events, "f")) ends[event["id"]] = event;
  ASSERT_FALSE(begins.empty());
  ASSERT_EQ(begins.size(), ends.size());
  for (const auto& [id, begin] : begins) {
    EXPECT_LE(begin["ts"], ends.at(id)["ts"]) << "a value is made before it is read";
    ASSERT_FALSE(slice_at(slices, begin).is_null()) << begin;
    ASSERT_FALSE(slice_at(slices, ends.at(id)).is_null()) << ends.at(id);
  }
}

TEST_F(BenchTest, MicroBatchesOnOneDeviceAreTimedWhole) {
  write("policy.toml", "policy = 1\n");
  const Json json = Json::parse(run({"micro_batch=8"}).json);
  std::map<std::string, int> products;
  for (const Json& row : json["operators"]) {
    EXPECT_GT(row["ms"], 0) << row;
    products[row["phase"]] += row["op"] == "MatMul";
  }
  EXPECT_EQ(products["forward"], 4);  // two layers, two micro-batches
  EXPECT_EQ(json["host_updates"]["bytes"].get<double>() > 0, true);
}

// If the last step has fewer micro-batches, the times of single copies and waits are unknown.
TEST_F(BenchTest, StepsOfSeveralKindsKeepTracksAndBytes) {
  const Json json = Json::parse(run({"batch_size=24", "micro_batch=8"}).json);
  EXPECT_GT(json["transfers"]["bytes"], 0);
  EXPECT_TRUE(json["boundaries"].empty());
  std::set<std::string> names;
  for (const Json& event : of_phase(trace(), "M")) names.insert(event["args"]["name"]);
  EXPECT_THAT(names, IsSupersetOf({"cpu", "gpu", "gpu.in", "gpu.out"}));
}

}  // namespace
}  // namespace tandem::api
