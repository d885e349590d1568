#include "api/model/placing.h"

#include <algorithm>

#include "api/model/device_status.h"
#include "engine/graph/error.h"
#include "kernels/cpu/cpu_device.h"
#include "placement/device_use.h"
#include "placement/report/fit.h"

namespace tandem::api {
namespace {

#ifdef NDEBUG
constexpr bool is_debug_build = false;
#else
constexpr bool is_debug_build = true;
#endif

std::string policy_without_rules(const std::string& device) {
  return "policy = 1\nrules = [\n  { at = \"**\", on = \"" + device + "\" },\n]\n";
}

// Adds the place that sets the memory to errors of the system that refuse it: the policy, or
// --device.
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

// Makes a comment of an argument, which may have several lines.
std::string comment(const std::string& text) {
  std::string lines = "# ";
  for (const char c : text) lines += c == '\n' ? "\n# " : std::string(1, c);
  return lines + "\n";
}

// A stand-in has the lowest priority, except for its `use`, which applies unless the device needs
// no hardware.
void add_stand_ins(const std::vector<DeviceBinding>& stand_ins, tandem::Policy& policy,
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
    const DeviceFamily* family = family_of_use(use);
    if (stand_in.use.empty() || (family && !family->is_hardware)) continue;
    DeviceBinding known;
    known.name = stand_in.name;
    known.use = stand_in.use;
    known.where = Where{"--profile", 1, 1};
    bindings.push_back(std::move(known));
  }
}

// The number of threads by the bindings, else by the policy, else by the configuration.
int threads_of(const RunConfig& config, const RunPolicy& policy) {
  int threads = config.threads;
  // The last binding with threads is used.
  for (const auto* list : {&policy.policy.devices, &policy.options.bindings}) {
    for (const DeviceBinding& binding : *list) {
      const bool is_host = binding.name == "cpu" || binding.use == "cpu";
      if (is_host && binding.threads.value_or(0) > 0) threads = *binding.threads;
    }
  }
  return threads;
}

// Errors that kept a device from being made, with a way to do without it.
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

// If the file cannot be read, the error names the key that refers to it.
std::string policy_text(const RunConfig& config) {
  try {
    return read_policy_text(config.policy);
  } catch (const Error& error) {
    std::vector<Diagnostic> all = error.diagnostics();
    for (Diagnostic& d : all) {
      if (d.fix.empty() && !config.policy_where.file.empty())
        d.fix = "`policy` of " + where_text(config.policy_where) +
                " names it: put it there, or set that key to another one, or to \"\" for none";
    }
    throw Error(error.kind(), std::move(all));
  }
}

// What the limits of a binding are parts of.
std::size_t memory_of(const Machine& machine, const std::string& use, int ordinal) {
  for (const FoundDevice& device : machine.report(use).devices) {
    if (device.ordinal == ordinal) return device.memory_bytes;
  }
  return machine.backend(use).memory_bytes;
}

std::unique_ptr<Device> make_device(const ResolvedDevice& device, const PlacingArguments& arguments,
                                    bool tf32, const std::shared_ptr<OrderChecker>& monitor) {
  if (arguments.make_device) return arguments.make_device(device, monitor);
  const DeviceFamily& family = *device.family();
  DeviceRequest request;
  request.name = device.name;
  request.ordinal = number_of_use(device.use);
  if (device.binding.memory_bytes || device.binding.memory_fraction) {
    request.memory_bytes =
        memory_limit(device, memory_of(arguments.machine, device.use, request.ordinal));
  }
  if (family.has_set_link) {
    request.bytes_per_second = device.binding.bandwidth;
    request.latency_seconds = device.binding.latency;
  }
  request.allow_tf32 = tf32;
  request.monitor = monitor;
  request.ranks = arguments.ranks;
  try {
    return arguments.machine.backend(device.use).open(request);
  } catch (const Error& error) {
    throw Error(error.kind(), family.is_hardware ? at_device(error.diagnostics(), device)
                                                 : at_memory(error.diagnostics(), device));
  }
}

}  // namespace

bool wants_accelerator(const RunConfig& config) {
  return config.device != "auto" && config.device != "cpu";
}

RunPolicy read_run_policy(const RunConfig& config, const PlacingArguments& arguments) {
  RunPolicy result;
  result.added_rules = arguments.place;
  result.added_devices = arguments.devices;
  ResolveOptions& options = result.options;
  options.bindings = parse_device_arguments(arguments.devices);
  options.missing = [any = bool(arguments.make_device),
                     machine = arguments.machine](const auto& use) {
    return any ? std::nullopt : missing_device(machine.report(use), use);
  };
  options.model_file = config.model.file;
  options.tf32 = config.precision.tf32;
  options.local = arguments.ranks->local_rank();
  if (wants_accelerator(config)) {
    options.default_device = config.device;
    options.default_reason = "device = \"" + config.device + "\"";
  }
  for (const LossTerm& term : config.loss.terms) options.added.push_back({"loss." + term.name, ""});
  options.added.push_back({"loss.total", ""});
  if (arguments.text || !config.policy.empty()) {
    const std::string file = config.policy.empty() ? "policy.toml" : config.policy;
    result.text = arguments.text ? *arguments.text : policy_text(config);
    result.policy = parse_policy(result.text, file, arguments.place, &options.earlier);
  } else {
    result.text = policy_without_rules(options.default_device);
    result.policy = policy_of_arguments(arguments.place, &options.earlier);
  }
  add_stand_ins(arguments.stand_ins, result.policy, options.bindings);
  for (const std::string& rule : arguments.place) result.text += comment("--place " + rule);
  for (const std::string& use : arguments.devices) result.text += comment("--device " + use);
  result.threads = threads_of(config, result);
  if (result.threads == 0)  // all ranks on a machine share its cores
    result.threads = default_threads(usable_cores() / arguments.ranks->core_sharers());
  return result;
}

OpenDevices open_devices(const ResolvedPolicy& resolved, const PlacingArguments& arguments,
                         bool tf32, Device& cpu, const std::shared_ptr<OrderChecker>& monitor) {
  const std::vector<ResolvedDevice>& devices = resolved.devices;
  const bool only_hardware =
      std::all_of(devices.begin() + 1, devices.end(),
                  [](const ResolvedDevice& device) { return device.family()->is_hardware; });
  // The maker of the monitor may have switched checking off already.
  const bool check = arguments.check_order || is_debug_build || arguments.make_device;
  if (only_hardware && !check) monitor->set_check_order(false);
  OpenDevices open;
  open.all.push_back(&cpu);
  cpu.join(arguments.ranks->make_communicator());
  for (std::size_t d = 1; d < devices.size(); ++d) {
    open.own.push_back(make_device(devices[d], arguments, tf32, monitor));
    open.all.push_back(open.own.back().get());
  }
  return open;
}

}  // namespace tandem::api
