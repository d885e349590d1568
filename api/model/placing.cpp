#include "api/model/placing.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/cuda_status.h"
#include "api/model/engine.h"
#include "api/policy/kernel_refusals.h"
#include "engine/graph/error.h"
#include "kernels/emulated/emulated_device.h"

namespace tandem::api {
namespace {

constexpr std::size_t default_emulated_bytes = std::size_t{2} << 30;
constexpr std::string_view card_prefix = "cuda:";
#ifdef NDEBUG
constexpr bool is_debug_build = false;
#else
constexpr bool is_debug_build = true;
#endif

std::string policy_without_rules(const std::string& device) {
  return "policy = 1\nrules = [\n  { at = \"**\", on = \"" + device + "\" },\n]\n";
}

// The system refuses what the policy, or --device, asks for.
std::vector<Diagnostic> at_memory(std::vector<Diagnostic> problems, const ResolvedDevice& device) {
  const bool set = device.binding.sets("memory");
  const Where& where = set ? device.binding.where_of("memory") : device.where;
  for (Diagnostic& problem : problems) {
    problem.file = where.file;
    problem.line = where.line;
    problem.column = where.column;
    problem.got = set ? "\"" + device.binding.text_of("memory") + "\"" : "";
  }
  return problems;
}

// What stands on the command line may have several lines.
std::string comment(const std::string& text) {
  std::string lines = "# ";
  for (const char c : text) lines += c == '\n' ? "\n# " : std::string(1, c);
  return lines + "\n";
}

// A stand-in says least, but for `use` where nothing names a device that is there.
void add_stand_ins(const std::vector<DeviceBinding>& stand_ins, Policy& policy,
                   std::vector<DeviceBinding>& bindings) {
  for (const DeviceBinding& stand_in : stand_ins) {
    std::string use;
    for (const auto* list : {&policy.devices, &bindings}) {
      for (const DeviceBinding& binding : *list) {
        if (binding.name == stand_in.name && !binding.use.empty()) use = binding.use;
      }
    }
    DeviceBinding least = stand_in;
    least.use.clear();
    policy.devices.insert(policy.devices.begin(), std::move(least));
    if (stand_in.use.empty() || use.starts_with("emulated:")) continue;
    DeviceBinding known;
    known.name = stand_in.name;
    known.use = stand_in.use;
    known.where = Where{"--profile", 1, 1};
    bindings.push_back(std::move(known));
  }
}

}  // namespace

Placing::Placing(const RunConfig& config, const PlacingArguments& arguments)
    : added_rules_(arguments.place),
      added_devices_(arguments.devices),
      make_device_(arguments.make_device),
      cards_(arguments.cards),
      make_card_(arguments.make_card),
      check_order_(arguments.check_order || is_debug_build),
      tf32_(config.precision.tf32) {
  options_.bindings = parse_device_arguments(arguments.devices);
  options_.missing = [any = bool(make_device_), cards = cards_](const std::string& use) {
    return any ? std::nullopt : missing_card(cards.report(), use);
  };
  options_.model_file = config.model.file;
  if (config.device == "gpu") {
    options_.default_device = "gpu";
    options_.default_reason = "device = \"gpu\"";
  }
  for (const LossTerm& term : config.loss.terms)
    options_.added.push_back({"loss." + term.name, ""});
  options_.added.push_back({"loss.total", ""});
  if (arguments.text) {
    const std::string file = config.policy.empty() ? "policy.toml" : config.policy;
    policy_ = parse_policy(*arguments.text, file, arguments.place, &options_.earlier);
    text_ = *arguments.text;
  } else if (config.policy.empty()) {
    policy_ = policy_of_arguments(arguments.place, &options_.earlier);
    text_ = policy_without_rules(options_.default_device);
  } else {
    text_ = read_policy_text(config.policy);
    policy_ = parse_policy(text_, config.policy, arguments.place, &options_.earlier);
  }
  add_stand_ins(arguments.stand_ins, policy_, options_.bindings);
  for (const std::string& rule : arguments.place) text_ += comment("--place " + rule);
  for (const std::string& binding : arguments.devices) text_ += comment("--device " + binding);
}

std::optional<int> Placing::host_threads() const {
  std::optional<int> threads;
  for (const auto* list : {&policy_.devices, &options_.bindings}) {  // the last one counts
    for (const DeviceBinding& binding : *list) {
      const bool is_host = binding.name == "cpu" || binding.use == "cpu";
      if (is_host && binding.threads.value_or(0) > 0) threads = binding.threads;
    }
  }
  return threads;
}

int run_threads(const RunConfig& config, const PlacingArguments& arguments) {
  return Placing(config, arguments).host_threads().value_or(config.threads);
}

const ResolvedPolicy& Placing::resolve(const ImportResult& imported) {
  if (resolved_) return *resolved_;
  options_.raw_names = imported.raw_names;
  resolved_ = resolve_now(imported);
  return *resolved_;
}

ResolvedPolicy Placing::resolve_now(const ImportResult& imported) const {
  ResolveOptions options = options_;
  if (count_rows_) {
    options.unique_rows = [&](const std::string& parameter) {
      return count_rows_(imported.graph, parameter);
    };
  }
  if (choose_caches_) {
    options.choose_cached = [&](const std::vector<CacheWish>& wishes) {
      return choose_caches_(imported.graph, wishes);
    };
  }
  ResolvedPolicy resolved = tandem::resolve(policy_, imported.graph, options);
  const bool any_card =
      std::any_of(resolved.devices.begin(), resolved.devices.end(),
                  [](const ResolvedDevice& device) { return device.use.starts_with(card_prefix); });
  if (tf32_ && !any_card) {
    Diagnostic note;
    note.message = "precision.tf32 = true changes nothing: no device of this run is a card";
    resolved.notes.push_back(std::move(note));
  }
  return resolved;
}

void Placing::check_kernels(const Graph& graph, const ImportResult& imported) {
  auto refusals = std::make_shared<const KernelRefusals>(graph, devices_);
  if (refusals->empty()) return;
  options_.refuses = [refusals](int device, const std::string& path) {
    return refusals->find(device, path);
  };
  resolved_ = resolve_now(imported);
}

Placement Placing::place(const Graph& graph) const {
  return derive_placement(graph, forward_placement(*resolved_));
}

const std::vector<Device*>& Placing::open_devices(Device& cpu,
                                                  std::shared_ptr<OrderChecker> monitor) {
  if (!devices_.empty()) return devices_;
  const std::vector<ResolvedDevice>& devices = resolved_->devices;
  const bool only_cards =
      std::all_of(devices.begin() + 1, devices.end(),
                  [](const ResolvedDevice& device) { return device.use.starts_with(card_prefix); });
  // Whoever made the monitor may have switched it off already.
  if (only_cards && !check_order_ && !make_device_) monitor->set_check_order(false);
  std::vector<std::unique_ptr<Device>> own;
  for (std::size_t d = 1; d < resolved_->devices.size(); ++d) {
    const ResolvedDevice& device = resolved_->devices[d];
    own.push_back(make_device_ ? make_device_(device, monitor) : make_device(device, monitor));
  }
  own_ = std::move(own);
  devices_.push_back(&cpu);
  for (const std::unique_ptr<Device>& device : own_) devices_.push_back(device.get());
  return devices_;
}

std::unique_ptr<Device> Placing::make_device(const ResolvedDevice& device,
                                             const std::shared_ptr<OrderChecker>& monitor) const {
  if (!device.use.starts_with(card_prefix)) {
    EmulatedOptions options;
    options.name = device.name;
    options.memory_bytes = memory_limit(device, default_emulated_bytes);
    if (device.binding.bandwidth) options.bytes_per_second = *device.binding.bandwidth;
    if (device.binding.latency) options.latency_seconds = *device.binding.latency;
    options.monitor = monitor;
    try {
      return make_emulated_device(options);
    } catch (const Error& error) {
      throw Error(error.kind(), at_memory(error.diagnostics(), device));
    }
  }
  CudaOptions options;
  options.name = device.name;
  options.ordinal = std::stoi(device.use.substr(card_prefix.size()));
  options.allow_tf32 = tf32_;
  options.monitor = monitor;
  for (const CudaCard& card : cards_.report().cards) {
    const bool limited = device.binding.memory_bytes || device.binding.memory_fraction;
    if (card.ordinal == options.ordinal && limited)
      options.memory_bytes = memory_limit(device, card.memory_bytes);
  }
  try {
    return make_card_(options);
  } catch (const Error& error) {
    throw Error(error.kind(), at_device(error.diagnostics(), device));
  }
}

std::vector<Diagnostic> at_device(std::vector<Diagnostic> problems, const ResolvedDevice& device) {
  for (Diagnostic& problem : problems) {
    if (problem.file.empty()) {
      problem.file = device.where.file;
      problem.line = device.where.line;
      problem.column = device.where.column;
    }
    if (problem.got.empty()) problem.got = "\"" + device.name + "\"";
    problem.fix = or_emulated(problem.fix, device.name);
  }
  return problems;
}

std::size_t memory_limit(const ResolvedDevice& device, std::size_t capacity) {
  if (device.binding.memory_bytes) return *device.binding.memory_bytes;
  if (device.binding.memory_fraction) {
    return static_cast<std::size_t>(*device.binding.memory_fraction *
                                    static_cast<double>(capacity));
  }
  return capacity;
}

std::size_t memory_limit(const ResolvedDevice& device, const Device& opened) {
  const std::size_t capacity = opened.memory_bytes();
  if (device.use == "cpu") return memory_limit(device, capacity);
  return std::min(device.binding.memory_bytes.value_or(capacity), capacity);
}

namespace {

/// The table that takes most of a device; `all` gets the bytes of all tables there.
const ParameterAttributes* largest_table(const ResolvedPolicy& resolved, int device,
                                         std::size_t& all) {
  const ParameterAttributes* largest = nullptr;
  all = 0;
  for (const ParameterAttributes& p : resolved.parameters) {
    if (!p.table || p.param.value != device) continue;
    all += p.bytes;
    if (largest == nullptr || p.bytes > largest->bytes) largest = &p;
  }
  return largest;
}

/// A rule that keeps a table with its look-ups on the host: by scope, or by the look-ups' paths.
std::string table_rule(const ParameterAttributes& table) {
  const std::string scope = table.path.substr(0, table.path.rfind(':'));
  bool covers = scope.size() < table.path.size() && !scope.empty();
  std::string paths;
  for (const std::string& reader : table.readers) {
    covers = covers && reader.starts_with(scope + ".");
    paths += (paths.empty() ? "" : ",") + reader;
  }
  if (table.readers.size() > 1) paths = "{" + paths + "}";
  return "{ at = \"" + (covers ? scope + ".**" : paths) + "\", on = \"cpu\" }";
}

/// The caches of a device.
struct DeviceCaches {
  std::size_t bytes = 0;                           // of all, with their optimizer states
  std::vector<const ParameterAttributes*> tables;  // the largest cache first

