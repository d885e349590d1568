// Reports what this machine offers: processor, threads, measured rates, GPUs, harmful settings.
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/model/device_status.h"
#include "api/model/engine.h"
#include "api/model/mpi_status.h"
#include "api/program/launched.h"
#include "api/program/machine.h"
#include "api/run_files.h"
#include "api/timing/machine_rates.h"
#include "api/timing/network_rate.h"
#include "api/train/on_ranks.h"
#include "kernels/mpi/join_ranks.h"
#include "placement/quantities.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

Report report_of(const std::shared_ptr<RankGroup>& group) {
  const Engine engine;
  const DeviceFacts& facts = engine.cpu->facts();
  std::vector<std::pair<const DeviceFamily*, DeviceReport>> families;
  for (const DeviceBackend& backend : device_backends()) {
    if (backend.describe) families.emplace_back(backend.family, backend.describe());
  }
  const MpiReport mpi = mpi_report();
  std::optional<Network> network;
  if (group->ranks() > 1) network = measure_network(engine, *group);
  const double gflops = gemm_gflops(engine), bandwidth = bandwidth_gb_s(engine);
  std::vector<std::string> warnings;
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  if (policy != nullptr && (std::string(policy) == "passive" || std::string(policy) == "PASSIVE")) {
    warnings.push_back(
        "OMP_WAIT_POLICY=passive costs about 60 us at every parallel region: unset it");
  }
  nlohmann::ordered_json json{{"version", version()},
                              {"devices",
                               {{{"name", "cpu"},
                                 {"processor", cpu_name()},
                                 {"features", facts.features},
                                 {"threads", facts.threads},
                                 {"memory_bytes", engine.cpu->memory_bytes()}}}},
                              {"gemm_gflops", gflops},
                              {"bandwidth_gb_s", bandwidth}};
  for (const auto& [family, found] : families)
    json[std::string(family->kind)] = device_json(*family, found);
  json["mpi"] = mpi_json(mpi);
  json["warnings"] = warnings;
  if (network) {
    json["network"] = {{"ranks", group->ranks()},
                       {"bytes_per_second", network->bytes_per_second},
                       {"latency_seconds", network->latency}};
  }
  std::string features;
  for (const std::string& feature : facts.features) features += " " + feature;
  Report report;
  report.json = json.dump(2);
  report.text = fmt::format(
      "tandem {}\ncpu       {}, {} threads,{}, {}\n"
      "measured  float32 products {:.0f} GF/s; in-place updates {:.1f} GB/s\n",
      version(), cpu_name(), facts.threads, features, bytes_text(engine.cpu->memory_bytes()),
      gflops, bandwidth);
  for (const auto& [family, found] : families) report.text += device_text(*family, found);
  report.text += mpi_text(mpi);
  if (network) {
    report.text += fmt::format(
        "network   {} ranks: {:.2f} GB/s in each direction, {:.1f} us a message "
        "(policy auto --ranks N --network {:.2f}GB/s,{:.1f}us)\n",
        group->ranks(), network->bytes_per_second / 1e9, network->latency * 1e6,
        network->bytes_per_second / 1e9, network->latency * 1e6);
  }
  for (const std::string& warning : warnings) report.text += "warning   " + warning + "\n";
  return report;
}

}  // namespace

Launched launched() {
  const RankOptions options = rank_options();
  return {options.rank, options.ranks};
}

Report doctor(bool ranks) {
  return on_ranks([&](const std::shared_ptr<RankGroup>& group) {
    if (ranks && group->ranks() == 1) {
      throw Error(
          ErrorKind::usage,
          Diagnostic{.message = "doctor --ranks measures the network between several processes",
                     .expected = "two or more",
                     .got = "one",
                     .fix = "tandem launch -n 2 -- doctor --ranks, or the same by mpirun"});
    }
    return report_of(group);
  });
}

}  // namespace tandem::api
