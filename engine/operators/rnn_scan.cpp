// RnnScan: one recurrent layer over all steps, in one or two directions d, with h and c from step
// to step. W x + b of all steps comes as xw, gate by gate in ONNX's order; [..]_q is gate q's part,
// R_q h a product with r[d].
//   RNN (i):        h' = f(xw + R h)
//   GRU (z, r, h):  h' = (1 - z) n + z h, z = f([xw]_z + R_z h), r = f([xw]_r + R_r h),
//                   n = g([xw]_h + R_h (r h)), or g([xw]_h + r (R_h h + bias_h)) with
//                   linear_before_reset
//   LSTM (i, o, f, c): c' = f_ c + i n, h' = o h(c'), i = f([xw]_i + R_i h + p_i c),
//                   f_ = f([xw]_f + R_f h + p_f c) or 1 - i with input_forget,
//                   n = g([xw]_c + R_c h), o = f([xw]_o + R_o h + p_o c')
// What goes into an activation but h(c) is clipped to [-clip, clip]. A direction that is reverse
// goes from the last step to the first. Steps of a sample at or past its length keep h and c, and
// have y = 0.
#include "engine/operators/rnn_scan.h"

#include <algorithm>
#include <cctype>

#include "engine/graph/builder.h"
#include "engine/graph/text.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names{""};
  for (const char c : text) {
    if (c == ',') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

}  // namespace

const std::vector<RnnActivationKind>& rnn_activation_kinds() {
  static const std::vector<RnnActivationKind> kinds = [] {
    std::vector<RnnActivationKind> all;
    for (const ScalarRow& row : scalar_rows()) {
      if (!row.options.recurrent) continue;
      RnnActivationKind kind{.activation = static_cast<RnnActivation>(row.function),
                             .name = row.name};
      for (double* number : {&kind.alpha, &kind.beta}) {
        if (static_cast<std::size_t>(kind.numbers) == row.options.attributes.size()) break;
        *number = std::get<double>(
            row.options.attributes[static_cast<std::size_t>(kind.numbers++)].value);
      }
      all.push_back(std::move(kind));
    }
    all.push_back({RnnActivation::affine, "Affine", 2, 1, 0});
    all.push_back({RnnActivation::scaled_tanh, "ScaledTanh", 2, 1, 1});
    return all;
  }();
  return kinds;
}

const RnnActivationKind& rnn_activation_kind(RnnActivation activation) {
  const std::vector<RnnActivationKind>& all = rnn_activation_kinds();
  return *std::find_if(all.begin(), all.end(), [&](const RnnActivationKind& kind) {
    return kind.activation == activation;
  });
}

const RnnActivationKind* find_rnn_activation(const std::string& name) {
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  for (const RnnActivationKind& kind : rnn_activation_kinds()) {
    if (lower(kind.name) == lower(name)) return &kind;
  }
  return nullptr;
}

std::optional<RnnKind> rnn_kind_from(const std::string& text) {
  if (text == "rnn") return RnnKind::rnn;
  if (text == "gru") return RnnKind::gru;
  if (text == "lstm") return RnnKind::lstm;
  return std::nullopt;
}

RnnSettings::RnnSettings(const Attributes& attributes)
    : kind(*rnn_kind_from(attributes.text("kind"))),
      directions(attributes.text("direction") == "bidirectional" ? 2 : 1),
      first_is_reverse(attributes.text("direction") == "reverse"),
      clip(attributes.number("clip")),
      linear_before_reset(attributes.flag("linear_before_reset")),
      input_forget(attributes.flag("input_forget")) {
  const std::vector<std::string> names = split_names(attributes.text("activations"));
  const Floats& alphas = std::get<Floats>(*attributes.find("alphas"));
  const Floats& betas = std::get<Floats>(*attributes.find("betas"));
  std::size_t next = 0;
  for (std::int64_t d = 0; d < directions; ++d) {
    RnnFunctions of_direction;
    for (std::size_t i = 0; i < activations_of(kind); ++i, ++next) {
      of_direction[i] = {find_rnn_activation(names[next])->activation, alphas[next], betas[next]};
    }
    functions.push_back(of_direction);
  }
}

