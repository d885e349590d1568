#include "importer/inputs/bindings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/config/keys/config_value.h"
#include "engine/graph/text.h"
#include "importer/file/tensor_data.h"
#include "importer/inputs/bindable_inputs.h"

namespace tandem::importer {
namespace {

constexpr std::int64_t largest_extent = std::int64_t{1} << 40;

// Some exporters write -1 for an extent that is free.
bool is_fixed(const onnx::TensorShapeProto_Dimension& dim) {
  return dim.has_dim_value() && dim.dim_value() != -1;
}

class Binder {
 public:
  explicit Binder(Session& session) : session_(session) {}

  Bindings run() {
    const onnx::GraphProto& graph = session_.file.model->graph();
    std::set<std::string> known{"batch"};
    for (const onnx::ValueInfoProto& info : graph.input()) {
      if (!is_fed(info.name())) continue;
      for (const auto& dim : info.type().tensor_type().shape().dim()) {
        if (!dim.dim_param().empty()) known.insert(dim.dim_param());
      }
    }
    for (const onnx::ValueInfoProto& info : graph.input()) {
      if (is_fed(info.name())) bind_value(info, known);
    }
    check_names(known);
    result_.batch = session_.options.batch;
    if (result_.batch == 0) {
      if (const std::int64_t* named = find("batch")) result_.batch = *named;
    }
    if (result_.batch < 0 || result_.batch > largest_extent) wrong("batch", result_.batch);
    for (const onnx::ValueInfoProto& info : graph.input()) {
      if (is_fed(info.name()) && !has_value(info.name())) bind(info);
    }
    return std::move(result_);
  }

 private:
  bool is_fed(const std::string& name) const {
    if (session_.file.initializers.count(name) > 0) return false;
    const auto& constants = session_.options.constants;
    return std::none_of(constants.begin(), constants.end(),
                        [&](const auto& c) { return c.first == name; });
  }

  bool has_value(const std::string& name) const {
    return std::any_of(result_.values.begin(), result_.values.end(),
                       [&](const auto& value) { return value.first == name; });
  }

  /// Where `bind` has the name of this input, which no free dimension has: its value.
  void bind_value(const onnx::ValueInfoProto& info, std::set<std::string>& known) {
    const std::string& name = info.name();
    if (known.count(name) > 0) return;
    const bool may = may_have_bound_value(info);
    const std::int64_t* bound = find(name);
    if (bound == nullptr) {
      if (may) values_.insert(name);
      return;
    }
    const onnx::TypeProto_Tensor& tensor = info.type().tensor_type();
    if (!may) {
      refuse(session_.file.path, name, "an input that is bound to a value",
             "one element that is a whole number or a boolean",
             fmt::format("{}[{}]", onnx_type_name(tensor.elem_type()), joined(dims_of(info))),
             "feed it by a field of [data.fields]");
    }
    const DType dtype = *dtype_from_onnx(tensor.elem_type());
    Shape shape(static_cast<std::size_t>(tensor.shape().dim_size()), 1);
    HostTensor value = HostTensor::from<std::int64_t>(shape, {*bound}).converted(dtype);
    if (value.integers().at(0) != *bound) {
      refuse(session_.file.path, name, "an input is bound to a value that its type does not have",
             dtype == DType::boolean ? "0 or 1"
                                     : "a number of the type " + std::string(name_of(dtype)),
             std::to_string(*bound));
    }
    result_.values.emplace_back(name, std::move(value));
    values_.insert(name);
  }

  const std::int64_t* find(const std::string& name) const {
    for (const auto& [bound, extent] : session_.options.bind) {
      if (bound == name) return &extent;
    }
    return nullptr;
  }

  [[noreturn]] void wrong(const std::string& name, std::int64_t extent) const {
    refuse(session_.file.path, name, "a dimension is bound to a bad extent",
           name == "batch" ? "1 or more" : "0 or more", std::to_string(extent));
  }

  void check_names(const std::set<std::string>& known) const {
    for (const auto& [name, extent] : session_.options.bind) {
      if (has_value(name)) continue;
      const std::int64_t least = name == "batch" ? 1 : 0;
      if (extent < least || extent > largest_extent) wrong(name, extent);
      if (known.count(name) > 0) continue;
      const std::string inputs = values_.empty() ? "" : ", or of the inputs " + joined(values_);
      refuse(session_.file.path, name, "the model has no free dimension of this name",
             "one of " + joined(known) + inputs);
    }
  }

