// Scan: its iterations one after the other, over the parts of the tensors that it scans.
#include <fmt/format.h>

#include <algorithm>

#include "importer/bodies.h"

namespace tandem::importer::operators {
namespace {

// One list of integers for each of `count` tensors; zeros where it is absent.
Ints one_each(NodeContext& node, const char* name, std::size_t count) {
  const Ints given = node.integers(name, Ints(count, 0));
  if (given.size() != count) {
    node.fail(fmt::format("attribute '{}'", name), fmt::format("{} numbers", count),
              std::to_string(given.size()));
  }
  return given;
}

struct Scanned {
  std::vector<Term> state;
  std::vector<std::vector<Term>> rows;
};

// `inputs`: the parts of each scanned tensor, in the order in which the body sees them. False where
// the body could not be imported.
bool scan_over(Body& body, Unrolling& unrolling, Scanned& scanned,
               const std::vector<std::vector<Term>>& inputs, const std::string& part) {
  const std::size_t states = scanned.state.size();
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    if (!unrolling.next()) return false;
    std::vector<Term> operands = scanned.state;
    for (const std::vector<Term>& input : inputs) operands.push_back(input[i]);
    std::vector<Term> results = body.run(operands, part + std::to_string(i));
    for (std::size_t k = 0; k < states; ++k) scanned.state[k] = std::move(results[k]);
    for (std::size_t k = 0; k < scanned.rows.size(); ++k)
      scanned.rows[k].push_back(std::move(results[states + k]));
  }
  return unrolling.is_sound();
}

struct Form {
  std::size_t states = 0, inputs = 0, outputs = 0;
};

Form form_of(NodeContext& node, const Body& body, std::size_t operands) {
  const std::int64_t inputs = node.integer("num_scan_inputs");
  const auto all = static_cast<std::int64_t>(operands);
  if (inputs < 1 || inputs > all)
    node.fail("num_scan_inputs", fmt::format("1 to {}", all), std::to_string(inputs));
  Form form;
  form.inputs = static_cast<std::size_t>(inputs);
  form.states = operands - form.inputs;
  if (body.input_count() != operands || body.output_count() < form.states) {
    node.fail(
        "its body takes the states and one part of each scanned tensor, and gives the states back",
        fmt::format("{} inputs and at least {} outputs", operands, form.states),
        fmt::format("{} and {}", body.input_count(), body.output_count()));
  }
  form.outputs = body.output_count() - form.states;
  return form;
}

std::vector<Term> parts_of(NodeContext& node, const Term& x, std::int64_t axis, bool backwards) {
  std::vector<Term> parts = unstacked(node, x, axis);
  if (backwards) std::reverse(parts.begin(), parts.end());
  return parts;
}

void check_lengths(NodeContext& node, const std::vector<std::vector<Term>>& inputs) {
  for (const std::vector<Term>& input : inputs) {
    if (input.size() == inputs[0].size()) continue;
    node.fail("extents of the scanned axes", "equal ones",
              fmt::format("{} and {}", inputs[0].size(), input.size()));
  }
  if (inputs[0].empty()) node.fail("it scans an axis without elements");
}

// Until version 8 all tensors have the batch first and are scanned along axis 1, sample by sample.
void scan_samples(NodeContext& node) {
  Session& session = node.session();
  const std::size_t first_node = session.builder.graph().nodes.size();
  Body body(node, "body");
  const Form form = form_of(node, body, node.input_count() - 1);
  const Ints directions = one_each(node, "directions", form.inputs);
  const std::int64_t samples = node.rank(1) > 0 ? node.shape(1)[0] : 0;
  if (samples < 1) node.fail("batch", "1 or more", std::to_string(samples));
  std::vector<std::vector<Term>> by_sample;  // each operand's
  for (std::size_t i = 0; i < form.states + form.inputs; ++i) {
    const bool is_scanned = i >= form.states;
    if (node.rank(i + 1) < (is_scanned ? 2 : 1) || node.shape(i + 1)[0] != samples)
      node.fail(fmt::format("input {}", i + 1), fmt::format("[{}, ...]", samples),
                to_string(node.shape(i + 1)));
    if (is_scanned && node.shape(i + 1)[1] != node.shape(form.states + 1)[1])
      node.fail("extents of the scanned axes", "equal ones");
    by_sample.push_back(unstacked(node, node.in(i + 1), 0));
  }
  if (node.has(0)) {
    const std::int64_t all = node.shape(form.states + 1)[1];
    for (const std::int64_t length : node.static_integers(0, "sequence_lens")) {
      if (length != all) node.unsupported("samples that are shorter than others");
    }
  }
  Unrolling unrolling(node);
  std::vector<std::vector<Term>> results(form.states + form.outputs);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const auto at = static_cast<std::size_t>(sample);
    Scanned scanned;
    scanned.rows.resize(form.outputs);
    std::vector<std::vector<Term>> inputs;
    for (std::size_t i = 0; i < form.states; ++i) scanned.state.push_back(by_sample[i][at]);
    for (std::size_t i = 0; i < form.inputs; ++i)
      inputs.push_back(parts_of(node, by_sample[form.states + i][at], 0, directions[i] != 0));
    check_lengths(node, inputs);
    const std::string part = samples == 1 ? "" : std::to_string(sample) + ".";
    if (!scan_over(body, unrolling, scanned, inputs, part)) return out_bad(node);
    for (std::size_t i = 0; i < form.states; ++i) results[i].push_back(scanned.state[i]);
    for (std::size_t i = 0; i < form.outputs; ++i)
      results[form.states + i].push_back(stacked(node, scanned.rows[i], 0));
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    out_of_body(node, i, stacked(node, results[i], 0), first_node);
}

}  // namespace

void scan(NodeContext& node) {
  if (node.version() < 9) return scan_samples(node);
  const std::size_t first_node = node.session().builder.graph().nodes.size();
  Body body(node, "body");
  const Form form = form_of(node, body, node.input_count());
  const Ints axes = one_each(node, "scan_input_axes", form.inputs);
  const Ints directions = one_each(node, "scan_input_directions", form.inputs);
  const Ints output_axes = one_each(node, "scan_output_axes", form.outputs);
  const Ints output_directions = one_each(node, "scan_output_directions", form.outputs);
  Scanned scanned;
  scanned.rows.resize(form.outputs);
  for (std::size_t i = 0; i < form.states; ++i) scanned.state.push_back(node.operand(i));
  std::vector<std::vector<Term>> inputs;
  for (std::size_t i = 0; i < form.inputs; ++i) {
    const std::size_t at = form.states + i;
    inputs.push_back(
        parts_of(node, node.in(at), node.axis(axes[i], node.rank(at)), directions[i] != 0));
  }
  check_lengths(node, inputs);
  Unrolling unrolling(node);
  if (!scan_over(body, unrolling, scanned, inputs, "")) return out_bad(node);
  for (std::size_t i = 0; i < form.states; ++i)
    out_of_body(node, i, std::move(scanned.state[i]), first_node);
  for (std::size_t i = 0; i < form.outputs; ++i) {
    std::vector<Term>& rows = scanned.rows[i];
    if (output_directions[i] != 0) std::reverse(rows.begin(), rows.end());
    const auto rank = static_cast<std::int64_t>(rows[0].type.rank());
    const std::int64_t axis = node.axis(output_axes[i], rank + 1);
    out_of_body(node, form.states + i, stacked(node, std::move(rows), axis), first_node);
  }
}

}  // namespace tandem::importer::operators
