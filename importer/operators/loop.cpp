// Loop: its iterations one after the other, as many as are known before the run. Where data ends
// it, all that the trip count allows are computed, and what is carried stays once the condition is
// false.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "importer/bodies.h"
#include "importer/chosen_rows.h"
#include "importer/file/tensor_data.h"

namespace tandem::importer::operators {
namespace {

constexpr std::int64_t no_bound = std::numeric_limits<std::int64_t>::max();
// Bytes of the values that a small loop reads.
constexpr std::size_t few_bytes = std::size_t{1} << 20;

std::int64_t trip_count(NodeContext& node) {
  if (!node.has(0)) return no_bound;
  if (!node.in(0).constant) {
    node.want({node.in(0)});
    node.unsupported(
        "the number of its iterations must be known before the run, and is computed from data",
        "a trip count from shapes and constants; with data only in the condition, the loop ends "
        "early");
  }
  return node.static_integer(0, "trip count");
}

// A scalar in the shape that the body declares: files have [1] for [] here.
Term declared(NodeContext& node, const onnx::ValueInfoProto& input, HostTensor scalar) {
  const bool is_list = input.type().tensor_type().shape().dim_size() == 1;
  return node.constant(is_list ? scalar.reshaped({1}) : std::move(scalar));
}

// The stack of no parts has the type that the body says.
Term empty_stack(NodeContext& node, const onnx::ValueInfoProto& output) {
  const auto& type = output.type().tensor_type();
  const auto dtype = dtype_from_onnx(type.elem_type());
  Shape shape{0};
  bool is_known = dtype && type.has_shape();
  for (const auto& dim : type.shape().dim()) {
    is_known &= dim.has_dim_value();
    shape.push_back(dim.dim_value());
  }
  if (!is_known) {
    node.unsupported(
        fmt::format("it has no iteration, and its body gives no shape for '{}'", output.name()));
  }
  return node.filled(0, {node.session().type_in_graph(*dtype), shape});
}

bool is_true(NodeContext& node, const Term& condition) {
  if (condition.type.elements() != 1)
    node.fail("condition", "one boolean", to_string(condition.type));
  return condition.constant->number(0) != 0;
}

// Whether not even a choice among all iterations gives what a loop makes that data ends.
bool has_no_end(const NodeContext& node, std::int64_t most, std::size_t carried,
                std::size_t scans) {
  bool is_wanted = false;
  for (std::size_t k = carried; k < carried + scans; ++k) is_wanted = is_wanted || node.wants(k);
  return most == no_bound || is_wanted;
}

// Checks a loop whose end data decides.
void check_end(NodeContext& node, std::int64_t most, std::size_t carried, std::size_t scans) {
  if (most == no_bound) {
    node.unsupported("its condition is computed from data, and nothing bounds its iterations",
                     "a trip count: for i in range(N) with the condition inside");
  }
  for (std::size_t k = carried; k < carried + scans; ++k) {
    if (!node.wants(k)) continue;
    node.unsupported(fmt::format("'{}' has as many rows as data says, since the condition is "
                                 "computed from data",
                                 node.node().output(static_cast<int>(k))),
                     "a fixed number of iterations, or a carried tensor that each of them writes "
                     "its row of");
  }
}

// In an import by stages, for a loop whose end data decides. Where it computes with few numbers,
// these become known, and all of it folds; else the condition of one iteration after the other.
void want_end(NodeContext& node, const Body& body, const std::vector<Term>& state,
              const std::vector<std::vector<Term>>& rows, const Term& condition) {
  if (!node.in_stages()) return;
  std::vector<Term> all = body.captured();
  all.insert(all.end(), state.begin(), state.end());
  all.push_back(condition);
  std::size_t bytes = 0;
  bool is_small = true;
  for (const Term& term : all) {
    if (term.constant || term.none) continue;
    is_small = is_small && term.id && !term.key.empty();
    bytes += term.type.bytes();
  }
  std::erase_if(all, [](const Term& term) { return !term.id; });
  if (is_small && bytes <= few_bytes) node.want(all);
  for (const Term& term : state) node.session().carry(term);
  for (const std::vector<Term>& parts : rows) {
    for (const Term& term : parts) node.session().carry(term);
  }
  node.want({condition});
}

}  // namespace

void loop(NodeContext& node) {
  Session& session = node.session();
  const std::size_t first_node = session.builder.graph().nodes.size();
  Body body(node, "body");
  const std::size_t carried = std::max<std::size_t>(node.input_count(), 2) - 2;
  if (body.input_count() != carried + 2 || body.output_count() < carried + 1) {
    node.fail(
        "its body takes the iteration, the condition and what is carried, and gives the last two "
        "back",
        fmt::format("{} inputs and at least {} outputs", carried + 2, carried + 1),
        fmt::format("{} and {}", body.input_count(), body.output_count()));
  }
  const std::size_t scans = body.output_count() - carried - 1;
  const std::int64_t most = trip_count(node);
  std::vector<Term> state;
  for (std::size_t i = 0; i < carried; ++i) state.push_back(node.operand(i + 2));
  std::vector<std::vector<Term>> rows(scans);
  Term condition = node.has(1) ? node.in(1) : node.constant(HostTensor::from<bool>({}, {true}));
  Term alive;  // whether the loop continues, once data decides that
  const StateGuard states(node);
  Unrolling unrolling(node);
  for (std::int64_t i = 0; i < most; ++i) {
    if (condition.rows || condition.counts) refuse_chosen_setting(session, "Loop", condition);
    if (!alive.id && condition.constant && !is_true(node, condition)) break;
    if (!alive.id && !condition.constant) {
      if (has_no_end(node, most, carried, scans)) want_end(node, body, state, rows, condition);
      check_end(node, most, carried, scans);
      alive = scalar_condition(node, condition);
    }
    if (!unrolling.next()) return out_bad(node);
    std::vector<Term> inputs{
        declared(node, body.graph().input(0), HostTensor::from<std::int64_t>({}, {i})),
        declared(node, body.graph().input(1), HostTensor::from<bool>({}, {true}))};
    inputs.insert(inputs.end(), state.begin(), state.end());
    const std::string part = std::to_string(i);
    std::vector<Term> results =
        alive.id ? body.run_where(alive, true, inputs, part) : body.run(inputs, part);
    for (std::size_t k = 0; k < carried; ++k) {
      Term& now = results[k + 1];
      const std::string what =
          fmt::format("'{}'", body.graph().output(static_cast<int>(k) + 1).name());
      state[k] = alive.id ? choose(node, alive, now, state[k], what) : std::move(now);
    }
    for (std::size_t k = 0; k < scans; ++k) rows[k].push_back(std::move(results[carried + 1 + k]));
    if (results[0].bad) return out_bad(node);
    condition = std::move(results[0]);
    if (!alive.id) continue;
    if (!condition.constant) {
      alive = node.make("And", {alive, scalar_condition(node, condition)});
    } else if (!is_true(node, condition)) {
      break;
    }
  }
  if (!unrolling.is_sound()) return out_bad(node);
  if (alive.id) {
    states.check();
    session.note(node.path(), "all iterations are computed in each step, since data ends it");
  }
  for (std::size_t k = 0; k < carried; ++k) out_of_body(node, k, std::move(state[k]), first_node);
  for (std::size_t k = 0; k < scans; ++k) {
    if (!node.wants(carried + k)) continue;
    const onnx::ValueInfoProto& output = body.graph().output(static_cast<int>(carried + 1 + k));
    Term stack = rows[k].empty() ? empty_stack(node, output) : stacked(node, std::move(rows[k]), 0);
    out_of_body(node, carried + k, std::move(stack), first_node);
  }
}

}  // namespace tandem::importer::operators
