// Sequences of tensors exist during import only: exporters split into them and take the parts out
// again.
#include <fmt/format.h>

#include "importer/bodies.h"

namespace tandem::importer::operators {
namespace {

void out_sequence(NodeContext& node, std::vector<Term> parts, std::size_t output = 0) {
  Term term;
  term.sequence = std::make_shared<const std::vector<Term>>(std::move(parts));
  node.out(output, std::move(term));
}

// The parts, to be changed. A loop that grows a sequence copies it each time: 256 parts count as a
// node.
std::vector<Term> copied_parts(NodeContext& node) {
  std::vector<Term> parts = *node.sequence(0).sequence;
  node.session().nodes += static_cast<std::int64_t>(parts.size() / 256);
  return parts;
}

// The place that input `input` names among that many; -1 is the last.
std::size_t position_of(NodeContext& node, std::size_t input, std::size_t places) {
  const std::int64_t position = node.static_integer(input, "position");
  return static_cast<std::size_t>(node.axis(position, static_cast<std::int64_t>(places)));
}

}  // namespace

// Each part is a Slice. `split` is absent (parts of 1), one size for all but the last, or all
// sizes.
void split_to_sequence(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  const auto at = static_cast<std::size_t>(axis);
  Ints sizes;
  if (node.has(1) && node.rank(1) == 1) {
    sizes = node.static_integers(1, "split");
  } else {
    const std::int64_t size = node.has(1) ? node.static_integer(1, "split") : 1;
    if (size < 1) node.fail("split", "a size of 1 or more", std::to_string(size));
    for (std::int64_t left = x[at]; left > 0; left -= size) sizes.push_back(std::min(size, left));
  }
  std::vector<Term> parts;
  Ints starts(x.size(), 0);
  for (std::int64_t size : sizes) {
    Shape part = x;
    part[at] = size;
    if (size < 0 || size > x[at] - starts[at]) {
      node.fail("sum of the parts", std::to_string(x[at]), to_string(Shape(sizes)));
    }
    if (!parts.empty()) node.session().next_part();
    parts.push_back(node.make("Slice", {node.in(0)},
                              {{"starts", starts}, {"sizes", part}, {"steps", Ints(x.size(), 1)}}));
    starts[at] += size;
    if (!node.has(1) && !node.flag("keepdims", true)) {
      part.erase(part.begin() + axis);
      parts.back() = node.reshape(parts.back(), part);
    }
  }
  if (starts[at] != x[at])
    node.fail("sum of the parts", std::to_string(x[at]), std::to_string(starts[at]));
  out_sequence(node, std::move(parts));
}

void sequence_at(NodeContext& node) {
  const std::vector<Term>& parts = *node.sequence(0).sequence;
  const Term part = parts[position_of(node, 1, parts.size())];
  if (part.id && node.scope().main && node.wants(0)) {
    node.session().builder.rename(part.id, name_in_graph(node.node().output(0), part));
  }
  node.out(0, part);
}

void sequence_construct(NodeContext& node) { out_sequence(node, node.inputs()); }
void sequence_empty(NodeContext& node) { out_sequence(node, {}); }

// Inserts before the part at `position`, which may be one past the last; at the end where it is
// absent.
void sequence_insert(NodeContext& node) {
  std::vector<Term> parts = copied_parts(node);
  const Term& part = node.in(1);
  if (!parts.empty() && parts[0].type.dtype != part.type.dtype) {
    node.fail("element type", std::string(name_of(parts[0].type.dtype)),
              std::string(name_of(part.type.dtype)));
  }
  std::size_t at = parts.size();
  if (node.has(2)) {
    std::int64_t position = node.static_integer(2, "position");
    const auto count = static_cast<std::int64_t>(parts.size());
    if (position < -count || position > count)
      node.fail("position", fmt::format("{} to {}", -count, count), std::to_string(position));
    at = static_cast<std::size_t>(position < 0 ? position + count : position);
  }
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(at), part);
  out_sequence(node, std::move(parts));
}

void sequence_erase(NodeContext& node) {
  std::vector<Term> parts = copied_parts(node);
  if (parts.empty()) node.fail("the sequence is empty");
  const std::size_t at = node.has(1) ? position_of(node, 1, parts.size()) : parts.size() - 1;
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
  out_sequence(node, std::move(parts));
}

void sequence_length(NodeContext& node) {
  const auto length = static_cast<std::int64_t>(node.sequence(0).sequence->size());
  node.out(0, node.constant(HostTensor::from<std::int64_t>({}, {length})));
}

// The body for each part; tensors among the other inputs are the same for all.
void sequence_map(NodeContext& node) {
  Body body(node, "body");
  if (body.input_count() != node.input_count() || body.output_count() < node.output_count()) {
    node.fail("inputs and outputs of its body",
              fmt::format("{} and {}", node.input_count(), node.output_count()),
              fmt::format("{} and {}", body.input_count(), body.output_count()));
  }
  const std::size_t count = node.sequence(0).sequence->size();
  std::vector<std::vector<Term>> results(node.output_count());
  Unrolling unrolling(node);
  for (std::size_t i = 0; i < count; ++i) {
    if (!unrolling.next()) return out_bad(node);
    std::vector<Term> inputs;
    for (std::size_t k = 0; k < node.input_count(); ++k) {
      const Term& operand = node.operand(k);
      if (operand.sequence && operand.sequence->size() != count) {
        node.fail("lengths of the sequences", std::to_string(count),
                  std::to_string(operand.sequence->size()));
      }
      inputs.push_back(operand.sequence ? (*operand.sequence)[i] : operand);
    }
    std::vector<Term> made = body.run(inputs, std::to_string(i));
    for (std::size_t k = 0; k < results.size(); ++k) results[k].push_back(std::move(made[k]));
  }
  if (!unrolling.is_sound()) return out_bad(node);
  for (std::size_t k = 0; k < results.size(); ++k) out_sequence(node, std::move(results[k]), k);
}

// An optional with a value is that value.
void optional(NodeContext& node) {
  Term term;
  term.none = !node.has(0);
  node.out(0, node.has(0) ? node.operand(0) : term);
}

void optional_has_element(NodeContext& node) {
  const bool has = node.has(0) && !node.operand(0).none;
  node.out(0, node.constant(HostTensor::from<bool>({}, {has})));
}

void optional_get_element(NodeContext& node) {
  if (node.operand(0).none) node.fail("the optional has no value");
  node.out(0, node.operand(0));
}

void concat_from_sequence(NodeContext& node) {
  std::vector<Term> parts = *node.sequence(0).sequence;
  if (parts.empty()) node.fail("the sequence is empty");
  const bool stack = node.flag("new_axis", false);
  const auto rank = static_cast<std::int64_t>(parts[0].type.rank());
  const std::int64_t axis = node.axis(node.integer("axis"), rank + stack);
  for (Term& part : parts) {
    if (!stack) break;
    if (static_cast<std::int64_t>(part.type.rank()) != rank) node.fail("parts of different ranks");
    Shape shape = part.type.shape;
    shape.insert(shape.begin() + axis, 1);
    part = node.reshape(part, shape);
  }
  node.out(0, parts.size() == 1 ? node.make("Identity", parts)
                                : node.make("Concat", parts, {{"axis", axis}}));
}

}  // namespace tandem::importer::operators
