// What a Session is fed: its names, types and samples, and its way into a program.
#include <algorithm>
#include <cstring>

#include "api/train/host_tensors.h"
#include "api/train/session/session_impl.h"
#include "engine/graph/text.h"

namespace tandem::api {

FieldTypes types_of_feeds(const Feeds& feeds) {
  FieldTypes types;
  for (const auto& [name, tensor] : feeds) types[name] = checked_type(tensor, name);
  return types;
}

Diagnostic of_other_type(const std::string& input, const TensorType& expected,
                         const TensorType& got, const char* or_else) {
  return {.message = "this input is fed with another type",
          .path = input,
          .expected = to_string(expected) + or_else,
          .got = to_string(got)};
}

void feed(Program& program, const Feeds& feeds, const FieldTypes& types, std::uint64_t ticket) {
  const Graph& graph = program.lowered().graph;
  std::vector<Diagnostic> problems;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.inputs[i].name;
    const TensorType& type = graph.type(graph.inputs[i].value);
    if (name.starts_with("optimizer.")) continue;
    const auto found = feeds.find(name);
    if (found == feeds.end()) {
      problems.push_back(
          {.message = "this input is not fed", .path = name, .expected = to_string(type)});
      continue;
    }
    if (types.at(name) != type) {
      problems.push_back(of_other_type(name, type, types.at(name)));
      continue;
    }
    const std::span<const std::byte> bytes = found->second.bytes();
    if (!bytes.empty())
      std::memcpy(program.input_slot(static_cast<int>(i), ticket), bytes.data(), bytes.size());
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

void Session::Impl::refuse_unknown(const Feeds& feeds, const std::vector<std::string>& others) {
  const std::vector<NamedValue>& inputs = forward().inputs;
  const std::vector<LossTerm>& terms = config.loss.terms;
  const auto is_known = [&](const std::string& name) {
    return forward().find_input(name) != nullptr ||
           std::find(others.begin(), others.end(), name) != others.end() ||
           std::any_of(terms.begin(), terms.end(), [&](const LossTerm& term) {
             const std::vector<std::string> fields = term.fields();
             return std::find(fields.begin(), fields.end(), name) != fields.end();
           });
  };
  std::vector<Diagnostic> problems;
  for (const auto& [name, tensor] : feeds) {
    if (!name.empty() && is_known(name)) continue;
    std::vector<std::string> known = others;
    for (const NamedValue& input : inputs) known.push_back(input.name);
    for (const LossTerm& term : terms) {
      const std::vector<std::string> fields = term.fields();
      known.insert(known.end(), fields.begin(), fields.end());
    }
    Diagnostic d;
    d.path = name;
    d.message = "neither the model nor the loss takes this";
    d.expected = joined(known);
    d.fix = did_you_mean(nearest_name(name, known));
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

bool Session::Impl::has_batch_axis(ValueId input) {
  const Shape& shape = forward().type(input).shape;
  return !shape.empty() && shape[0] == config.batch_size;
}

std::optional<std::int64_t> Session::Impl::samples_of(const FieldTypes& fed) {
  std::optional<std::int64_t> samples;
  for (const NamedValue& input : forward().inputs) {
    const auto found = fed.find(input.name);
    if (found == fed.end() || found->second.shape.empty() || !has_batch_axis(input.value)) continue;
    const std::int64_t own = found->second.shape[0];
    if (own < 1 || samples.value_or(own) != own) return std::nullopt;
    samples = own;
  }
  return samples;
}

}  // namespace tandem::api
