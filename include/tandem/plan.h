// The plan of a training step under a policy: memory, copies, time and remedies as data.
#pragma once

#include "tandem/policy.h"

namespace tandem::api::inline v1 {

/// What a training step of one process takes, in bytes, and in seconds by the cost model. `text` and `json` are written
/// from the other members. Devices are the names that the policy uses.
struct Plan : Report {
  struct Device {
    std::string name, use;  ///< "gpu", "cuda:0"
    PartCounts placed;      ///< operators that run here; parameters and buffers that are read here
    /// By kind, in the program with the highest peak; their sum is not `peak`, which has inputs, outputs and constants,
    /// too, and counts bytes once that several kinds use in turn.
    std::uint64_t parameters = 0, gradients = 0, optimizer_states = 0, activations = 0, workspace = 0, peak = 0;
    std::string peak_at;      ///< path of the operator where the peak is; "" = the start
    std::uint64_t limit = 0;  ///< what the machine or the policy gives
    bool is_limited = true;   ///< false: the host, which swaps above `limit`
  };
  struct Copy {
    std::string value, producer;         ///< producer: an operator's path, an input, a parameter
    std::vector<std::string> consumers;  ///< paths of operators; "output loss"
    std::string from, to;                ///< devices
    Phase phase = Phase::forward;
    std::uint64_t bytes = 0;                              ///< those of one copy; for `rows`: an upper bound
    std::optional<std::uint64_t> expected_bytes;          ///< for `rows`, where they were counted in the data
    double exposed_seconds = 0;                           ///< that computing queues wait for it
    std::int64_t times = 1;                               ///< in a step
    bool is_scalar = false, rows = false, ahead = false;  ///< rows: of a table; ahead: a step before
  };
  /// Sums over a step. Rows that are copied ahead count in the step that uses them.
  struct Traffic {
    std::int64_t copies = 0, scalar_copies = 0;
    std::uint64_t bytes = 0, scalar_bytes = 0;
    bool is_upper_bound = false;                  ///< some copy has only the rows that occur
    std::optional<std::uint64_t> expected_bytes;  ///< where rows were counted in the data
  };
  struct Exchange {
    std::string op, path, device;  ///< "AllReduce"; the operator's or bucket's path
    std::string algorithm;         ///< "ring", "tree", "halving": the least time by the cost model
    Phase phase = Phase::update;
    std::uint64_t operands = 0, bytes = 0;  ///< on one rank, for one exchange
    double seconds = 0, exposed_seconds = 0;
    std::int64_t times = 1;  ///< in a step
  };
  /// A rule that costs time or memory. view: an operator that only changes a shape runs on another device than its
  /// neighbours. home: a weight or state lives on another device than what uses it. memory: a device has too little.
  /// cache: a table cache costs more time than it saves.
  struct Hint {
    enum class Kind : std::uint8_t { view, home, memory, cache } kind = Kind::memory;
    std::string path, message, fix, at, file;  ///< at, file, line: the rule; "" and 0: there is none
    int line = 0;
    std::uint64_t bytes = 0;  ///< a step
  };
  struct Remedy {
    Rule rule;
    std::string text;         ///< the rule as a line of a file: `{ at = "**", state = "cpu" }`
    std::uint64_t freed = 0;  ///< bytes on the devices that the step does not fit into
    bool suffices = false;    ///< the step fits with this rule only
    double seconds = 0;       ///< a step takes with this rule
  };

  bool fits = true;
  double seconds = 0;                                 ///< of a step
  double computing_seconds = 0, exposed_seconds = 0;  ///< the busiest computing queue computes; waits for copies
  int ranks = 1;                                      ///< the plan is that of one of them
  std::vector<Device> devices;                        ///< the first is the cpu
  std::vector<Copy> copies;                           ///< between devices
  Traffic traffic;                                    ///< sums of the copies
  std::vector<Exchange> exchanges;                    ///< between ranks
  std::vector<Hint> hints;
  std::vector<Diagnostic> misfits;  ///< devices that the step does not fit into, and what to change
  std::vector<Remedy> remedies;     ///< where it does not fit; those that suffice first, by seconds
  std::vector<std::string> notes;   ///< what fell back, and what could not be done as asked
};
/// Compiles the training step under the policy without taking device memory.
Plan policy_plan(const PolicyOptions& options);

struct PolicyDiff : Report {
  struct Move {
    std::string path;  ///< that of an operator or a parameter
    bool is_parameter = false;
    Attribute attribute = Attribute::run;
    std::string from, to;  ///< values
  };
  std::vector<Move> moves;
  bool differs = false;  ///< something moves
};
/// What moves from policy `a` to policy `b`, and how memory, traffic and time change. Either may be "": the
/// configuration's own.
PolicyDiff policy_diff(const PolicyOptions& options, const std::string& a, const std::string& b);

}  // namespace tandem::api::inline v1
