// What every public function starts from: operators, devices, an evaluator of constants, open
// models.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/model/placing.h"
#include "api/table_caches.h"
#include "engine/passes/pass.h"
#include "engine/runtime/device.h"
#include "engine/training/config/run_config.h"
#include "engine/training/data/data_source.h"
#include "engine/training/pass_programs.h"
#include "importer/import_graph.h"

namespace tandem::api {

/// Computes a node on constants with the reference kernels; throws where none takes it.
Evaluator reference_evaluator();

struct Engine {
  OperatorSet operators = all_operators();
  /// Hears of all lanes where a run has accelerators.
  std::shared_ptr<OrderChecker> monitor = std::make_shared<OrderChecker>();
  std::unique_ptr<Device> cpu;
  Evaluator evaluate = reference_evaluator();

  /// threads 0: all usable cores.
  explicit Engine(int threads = 0);
  std::vector<Device*> devices() const { return {cpu.get()}; }
};

/// An ONNX file with the graphs that were imported from it, by batch and mode.
class OpenModel {
 public:
  OpenModel(const Engine& engine, const RunConfig& config, const PlacingArguments& placing = {});

  /// From now on the policy may count in the data of the configuration which rows of a table a pass
  /// looks up; for runs that read that data. Before anything is imported.
  /// A table that is not prepared is, once its ids or rows are asked for: `on_message` hears of it,
  /// and what `stop_requested` says may end it.
  void use_data(std::function<void(const std::string&)> on_message = {},
                std::function<bool()> stop_requested = {});
  void leave_data() { uses_data_ = asks_data_ = false; }
  /// The data of the configuration, opened once. Throws what `open_data` throws.
  const DataSets& data();
  /// The run directory of weights that are read: tables are as large as its vocabularies. Before
  /// anything is imported.
  void use_run(std::string run_dir) { run_dir_ = std::move(run_dir); }
  /// Who tells how many rows tables by vocabulary have, instead. Before anything is imported.
  void use_rows(std::function<std::int64_t(const ShapeRule&)> rows) {
    told_rows_ = std::move(rows);
  }
  /// Values of the graph that become outputs where it has them. Before anything is imported.
  void keep_values(std::vector<std::string> names) { kept_values_ = std::move(names); }

  /// After the forward passes; values that the loss names are outputs.
  const Graph& forward(std::int64_t batch, bool training);
  const OnnxFile& file() const { return file_; }
  const ImportResult& imported(std::int64_t batch, bool training);
  /// Resolved once something was imported.
  Placing& placing() { return placing_; }
  const Placing& placing() const { return placing_; }
  /// Resolves another policy for what was imported. Programs of the one before must be gone.
  void replace_placing(Placing placing);
  const std::vector<std::string>& recognised() const { return recognised_; }
  /// Other names of tied parameters, once something was imported.
  const std::map<std::string, std::string>& aliases() const { return aliases_; }

 private:
  struct Imported {
    ImportResult result;
    Graph forward;
  };
  Imported& get(std::int64_t batch, bool training);
  void run_forward_passes(Imported& imported, bool training);
  void check_kernels(const Imported& imported, bool training);
  const std::vector<RowsRule>& table_rows();
  const DataSets& open_data_for(const Graph& pass);
  std::shared_ptr<const DataSource> counted_data(const Graph& pass);
  std::optional<std::int64_t> unique_rows(const Graph& pass, const std::string& parameter);
  void answer_policy();

  const Engine& engine_;
  RunConfig config_;
  OnnxFile file_;
  Placing placing_;
  std::map<std::pair<std::int64_t, bool>, Imported> imported_;
  std::optional<std::vector<RowsRule>> rows_;  // of [parameters] shape
  std::string run_dir_;                        // "": none
  std::function<std::int64_t(const ShapeRule&)> told_rows_;
  std::vector<std::string> kept_values_;
  bool asks_data_ = false;  // the policy may,
  bool uses_data_ = false;  // and there is some
  std::function<void(const std::string&)> on_message_;
  std::function<bool()> stop_requested_;
  std::optional<DataSets> data_;                                    // once opened
  std::exception_ptr data_error_;                                   // of opening it
  std::optional<std::map<std::string, std::int64_t>> unique_rows_;  // once counted, by parameter
  TableCaches caches_;
  std::vector<std::string> recognised_;
  std::map<std::string, std::string> aliases_;
};

/// What every program of a run is compiled with; throws Error{usage} where a selector of
/// `precision` matches nothing.
LowerOptions lower_options(const RunConfig& config, OpenModel& model);

/// Seed of the held-out part; labels of classes as int32 where the files store that, else as int64,
/// or as the model takes them where they are an input of it.
/// `pass`: the model as it was imported for a pass of the configuration.
OpenOptions open_options(const RunConfig& config, const Graph& pass);
OpenOptions open_options(const RunConfig& config, OpenModel& model);

/// Imports the model for a pass of the configuration, resolves the policy, opens the devices.
RunParts run_parts(const Engine& engine, OpenModel& model, const RunConfig& config);

/// Throws Error{runtime} where the monitor saw accesses out of order: our own bug.
void check_order(const Engine& engine);

/// Everything on cpu, reason "default".
Placement place_everything(const Graph& graph);

/// "3.4 MiB"
std::string bytes_text(double bytes);
/// One line a device: parameters, state, gradients, activations, workspace, peak.
std::string memory_text(const Plan& plan, const ResolvedPolicy& resolved);
std::uint64_t peak_resident_bytes();

}  // namespace tandem::api
