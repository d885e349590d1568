#include "engine/train/loop/rank_start.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "engine/graph/error.h"
#include "engine/train/checkpoints/state_hashes.h"
#include "engine/train/group/gathered.h"
#include "engine/train/group/row_exchange.h"
#include "engine/train/group/shared_hashes.h"
#include "engine/train/group/start_checks.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// A file that another machine has written may take a while to show.
constexpr std::chrono::seconds longest_wait{10};
constexpr const char* proof_name = "/ranks.proof";

bool can_read(const std::string& path, const std::string& content) {
  try {
    return path_exists(path) && read_file(path) == content;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void prove_shared(const Run& run, const std::string& run_dir) {
  if (run.ranks().ranks() == 1) return;
  const std::string path = run_dir + proof_name;
  const std::string content = from_rank_0(run.ranks(), "proof of the run directory", [&] {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    std::string written = fmt::format("{} {}\n", run_dir, now);
    write_file(path, written);
    return written;
  });
  on_all_ranks(run.ranks(), "shared run directory", [&] {
    for (const auto end = Clock::now() + longest_wait; !can_read(path, content);) {
      if (Clock::now() > end) {
        Diagnostic d;
        d.file = run_dir;
        d.message = "the run directory of rank 0 is not that of this rank";
        d.expected = "a folder of a file system that all ranks see under one path";
        d.got = path_exists(run_dir) ? "a folder without the file that rank 0 has just written"
                                     : "no such folder";
        d.fix = "name one with --run-dir, or start the ranks in one folder that they share";
        throw Error(ErrorKind::usage, std::move(d));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  if (run.rank() == 0) remove_all(path);
}

void refuse_other_states(const Run& run) {
  if (run.ranks().ranks() == 1) return;
  std::vector<RankFact> facts;
  on_all_ranks(run.ranks(), "states", [&] {
    facts.push_back({"the states before the first step", state_hashes(run.states),
                     "give all ranks the same program, model file and parameters.load"});
  });
  refuse_differences(run.ranks(), facts);
}

void hash_sharded_frozen(Run& run) {
  const std::vector<std::string> names = run.states.names();
  const bool any = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return run.states.shard(name) != nullptr && run.states.held_by(name) != HeldBy::checkpoint;
  });
  if (!any) return;
  RowExchange exchange(run.states, *run.parts.devices[0]);
  run.position.frozen.merge(shared_frozen_hashes(run.states, run.ranks(), exchange));
}

}  // namespace tandem
