#include "engine/train/staged/programs.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tandem {

void feed_inputs(Program& program, const std::vector<const BatchTensors*>& lists,
                 std::uint64_t ticket) {
  const Graph& graph = program.lowered().graph;
  const std::vector<NamedValue>& inputs = graph.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const BatchTensors* list : lists) {
      const auto found = list->find(inputs[i].name);
      // Fields of another type belong to inputs that nothing in this graph reads.
      if (found == list->end() || found->second.type() != graph.type(inputs[i].value)) continue;
      const std::size_t bytes = found->second.bytes();
      if (bytes > 0)
        std::memcpy(program.input_slot(static_cast<int>(i), ticket), found->second.data(), bytes);
      break;
    }
  }
}

HostTensor output_of(const BoundProgram& bound, const std::string& name, std::uint64_t ticket) {
  const int index = bound.output(name);
  const Graph& graph = bound.program->lowered().graph;
  const TensorType& type = graph.type(graph.outputs[static_cast<std::size_t>(index)].value);
  HostTensor copy(type);
  if (type.bytes() > 0)
    std::memcpy(copy.data(), bound.program->output(index, ticket), type.bytes());
  return copy;
}

BatchTensors take_given_outputs(Graph& graph, const std::vector<const BatchTensors*>& lists) {
  BatchTensors given;
  std::erase_if(graph.outputs, [&](const NamedValue& output) {
    const Value& value = graph.value(output.value);
    if (value.kind == ValueKind::constant) {
      given.emplace(output.name, *value.constant);
      return true;
    }
    if (value.kind != ValueKind::input) return false;
    for (const NamedValue& input : graph.inputs) {
      if (input.value != output.value) continue;
      for (const BatchTensors* list : lists) {
        const auto found = list->find(input.name);
        if (found == list->end() || found->second.type() != value.type) continue;
        given.emplace(output.name, found->second);
        return true;
      }
    }
    return false;
  });
  return given;
}

FieldTypes types_of(const std::vector<const BatchTensors*>& lists) {
  FieldTypes types;
  for (const BatchTensors* list : lists) {
    for (const auto& [name, tensor] : *list) types.emplace(name, tensor.type());
  }
  return types;
}

BatchTensors batch_of(const DataSource& source, std::int64_t first, std::int64_t count,
                      const std::vector<std::string>* names) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  BatchTensors batch;
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const DataField& field = source.fields()[f];
    if (names != nullptr && std::find(names->begin(), names->end(), field.name) == names->end())
      continue;
    TensorType type{field.sample.dtype, {count}};
    type.shape.insert(type.shape.end(), field.sample.shape.begin(), field.sample.shape.end());
    HostTensor& tensor = batch[field.name] = HostTensor(std::move(type));
    source.fill(static_cast<int>(f), samples, nullptr, static_cast<std::uint8_t*>(tensor.data()));
  }
  return batch;
}

RunParts with_single_slots(RunParts parts) {
  parts.options.input_slots = 1;
  parts.options.output_slots = 1;
  return parts;
}

}  // namespace tandem
