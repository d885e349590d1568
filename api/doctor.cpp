// Reports what this machine offers: processor, threads, measured rates, GPUs, harmful settings.
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/model/cuda_status.h"
#include "api/model/engine.h"
#include "api/model/mpi_status.h"
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
  const CudaReport cuda = cuda_report();
  const MpiReport mpi = mpi_report();
  std::optional<Network> network;
  if (group) network = measure_network(engine, *group);
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
                              {"bandwidth_gb_s", bandwidth},
                              {"cuda", cuda_json(cuda)},
                              {"mpi", mpi_json(mpi)},
                              {"warnings", warnings}};
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
  report.text += cuda_text(cuda) + mpi_text(mpi);
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
    if (ranks && !group) {
      throw Error(
          ErrorKind::usage,
          Diagnostic{.message = "doctor --ranks measures what lies between several processes",
                     .expected = "two or more",
                     .got = "one",
                     .fix = "tandem launch -n 2 -- doctor --ranks, or the same by mpirun"});
    }
    return report_of(group);
  });
}

}  // namespace tandem::api
