// RNN, GRU and LSTM: W x + b of all steps is one product, and RnnScan goes through the steps.
#include <fmt/format.h>

#include "engine/graph/text.h"
#include "engine/operators/rnn_scan.h"
#include "importer/operators/all.h"

namespace tandem::importer {
namespace {

/// Sizes of a layer: x [T, B, I], w [D, G H, I], r [D, G H, H].
struct Layer {
  RnnKind kind;
  std::int64_t directions = 1;
  std::int64_t steps = 0, batch = 0, width = 0, hidden = 0;
  bool is_batch_first = false;
  bool linear_before_reset = false;

  std::int64_t rows() const { return gates_of(kind) * hidden; }
};

/// A fix for shapes that differ only in the batch, which exporters write into initial states.
std::string other_batch_fix(const Shape& held, Shape expected, std::int64_t batch) {
  if (held.size() != expected.size()) return "";
  std::int64_t other = batch;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (held[i] != expected[i] && expected[i] == batch && other == batch)
      expected[i] = other = held[i];
  }
  if (other == batch || held != expected) return "";
  return fmt::format(
      "the file holds a batch of {} here: export it with a free one (dynamic_axes, "
      "dynamic_shapes), or take that one: `inspect` --bind batch={}, or batch_size = {} and "
      "data.drop_last = true",
      other, other, other);
}

Layer sizes_of(NodeContext& node, RnnKind kind, const std::string& direction) {
  Layer n{.kind = kind, .directions = direction == "bidirectional" ? 2 : 1};
  if (!is_float(node.dtype(0))) {
    node.unsupported("element type " + std::string(name_of(node.dtype(0))) + " is not supported");
  }
  if (node.version() >= 14) n.is_batch_first = node.flag("layout", false);
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.rank(i) != 3)
      node.fail(fmt::format("input {}", i), "3 axes", to_string(node.shape(i)));
  }
  n.steps = node.shape(0)[n.is_batch_first ? 1 : 0];
  n.batch = node.shape(0)[n.is_batch_first ? 0 : 1];
  n.width = node.shape(0)[2];
  n.hidden = node.shape(2)[2];
  const std::int64_t hidden = node.integer("hidden_size", n.hidden);
  if (hidden != n.hidden) {
    node.fail("hidden_size", fmt::format("{}, the last extent of R", n.hidden),
              std::to_string(hidden));
  }
  const auto expect = [&](std::size_t i, const char* role, const Shape& shape) {
    if (!node.has(i) || node.shape(i) == shape) return;
    node.fail(fmt::format("shape of {}", role), to_string(shape), to_string(node.shape(i)),
              other_batch_fix(node.shape(i), shape, n.batch));
  };
  expect(1, "W", {n.directions, n.rows(), n.width});
  expect(2, "R", {n.directions, n.rows(), n.hidden});
  expect(3, "B", {n.directions, 2 * n.rows()});
  expect(4, "sequence_lens", {n.batch});
  const Shape state = n.is_batch_first ? Shape{n.batch, n.directions, n.hidden}
                                       : Shape{n.directions, n.batch, n.hidden};
  expect(5, "initial_h", state);
  if (kind == RnnKind::lstm) {
    expect(6, "initial_c", state);
    expect(7, "P", {n.directions, 3 * n.hidden});
  }
  if (n.steps < 1 || n.batch < 1 || n.hidden < 1) {
    node.fail("the input has no elements", "a step, a sample and a hidden unit at least",
              to_string(node.shape(0)));
  }
  return n;
}

/// Activations by their names in the file, with the numbers that they read. Lists of numbers have
/// one for each activation that reads it, or one for each activation.
void set_activations(const NodeContext& node, const Layer& n, Attributes& attributes) {
  std::vector<const RnnActivationKind*> kinds;
  if (const onnx::AttributeProto* given = node.attribute("activations")) {
    for (const std::string& name : given->strings()) {
      const RnnActivationKind* kind = find_rnn_activation(name);
      if (kind == nullptr) node.unsupported(fmt::format("activation '{}' is not known", name));
      kinds.push_back(kind);
    }
  } else {
    const std::size_t each = activations_of(n.kind);
    for (std::size_t i = 0; i < each * static_cast<std::size_t>(n.directions); ++i) {
      const bool is_of_gates = each > 1 && i % each == 0;
      kinds.push_back(
          &rnn_activation_kind(is_of_gates ? RnnActivation::sigmoid : RnnActivation::tanh));
    }
  }
  const std::size_t count = activations_of(n.kind) * static_cast<std::size_t>(n.directions);
  if (kinds.size() != count) {
    node.fail("number of activations", std::to_string(count), std::to_string(kinds.size()));
  }
  const auto numbers = [&](const char* name, int reads, double RnnActivationKind::*missing) {
    Floats result, given;
    if (const onnx::AttributeProto* list = node.attribute(name)) {
      given.assign(list->floats().begin(), list->floats().end());
    }
    std::size_t next = 0, readers = 0;
    for (const RnnActivationKind* kind : kinds) readers += kind->numbers >= reads;
    const bool one_of_each = given.size() == count && readers != count;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_read = kinds[i]->numbers >= reads;
      const std::size_t at = one_of_each ? i : next;
      next += is_read;
      result.push_back(is_read && at < given.size() ? given[at] : is_read ? kinds[i]->*missing : 0);
    }
    if (given.size() > (one_of_each ? count : readers)) {
      node.fail(fmt::format("length of {}", name), fmt::format("{} at most", readers),
                std::to_string(given.size()));
    }
    return result;
  };
  attributes.set("activations", joined(kinds, ",", &RnnActivationKind::name));
  attributes.set("alphas", numbers("activation_alpha", 1, &RnnActivationKind::alpha));
  attributes.set("betas", numbers("activation_beta", 2, &RnnActivationKind::beta));
}

