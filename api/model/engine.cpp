#include "api/model/engine.h"

#include <algorithm>
#include <exception>
#include <set>

#include <sys/resource.h>

#include <fmt/format.h>

#include "api/model/sample_loss.h"
#include "api/row_counts.h"
#include "api/table_rows.h"
#include "engine/graph/error.h"
#include "engine/losses/loss.h"
#include "engine/training/check_integers.h"
#include "engine/training/config/config_value.h"
#include "engine/training/parameter_choice.h"
#include "engine/training/table_storage.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/reference/reference_kernels.h"
#include "placement/single_device.h"

namespace tandem::api {

Evaluator reference_evaluator() {
  auto kernels = std::make_shared<const KernelList>(reference_kernels());
  return [kernels](const Graph& graph, const Node& node, const std::vector<HostTensor>& inputs) {
    const DeviceFacts facts;
    KernelRequest request;
    request.node = &node;
    request.facts = &facts;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Operand operand;
      operand.present = static_cast<bool>(node.inputs[i]);
      if (operand.present) {
        operand.type = inputs[i].type();
        operand.layout = row_major(operand.type.shape);
        operand.constant = &inputs[i];
      }
      request.inputs.push_back(std::move(operand));
    }
    std::vector<HostTensor> outputs;
    for (const ValueId id : node.outputs) {
      Operand operand;
      operand.type = graph.type(id);
      operand.layout = row_major(operand.type.shape);
      outputs.emplace_back(operand.type);
      request.outputs.push_back(std::move(operand));
    }
    std::vector<std::string> refusals;
    const Kernel* kernel = choose_kernel(*kernels, request, &refusals);
    if (kernel == nullptr) {
      Diagnostic d;
      d.path = node.path;
      d.message = "no kernel can compute this constant";
      d.got = refusals.empty() ? node.op->name : refusals.back();
      throw Error(ErrorKind::usage, std::move(d));
    }
    const std::unique_ptr<PreparedKernel> prepared = kernel->prepare(request);
    std::vector<const void*> from;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      from.push_back(node.inputs[i] ? inputs[i].data() : nullptr);
    }
    std::vector<void*> to;
    for (HostTensor& output : outputs) to.push_back(output.data());
    std::vector<std::byte> workspace(prepared->workspace_bytes + 64);
    ErrorWord error;
    StepContext context;
    context.error = &error;
    void* aligned = workspace.data();
    std::size_t space = workspace.size();
    std::align(64, prepared->workspace_bytes, aligned, space);
    prepared->run({from.data(), to.data(), aligned, &context});
    return outputs;
  };
}

Engine::Engine(int threads) : cpu(make_cpu_device(threads, monitor)) {}

OpenModel::OpenModel(const Engine& engine, const RunConfig& config, const PlacingArguments& placing)
    : engine_(engine),
      config_(config),
      file_(OnnxFile::open(config.model.file)),
      placing_(config, placing) {}

OpenModel::Imported& OpenModel::get(std::int64_t batch, bool training) {
  const auto found = imported_.find({batch, training});
  if (found != imported_.end()) return found->second;
  ImportOptions options;
  options.bind.assign(config_.model.bind.begin(), config_.model.bind.end());
  options.batch = batch;
  options.batch_norm = config_.model.train_batch_norm ? "train" : "inference";
  options.training = training;
  options.evaluate = engine_.evaluate;
  options.rows = table_rows();
  Imported imported{import_graph(file_, engine_.operators, options), {}};
  run_forward_passes(imported, training);
  return imported_.emplace(std::pair{batch, training}, std::move(imported)).first->second;
}

const std::vector<RowsRule>& OpenModel::table_rows() {
  if (!rows_) {
    rows_ = rows_rules(config_, [this](const ShapeRule& rule) {
      if (told_rows_) return told_rows_(rule);
      const auto saved = saved_vocabulary_rows(config_, run_dir_, rule);
      if (saved) return *saved;
      OpenOptions options;
      options.on_message = on_message_;
      options.stop_requested = stop_requested_;
      return prepared_vocabulary_rows(config_, rule, std::move(options));
    });
  }
  return *rows_;
}

