// How the ranks of a run find each other: small messages between their hosts when a run starts, and
// reports of a rank that has died.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

/// Calls may come from several threads.
class Rendezvous {
 public:
  /// Limit of the bytes that one rank gives to an exchange.
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  virtual ~Rendezvous() = default;
  virtual int rank() const = 0;   // from 0
  virtual int ranks() const = 0;  // how many

  /// The bytes of every rank, in their order, once all have come to the exchange of that name. All
  /// ranks come to the same ones in the same order. Throws Error{runtime} that names the ranks that
  /// have not come within the time limit, have died or are at another exchange.
  virtual std::vector<std::string> exchange(const std::string& name, const std::string& bytes) = 0;
  /// What has gone wrong for all ranks, such as the death of one; nothing while all is well. Never
  /// waits.
  virtual std::optional<std::string> failure() = 0;
  /// This rank ends with an error: all ranks learn why, and from now on nothing succeeds. Never
  /// waits; the first failure stays.
  virtual void fail(const std::string& why) = 0;
};

struct RankOptions {
  int rank = 0, ranks = 1;
  int local_rank = 0;                      // among those on this machine: the number of its GPU
  std::string address;                     // "host:port" where rank 0 listens
  std::chrono::milliseconds limit{60000};  // for ranks to connect, and to come to an exchange
  /// Time limit of an exchange once all ranks have connected: a rank may compute for long before
  /// it. 0: `limit`.
  std::chrono::milliseconds exchange_limit{0};
  /// Time after which a rank that gives no sign of life counts as stopped. A long computation does
  /// not: signs come from a thread of their own.
  std::chrono::milliseconds silence{8000};
  /// Used where `address` is empty: rank 0 listens at a free port, and this passes its address from
  /// rank 0 to all (other ranks give "").
  std::function<std::string(const std::string& address)> share;
  bool one_machine = false;  // all ranks are on it: no other machine can connect then
};

/// A variable of the environment; "" where it is not set.
using RankVariables = std::function<std::string(const char* name)>;

/// TANDEM_RANK, TANDEM_RANKS, TANDEM_LOCAL_RANK, TANDEM_ADDRESS, or rank and count from what Open
/// MPI's mpirun, MPICH's or Slurm's srun have set. One rank where there is nothing of that. The
/// address may be missing. Throws Error{usage}.
RankOptions rank_options(const RankVariables& variables);
/// The options from this process's environment.
RankOptions rank_options();

/// That of a process that trains without others: rank 0 of 1, which gets its own bytes back.
std::shared_ptr<Rendezvous> one_rank();

/// A rendezvous over TCP; rank 0 is the server. One rank needs no address. Returns when rank 0 is
/// there and has admitted this rank. Throws Error{usage} for impossible options, Error{runtime}
/// where the address cannot be used, nothing answers within the limit, or rank 0 refuses this rank.
std::shared_ptr<Rendezvous> make_rendezvous(const RankOptions& options);

}  // namespace tandem
