// Operators in each of ONNX's versions: rows of inputs, attributes and the numbers that they mean.
#pragma once

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/importer/support.h"

namespace tandem::testing {

using Axes = std::vector<std::int64_t>;
using Numbers = std::vector<double>;
using NodeAttribute =
    std::variant<std::int64_t, double, std::string, Axes, std::vector<float>, HostTensor>;
using NodeAttributes = std::vector<std::pair<std::string, NodeAttribute>>;

constexpr int newest = std::numeric_limits<int>::max();

/// Element types in short.
inline constexpr DType f32 = DType::float32, f64 = DType::float64, f16 = DType::float16,
                       bf16 = DType::bfloat16, e4m3 = DType::float8_e4m3fn, i8 = DType::int8,
                       i16 = DType::int16, i32 = DType::int32, i64 = DType::int64,
                       u8 = DType::uint8, u16 = DType::uint16;

/// One spelling of an operator, valid in ONNX's versions `first` to `last` of it (since_version,
/// both included) as far as these versions know the element types of the inputs. Inputs are x0, x1,
/// …, outputs y0, y1, …; a HostTensor without elements marks an absent one.
struct VersionRow {
  std::string op;
  int first = 1, last = newest;
  std::vector<HostTensor> inputs{};
  NodeAttributes attributes{};
  std::vector<HostTensor> outputs{};
  std::string note{};
  bool known = false;     // all inputs are known before the run; settings are in any case
  bool training = false;  // the run trains
  std::string refused{};  // part of the message where these versions refuse the spelling
  std::function<void(ModelMaker&)> nodes{};  // makes the nodes where it takes more than one
};

HostTensor typed(DType dtype, const Shape& shape, const Numbers& values);
HostTensor floats(const Shape& shape, const Numbers& values);
HostTensor integers(const Shape& shape, const Numbers& values);
HostTensor integers(const Numbers& values);  // one axis
HostTensor booleans(const Shape& shape, const Numbers& values);
Numbers numbers_of(const HostTensor& x);

/// f of each element, in x's type. Of two: `b` is repeated to a's shape, the last axes agree.
template <class F>
HostTensor map(const HostTensor& x, F&& f) {
  Numbers values = numbers_of(x);
  for (double& value : values) value = f(value);
  return typed(x.dtype(), x.shape(), values);
}
template <class F>
HostTensor map(const HostTensor& a, const HostTensor& b, DType dtype, F&& f) {
  Numbers values = numbers_of(a);
  const Numbers others = numbers_of(b);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = f(values[i], others[i % others.size()]);
  }
  return typed(dtype, a.shape(), values);
}

/// All rows, from the tables that versions.inl lists.
const std::vector<VersionRow>& version_rows();

/// since_version of the version that operator set 7 means and of all later ones.
std::set<int> versions_of(const std::string& op);

bool is_absent(const HostTensor& tensor);
/// Whether the row is one of that version, and the version knows the types of its inputs.
bool covers(const VersionRow& row, int version);
/// The row's inputs as x0, x1, …
NamedTensors inputs_of(const VersionRow& row);
ImportResult import_row(const VersionRow& row, int version, const NamedTensors& inputs);

}  // namespace tandem::testing
