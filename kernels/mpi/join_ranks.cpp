#include "kernels/mpi/join_ranks.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include "engine/graph/error.h"
#include "kernels/mpi/mpi_library.h"
#include "kernels/mpi/mpi_messages.h"

namespace tandem {
namespace {

constexpr int address_channel = 32767;  // beyond those of communicators

MpiPlace start(const MpiLibrary& library, const RankOptions& launched) {
  const std::string who =
      "rank " + std::to_string(launched.rank) + " of " + std::to_string(launched.ranks);
  if (library.functions == nullptr)
    throw Error(ErrorKind::usage, {.message = who + ": several processes need MPI",
                                   .expected = "its plug-in",
                                   .got = library.problem,
                                   .fix = library.fix});
  MpiPlace place;
  char problem[512] = "";
  if (library.functions->start(&place.rank, &place.ranks, &place.local_rank, &place.local_ranks,
                               problem, sizeof problem) != 0)
    throw Error(ErrorKind::runtime,
                {.message = who + ": MPI does not start",
                 .got = problem,
                 .fix = "try `mpirun -np 2 hostname`, which has to work first"});
  if (place.ranks != launched.ranks) {
    throw Error(
        ErrorKind::usage,
        {.message = who + ": MPI has started another number of ranks",
         .expected = std::to_string(launched.ranks) + ", as the launcher's variables say",
         .got = std::to_string(place.ranks),
         .fix = "start with the mpirun of the MPI that libtandem_mpi.so was built with (" +
                std::string(library.functions->library()) + "), under Slurm with srun --mpi=pmix"});
  }
  return place;
}

/// Rank 0's address for all. A rank that gets none within the limit fails.
std::string share_address(MpiMessages& messages, const std::string& own,
                          std::chrono::milliseconds limit) {
  std::array<char, 1024> text{};
  const auto until = std::chrono::steady_clock::now() + limit;
  std::vector<RankMessages::Request> requests;
  if (messages.rank() == 0) {
    own.copy(text.data(), text.size() - 1);
    for (int rank = 1; rank < messages.ranks(); ++rank)
      requests.push_back(messages.send(rank, address_channel, text.data(), text.size()));
  } else {
    requests.push_back(messages.receive(0, address_channel, text.data(), text.size()));
  }
  for (RankMessages::Request& request : requests) {
    while (!messages.is_done(request)) {
      if (std::chrono::steady_clock::now() > until) {
        messages.abandon();
        throw Error(ErrorKind::runtime,
                    {.message = "rank " + std::to_string(messages.rank()),
                     .expected = "rank 0's address over MPI within " +
                                 std::to_string(limit.count() / 1000) + " s",
                     .got = "nothing",
                     .fix = "look at what the other ranks have printed, rank 0 above all"});
      }
      messages.pause(std::chrono::microseconds(200));
    }
  }
  return text.data();
}

/// A rank's machine and the cores that it may use, to compare with others.
std::string cores_text() {
  std::array<char, 256> host{};
  (void)gethostname(host.data(), host.size() - 1);
  cpu_set_t set;
  CPU_ZERO(&set);
  (void)sched_getaffinity(0, sizeof set, &set);
  std::string text;
  for (int core = 0; core < CPU_SETSIZE; ++core) text += CPU_ISSET(core, &set) ? '1' : '0';
  return text + host.data();
}

int core_sharers(const std::vector<std::string>& all, const std::string& own) {
  int sharers = 0;
  for (const std::string& other : all) {
    const bool shares = other.substr(CPU_SETSIZE) == own.substr(CPU_SETSIZE);
    bool overlaps = false;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
      overlaps |= own[core] == '1' && other[core] == '1';
    sharers += shares && overlaps ? 1 : 0;
  }
  return std::max(1, sharers);
}

/// A process has one MPI: one group at a time uses it, and none after a group that has failed.
enum class MpiUse : std::uint8_t { unused, in_use, broken };
std::atomic<MpiUse> mpi_use{MpiUse::unused};

void take_mpi() {
  MpiUse before = MpiUse::unused;
  if (mpi_use.compare_exchange_strong(before, MpiUse::in_use)) return;
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = before == MpiUse::in_use
                                ? "a process trains with other ranks twice at a time"
                                : "a process trains with other ranks after they have failed",
                 .fix = "start another process for it"});
}

/// A group that ends with an error, or after one of any rank, leaves MPI as it is: ending it in
/// order would wait for ranks that do not come.
class MpiRankGroup final : public RankGroup {
 public:
  MpiRankGroup(std::shared_ptr<Rendezvous> rendezvous, std::shared_ptr<MpiMessages> messages,
               const RankGroupOptions& options)
      : RankGroup(std::move(rendezvous), messages, options), messages_(std::move(messages)) {}
  ~MpiRankGroup() {
    const bool is_broken = std::uncaught_exceptions() > 0 || rendezvous()->failure();
    if (is_broken) messages_->abandon();
    mpi_use = is_broken ? MpiUse::broken : MpiUse::unused;
  }

 private:
  const std::shared_ptr<MpiMessages> messages_;
};

std::string path_of_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "";
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::filesystem::path file =
        std::filesystem::path(folders.substr(begin, end - begin)) / name;
    std::error_code error;
    if (end > begin && std::filesystem::is_regular_file(file, error)) return file;
    begin = end + 1;
  }
  return "";
}

}  // namespace

std::shared_ptr<RankGroup> join_ranks(const JoinOptions& options) {
  RankOptions of = rank_options();
  if (of.ranks == 1) return std::make_shared<RankGroup>();
  const MpiLibrary& library = mpi_library();
  const MpiPlace place = start(library, of);
  take_mpi();
  const auto messages = std::make_shared<MpiMessages>(*library.functions, place);
  of.rank = place.rank;
  of.limit = options.start_limit;
  of.exchange_limit = options.exchange_limit;
  of.local_rank = place.local_rank;
  of.one_machine = place.local_ranks == place.ranks;
  of.share = [&](const std::string& own) {
    return share_address(*messages, own, options.start_limit);
  };
  RankGroupOptions group;
  std::shared_ptr<Rendezvous> rendezvous;
  try {
    rendezvous = make_rendezvous(of);
    const std::string own = cores_text();
    group.core_sharers = core_sharers(rendezvous->exchange("the start", own), own);
  } catch (...) {
    messages->abandon();
    mpi_use = MpiUse::broken;
    throw;
  }
  group.local_rank = place.local_rank;
  group.local_ranks = place.local_ranks;
  group.operation_limit = options.operation_limit;
  group.sizes = options.sizes;
  return std::make_shared<MpiRankGroup>(std::move(rendezvous), messages, group);
}

MpiReport mpi_report() {
  MpiReport report;
  report.launcher = path_of_program("mpirun");
  const MpiLibrary& library = mpi_library();
  report.file = library.file;
  if (library.functions == nullptr) {
    report.problem = library.problem;
    report.fix = library.fix;
    return report;
  }
  report.usable = true;
  report.version = library.functions->library();
  report.version = report.version.substr(0, report.version.find('\n'));
  return report;
}

}  // namespace tandem
