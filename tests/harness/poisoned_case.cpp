#include "tests/harness/poisoned_case.h"
#include "tests/harness/folders.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "engine/operators/grouped_update.h"

namespace tandem::testing {
namespace {

const char* class_of(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return "finite";
}

double largest_of(const HostTensor& tensor) {
  double largest = 1;
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i) {
    if (std::isfinite(tensor.number(i))) largest = std::max(largest, std::fabs(tensor.number(i)));
  }
  return largest;
}

// Not std::hash, because the value must be equal on every machine.
std::uint64_t hash_of_case(const std::string& text) {
  std::uint64_t h = 14695981039346656037ull;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
  return h >> 8;
}

std::string name_of_input(const Node& node, std::size_t i) {
  const std::vector<Port>& ports = node.op->inputs;
  return i < ports.size() ? ports[i].name : ports.back().name;
}

}  // namespace

HostTensor poisoned(const HostTensor& tensor, std::int64_t place, double value) {
  HostTensor numbers = tensor.converted(DType::float64).clone();
  numbers.as<double>()[static_cast<std::size_t>(place)] = value;
  return numbers.converted(tensor.dtype());
}

std::int64_t poisoned_place(const HostTensor& tensor, std::uint64_t turn) {
  const std::int64_t count = tensor.type().elements();
  if (turn % 3 == 0) return 0;
  if (turn % 3 == 1) return count - 1;
  return static_cast<std::int64_t>((turn * 0x9e3779b97f4a7c15ull >> 16) %
                                   static_cast<std::uint64_t>(count));
}

void each_poisoned(const OperatorCase& of, const TypedCase& typed,
                   const std::function<void(const PoisonedRun&)>& f) {
  const std::uint64_t start = hash_of_case(of.op + of.name);
  for (std::size_t i = 0; i < typed.inputs.size(); ++i) {
    if (!typed.node().inputs[i]) continue;
    const HostTensor& x = typed.inputs[i];
    if (!is_float(x.dtype()) || x.type().elements() == 0) continue;
    std::uint64_t turn = start + i;
    for (const Poison& poison : poisons) {
      const int places = std::isnan(poison.value) ? 3 : 1;
      std::int64_t last = -1;
      for (int n = 0; n < places; ++n) {
        const std::int64_t place = poisoned_place(x, turn++);
        if (place == last) continue;
        last = place;
        PoisonedRun run;
        run.what = name_of_input(typed.node(), i) + " " + poison.name;
        run.place = fmt::format("input {}, element {}", i, place);
        run.inputs = typed.inputs;
        run.inputs[i] = poisoned(x, place, poison.value);
        run.expected = run_reference(typed.wide, in_types_of(typed.wide, run.inputs));
        f(run);
      }
    }
  }
}

bool takes_node(const Kernel& kernel, const Graph& graph, const Node& node,
                const DeviceFacts& facts, bool only_first_output) {
  if (kernel.op != node.op->name) return false;
  KernelRequest request = plain_request(graph, node, facts);
  if (only_first_output) {
    if (request.outputs.size() < 2) return false;
    for (std::size_t i = 1; i < request.outputs.size(); ++i) request.outputs[i].present = false;
    for (const Alias& alias : aliases_of(node)) {
      if (request.inputs[alias.input].present) request.outputs[alias.output].present = true;
    }
  }
  return !kernel.refuse || !kernel.refuse(request);
}

std::set<std::string> deviations(const std::vector<HostTensor>& results,
                                 const std::vector<HostTensor>& expected, double tolerance) {
  std::set<std::string> found;
  for (std::size_t o = 0; o < results.size(); ++o) {
    const bool other_shape = results[o].shape() != expected[o].shape();
    if (results[o].data() == nullptr && (other_shape || expected[o].bytes() > 0))
      continue;  // not read
    if (other_shape) {
      found.insert("another shape");
      continue;
    }
    const HostTensor wanted = in_range_of(results[o].dtype(), expected[o]);
    const double allowed = tolerance * largest_of(wanted);
    for (std::int64_t i = 0; i < wanted.type().elements(); ++i) {
      const double x = results[o].number(i), y = wanted.number(i);
      const std::string got = class_of(x), was = class_of(y);
      if (got != was) {
        found.insert(was + " becomes " + got);
      } else if (got == "finite" && std::fabs(x - y) > allowed) {
        found.insert("finite differs");
      }
    }
  }
  return found;
}

double tolerance_of(const OperatorCase& of, DType computed) {
  switch (computed) {
    case DType::float16:
      return std::max(of.tolerance, 4e-3);
    case DType::bfloat16:
      return std::max(of.tolerance, 3e-2);
    default:
      return of.tolerance;
  }
}

std::string PoisonExceptions::path() {
  return source_folder() + "/tests/operators/poison_exceptions.txt";
}

PoisonExceptions::PoisonExceptions() {
  std::ifstream file(path());
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') patterns_.push_back(line);
  }
}

bool PoisonExceptions::allows(const std::string& line) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), line.c_str(), 0) == 0;
  });
}

}  // namespace tandem::testing
