#include "kernels/cuda/collectives/nccl_communicator.h"

#include <cstring>
#include <utility>

#include "engine/graph/error.h"
#include "kernels/cuda/collectives/nccl_handle.h"
#include "kernels/cuda/collectives/nccl_operations.h"

namespace tandem::cuda {
namespace {

/// What each rank sends to the others before the start; rank 0 adds the id.
struct Readiness {
  std::string problem, version;
  ncclUniqueId id{};

  std::string encoded() const {
    if (!problem.empty()) return '!' + problem;
    return '=' + std::string(id.internal, sizeof id.internal) + version;
  }
};

Readiness readiness_of(const Nccl* nccl, Libraries& libraries, bool is_first) {
  Readiness ready;
  if (nccl == nullptr) {
    ready.problem = "NCCL cannot be used";
    for (const FoundLibrary& report : libraries.report()) {
      if (report.name == "NCCL") ready.problem += ": " + report.problem + " (" + report.fix + ")";
    }
    return ready;
  }
  int version = 0;
  (void)nccl->ncclGetVersion(&version);
  ready.version = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
                  "." + std::to_string(version % 100);
  if (!is_first) return ready;
  const ncclResult_t result = nccl->ncclGetUniqueId(&ready.id);
  if (result != ncclSuccess) ready.problem = problem_of(*nccl, result).what;
  return ready;
}

[[noreturn]] void fail_start(const NcclOptions& options, const Rendezvous& ranks,
                             const std::string& got, const std::string& fix) {
  throw Error(
      ErrorKind::runtime,
      Diagnostic{
          .message = who(options, ranks) + ": NCCL has not started", .got = got, .fix = fix});
}

/// "rank 1: why; rank 3: why" of those that are not empty.
std::string by_rank(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + all[rank];
  }
  return text;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(const NcclOptions& options,
                                                     std::shared_ptr<Rendezvous> rendezvous,
                                                     std::shared_ptr<Runtime> runtime,
                                                     std::shared_ptr<Libraries> libraries) {
  const Nccl* const nccl = libraries->nccl();
  const Readiness own = readiness_of(nccl, *libraries, rendezvous->rank() == 0);
  const std::vector<std::string> all = rendezvous->exchange("NCCL's id", own.encoded());
  std::vector<std::string> problems(all.size());
  constexpr std::size_t before_version = 1 + sizeof own.id.internal;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].starts_with('!')) problems[rank] = all[rank].substr(1);
    if (all[rank].size() <= before_version && problems[rank].empty())
      problems[rank] = "another program";
  }
  if (const std::string text = by_rank(problems); !text.empty())
    fail_start(options, *rendezvous, text, "tandem doctor on that machine says more");
  const std::string first_version = all[0].substr(before_version);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::string version = all[rank].substr(before_version);
    if (version != first_version)
      fail_start(
          options, *rendezvous,
          "rank " + std::to_string(rank) + " has NCCL " + version + ", rank 0 has " + first_version,
          "use the same NCCL on all machines: TANDEM_CUDA_LIBRARIES names its folder");
  }
  ncclUniqueId id;
  std::memcpy(id.internal, all[0].data() + 1, sizeof id.internal);

  auto communicator = std::make_unique<NcclCommunicator>(options, rendezvous, std::move(runtime),
                                                         std::move(libraries), *nccl);
  const std::optional<NcclProblem> problem = communicator->start(id);
  if (problem) communicator->give_up();
  try {
    problems = rendezvous->exchange("NCCL's start", problem ? problem->what : "");
  } catch (const Error& error) {
    communicator->give_up();
    fail_start(options, *rendezvous, (problem ? problem->what + "; " : "") + error.what(),
               problem ? problem->fix : "look at what the ranks named here have printed");
  }
  if (const std::string text = by_rank(problems); !text.empty()) {
    communicator->give_up();
    fail_start(options, *rendezvous, text,
               problem ? problem->fix : "look at what the ranks named here have printed");
  }
  return communicator;
}

}  // namespace tandem::cuda