void OpenModel::use_data(std::function<void(const std::string&)> on_message,
                         std::function<bool()> stop_requested) {
  asks_data_ = true;
  uses_data_ = config_.data.has_value();
  stop_requested_ = std::move(stop_requested);
  if (!on_message) return;
  // A table is opened for its vocabularies and for its rows, and says the same both times.
  on_message_ = [tell = std::move(on_message),
                 said = std::make_shared<std::set<std::string>>()](const std::string& text) {
    if (said->insert(text).second) tell(text);
  };
}

const DataSets& OpenModel::data() {
  return open_data_for(imported(config_.pass_size(), true).graph);
}

const DataSets& OpenModel::open_data_for(const Graph& pass) {
  if (data_error_) std::rethrow_exception(data_error_);
  if (data_) return *data_;
  OpenOptions options = open_options(config_, pass);
  options.on_message = on_message_;
  options.stop_requested = stop_requested_;
  try {
    data_ = open_data(*config_.data, options);
  } catch (const Error&) {
    data_error_ = std::current_exception();
    throw;
  }
  return *data_;
}

std::shared_ptr<const DataSource> OpenModel::counted_data(const Graph& pass) {
  if (!uses_data_) return nullptr;
  return zero_out_of_range(config_, pass, open_data_for(pass).train);
}

std::optional<std::int64_t> OpenModel::unique_rows(const Graph& pass,
                                                   const std::string& parameter) {
  if (!unique_rows_) {
    unique_rows_.emplace();
    try {
      unique_rows_ = count_unique_rows(pass, *counted_data(pass), engine_.evaluate);
    } catch (const std::exception&) {  // said where the run itself reads the data
    }
  }
  const auto found = unique_rows_->find(parameter);
  if (found == unique_rows_->end()) return std::nullopt;
  return found->second;
}

void OpenModel::replace_placing(Placing placing) {
  placing_ = std::move(placing);
  for (auto& [shape, imported] : imported_) run_forward_passes(imported, shape.second);
}

// What the policy asks of the data.
void OpenModel::answer_policy() {
  if (uses_data_) {
    placing_.count_rows_by([this](const Graph& pass, const std::string& parameter) {
      return unique_rows(pass, parameter);
    });
  }
  if (asks_data_) {
    placing_.choose_caches_by([this](const Graph& pass, const std::vector<CacheWish>& wishes) {
      return caches_.choose(
          pass, config_, engine_.evaluate, [&] { return counted_data(pass); }, wishes);
    });
  }
}

void OpenModel::run_forward_passes(Imported& imported, bool training) {
  const bool first = !placing_.is_resolved();
  if (first) answer_policy();
  const ResolvedPolicy& resolved = placing_.resolve(imported.result);
  PassContext context{engine_.operators, engine_.evaluate, {}, {}};
  context.may_merge = [&resolved](const std::vector<std::string>& paths) {
    return resolved.may_merge(paths);
  };
  Graph graph = keep_named_values(imported.result.graph, config_);
  for (const std::string& name : kept_values_) {
    const ValueId value = graph.find_value(name);
    if (value && graph.find_output(name) == nullptr) graph.outputs.push_back({name, value});
  }
  imported.forward = run_passes(std::move(graph), context);
  recognised_ = std::move(context.notes);
  aliases_ = imported.result.aliases;
  if (first && resolved.devices.size() > 1) check_kernels(imported, training);
  imported.forward =
      split_cached_tables(imported.forward, engine_.operators, cached_tables(placing_.resolved()));
}

void OpenModel::check_kernels(const Imported& imported, bool training) {
  placing_.open_devices(*engine_.cpu, engine_.monitor);
  Graph graph = imported.forward;
  if (training) {
    try {
      graph = sample_training_graph(engine_, config_, graph);
    } catch (const Error&) {  // said where the run builds its own
    }
  }
  placing_.check_kernels(graph, imported.result);
}

const Graph& OpenModel::forward(std::int64_t batch, bool training) {
  return get(batch, training).forward;
}
const ImportResult& OpenModel::imported(std::int64_t batch, bool training) {
  return get(batch, training).result;
}

OpenOptions open_options(const RunConfig& config, OpenModel& model) {
  return open_options(config, model.imported(config.pass_size(), true).graph);
}

