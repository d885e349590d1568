// Cases of operators with one element that is NaN or infinite: checks whether a kernel's result
// matches the reference. Exceptions are in a committed list.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/typed_case.h"

namespace tandem::testing {

/// A number that poisons an operand, and its name in lists and messages.
struct Poison {
  const char* name;
  double value;
};
inline constexpr Poison poisons[] = {{"nan", std::numeric_limits<double>::quiet_NaN()},
                                     {"inf", std::numeric_limits<double>::infinity()},
                                     {"-inf", -std::numeric_limits<double>::infinity()}};

/// A copy of `tensor` with this number at that element.
HostTensor poisoned(const HostTensor& tensor, std::int64_t place, double value);

/// An element of a tensor that is not empty: the first, the last or one in between, by `turn`.
std::int64_t poisoned_place(const HostTensor& tensor, std::uint64_t turn);

/// A case with one poisoned element, and the reference's result in double.
struct PoisonedRun {
  std::string what;   // the operand's name and the poison: "weight nan"
  std::string place;  // for messages
  std::vector<HostTensor> inputs, expected;
};

/// Calls `f` for NaN at the first, the last and another element of each floating operand in turn,
/// and for each infinity at one of them.
void each_poisoned(const OperatorCase& of, const TypedCase& typed,
                   const std::function<void(const PoisonedRun&)>& f);

/// Whether the kernel supports the node with row-major operands, where all outputs are read or only
/// the first.
bool takes_node(const Kernel& kernel, const Graph& graph, const Node& node,
                const DeviceFacts& facts, bool only_first_output);

/// How results differ from what is expected (only those that were read): "nan becomes finite",
/// "finite becomes inf", … and "finite differs" beyond the tolerance (relative to the largest
/// finite magnitude).
std::set<std::string> deviations(const std::vector<HostTensor>& results,
                                 const std::vector<HostTensor>& expected, double tolerance);

/// Relative to the largest magnitude. Covers a few roundings of intermediate results.
double tolerance_of(const OperatorCase& of, DType computed);

/// The list of exceptions: shell patterns for lines "OPERATOR KERNEL OPERAND POISON: DEVIATION".
class PoisonExceptions {
 public:
  PoisonExceptions();
  static std::string path();
  bool allows(const std::string& line) const;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace tandem::testing
