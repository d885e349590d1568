// Which rank this process is, by the variables that launchers set.
#include <charconv>
#include <cstdlib>

#include "engine/graph/error.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {
namespace {

/// The variables in which a launcher puts rank, number of ranks and rank on the machine. Slurm sets
/// SLURM_NTASKS in batch scripts as well, where only one process runs; only srun sets the count of
/// a step.
struct Launcher {
  const char *rank, *ranks, *local_rank;
};
constexpr Launcher launchers[] = {
    {"TANDEM_RANK", "TANDEM_RANKS", "TANDEM_LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

[[noreturn]] void fail(const std::string& message, const std::string& expected,
                       const std::string& got, const std::string& fix) {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = message, .expected = expected, .got = got, .fix = fix});
}

int number_of(const RankVariables& variables, const char* name, int least, int most) {
  const std::string text = variables(name);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || number < least || number > most) {
    fail(std::string("environment variable ") + name,
         "a number from " + std::to_string(least) + " to " + std::to_string(most), '"' + text + '"',
         "the program that starts the ranks sets it, for each rank");
  }
  return number;
}

/// Refuses launchers that are not supported: their processes would each train by itself.
void refuse_others(const RankVariables& variables, int known_ranks) {
  constexpr struct {
    const char *rank, *ranks, *whose;
  } others[] = {{"RANK", "WORLD_SIZE", "PyTorch's torchrun"},
                {"RANK_ID", "RANK_SIZE", "MindSpore's launcher"},
                {"MS_ROLE", "MS_WORKER_NUM", "MindSpore's dynamic cluster"}};
  for (const auto& other : others) {
    const std::string rank = variables(other.rank), ranks = variables(other.ranks);
    if (known_ranks > 1 || rank.empty() || ranks.empty() || ranks == "1") continue;
    fail(std::string("started as one of several processes by the variables of ") + other.whose,
         "those of mpirun, srun or tandem launch",
         std::string(other.rank) + "=" + rank + ", " + other.ranks + "=" + ranks,
         "start with `tandem launch -n " + ranks + " …` or mpirun; for one process unset " +
             other.ranks);
  }
}

}  // namespace

RankOptions rank_options(const RankVariables& variables) {
  constexpr int most_ranks = 1 << 16;
  RankOptions options;
  options.address = variables("TANDEM_ADDRESS");
  for (const Launcher& launcher : launchers) {
    const bool has_rank = !variables(launcher.rank).empty();
    const bool has_ranks = !variables(launcher.ranks).empty();
    const bool is_own = &launcher == launchers;
    if (is_own && has_rank != has_ranks) {
      const char* const missing = has_rank ? launcher.ranks : launcher.rank;
      fail(std::string("environment variable ") + missing, "a number", "nothing",
           "set TANDEM_RANK and TANDEM_RANKS both, or neither");
    }
    if (!has_rank || !has_ranks) continue;
    options.ranks = number_of(variables, launcher.ranks, 1, most_ranks);
    options.rank = number_of(variables, launcher.rank, 0, options.ranks - 1);
    options.local_rank = variables(launcher.local_rank).empty()
                             ? options.rank
                             : number_of(variables, launcher.local_rank, 0, options.rank);
    break;
  }
  refuse_others(variables, options.ranks);
  return options;
}

RankOptions rank_options() {
  return rank_options([](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  });
}

}  // namespace tandem
