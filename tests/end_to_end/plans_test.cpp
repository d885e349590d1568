// Properties of the plans of whole networks: kernels, copies, views, order of accesses, no heap
// allocation in a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "api/model/model.h"
#include "engine/formats/arrays/npy.h"
#include "engine/train/graph/training_graph.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/folders.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Network {
  std::string name;      // "resnet18"
  std::string exporter;  // "torchscript" | "dynamo"
  std::string size;      // "narrow": a fixture; "bench": full size, if it exists
  bool own_loss = false;

  bool is(std::string_view prefix) const { return name.starts_with(prefix); }
};

std::string name_of_network(const Network& n) {
  return n.size + "_" + n.name + (n.own_loss ? "_loss_" : "_") + n.exporter;
}

// The network's name in lists of tests.
void PrintTo(const Network& n, std::ostream* stream) { *stream << name_of_network(n); }

const fs::path fixtures = fs::path(source_folder()) / "tests/data/parity";

fs::path models_folder() {
  if (const char* folder = std::getenv("TANDEM_MODELS")) return folder;
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : "") / ".cache/tandem/models";
}

/// A network's training program as in a run, fed with one batch.
class NetworkProgram {
 public:
  explicit NetworkProgram(const Network& network)
      : config_(network.size == "bench" ? bench_config(network) : narrow_config(network)),
        engine_(config_.threads),
        model_(engine_, config_),
        parts_(model_.run_parts()) {
    TrainingRequest request;
    request.config = &config_;
    request.samples = {config_.batch_size, config_.batch_size};
    request.evaluate = engine_.evaluate;
    std::vector<std::string> names;
    for (const auto& [name, tensor] : feeds_) {
      request.fields[name] = tensor.type();
      names.push_back(name);
    }
    const TrainingGraph training =
        build_training_graph(engine_.operators, model_.forward(config_.batch_size, true), request);
    bound_ = bind_program(training, parts_, states_, make_arenas(), names);
  }

  Program& program() { return *bound_.program; }
  const tandem::Plan& plan() const { return bound_.program->plan(); }
  const Lowered& lowered() const { return bound_.program->lowered(); }

  std::vector<NodeId> instructions() const {
    std::vector<NodeId> nodes;
    for (const Queue& queue : plan().queues) {
      for (const Instruction& i : queue.instructions) {
        if (i.node) nodes.push_back(i.node);
      }
    }
    return nodes;
  }

  /// Fills the input slots of one step as in a run.
  void feed(int ticket) {
    const Graph& graph = lowered().graph;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const auto found = feeds_.find(graph.inputs[i].name);
      if (found == feeds_.end()) continue;
      std::memcpy(program().input_slot(static_cast<int>(i), ticket), found->second.data(),
                  found->second.bytes());
    }
    *static_cast<std::int64_t*>(program().input_slot(bound_.step_input, ticket)) = ticket + 1;
    for (const auto& [input, rate] : bound_.learning_rates) {
      *static_cast<float*>(program().input_slot(input, ticket)) = static_cast<float>(rate.base);
    }
  }

  void step(int ticket) {
    StepContext context;
    context.seed = 1;
    context.step = static_cast<std::uint64_t>(ticket) + 1;
    program().run(context, static_cast<std::uint64_t>(ticket));
  }
  float loss(int ticket) {
    return *static_cast<const float*>(program().output(bound_.loss_output, ticket));
  }

 private:
  RunConfig narrow_config(const Network& network) {
    std::ifstream file(fixtures / (network.name + ".json"));
    const Json fixture = Json::parse(file);
    const std::string graph = network.own_loss ? "loss" : "logits";
    const fs::path model = fixtures / fixture["files"][graph][network.exporter].get<std::string>();
    std::vector<std::string> keys{"model=" + Json(model.string()).dump(),
                                  "batch_size=" + fixture["batch"].dump()};
    const bool plain = network.is("mlp");
    const bool convolutions = network.is("lenet") || network.is("resnet") || network.is("conv");
    keys.push_back(plain || convolutions ? "optimizer.kind=sgd" : "optimizer.kind=adamw");
    if (convolutions) keys.push_back("optimizer.momentum=0.9");
    keys.push_back("optimizer.lr=1e-3");
    if (!network.own_loss) {
      keys.push_back("loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=" +
                     fixture["loss"]["logits"].dump() +
                     ", labels=" + fixture["loss"]["labels"].dump() + "}]");
    }
    for (NamedTensor& stored : read_npz(fixtures / fixture["batches"].get<std::string>())) {
      const Json& feed = fixture["feeds"][stored.name];
      add_feed(stored.name,
               stored.tensor.converted(*dtype_from_name(feed["dtype"].get<std::string>())),
               fixture["batch"]);
    }
    return parse_run_config("steps = 1\n", fixtures / "plans.toml", keys);
  }

  RunConfig bench_config(const Network& network) {
    const fs::path folder = models_folder() / network.name;
    std::string row;
    for (const auto& file : fs::directory_iterator(fs::path(source_folder()) / "bench/workloads")) {
      const std::string name = file.path().filename();
      if (name.starts_with(network.name + "_b") && name > row) row = name;
    }
    RunConfig config =
        read_run_config(fs::path(source_folder()) / "bench/workloads" / row,
                        {"model=" + Json((folder / (network.exporter + ".onnx")).string()).dump(),
                         "data.root=" + Json(folder.string()).dump()});
    for (NamedTensor& stored : read_npz(folder / "bench.npz")) {
      add_feed(stored.name == "images" ? "image" : stored.name, std::move(stored.tensor),
               config.batch_size);
    }
    return config;
  }

  void add_feed(const std::string& name, const HostTensor& all, std::int64_t batch) {
    TensorType type = all.type();
    type.shape[0] = batch;
    HostTensor first(type);
    std::memcpy(first.data(), all.data(), first.bytes());
    feeds_[name] = std::move(first);
  }

  std::map<std::string, HostTensor> feeds_;
  RunConfig config_;
  Engine engine_;
  PlacedModel model_;
  RunParts parts_;
  StateStore states_;
  BoundProgram bound_;
};

