// Cases of operators with one element that is NaN or infinite: whether a kernel makes of it what
// the reference does. Exceptions stand in a committed list.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/typed_case.h"

namespace tandem::testing {

/// A number that poisons an operand, and how lists and messages call it.
struct Poison {
  const char* name;
  double value;
};
inline constexpr Poison poisons[] = {{"nan", std::numeric_limits<double>::quiet_NaN()},
                                     {"inf", std::numeric_limits<double>::infinity()},
                                     {"-inf", -std::numeric_limits<double>::infinity()}};

/// `tensor` with this number at that place.
HostTensor poisoned(const HostTensor& tensor, std::int64_t place, double value);

/// Of a tensor with elements: the first, the last or one in between, as `turn` goes on.
std::int64_t poisoned_place(const HostTensor& tensor, std::uint64_t turn);

/// A case with one poisoned element, and what the reference makes of it in double.
struct PoisonedRun {
  std::string what;   // "weight nan": the operand's name and the poison
  std::string place;  // for messages
  std::vector<HostTensor> inputs, expected;
};

/// NaN at the first, the last and another element of each floating operand in turn, each infinity
/// at one of them.
void each_poisoned(const OperatorCase& of, const TypedCase& typed,
                   const std::function<void(const PoisonedRun&)>& f);

/// Whether the kernel takes the node with row-major operands, where all outputs are read or only
/// the first.
bool takes_node(const Kernel& kernel, const Graph& graph, const Node& node,
                const DeviceFacts& facts, bool only_first_output);

/// How results differ from what is expected (of those that were read): "nan becomes finite",
/// "finite becomes inf", … and "finite differs" beyond the tolerance (of the largest finite
/// magnitude).
std::set<std::string> deviations(const std::vector<HostTensor>& results,
                                 const std::vector<HostTensor>& expected, double tolerance);

/// Of the largest magnitude. What is rounded on the way is rounded a few times at most.
double tolerance_of(const OperatorCase& of, DType computed);

/// The list of exceptions: patterns (of a shell) of lines "OPERATOR KERNEL OPERAND POISON:
/// DEVIATION".
class PoisonExceptions {
 public:
  PoisonExceptions();
  static std::string path();
  bool allows(const std::string& line) const;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace tandem::testing
