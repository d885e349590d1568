// Networks in training under many policies: the exported fixtures, random rules, and what devices
// count compared with the plan.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "api/program/policy_files.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/end_to_end/placed_training.h"

namespace tandem::testing {

struct PolicyCase {
  std::string network;
  std::size_t optimizer = 0;
};
inline void PrintTo(const PolicyCase& c, std::ostream* stream) { *stream << c.network; }

/// The networks of the fixtures, each with another optimizer.
inline std::vector<PolicyCase> policy_networks() {
  return {{"mlp", 0}, {"lenet5", 3},  {"conv_bn", 1},
          {"gpt", 4}, {"encoder", 2}, {"tied_decoder", 4}};
}

/// What rules can name in the model.
struct Names {
  std::vector<std::string> operators, parameters;
};

inline Names policy_names_of(const std::string& model, std::int64_t batch) {
  api::PolicyOptions options;
  options.model = model;
  options.bind = {{"batch", batch}};
  Names names;
  const Json listed = Json::parse(api::policy_names(options, "", "graph").json);
  for (const Json& row : listed["names"]) {
    const std::string op = row["op"], path = row["path"];
    if (path.empty()) continue;
    (op == "parameter" ? names.parameters : names.operators).push_back(path);
  }
  return names;
}

/// Rules that place operators, weights and states anywhere, some of them on one of two
/// accelerators.
inline std::string random_policy(const Names& names, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t devices = seed % 4 == 3 ? 3 : 2;
  const char* const device_names[] = {"cpu", "gpu", "far"};
  const auto device = [&] { return device_names[random() % devices]; };
  std::string text =
      "policy = 1\n[devices]\ngpu = { use = \"emulated:0\", memory = \"256MiB\" }\n"
      "far = { use = \"emulated:1\", memory = \"256MiB\" }\n";
  std::string rules;
  const auto rule = [&](const std::string& at, const std::string& key, const char* value) {
    rules += "  { at = \"" + at + "\", " + key + " = \"" + value + "\" },\n";
  };
  rule("**", "on", device());
  const std::uint64_t one_in = 1 + random() % 4;
  for (const std::string& path : names.operators) {
    if (random() % one_in == 0) rule(path, "run", device());
  }
  for (const std::string& path : names.parameters) {  // operators on both may read it
    rule(path, "param", device());
    if (random() % 2 == 0) rule(path, "state", device());
  }
  if (random() % 4 == 0) rule("loss.**", "run", device());
  const std::string head = "policy = 1\n";
  return head + "rules = [\n" + rules + "]\n" + text.substr(head.size());
}

struct NetworkCase {
  std::string model;
  std::int64_t batch = 0;
  std::vector<std::string> settings;
  std::map<std::string, HostTensor> feeds;  // for all steps

  NetworkCase() = default;
  explicit NetworkCase(const PolicyCase& of) {
    const Json fixture = read_fixture(of.network);
    model = parity_folder() + fixture["files"]["logits"]["torchscript"].get<std::string>();
    batch = fixture["batch"];
    settings = settings_of(fixture["optimizers"][of.optimizer], fixture, false);
    feeds = read_feeds(fixture);
  }

  /// `more`: further keys of train.toml.
  PlacedTraining training(const std::string& policy = "", const std::vector<std::string>& more = {},
                          const PlacedOptions& options = {}) const {
    std::vector<std::string> keys = settings;
    keys.insert(keys.end(), more.begin(), more.end());
    if (!policy.empty()) keys.push_back("policy=" + Json(policy).dump());
    return PlacedTraining(model, batch, keys, batch_of(0), options);
  }
  PlacedTraining::Feeds batch_of(int step) const {
    PlacedTraining::Feeds fed;
    for (const auto& [name, tensor] : feeds) {
      TensorType type = tensor.type();
      type.shape[0] = batch;
      HostTensor part(type);
      std::memcpy(part.data(),
                  static_cast<const std::byte*>(tensor.data()) +
                      static_cast<std::size_t>(step) * part.bytes(),
                  part.bytes());
      fed[name] = std::move(part);
    }
    return fed;
  }
};

/// Bytes and copies in a step.
struct Copied {
  std::uint64_t to_device = 0, to_host = 0, copies = 0;
  bool operator==(const Copied&) const = default;
};
inline void PrintTo(const Copied& copied, std::ostream* stream) {
  *stream << copied.to_device << " bytes to the device, " << copied.to_host << " to the host, "
          << copied.copies << " copies";
}

/// Whether a copy moves as many rows as occur; the plan has as many as there is room for.
inline bool is_of_rows(const Program& program, const Instruction& copy) {
  const Node& node = program.lowered().graph.node(copy.node);
  return node.inputs.size() > 2 && node.inputs[2];
}

/// The plan's copies per device, with or without copies of rows.
inline std::vector<Copied> planned_copies(const Program& program, bool with_rows) {
  std::vector<Copied> planned(program.lowered().devices.size());
  for (const Queue& queue : program.plan().queues) {
    for (const Instruction& instruction : queue.instructions) {
      if (instruction.kind != Instruction::Kind::copy) continue;
      if (!with_rows && is_of_rows(program, instruction)) continue;
      Copied& copied = planned[queue.device];
      ++copied.copies;
      for (const Access& access : instruction.accesses) {
        if (!access.write) continue;
        (queue.role == Queue::Role::copy_in ? copied.to_device : copied.to_host) +=
            access.end - access.begin;
      }
    }
  }
  return planned;
}

inline std::vector<Copied> counted(const PlacedTraining& training) {
  std::vector<Copied> all;
  for (const Device* device : training.devices()) {
    const DeviceCounters counters = device->counters();
    all.push_back({counters.bytes_to_device, counters.bytes_to_host, counters.copies});
  }
  return all;
}

/// The copies of one step, between two readings.
inline std::vector<Copied> difference(const std::vector<Copied>& now,
                                      const std::vector<Copied>& before) {
  std::vector<Copied> all;
  for (std::size_t d = 0; d < now.size(); ++d) {
    all.push_back({now[d].to_device - before[d].to_device, now[d].to_host - before[d].to_host,
                   now[d].copies - before[d].copies});
  }
  return all;
}

/// Memory must not exceed the plan, and the peak must include everything that the step requested.
inline void expect_planned_memory(const PlacedTraining& training) {
  for (std::size_t d = 1; d < training.devices().size(); ++d) {
    const MemoryUse& planned = training.program().plan().memory[d];
    const std::size_t measured = training.devices()[d]->counters().peak_bytes;
    EXPECT_LE(measured, planned.peak) << training.devices()[d]->name();
    EXPECT_GE(measured, planned.parameters + planned.state + planned.arena);
  }
}

/// Bytes must equal the plan; copies of rows may have fewer.
inline void expect_planned_bytes(const std::vector<Copied>& copied, const Program& program) {
  const std::vector<Copied> least = planned_copies(program, false);
  const std::vector<Copied> most = planned_copies(program, true);
  for (std::size_t d = 0; d < copied.size(); ++d) {
    if (most[d] == least[d]) {
      EXPECT_EQ(copied[d], most[d]);
      continue;
    }
    EXPECT_EQ(copied[d].copies, most[d].copies);
    for (const auto bytes : {&Copied::to_device, &Copied::to_host}) {
      EXPECT_GE(copied[d].*bytes, least[d].*bytes);
      EXPECT_LE(copied[d].*bytes, most[d].*bytes);
    }
  }
}

}  // namespace tandem::testing