class PlanTest : public ::testing::TestWithParam<Network> {
 protected:
  void SetUp() override {
    const Network& n = GetParam();
    if (n.size == "bench" && !fs::exists(models_folder() / n.name / (n.exporter + ".onnx"))) {
      GTEST_SKIP() << "no " << n.name << " in " << models_folder()
                   << "; models/make_all.py writes it";
    }
  }
  static bool may_copy(const Graph& graph, const Node& node);
};

TEST_P(PlanTest, HoldsWhatItShould) {
  NetworkProgram network(GetParam());
  const Lowered& lowered = network.lowered();
  const Graph& graph = lowered.graph;
  EXPECT_EQ(verify(network.plan(), lowered), std::vector<std::string>());
  const std::set<std::string> views{"Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                    "Split",   "Slice",   "Expand"};
  ASSERT_FALSE(network.instructions().empty());
  for (const NodeId id : network.instructions()) {
    const Node& node = graph.node(id);
    const std::string what = node.op->name + " of " + node.path;
    EXPECT_FALSE(lowered.nodes[id.index].kernel->reference) << what;
    const bool computes = std::any_of(node.inputs.begin(), node.inputs.end(),
                                      [&](ValueId x) { return x && !graph.is_constant(x); });
    EXPECT_TRUE(computes) << what << " reads constants only";
    EXPECT_FALSE(GetParam().is("gpt") && views.contains(node.op->name)) << what;
    const bool copies = GetParam().is("resnet") && node.op->name == "Copy";
    EXPECT_TRUE(!copies || may_copy(graph, node)) << what;
  }
}

/// Whether the copy is at an end of the network: a fed array, a parameter, the logits, an output.
bool PlanTest::may_copy(const Graph& graph, const Node& node) {
  const Value& from = graph.value(node.inputs[0]);
  if (from.kind == ValueKind::input || from.kind == ValueKind::state || from.name == "logits")
    return true;
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](const NamedValue& output) { return output.value == node.outputs[0]; });
}

// oneDNN's `execute` builds a map of its arguments on the heap; nothing else may allocate.
TEST_P(PlanTest, StepsAllocateNothing) {
  if (!testing::counts_allocations()) GTEST_SKIP() << "the sanitizer has its own heap";
  NetworkProgram network(GetParam());
  Program& program = network.program();
  const auto& nodes = network.lowered().nodes;
  std::int64_t by_onednn = 0, onednn_calls = 0, start = 0;
  program.set_probe([&](NodeId node, bool begin) {
    if (!node || !nodes[node.index].kernel->name.starts_with("onednn.")) return;
    const std::int64_t now = testing::AllocationCount().total();
    if (begin) {
      start = now;
    } else {
      by_onednn += now - start;
      ++onednn_calls;
    }
  });
  for (int ticket = 0; ticket < 10; ++ticket) {
    network.feed(ticket);
    const testing::AllocationCount count;
    by_onednn = onednn_calls = 0;
    network.step(ticket);
    if (ticket < 2) continue;
    EXPECT_EQ(count.calls() - by_onednn, 0) << "step " << ticket + 1;
    EXPECT_LE(by_onednn, 24 * onednn_calls) << "step " << ticket + 1;
    EXPECT_GT(network.loss(ticket), 0);
  }
}

std::vector<Network> planned_networks() {
  std::vector<Network> list;
  for (const char* exporter : {"torchscript", "dynamo"}) {
    for (const char* name :
         {"mlp", "lenet5", "resnet18", "gpt", "conv_bn", "encoder", "tied_decoder"}) {
      list.push_back({name, exporter, "narrow"});
    }
    for (const char* name : {"mlp", "gpt"}) list.push_back({name, exporter, "narrow", true});
    for (const char* name : {"mlp", "lenet5", "resnet18", "resnet50", "gpt"})
      list.push_back({name, exporter, "bench"});
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Networks, PlanTest, ::testing::ValuesIn(planned_networks()),
                         [](const auto& info) { return name_of_network(info.param); });

}  // namespace
}  // namespace tandem::api
