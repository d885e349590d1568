// What is known before the run: constants, shapes, ranges, and arithmetic that only shapes need.

#include <cmath>

#include "importer/chosen_rows.h"
#include "importer/file/tensor_data.h"
#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

constexpr std::int64_t largest = std::int64_t{64} << 20;  // bytes of a constant made here

template <class T>
void make_range(NodeContext& node) {
  const auto number = [&](std::size_t i, const char* role) {
    if (node.in(i).type.elements() != 1) node.fail(role, "one number");
    return node.static_tensor(i, role).converted(dtype_of<T>::value).template as<T>()[0];
  };
  const T start = number(0, "start"), limit = number(1, "limit"), delta = number(2, "delta");
  if (!(delta != T{0})) node.fail("delta", "a number other than 0", "0");
  const double wanted = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                  static_cast<double>(delta));
  if (!(wanted < static_cast<double>(largest / static_cast<std::int64_t>(sizeof(T))))) {
    node.fail("the range is too long", "", std::to_string(wanted));
  }
  const auto count = static_cast<std::int64_t>(std::max(0.0, wanted));
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(start + i * delta));
  node.out(0, node.constant(HostTensor::from({count}, values).converted(node.dtype(0))));
}

}  // namespace

void constant(NodeContext& node) {
  if (const auto* value = node.attribute("value")) {
    if (!value->has_t()) node.fail("attribute 'value'", "a tensor");
    const HostTensor tensor = read_tensor(value->t(), node.session().file, node.path());
    // Bodies of functions may be gone before the graph is; their tensors cannot be viewed.
    node.out(0, node.constant(node.scope().in_function ? tensor.clone() : tensor));
  } else if (const auto* number = node.attribute("value_float")) {
    node.out(0, node.constant(HostTensor::from<float>({}, {number->f()})));
  } else if (const auto* numbers = node.attribute("value_floats")) {
    const std::vector<float> values(numbers->floats().begin(), numbers->floats().end());
    node.out(0, node.constant(HostTensor::from({numbers->floats_size()}, values)));
  } else if (const auto* integer = node.attribute("value_int")) {
    node.out(0, node.constant(HostTensor::from<std::int64_t>({}, {integer->i()})));
  } else if (const auto integers = node.integers("value_ints")) {
    node.out(0, node.constant(
                    HostTensor::from({static_cast<std::int64_t>(integers->size())}, *integers)));
  } else {
    node.unsupported("only tensors and numbers are supported as its value");
  }
}

void constant_of_shape(NodeContext& node) {
  HostTensor value = HostTensor::from<float>({1}, {0.0f});
  if (const auto* given = node.attribute("value")) {
    if (!given->has_t()) node.fail("attribute 'value'", "a tensor");
    value = read_tensor(given->t(), node.session().file, node.path()).clone();
    if (value.type().elements() != 1) node.fail("value", "one element", to_string(value.type()));
  }
  const Shape shape = node.static_integers(0, "shape");
  if (!checked_elements(shape, std::int64_t{1} << 40)) {
    node.fail("shape", "extents >= 0", to_string(shape));
  }
  // Repeated by strides, so that a large one takes no memory here.
  const Term made = node.expand(node.constant(value.reshaped({})), shape);
  node.out(0, with_counted_extents(node.session(), node.in(0), made));
}

void shape(NodeContext& node) {
  const Shape& extents = node.shape(0);
  const auto rank = static_cast<std::int64_t>(extents.size());
  const auto place = [&](std::int64_t value) {
    return std::clamp<std::int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  const std::int64_t first = place(node.integer("start", 0));
  const std::int64_t last = std::max(first, place(node.integer("end", rank)));
  const std::vector<std::int64_t> part(extents.begin() + first, extents.begin() + last);
  const Term term = node.constant(HostTensor::from({last - first}, part));
  node.out(0, counted_extents(node.in(0), term, first));
}

void size(NodeContext& node) {
  if (node.in(0).rows) refuse_chosen_setting(node.session(), "Size", node.in(0));
  node.out(0, node.constant(HostTensor::from<std::int64_t>({}, {element_count(node.shape(0))})));
}

void range(NodeContext& node) {
  switch (node.dtype(0)) {
    case DType::float16:
    case DType::bfloat16:
    case DType::float32:
      return make_range<float>(node);
    case DType::float64:
      return make_range<double>(node);
    case DType::int16:
      return make_range<std::int16_t>(node);
    case DType::int32:
      return make_range<std::int32_t>(node);
    case DType::int64:
      return make_range<std::int64_t>(node);
    default:
      node.fail("element type", "float16, bfloat16, float32, float64, int16, int32 or int64",
                std::string(name_of(node.dtype(0))));
  }
}

}  // namespace tandem::importer::operators
