// A program: one graph compiled for one binding and mode, run step by step over a shared State.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/lower/lowered.h"
#include "engine/plan/plan.h"
#include "engine/runtime/compile.h"
#include "engine/runtime/state_store.h"

namespace tandem {

/// Memory shared by all programs of a run: one arena per device, which grows before the run.
class Arenas;

class Program {
 public:
  Program(const Graph& graph, const Placement& placement, const OperatorSet& operators,
          const std::vector<Device*>& devices, StateStore& states, std::shared_ptr<Arenas> arenas,
          const ProgramOptions& options);
  /// From a program that was compiled with these options, for the layouts of `states`.
  Program(CompiledProgram compiled, StateStore& states, std::shared_ptr<Arenas> arenas,
          const ProgramOptions& options);
  ~Program();

  /// Address and bytes of an input's slot for step number `ticket` (0, 1, ...); row-major. Loader
  /// threads may fill slots ahead: a slot may be written once `slot_free(ticket)`.
  void* input_slot(int input, std::uint64_t ticket);
  int input_slots() const;
  /// Whether the slots of that ticket may be filled: the step that used them before has finished.
  bool slot_free(std::uint64_t ticket) const;

  /// Runs one step on the calling thread's lane; the inputs of this ticket are filled. Allocates
  /// nothing. Its outputs are there when it returns, and the inputs are not read any more.
  void run(const StepContext& context, std::uint64_t ticket);
  /// `run` in two calls: `launch` returns while devices may still work, `finish` waits for the
  /// outputs. `steps_in_flight` steps may be launched before the first of them is finished; tickets
  /// are finished in their order.
  int steps_in_flight() const;
  void launch(const StepContext& context, std::uint64_t ticket);
  void finish(std::uint64_t ticket);
  /// Whether that ticket's inputs are not read any more; it has been launched and not finished.
  bool has_read_inputs(std::uint64_t ticket) const;
  /// An output of that ticket, row-major, valid until `output_slots` steps later.
  const void* output(int output, std::uint64_t ticket) const;

  /// What kernels reported since the last `clear_errors`; written where a step's context has no
  /// error word.
  struct StepError {
    ErrorWord::Kind kind = ErrorWord::none;
    std::string path;        // the node's
    std::int64_t value = 0;  // the offending number
  };
  ErrorWord& errors();
  /// The report in `word` with the node's path; nothing where it is empty.
  std::optional<StepError> error_in(const ErrorWord& word) const;

  const Lowered& lowered() const;
  const Plan& plan() const;
  /// Parts of the step that were tried as captured graphs and are launched kernel by kernel: what
  /// and why, a line each.
  std::vector<std::string> graph_problems() const;

  /// Called before and after each instruction while set (bench, traces); null to switch off.
  using Probe = std::function<void(NodeId node, bool begin)>;
  void set_probe(Probe probe);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::shared_ptr<Arenas> make_arenas();

}  // namespace tandem
