// Session::predict: outputs in inference form, for any number of samples.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "api/model/mixed_samples.h"
#include "api/train/host_tensors.h"
#include "api/train/moved_from.h"
#include "api/train/session/session_impl.h"
#include "engine/train/algorithm/algorithm_graph.h"
#include "engine/train/divergence/reported_ids.h"

namespace tandem::api {
namespace {

/// Copies the rows of a part behind those of the parts before it.
void append(std::map<std::string, HostTensor>& whole, const Tensors& part, std::int64_t first,
            std::int64_t samples) {
  for (const auto& [name, tensor] : part) {
    const std::span<const std::byte> rows = tensor.bytes();
    const std::size_t of_sample = rows.size() / static_cast<std::size_t>(tensor.shape()[0]);
    if (first == 0) {
      TensorType type = checked_type(tensor, name);
      type.shape[0] = samples;
      whole[name] = HostTensor(std::move(type));
    }
    if (rows.empty()) continue;
    std::memcpy(static_cast<std::byte*>(whole.at(name).data()) +
                    static_cast<std::size_t>(first) * of_sample,
                rows.data(), rows.size());
  }
}

}  // namespace

Program& Session::Impl::predictor(std::int64_t batch) {
  if (const auto found = predictors.find(batch); found != predictors.end()) return *found->second;
  Graph graph = model.forward(batch, false);
  if (const auto algorithm = parts.model->algorithm({batch, false}))
    graph = without_algorithm(std::move(graph), engine.operators, *algorithm);
  auto program = std::make_unique<Program>(graph, parts.model->place(graph), engine.operators,
                                           parts.devices, states, arenas, parts.options);
  write_states();
  return *predictors.emplace(batch, std::move(program)).first->second;
}

std::int64_t Session::Impl::samples_to_predict(const FieldTypes& fed) {
  const std::optional<std::int64_t> samples = samples_of(fed);
  std::vector<Diagnostic> problems;
  bool is_any_fed = false;
  for (const NamedValue& input : forward().inputs) {
    const auto found = fed.find(input.name);
    if (found == fed.end()) continue;
    is_any_fed = true;
    TensorType expected = forward().type(input.value);
    const bool is_batch = has_batch_axis(input.value);
    if (is_batch) expected.shape[0] = samples.value_or(config.batch_size);
    if (found->second != expected)
      problems.push_back(of_other_type(input.name, expected, found->second,
                                       is_batch && !samples ? ", or another batch on axis 0" : ""));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  if (is_any_fed) return samples.value_or(config.batch_size);
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "predict needs at least one fed tensor with a batch axis"});
}

void Session::Impl::check_fed_ids(const Feeds& feeds, const FieldTypes& fed, std::int64_t samples) {
  if (!id_inputs) {
    id_inputs.emplace();
    for (const NamedValue& input : forward().inputs) {
      if (looked_up_rows(forward(), input.name) > 0) id_inputs->push_back(input.name);
    }
  }
  Feeds ids;  // predict needs no labels, so they are not checked
  for (const std::string& name : *id_inputs) {
    if (const auto found = feeds.find(name); found != feeds.end()) ids.insert(*found);
  }
  if (!ids.empty()) check_fed_values(ids, fed, samples);
}

bool Session::Impl::predicts_samples_alone() {
  if (samples_are_alone) return *samples_are_alone;
  const auto find_out = [&] {
    const std::int64_t batch = config.batch_size;
    if (parts.model->algorithm({batch, false})) return false;
    const Graph& graph = model.forward(batch, false);
    const Graph* other = nullptr;
    try {
      other = &model.forward(2 * batch, false);
    } catch (const Error&) {  // the file has a fixed batch size
      return false;
    }
    std::vector<ValueId> outputs;
    for (const NamedValue& output : graph.outputs) {
      const Shape& shape = graph.type(output.value).shape;
      const NamedValue* twin = other->find_output(output.name);
      if (shape.empty() || twin == nullptr || !has_sample_axis(graph, *other, output.value) ||
          shape[0] != batch || other->type(twin->value).shape[0] != 2 * batch)
        return false;
      outputs.push_back(output.value);
    }
    return find_mixed_samples(graph, *other, outputs) == nullptr;
  };
  samples_are_alone = find_out();
  return *samples_are_alone;
}

Tensors Session::Impl::predict_batch(const Feeds& feeds, const FieldTypes& types,
                                     std::int64_t samples, std::int64_t part) {
  Program& program = predictor(samples);
  const std::uint64_t ticket = predictions++;
  feed(program, feeds, types, ticket);
  StepContext context;
  context.micro_batch = static_cast<std::uint64_t>(part);
  context.error = &errors;
  program.run(context, ticket);
  refuse_reported(program, errors);
  Tensors result;
  const Graph& graph = program.lowered().graph;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    HostTensor tensor(graph.type(graph.outputs[i].value));
    if (tensor.bytes() > 0)
      std::memcpy(tensor.data(), program.output(static_cast<int>(i), ticket), tensor.bytes());
    result[graph.outputs[i].name] = public_tensor(tensor);
  }
  return result;
}

Tensors Session::predict(const Tensors& feeds, const StopToken& stop) {
  Impl& my = held(impl_, session_handle);
  my.check_stop();
  refuse_stopped(stop);
  const FieldTypes types = types_of_feeds(feeds);
  my.refuse_unknown(feeds);
  const std::int64_t samples = my.samples_to_predict(types);
  my.check_fed_ids(feeds, types, samples);
  const std::int64_t most = my.config.batch_size;
  const SessionWeights in_use = my.weights_in_use();
  if (samples <= most || !my.predicts_samples_alone())
    return my.predict_batch(feeds, types, samples);
  std::map<std::string, HostTensor> whole;
  for (std::int64_t first = 0; first < samples; first += most) {
    my.check_stop();
    refuse_stopped(stop);
    const std::int64_t count = std::min(most, samples - first);
    Feeds part;
    FieldTypes part_types;
    for (const NamedValue& input : my.forward().inputs) {
      const auto found = feeds.find(input.name);
      if (found == feeds.end()) continue;
      const Tensor& tensor = found->second;
      std::vector<std::int64_t> shape = tensor.shape();
      std::span<const std::byte> bytes = tensor.bytes();
      if (my.has_batch_axis(input.value)) {
        const std::size_t of_sample = bytes.size() / static_cast<std::size_t>(samples);
        bytes = bytes.subspan(static_cast<std::size_t>(first) * of_sample,
                              static_cast<std::size_t>(count) * of_sample);
        shape[0] = count;
      }
      part_types[input.name] = types.at(input.name);
      part_types[input.name].shape = shape;
      part[input.name] = Tensor::view_bytes(tensor.dtype(), std::move(shape), bytes);
    }
    append(whole, my.predict_batch(part, part_types, count, first / most), first, samples);
  }
  Tensors result;
  for (const auto& [name, tensor] : whole) result[name] = public_tensor(tensor);
  return result;
}

}  // namespace tandem::api