  DeviceCaches(const ResolvedPolicy& resolved, int device) {
    for (const ParameterAttributes& p : resolved.parameters) {
      if (!p.cached.rows || p.cached.device != device) continue;
      bytes += static_cast<std::size_t>(p.cached.bytes);
      tables.push_back(&p);
    }
    std::stable_sort(tables.begin(), tables.end(),
                     [](const ParameterAttributes* a, const ParameterAttributes* b) {
                       return a->cached.bytes > b->cached.bytes;
                     });
  }

  /// The largest size of each table's cache with which all take at most `most` bytes together.
  std::size_t size_for(std::size_t most) const {
    std::size_t left = most;
    for (std::size_t i = tables.size(); i-- > 0;) {  // the smallest ones fit whole, or none does
      const std::size_t own = static_cast<std::size_t>(tables[i]->cached.bytes);
      if (own * (i + 1) > left) return left / (i + 1);
      left -= own;
    }
    return static_cast<std::size_t>(tables[0]->cached.bytes);
  }

  /// What takes the memory, by which rule, and the size with which it takes `over` bytes less.
  std::string advice(std::size_t over) const {
    const ParameterAttributes& largest = *tables[0];
    const Reason& reason = largest.cache.reason;
    const std::string rule = reason.text.substr(0, reason.text.find(": "));
    const auto text = [](std::size_t count) { return bytes_text(static_cast<double>(count)); };
    std::string result = fmt::format(
        "the cache of the table {} takes {} with its optimizer states ({}: cache = \"{}\")",
        largest.path.empty() ? largest.name : largest.path,
        text(static_cast<std::size_t>(largest.cached.bytes)), rule,
        cache_text(largest.cache.value));
    if (tables.size() > 1)
      result += fmt::format(", those of {} tables {}", tables.size(), text(bytes));
    // Each table and each of its states, three at most, begins at a multiple of 64 bytes.
    constexpr std::size_t rounding = 4 * 64;
    const std::size_t less = over + rounding * tables.size();
    const std::size_t size = less < bytes ? size_for(bytes - less) : 0;
    const std::size_t rows = std::max<std::size_t>(largest.cached.rows->size(), 1);
    if (size > 0 && static_cast<std::size_t>(largest.cached.bytes) / rows <= size) {
      return result + fmt::format(": cache = \"{}B\" {}fits", size,
                                  tables.size() > 1 ? "for each of them " : "");
    }
    return result + ": take " + (tables.size() > 1 ? "them" : "it") + " away";
  }
};

/// Whether rules already say what becomes of activations.
bool decides_about_activations(const ResolvedPolicy& resolved) {
  return std::any_of(resolved.operators.begin(), resolved.operators.end(),
                     [](const OperatorAttributes& o) { return o.acts.value != Activations::keep; });
}

}  // namespace

bool is_limited(const ResolvedPolicy& resolved, std::size_t device) {
  const DeviceBinding& binding = resolved.devices[device].binding;
  return device > 0 || binding.memory_bytes || binding.memory_fraction;
}

void check_fit(const Plan& plan, const ResolvedPolicy& resolved,
               const std::vector<Device*>& devices) {
  std::vector<Diagnostic> problems;
  for (std::size_t d = 0; d < plan.memory.size(); ++d) {
    const MemoryUse& use = plan.memory[d];
    if (!is_limited(resolved, d)) continue;
    const std::size_t limit = memory_limit(resolved.devices[d], *devices[d]);
    if (use.peak <= limit) continue;
    const auto text = [](std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); };
    const std::string& name = resolved.devices[d].name;
    Diagnostic problem;
    problem.message = "the plan does not fit into " + name;
    problem.path = use.peak_at;
    // A few bytes too many would look alike.
    const auto exact = [&](std::size_t bytes) {
      return text(limit) == text(use.peak) ? fmt::format("{} bytes", bytes) : text(bytes);
    };
    problem.expected = "at most " + exact(limit);
    problem.got = fmt::format(
        "{} (parameters {}, state {}, gradients {}, activations {}, workspace {}, "
        "inputs, outputs and others {})",
        exact(use.peak), text(use.parameters), text(use.state), text(use.gradients),
        text(use.activations), text(use.workspace), text(use.others()));
    std::size_t tables = 0;
    const ParameterAttributes* table = largest_table(resolved, static_cast<int>(d), tables);
    const DeviceCaches caches(resolved, static_cast<int>(d));
    const std::size_t over = use.peak - limit;
    // States of cached rows stay with their cache.
    const std::size_t movable = use.state > caches.bytes ? use.state - caches.bytes : 0;
    if (d == 0) {
      problem.fix = "raise devices.cpu.memory, or use a smaller batch_size or micro_batch";
    } else if (tables > use.parameters / 2) {
      problem.fix = "the table " + (table->path.empty() ? table->name : table->path) + " takes " +
                    text(table->bytes) + ", and its optimizer state more: add the rule " +
                    table_rule(*table) + ", and only the rows that a pass looks up move";
    } else if (caches.bytes >= over) {
      problem.fix = caches.advice(over);
    } else if (movable > 0 && use.peak - movable <= limit) {
      problem.fix = "add the rule { at = \"**\", state = \"cpu\" }: it keeps " + text(movable) +
                    " of optimizer state on the host";
    } else if (use.workspace > std::max(use.activations, use.parameters + use.state)) {
      problem.fix =
          "the kernels' workspace takes most of it: use a smaller batch_size or micro_batch";
    } else if (use.activations > use.parameters + use.state) {
      problem.fix = "activations take most of it: ";
      if (!decides_about_activations(resolved))
        problem.fix += "add the rule { at = \"**\", acts = \"recompute\" }, or \"offload\", or ";
      problem.fix += "use a smaller batch_size or micro_batch";
    } else {
      problem.fix =
          "add rules that keep large parts on the host: { at = \"SCOPE.**\", on = \"cpu\" }";
      if (caches.bytes > 0) problem.fix += "; " + caches.advice(over);
    }
    problems.push_back(std::move(problem));
  }
  if (!problems.empty()) throw Error(ErrorKind::does_not_fit, std::move(problems));
}

}  // namespace tandem::api
