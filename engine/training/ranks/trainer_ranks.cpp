// What ranks of a run send each other at its start, and about the parts that each of them has.
#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "engine/training/checkpoints/state_hashes.h"
#include "engine/training/ranks/row_exchange.h"
#include "engine/training/ranks/shared_hashes.h"
#include "engine/training/ranks/start_checks.h"
#include "engine/training/trainer_state.h"

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

void Training::Impl::prove_shared(const std::string& run_dir) {
  const std::string path = run_dir + proof_name;
  const std::string content = from_rank_0(parts.ranks.get(), "proof of the run directory", [&] {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    std::string written = fmt::format("{} {}\n", run_dir, now);
    write_file(path, written);
    return written;
  });
  on_all_ranks(parts.ranks.get(), "shared run directory", [&] {
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
  if (rank() == 0) remove_all(path);
}

void Training::Impl::refuse_other_states() {
  std::vector<RankFact> facts;
  on_all_ranks(parts.ranks.get(), "states", [&] {
    facts.push_back({"the states before the first step", state_hashes(states),
                     "give all ranks the same program, model file and parameters.load"});
  });
  refuse_differences(*parts.ranks, facts);
}

bool Training::Impl::has_parts() const { return parts.ranks && !parts.shards.empty(); }

void Training::Impl::share_infinite() {
  std::string own;
  for (const std::string& name : infinite) own += name + '\n';
  for (const std::string& of_rank : gathered(*parts.ranks, "states with infinities", own)) {
    std::istringstream lines(of_rank);
    for (std::string name; std::getline(lines, name);) infinite.insert(name);
  }
}

void Training::Impl::hash_shared_frozen() {
  const std::vector<std::string> names = states.names();
  const bool any = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return states.shard(name) != nullptr && states.held_by(name) != HeldBy::checkpoint;
  });
  if (!any) return;
  RowExchange exchange(states, *parts.devices[0]);
  position.frozen.merge(shared_frozen_hashes(states, *parts.ranks, exchange));
}

bool Training::Impl::on_all(const char* name, bool is_so) {
  const std::vector<std::string> all = gathered(*parts.ranks, name, is_so ? "yes" : "no");
  return std::count(all.begin(), all.end(), "no") == 0;
}

}  // namespace tandem