namespace operators {
namespace {

std::vector<AttributeSpec> rnn_attributes() {
  return {{"kind", std::string(), true},
          {"direction", std::string("forward")},
          {"activations", std::string(), true},
          {"alphas", Floats(), true},
          {"betas", Floats(), true},
          {"clip", 0.0},
          {"linear_before_reset", std::int64_t{0}},
          {"input_forget", std::int64_t{0}}};
}

RnnSettings checked_settings(const NodeView& node) {
  const Attributes& attributes = node.attributes();
  const std::optional<RnnKind> kind = rnn_kind_from(attributes.text("kind"));
  if (!kind) node.fail("attribute 'kind'", "rnn, gru or lstm", attributes.text("kind"));
  const std::string& direction = attributes.text("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    node.fail("attribute 'direction'", "forward, reverse or bidirectional", direction);
  }
  const std::size_t count = activations_of(*kind) * (direction == "bidirectional" ? 2 : 1);
  const std::vector<std::string> names = split_names(attributes.text("activations"));
  if (names.size() != count) {
    node.fail("number of activations", std::to_string(count), std::to_string(names.size()));
  }
  for (const std::string& name : names) {
    if (find_rnn_activation(name) == nullptr) {
      node.fail("activation", joined(rnn_activation_kinds(), ", ", &RnnActivationKind::name), name);
    }
  }
  for (const char* name : {"alphas", "betas"}) {
    if (std::get<Floats>(*attributes.find(name)).size() != count) {
      node.fail("length of attribute '" + std::string(name) + "'", std::to_string(count));
    }
  }
  require_not_negative(node, "clip");
  require_flag(node, "linear_before_reset");
  require_flag(node, "input_forget");
  if (attributes.flag("linear_before_reset") && *kind != RnnKind::gru) {
    node.fail("linear_before_reset is of kind gru");
  }
  if (attributes.flag("input_forget") && *kind != RnnKind::lstm) {
    node.fail("input_forget is of kind lstm");
  }
  return RnnSettings(attributes);
}

struct RnnScanSizes {
  std::int64_t steps, batch, directions, hidden;
};

void require_lstm(const NodeView& node, std::size_t i, const RnnSettings& settings) {
  if (node.has_input(i) && settings.kind != RnnKind::lstm) {
    node.fail(input_name(node, i) + " is of kind lstm");
  }
}

/// Checks the states h at i and c at i + 1, where they are present.
void require_states(const NodeView& node, std::size_t i, const RnnSettings& settings,
                    const RnnScanSizes& n, DType dtype) {
  const Shape state{n.directions, n.batch, n.hidden};
  if (node.has_input(i)) require_type(node, i, {dtype, state});
  require_lstm(node, i + 1, settings);
  if (node.has_input(i + 1)) require_type(node, i + 1, {statistics_type(dtype), state});
}

/// Checks the optional operands lengths, h0, c0 and peepholes from i on.
void require_optional(const NodeView& node, std::size_t i, const RnnSettings& settings,
                      const RnnScanSizes& n, DType dtype) {
  if (node.has_input(i)) {
    require_index(node, i);
    require_shape(node, i, {n.batch});
  }
  require_states(node, i + 1, settings, n, dtype);
  require_lstm(node, i + 3, settings);
  if (node.has_input(i + 3)) require_type(node, i + 3, {dtype, {n.directions, 3 * n.hidden}});
}

/// The type of the saved gates, as they come out of RnnScan.
TensorType gates_type(const RnnSettings& settings, const RnnScanSizes& n, DType dtype) {
  return {dtype, {n.steps, n.directions, n.batch, settings.saved() * n.hidden}};
}

// xw, r, bias_h, lengths, h0, c0, peepholes
std::vector<TensorType> infer_rnn_scan(const NodeView& node) {
  const RnnSettings settings = checked_settings(node);
  require_float(node, 0);
  require_rank(node, 0, 4);
  require_rank(node, 1, 3);
  const DType dtype = node.input(0).dtype;
  const Shape &xw = node.input(0).shape, &r = node.input(1).shape;
  const RnnScanSizes n{xw[0], xw[1], settings.directions, r[2]};
  if (n.steps < 1 || n.batch < 1 || n.hidden < 1) {
    node.fail("xw and r have no elements", "1 at least", to_string(xw) + " and " + to_string(r));
  }
  const std::int64_t rows = settings.gates() * n.hidden;
  require_type(node, 0, {dtype, {n.steps, n.batch, n.directions, rows}});
  require_type(node, 1, {dtype, {n.directions, rows, n.hidden}});
  if (node.has_input(2)) {
    if (!settings.linear_before_reset) node.fail("'bias_h' comes with linear_before_reset");
    require_type(node, 2, {dtype, {n.directions, n.hidden}});
  }
  require_optional(node, 3, settings, n, dtype);
  std::vector<TensorType> outputs{{dtype, {n.steps, n.directions, n.batch, n.hidden}},
                                  {dtype, {n.directions, n.batch, n.hidden}},
                                  gates_type(settings, n, dtype)};
  if (settings.kind == RnnKind::lstm) {
    outputs.push_back({statistics_type(dtype), outputs[0].shape});
    outputs.push_back({statistics_type(dtype), outputs[1].shape});
  }
  return outputs;
}

Gradients rnn_scan_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  const bool has_cells = c.node.outputs.size() > 3;
  const ValueId dc = has_cells ? c.dy[4] : ValueId();
  if (!c.dy[0] && !c.dy[1] && !dc) return dx;
  const std::vector<ValueId> outputs =
      c.g.node("RnnScanGrad",
               {c.dy[0], c.dy[1], dc, c.x(1), c.x(3), c.x(4), c.x(5), c.x(6), c.y(0), c.y(2),
                has_cells ? c.y(3) : ValueId()},
               c.node.attributes);
  constexpr std::size_t inputs[] = {0, 1, 4, 2, 5, 6};  // outputs[i] is the gradient of inputs[i]
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (c.x(inputs[i])) dx[inputs[i]] = outputs[i];
  }
  return dx;
}

