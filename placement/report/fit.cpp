#include "placement/report/fit.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/graph/error.h"
#include "placement/quantities.h"
#include "placement/selectors/siblings.h"

namespace tandem {

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

/// The table that takes the most memory of a device; `all` gets the bytes of all tables there.
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

/// A rule that keeps a table with its lookups on the host: by scope, or by the lookups' paths.
PolicyRule table_rule(const ParameterAttributes& table) {
  const std::string scope = table.path.substr(0, table.path.rfind(':'));
  bool covers = scope.size() < table.path.size() && !scope.empty();
  std::string paths;
  for (const std::string& reader : table.readers) {
    covers = covers && reader.starts_with(scope + ".");
    paths += (paths.empty() ? "" : ",") + selector_part(reader);
  }
  if (table.readers.size() > 1) paths = "{" + paths + "}";
  return rule_on(covers ? selector_part(scope) + ".**" : paths, "cpu");
}

/// The caches of a device.
struct DeviceCaches {
  std::size_t bytes = 0;                           // all caches, with their optimizer states
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

  /// The largest size for each table's cache such that all together take at most `most` bytes.
  std::size_t size_for(std::size_t most) const {
    std::size_t left = most;
    for (std::size_t i = tables.size(); i-- > 0;) {  // the smallest ones fit whole, or none does
      const std::size_t own = static_cast<std::size_t>(tables[i]->cached.bytes);
      if (own * (i + 1) > left) return left / (i + 1);
      left -= own;
    }
    return static_cast<std::size_t>(tables[0]->cached.bytes);
  }

  /// What takes the memory, by which rule, and the size at which it takes `over` bytes less.
  std::string advice(std::size_t over) const {
    const ParameterAttributes& largest = *tables[0];
    const Reason& reason = largest.cache.reason;
    const std::string rule = reason.text.substr(0, reason.text.find(": "));
    std::string result = fmt::format(
        "the cache of the table {} takes {} with its optimizer states ({}: cache = \"{}\")",
        largest.path.empty() ? largest.name : largest.path,
        bytes_text(static_cast<std::size_t>(largest.cached.bytes)), rule,
        cache_text(largest.cache.value));
    if (tables.size() > 1)
      result += fmt::format(", those of {} tables {}", tables.size(), bytes_text(bytes));
    // Each table and each of its states, three at most, begins at a multiple of 64 bytes.
    constexpr std::size_t rounding = 4 * 64;
    const std::size_t less = over + rounding * tables.size();
    const std::size_t size = less < bytes ? size_for(bytes - less) : 0;
    const std::size_t rows = std::max<std::size_t>(largest.cached.rows->size(), 1);
    if (size > 0 && static_cast<std::size_t>(largest.cached.bytes) / rows <= size) {
      return result + fmt::format(": cache = \"{}B\" {}fits", size,
                                  tables.size() > 1 ? "for each of them " : "");
    }
    return result + ": remove " + (tables.size() > 1 ? "them" : "it");
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

std::optional<PolicyRule> rule_for_table(const ResolvedPolicy& resolved, int device) {
  std::size_t all = 0;
  const ParameterAttributes* table = largest_table(resolved, device, all);
  if (table == nullptr) return std::nullopt;
  return table_rule(*table);
}

void check_fit(const Plan& plan, const ResolvedPolicy& resolved,
               const std::vector<Device*>& devices) {
  std::vector<Diagnostic> problems;
  for (std::size_t d = 0; d < plan.memory.size(); ++d) {
    const MemoryUse& use = plan.memory[d];
    if (!is_limited(resolved, d)) continue;
    const std::size_t limit = memory_limit(resolved.devices[d], *devices[d]);
    if (use.peak <= limit) continue;
    const std::string& name = resolved.devices[d].name;
    Diagnostic problem{.message = "the plan does not fit into " + name, .path = use.peak_at};
    // Exact where both would be the same text: a few bytes too many.
    const auto exact = [&](std::size_t bytes) {
      return bytes_text(limit) == bytes_text(use.peak) ? fmt::format("{} bytes", bytes)
                                                       : bytes_text(bytes);
    };
    problem.expected = "at most " + exact(limit);
    problem.got = fmt::format(
        "{} (parameters {}, state {}, gradients {}, activations {}, workspace {}, "
        "inputs, outputs and others {})",
        exact(use.peak), bytes_text(use.parameters), bytes_text(use.state),
        bytes_text(use.gradients), bytes_text(use.activations), bytes_text(use.workspace),
        bytes_text(use.others()));
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
                    bytes_text(table->bytes) + ", and its optimizer state more: add the rule " +
                    to_toml(table_rule(*table)) +
                    ", and only the rows that a micro-batch looks up move";
    } else if (caches.bytes >= over) {
      problem.fix = caches.advice(over);
    } else if (movable > 0 && use.peak - movable <= limit) {
      problem.fix = "add the rule { at = \"**\", state = \"cpu\" }: it keeps " +
                    bytes_text(movable) + " of optimizer state on the host";
      if (use.activations > over && !decides_about_activations(resolved))
        problem.fix += "; or { at = \"**\", acts = \"recompute\" }: it frees a part of " +
                       bytes_text(use.activations) + " of activations";
    } else if (use.workspace > std::max(use.activations, use.parameters + use.state)) {
      problem.fix =
          "the kernels' workspace takes most of it: use a smaller batch_size or micro_batch";
    } else if (use.activations > use.parameters + use.state) {
      std::string rules;
      if (!decides_about_activations(resolved))
        rules = "{ at = \"**\", acts = \"recompute\" }, or \"offload\", or ";
      if (movable > 0)
        rules += "{ at = \"**\", state = \"cpu\" }, which keeps " + bytes_text(movable) +
                 " of optimizer state on the host, or ";
      problem.fix =
          "activations take most of it: " + (rules.empty() ? "" : "add the rule " + rules);
      problem.fix += "use a smaller batch_size or micro_batch";
    } else {
      problem.fix =
          "add rules that keep large parts on the host: { at = \"SCOPE.**\", on = \"cpu\" }, or "
          "weights until they are read: { at = \"**\", param = \"cpu\", state = \"cpu\" }";
      if (caches.bytes > 0) problem.fix += "; " + caches.advice(over);
    }
    problems.push_back(std::move(problem));
  }
  if (!problems.empty()) throw Error(ErrorKind::does_not_fit, std::move(problems));
}

}  // namespace tandem