  void problem(const char* kind, const std::string& input, std::string message,
               std::string expected, std::string got, std::string fix) {
    session_.report(kind, "",
                    Diagnostic{.message = std::move(message),
                               .path = input,
                               .expected = std::move(expected),
                               .got = std::move(got),
                               .fix = std::move(fix)});
  }

  void bind(const onnx::ValueInfoProto& info) {
    BoundInput input;
    input.info = &info;
    input.dims = dims_of(info);
    input.is_bound = bind_type(info, input.type);
    result_.inputs.push_back(std::move(input));
  }

  bool bind_type(const onnx::ValueInfoProto& info, TensorType& type) {
    const std::string& name = info.name();
    if (!info.type().has_tensor_type()) {
      problem("unsupported_type", name, "the input is not a tensor", "", "", "");
      return false;
    }
    const onnx::TypeProto_Tensor& tensor = info.type().tensor_type();
    const auto dtype = dtype_from_onnx(tensor.elem_type());
    if (!dtype) {
      problem("unsupported_type", name, "element type of the input is not supported", dtype_names(),
              onnx_type_name(tensor.elem_type()), "");
      return false;
    }
    type.dtype = session_.type_in_graph(*dtype);
    if (!tensor.has_shape()) {
      problem("free_dimension", name, "the file does not say the input's shape", "", "",
              "export it with shapes");
      return false;
    }
    if (tensor.shape().dim_size() > session_.file.limits.rank) {
      problem("unsupported_type", name, "too many axes", std::to_string(session_.file.limits.rank),
              std::to_string(tensor.shape().dim_size()), "");
      return false;
    }
    bool all = true;
    for (int i = 0; i < tensor.shape().dim_size(); ++i) {
      type.shape.push_back(extent(name, tensor.shape().dim(i), i));
      all = all && type.shape.back() >= 0;
    }
    return all;
  }

  // -1 where it stays free; that is reported.
  std::int64_t extent(const std::string& input, const onnx::TensorShapeProto_Dimension& dim,
                      int axis) {
    if (is_fixed(dim)) {
      const std::int64_t fixed = dim.dim_value();
      if (fixed < 0 || fixed > largest_extent) {
        problem("free_dimension", input, fmt::format("bad extent of axis {}", axis), "0 or more",
                std::to_string(fixed), "");
        return -1;
      }
      if (axis != 0) return fixed;
      if (result_.file_batch == 0) result_.file_batch = fixed;
      return result_.batch > 0 ? result_.batch : fixed;
    }
    const std::int64_t* bound = dim.dim_param().empty() ? nullptr : find(dim.dim_param());
    if (axis == 0) {
      const std::int64_t wanted = result_.batch > 0 ? result_.batch : bound != nullptr ? *bound : 1;
      if (bound != nullptr && *bound != wanted) {
        refuse(session_.file.path, input, "the first axis is bound twice", std::to_string(wanted),
               fmt::format("{} = {}", dim.dim_param(), *bound));
      }
      return wanted;
    }
    if (bound != nullptr) return *bound;
    const std::string name = dim.dim_param().empty() ? "?" : dim.dim_param();
    problem(
        "free_dimension", input, fmt::format("axis {} ('{}') is free", axis, name), "", "",
        dim.dim_param().empty()
            ? "export it with a name or an extent for this axis"
            : fmt::format("bind it: the key model.bind.{0}=N; `inspect` takes --bind {2}{1}=N{2}",
                          toml_key(name), name, name.find(' ') == std::string::npos ? "" : "'"));
    return -1;
  }

  Session& session_;
  std::set<std::string> values_;  // inputs that `bind` may give a value
  Bindings result_;
};

}  // namespace

std::vector<std::string> dims_of(const onnx::ValueInfoProto& info) {
  std::vector<std::string> dims;
  for (const auto& dim : info.type().tensor_type().shape().dim()) {
    dims.push_back(is_fixed(dim)             ? std::to_string(dim.dim_value())
                   : dim.dim_param().empty() ? "?"
                                             : dim.dim_param());
  }
  return dims;
}

Bindings bind_inputs(Session& session) { return Binder(session).run(); }

}  // namespace tandem::importer