/// Cost of an operator with `passes` products as large as the steps', and `flops` for each gate.
Cost rnn_cost(const NodeView& node, const Shape& y, double passes, double flops) {
  const std::int64_t gates = RnnSettings(node.attributes()).gates();
  const auto elements = static_cast<double>(element_count(y));
  const double product = 2.0 * elements * static_cast<double>(gates * y[3]);
  return {passes * product + flops * static_cast<double>(gates * element_count(y)),
          operand_bytes(node)};
}

Cost rnn_scan_cost(const NodeView& node) { return rnn_cost(node, node.output(0).shape, 1, 20); }

// Activations again, dh of each step, and dr.
Cost rnn_scan_gradient_cost(const NodeView& node) {
  return rnn_cost(node, node.input(8).shape, 2, 30);
}

// dy, dh, dc, r, lengths, h0, c0, peepholes, y, gates, c
std::vector<TensorType> infer_rnn_scan_gradient(const NodeView& node) {
  const RnnSettings settings = checked_settings(node);
  require_float(node, 8);
  require_rank(node, 3, 3);
  require_rank(node, 8, 4);
  const DType dtype = node.input(8).dtype;
  const Shape &r = node.input(3).shape, &y = node.input(8).shape;
  const RnnScanSizes n{y[0], y[2], settings.directions, r[2]};
  const std::int64_t rows = settings.gates() * n.hidden;
  const TensorType steps{dtype, {n.steps, n.directions, n.batch, n.hidden}};
  const TensorType state{dtype, {n.directions, n.batch, n.hidden}};
  if (node.has_input(0)) require_type(node, 0, steps);
  require_states(node, 1, settings, n, dtype);
  require_type(node, 3, {dtype, {n.directions, rows, n.hidden}});
  require_optional(node, 4, settings, n, dtype);
  require_type(node, 8, steps);
  require_type(node, 9, gates_type(settings, n, dtype));
  require_lstm(node, 10, settings);
  if (settings.kind == RnnKind::lstm) {
    if (!node.has_input(10)) node.fail("input 'c' is missing");
    require_type(node, 10, {statistics_type(dtype), steps.shape});
  }
  std::vector<TensorType> outputs{{dtype, {n.steps, n.batch, n.directions, rows}},
                                  node.input(3),
                                  state,
                                  {dtype, {n.directions, n.hidden}}};
  if (settings.kind == RnnKind::lstm) {
    outputs.push_back({statistics_type(dtype), state.shape});
    outputs.push_back({dtype, {n.directions, 3 * n.hidden}});
  }
  return outputs;
}

}  // namespace

Operator rnn_scan() {
  return {.name = "RnnScan",
          .inputs = {{"xw"},
                     {"r"},
                     {.name = "bias_h", .optional = true},
                     {.name = "lengths", .optional = true},
                     {.name = "h0", .optional = true},
                     {.name = "c0", .optional = true, .statistic = true},
                     {.name = "peepholes", .optional = true}},
          .outputs = {{"y"},
                      {"h"},
                      {"gates"},
                      {.name = "c", .optional = true, .statistic = true},
                      {.name = "c_last", .optional = true, .statistic = true}},
          .attributes = rnn_attributes(),
          .infer = infer_rnn_scan,
          .gradient = rnn_scan_gradient,
          .cost = rnn_scan_cost,
          .precision = Precision::low,
          .drops_elements = true};
}

// The last step of a direction comes first here: dh of a step is its dy plus what the step after it
// passes on. Absent h0, c0 and peepholes are zeros, and have gradients; dbias_h is 0 without
// linear_before_reset.
Operator rnn_scan_grad() {
  return {.name = "RnnScanGrad",
          .inputs = {{.name = "dy", .optional = true},
                     {.name = "dh", .optional = true},
                     {.name = "dc_last", .optional = true, .statistic = true},
                     {"r"},
                     {.name = "lengths", .optional = true},
                     {.name = "h0", .optional = true},
                     {.name = "c0", .optional = true, .statistic = true},
                     {.name = "peepholes", .optional = true},
                     {"y"},
                     {"gates"},
                     {.name = "c", .optional = true, .statistic = true}},
          .outputs = {{"dxw"},
                      {"dr"},
                      {"dh0"},
                      {"dbias_h"},
                      {.name = "dc0", .optional = true, .statistic = true},
                      {.name = "dpeepholes", .optional = true}},
          .attributes = rnn_attributes(),
          .infer = infer_rnn_scan_gradient,
          .not_differentiable = no_second_gradient,
          .cost = rnn_scan_gradient_cost,
          .precision = Precision::low,
          .drops_elements = true,
          .engine_only = true};
}

}  // namespace operators
}  // namespace tandem