Term columns(NodeContext& node, const Term& x, std::int64_t begin, std::int64_t count) {
  return node.make(
      "Slice", {x},
      {{"starts", Ints{0, begin}}, {"sizes", Ints{x.type.shape[0], count}}, {"steps", Ints{1, 1}}});
}

/// x W^T [T, B, D, G H], and the sum of both biases except for what is added after a product with
/// R.
Term inputs_of_gates(NodeContext& node, const Layer& n) {
  Term x = node.widen(node.in(0));
  if (n.is_batch_first) x = node.transpose(x, {1, 0, 2});
  const Term w = node.reshape(node.widen(node.in(1)), {n.directions * n.rows(), n.width});
  Term xw = node.make("MatMul",
                      {node.reshape(x, {n.steps * n.batch, n.width}), node.transpose(w, {1, 0})});
  if (node.has(3)) {
    const Term b = node.widen(node.in(3));
    Term recurrent = columns(node, b, n.rows(), n.rows());
    if (n.linear_before_reset) {
      const Term zeros = node.filled(0, {b.type.dtype, {n.directions, n.hidden}});
      recurrent = node.make("Concat", {columns(node, recurrent, 0, 2 * n.hidden), zeros},
                            {{"axis", std::int64_t{1}}});
    }
    const Term sum = node.make("Add", {columns(node, b, 0, n.rows()), recurrent});
    xw = node.make("Add", {xw, node.reshape(sum, {n.directions * n.rows()})});
  }
  return node.reshape(xw, {n.steps, n.batch, n.directions, n.rows()});
}

/// Lengths that are all T say nothing.
bool has_lengths(const NodeContext& node, const Layer& n) {
  if (!node.has(4)) return false;
  const Term& lengths = node.in(4);
  if (!lengths.constant || lengths.rows || lengths.counts) return true;
  for (const std::int64_t length : lengths.constant->integers()) {
    if (length < 0 || length > n.steps) {
      node.fail("sequence_lens", fmt::format("0 to {}", n.steps), std::to_string(length));
    }
    if (length != n.steps) return true;
  }
  return false;
}

void recurrent(NodeContext& node, RnnKind kind, const char* name) {
  const std::string direction = node.text("direction", "forward");
  Layer n = sizes_of(node, kind, direction);
  Attributes attributes{
      {"kind", std::string(name)}, {"direction", direction}, {"clip", node.number("clip", 0)}};
  if (kind == RnnKind::gru) {
    n.linear_before_reset = node.flag("linear_before_reset", false);
    attributes.set("linear_before_reset", std::int64_t{n.linear_before_reset});
  }
  if (kind == RnnKind::lstm) {
    attributes.set("input_forget", std::int64_t{node.flag("input_forget", false)});
  }
  set_activations(node, n, attributes);

  const Ints batch_first{1, 0, 2};
  const auto state = [&](std::size_t i) {
    if (!node.has(i)) return Term{};
    const Term x = node.widen(node.in(i));
    return n.is_batch_first ? node.transpose(x, batch_first) : x;
  };
  Term bias_h;
  if (n.linear_before_reset && node.has(3)) {
    bias_h = columns(node, node.widen(node.in(3)), 5 * n.hidden, n.hidden);
  }
  const bool is_lstm = kind == RnnKind::lstm;
  const std::vector<Term> results = node.make_all(
      "RnnScan",
      {inputs_of_gates(node, n), node.widen(node.in(2)), bias_h,
       has_lengths(node, n) ? node.in(4) : Term{}, state(5), is_lstm ? state(6) : Term{},
       is_lstm && node.has(7) ? node.widen(node.in(7)) : Term{}},
      attributes);
  const auto out = [&](std::size_t i, const Term& x, const Ints& perm) {
    if (!node.wants(i)) return;
    node.out(i, node.cast(n.is_batch_first ? node.transpose(x, perm) : x, node.dtype(0)));
  };
  out(0, results[0], {2, 0, 1, 3});
  out(1, results[1], batch_first);
  if (is_lstm) out(2, results[4], batch_first);
}

}  // namespace

namespace operators {
void rnn(NodeContext& node) { recurrent(node, RnnKind::rnn, "rnn"); }
void gru(NodeContext& node) { recurrent(node, RnnKind::gru, "gru"); }
void lstm(NodeContext& node) { recurrent(node, RnnKind::lstm, "lstm"); }
}  // namespace operators

}  // namespace tandem::importer
