#include "importer/file/sparse_tensors.h"

#include <fmt/format.h>

#include <cstring>

#include "importer/file/tensor_data.h"

namespace tandem::importer {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

class Densify {
 public:
  explicit Densify(const OnnxFile::Content& content) : content_(content) {}

  void graph(onnx::GraphProto& graph) {
    for (const onnx::SparseTensorProto& sparse : graph.sparse_initializer())
      *graph.add_initializer() = dense(sparse, sparse.values().name());
    graph.clear_sparse_initializer();
    nodes(*graph.mutable_node());
  }

  template <class Nodes>
  void nodes(Nodes& all) {
    for (onnx::NodeProto& node : all) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) graph(*attribute.mutable_g());
        for (onnx::GraphProto& each : *attribute.mutable_graphs()) graph(each);
        if (node.op_type() != "Constant" || !attribute.has_sparse_tensor()) continue;
        *attribute.mutable_t() = dense(attribute.sparse_tensor(), node.name());
        attribute.clear_sparse_tensor();
        attribute.set_name("value");
        attribute.set_type(onnx::AttributeProto::TENSOR);
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& where, std::string message, std::string expected,
                         std::string got) const {
    refuse(content_.path, where, "sparse tensor: " + std::move(message), std::move(expected),
           std::move(got));
  }

  /// Row-major places of the values: the indices say them, or the coordinates of each.
  std::vector<std::int64_t> places(const onnx::SparseTensorProto& sparse, const Shape& shape,
                                   const std::string& where) const {
    const HostTensor indices = read_tensor(sparse.indices(), content_, where);
    const std::int64_t count = sparse.values().dims(0);
    const auto rank = static_cast<std::int64_t>(shape.size());
    const bool is_flat = indices.shape() == Shape{count};
    if (indices.dtype() != DType::int64 || (!is_flat && indices.shape() != Shape{count, rank}))
      fail(where, "indices", fmt::format("int64 [{}] or [{}, {}]", count, count, rank),
           to_string(indices.type()));
    const std::vector<std::int64_t> numbers = indices.integers();
    const std::int64_t elements = element_count(shape);
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t place = is_flat ? numbers[static_cast<std::size_t>(i)] : 0;
      for (std::int64_t axis = 0; !is_flat && axis < rank; ++axis) {
        const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
        const std::int64_t at = numbers[static_cast<std::size_t>(i * rank + axis)];
        if (at < 0 || at >= extent)
          fail(where, "index", fmt::format("0 to {}", extent - 1), std::to_string(at));
        place = place * extent + at;
      }
      if (place < 0 || place >= elements)
        fail(where, "index", fmt::format("0 to {}", elements - 1), std::to_string(place));
      result.push_back(place);
    }
    return result;
  }

  onnx::TensorProto dense(const onnx::SparseTensorProto& sparse, const std::string& where) const {
    const onnx::TensorProto& values = sparse.values();
    if (values.dims_size() != 1)
      fail(where, "values", "one axis", std::to_string(values.dims_size()) + " axes");
    onnx::TensorProto result;
    result.set_name(values.name());
    result.set_data_type(values.data_type());
    *result.mutable_dims() = sparse.dims();
    const TensorType type = checked_type(result, content_, where);
    if (!checked_elements(type.shape, most_bytes / static_cast<std::int64_t>(size_of(type.dtype))))
      fail(where, "its dense form is too large", fmt::format("at most {} bytes", most_bytes),
           to_string(type));
    const HostTensor given = read_tensor(values, content_, where);
    const std::vector<std::int64_t> at = places(sparse, type.shape, where);
    const std::size_t size = size_of(type.dtype);
    std::string bytes(type.bytes(), '\0');
    for (std::size_t i = 0; i < at.size(); ++i)
      std::memcpy(bytes.data() + static_cast<std::size_t>(at[i]) * size,
                  static_cast<const char*>(given.data()) + i * size, size);
    result.set_raw_data(std::move(bytes));
    return result;
  }

  const OnnxFile::Content& content_;
};

}  // namespace

void make_dense(onnx::ModelProto& model, const OnnxFile::Content& content) {
  Densify densify(content);
  if (model.has_graph()) densify.graph(*model.mutable_graph());
  for (onnx::FunctionProto& function : *model.mutable_functions())
    densify.nodes(*function.mutable_node());
}

}  // namespace tandem::importer