OpenOptions open_options(const RunConfig& config, const Graph& graph) {
  OpenOptions options;
  options.seed = config.seed;
  options.threads = config.threads;
  for (const NamedValue& input : graph.inputs) {  // numbers and ids of text have no type of theirs
    const DType taken = graph.type(input.value).dtype;
    const bool whole = taken == DType::int32 || taken == DType::int64;
    if (config.data && config.data->table() && whole) {
      options.integer_types[input.name] = taken;
    }
  }
  for (const LossTerm& term : config.loss.terms) {
    if (term.kind->labels.form != LabelForm::classes) continue;
    const NamedValue* input = graph.find_input(term.labels);
    const DType taken = input ? graph.type(input->value).dtype : DType::int64;
    options.integer_types[term.labels] = taken == DType::int32 ? DType::int32 : DType::int64;
    if (!input) options.keep_int32.insert(term.labels);
  }
  return options;
}

LowerOptions lower_options(const RunConfig& config, OpenModel& model) {
  LowerOptions options;
  options.compute = config.precision.compute;
  const Graph& graph = model.imported(config.pass_size(), true).graph;
  std::vector<std::string> paths{"loss.loss"};
  for (const LossTerm& term : config.loss.terms) paths.push_back("loss." + term.name);
  for (const Node& node : graph.nodes) paths.push_back(node.path);
  std::vector<Diagnostic> errors;
  for (const PrecisionConfig::Kept& kept : config.precision.keep_float32) {
    Selector selector(kept.at);
    const bool any = std::any_of(paths.begin(), paths.end(),
                                 [&](const std::string& path) { return selector.matches(path); });
    if (any) {
      options.keep_float32.push_back(std::move(selector));
      continue;
    }
    Diagnostic d =
        at(kept.where, "precision.keep_float32", "\"" + kept.at + "\" matches no operator");
    const std::string nearest = nearest_name(kept.at, paths);
    d.fix =
        nearest.empty() ? "`tandem policy names` lists them" : "did you mean \"" + nearest + "\"?";
    errors.push_back(std::move(d));
  }
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  for (const SplitTable& table : split_tables(config.parameters, graph))
    options.split_tables.push_back(table.name);
  if (options.compute != DType::float32)
    options.without_weights = updated_by_rows(config, model.forward(config.pass_size(), true));
  return options;
}

RunParts run_parts(const Engine& engine, OpenModel& model, const RunConfig& config) {
  model.imported(config.pass_size(), true);
  RunParts parts;
  parts.operators = &engine.operators;
  Placing& placing = model.placing();
  parts.devices = placing.open_devices(*engine.cpu, engine.monitor);
  parts.evaluate = engine.evaluate;
  parts.forward = [&model](std::int64_t batch, bool training) {
    return model.forward(batch, training);
  };
  parts.place = [&placing](const Graph& graph) { return placing.place(graph); };
  parts.options.lower = lower_options(config, model);
  parts.options.accept = [&placing](const Plan& plan) {
    check_fit(plan, placing.resolved(), placing.devices());
  };
  parts.aliases = [&model] { return model.aliases(); };
  return parts;
}

void check_order(const Engine& engine) {
  const std::vector<std::string> errors = engine.monitor->order_errors();
  if (errors.empty()) return;
  Diagnostic d;
  d.message = "accesses out of order on an accelerator (please report this): " + errors.front();
  throw Error(ErrorKind::runtime, std::move(d));
}

Placement place_everything(const Graph& graph) {
  return place_on_one_device(graph, {"cpu"}, 0, "default");
}

std::string bytes_text(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", bytes / 1024);
  if (bytes < 1024.0 * 1024 * 1024) return fmt::format("{:.1f} MiB", bytes / (1024 * 1024));
  return fmt::format("{:.2f} GiB", bytes / (1024.0 * 1024 * 1024));
}

std::string memory_text(const Plan& plan, const ResolvedPolicy& resolved) {
  std::string text;
  for (std::size_t d = 0; d < plan.memory.size(); ++d) {
    const MemoryUse& use = plan.memory[d];
    const auto bytes = [](std::size_t count) { return bytes_text(static_cast<double>(count)); };
    text += fmt::format(
        "memory     {}: parameters {}, state {}, gradients {}, activations {}, workspace {}, peak "
        "{} at {}\n",
        resolved.devices[d].name, bytes(use.parameters), bytes(use.state), bytes(use.gradients),
        bytes(use.activations), bytes(use.workspace), bytes(use.peak),
        use.peak_at.empty() ? "start" : use.peak_at);
  }
  return text;
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tandem::api
