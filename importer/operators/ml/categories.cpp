// Classes and categories of ai.onnx.ml: numbers looked up, counted out and put back.
#include <fmt/format.h>

#include "importer/file/tensor_data.h"
#include "importer/node_context.h"

namespace tandem::importer::operators::ml {
namespace {

// The most keys: each element is compared with each of them.
constexpr std::int64_t most_compared = 4096;
constexpr const char* text_help =
    "encode the text before training, or by a vocabulary in [data.fields]";

// One of the forms of an attribute: NAME_int64s, NAME_floats, NAME_tensor.
std::optional<HostTensor> list(NodeContext& node, const std::string& name) {
  const std::string tensor = name + "_tensor", floats = name + "_floats", ints = name + "_int64s";
  std::vector<HostTensor> given;
  if (const auto* attribute = node.attribute(tensor.c_str())) {
    if (!attribute->has_t()) node.fail("attribute '" + tensor + "'", "a tensor");
    if (attribute->t().data_type() == onnx::TensorProto::STRING)
      node.unsupported("of text ('" + tensor + "')", text_help);
    const HostTensor values = read_tensor(attribute->t(), node.session().file, node.path());
    given.push_back(values.clone().reshaped({values.type().elements()}));
  }
  if (const std::vector<float> numbers = node.numbers(floats.c_str()); !numbers.empty())
    given.push_back(HostTensor::from({static_cast<std::int64_t>(numbers.size())}, numbers));
  if (const Ints numbers = node.integers(ints.c_str(), {}); !numbers.empty())
    given.push_back(HostTensor::from({static_cast<std::int64_t>(numbers.size())}, numbers));
  if (given.size() > 1) node.fail(fmt::format("'{}' is given in several forms", name), "one");
  return given.empty() ? std::nullopt : std::optional<HostTensor>(given[0]);
}

void refuse_text(NodeContext& node, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (node.has_attribute(name)) node.unsupported(fmt::format("of text ('{}')", name), text_help);
  }
}

HostTensor default_value(NodeContext& node, DType dtype) {
  const double number = node.number("default_float", -0.0);
  const std::int64_t integer = node.integer("default_int64", -1);
  if (const auto* attribute = node.attribute("default_tensor")) {
    if (!attribute->has_t()) node.fail("attribute 'default_tensor'", "a tensor");
    const HostTensor value = read_tensor(attribute->t(), node.session().file, node.path()).clone();
    if (value.type().elements() != 1 || value.dtype() != dtype) {
      node.fail("default_tensor", fmt::format("one {}", name_of(dtype)), to_string(value.type()));
    }
    return value.reshaped({});
  }
  if (is_float(dtype)) return HostTensor::from<double>({}, {number}).converted(dtype);
  return HostTensor::from<std::int64_t>({}, {integer}).converted(dtype);
}

// For each element and each key whether they are equal: x with a last axis more.
Term equals(NodeContext& node, const Term& x, const HostTensor& keys) {
  const std::int64_t count = keys.type().elements();
  if (count > most_compared) {
    node.unsupported(fmt::format("with {} keys", count),
                     fmt::format("at most {}: encode before training", most_compared));
  }
  Shape shape = x.type.shape;
  shape.push_back(1);
  return node.make("Equal", {node.reshape(x, shape), node.constant(keys)});
}

}  // namespace

// The elements of the last axis that the indices name.
void array_feature_extractor(NodeContext& node) {
  const Term& x = node.in(0);
  if (x.type.shape.empty()) node.fail("the input", "at least one axis", "a scalar");
  Term rows = x;
  if (x.type.rank() == 1) rows = node.reshape(x, {1, x.type.shape[0]});
  const Term places = node.reshape(node.in(1), {node.in(1).type.elements()});
  const auto last = static_cast<std::int64_t>(rows.type.rank()) - 1;
  node.out(0, node.make("Gather", {rows, places}, {{"axis", last}}));
}

// The value of the key that the element equals, of equal keys the first one's; else the default.
void label_encoder(NodeContext& node) {
  refuse_text(node, {"keys_strings", "values_strings", "classes_strings"});
  node.text("default_string", "");
  const std::optional<HostTensor> keys = list(node, "keys"), values = list(node, "values");
  if (!keys || !values || keys->type().elements() != values->type().elements()) {
    node.fail("keys and values", "equally many numbers of each",
              fmt::format("{} and {}", keys ? keys->type().elements() : 0,
                          values ? values->type().elements() : 0));
  }
  const Term& x = node.in(0);
  if (x.type.dtype != keys->dtype()) {
    node.fail("the input", fmt::format("{}, as the keys", name_of(keys->dtype())),
              std::string(name_of(x.type.dtype)));
  }
  // How far each element is from the end of the keys that it equals: the first is the farthest.
  const std::int64_t count = keys->type().elements();
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < count; ++i) ranks.push_back(count - i);
  const Term found =
      node.make("Where", {equals(node, x, *keys), node.constant(HostTensor::from({count}, ranks)),
                          node.scalar(0, DType::int64)});
  const Term rank = node.make(
      "ReduceMax", {found},
      {{"axes", Ints{static_cast<std::int64_t>(x.type.rank())}}, {"keepdims", std::int64_t{0}}});
  // The default, then the values from the last to the first.
  HostTensor table(TensorType{values->dtype(), {count + 1}});
  const HostTensor missing = default_value(node, values->dtype());
  const std::size_t size = size_of(values->dtype());
  auto* to = static_cast<char*>(table.data());
  std::copy_n(static_cast<const char*>(missing.data()), size, to);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(static_cast<const char*>(values->data()) + static_cast<std::size_t>(i) * size, size,
                to + static_cast<std::size_t>(count - i) * size);
  }
  node.out(
      0, node.make("Gather", {node.constant(std::move(table)), rank}, {{"axis", std::int64_t{0}}}));
}

// 1 at the place of the category that the element is, else 0; fractions are cut off.
void one_hot_encoder(NodeContext& node) {
  refuse_text(node, {"cats_strings"});
  const Ints categories = node.integers("cats_int64s", {});
  if (categories.empty()) node.fail("cats_int64s", "at least one category", "none");
  if (!node.flag("zeros", true)) {
    node.session().note(node.path(),
                        "an unknown category gives zeros, where the file asks for an "
                        "error (zeros = 0)");
  }
  const Term x = node.cast(node.in(0), DType::int64);
  const Term is =
      equals(node, x, HostTensor::from({static_cast<std::int64_t>(categories.size())}, categories));
  node.out(0, node.cast(is, DType::float32));
}

// A table of names for each sample becomes what it was made of.
void zip_map(NodeContext& node) {
  node.count("classlabels_strings");
  node.integers("classlabels_int64s", {});
  node.session().note(node.path(),
                      "the output is the tensor, its columns in the order of the class labels");
  node.out(0, node.in(0));
}

}  // namespace tandem::importer::operators::ml
