// Cases of RnnScan and RnnScanGrad.
#include "engine/operators/rnn_scan.h"

#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

/// A case with the defaults of its kind, except for these settings.
struct LayerCase {
  std::string kind;
  Shape size;  // T, B, H
  std::string direction = "forward";
  std::string activations{};  // for all directions
  Floats alphas{}, betas{};
  double clip = 0;
  bool linear_before_reset = false, input_forget = false;
  bool bias_h = false, h0 = false, c0 = false, peepholes = false;
  std::vector<double> lengths{};
  DType lengths_type = DType::int64;

  std::int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }

  Attributes attributes() const {
    std::string names = activations;
    if (names.empty()) {
      const std::string one = kind == "rnn"   ? "Tanh"
                              : kind == "gru" ? "Sigmoid,Tanh"
                                              : "Sigmoid,Tanh,Tanh";
      names = directions() == 2 ? one + "," + one : one;
    }
    const std::size_t count =
        activations_of(*rnn_kind_from(kind)) * static_cast<std::size_t>(directions());
    Floats a = alphas, b = betas;
    a.resize(count);
    b.resize(count);
    return {{"kind", kind},
            {"direction", direction},
            {"activations", names},
            {"alphas", a},
            {"betas", b},
            {"clip", clip},
            {"linear_before_reset", std::int64_t{linear_before_reset}},
            {"input_forget", std::int64_t{input_forget}}};
  }

  /// `make` returns a float operand of that shape.
  template <class F>
  std::vector<CaseInput> inputs(F make) const {
    const std::int64_t t = size[0], b = size[1], h = size[2], d = directions();
    const std::int64_t rows = gates_of(*rnn_kind_from(kind)) * h;
    const auto some = [&](bool is_there, Shape shape, int k) {
      return is_there ? make(std::move(shape), k) : absent();
    };
    return {make(Shape{t, b, d, rows}, 0),
            make(Shape{d, rows, h}, 1),
            some(bias_h, {d, h}, 2),
            lengths.empty() ? absent() : valued({b}, lengths, lengths_type),
            some(h0, {d, b, h}, 4),
            some(c0, {d, b, h}, 5),
            some(peepholes, {d, 3 * h}, 6)};
  }
};

/// Which of dy, dh and dc_last have a gradient.
struct Arriving {
  bool dy = true, dh = false, dc = false;
};

void add_layer(Cases& cases, const std::string& name, const LayerCase& layer,
               Arriving arriving = {}, bool check_gradient = true) {
  const Attributes attributes = layer.attributes();
  const bool is_known = name.starts_with("torch_");
  OperatorCase& scan = add_case(cases, "RnnScan", name, layer.inputs([&](Shape shape, int k) {
    return is_known ? patterned(std::move(shape), k) : random_input(std::move(shape));
  }),
                                attributes);
  scan.gradient_tolerance = 2e-6;
  if (!check_gradient) {
    scan.check_gradient = false;
    scan.why = "too many differences; the smaller cases check the gradient";
  }
  const std::vector<CaseInput> x =
      layer.inputs([](Shape shape, int k) { return patterned(std::move(shape), k); });
  const std::vector<CaseInput> y = outputs_of("RnnScan", x, attributes);
  const bool is_lstm = layer.kind == "lstm";
  add_case(cases, "RnnScanGrad", name,
           {arriving.dy ? patterned(y[0].shape, 3) : absent(),
            arriving.dh ? patterned(y[1].shape, 7) : absent(),
            arriving.dc && is_lstm ? patterned(y[1].shape, 8) : absent(), x[1], x[3], x[4], x[5],
            x[6], y[0], y[2], is_lstm ? y[3] : absent()},
           attributes);
}

std::string activations_of_both(const std::string& one) { return one + "," + one; }

}  // namespace

void add_rnn_cases(Cases& cases) {
  const Shape small{3, 2, 3};
  add_layer(cases, "torch_lstm", {.kind = "lstm", .size = small, .h0 = true, .c0 = true});
  add_layer(cases, "torch_lstm_both",
            {.kind = "lstm", .size = small, .direction = "bidirectional"});
  add_layer(
      cases, "torch_gru",
      {.kind = "gru", .size = small, .linear_before_reset = true, .bias_h = true, .h0 = true});
  add_layer(cases, "torch_rnn", {.kind = "rnn", .size = small, .h0 = true});

  for (const std::string kind : {"rnn", "gru", "lstm"}) {
    const bool is_lstm = kind == "lstm", is_gru = kind == "gru";
    add_layer(cases, kind + "_plain", {.kind = kind, .size = small});
    add_layer(cases, kind + "_reverse",
              {.kind = kind, .size = {4, 2, 2}, .direction = "reverse", .h0 = true, .c0 = is_lstm},
              {.dy = true, .dh = true, .dc = true});
    add_layer(cases, kind + "_one_step", {.kind = kind, .size = {1, 1, 1}, .h0 = true},
              {.dy = false, .dh = true});
    add_layer(cases, kind + "_lengths",
              {.kind = kind,
               .size = {3, 4, 2},
               .direction = "bidirectional",
               .h0 = true,
               .c0 = is_lstm,
               .lengths = {2, 3, 0, 1}},
              {.dy = true, .dh = true, .dc = true});
    add_layer(cases, kind + "_lengths_without_states",
              {.kind = kind,
               .size = {3, 3, 2},
               .direction = "reverse",
               .lengths = {1, 3, 2},
               .lengths_type = DType::int32},
              {.dy = true, .dh = true});
    add_layer(cases, kind + "_clip", {.kind = kind, .size = small, .clip = 0.375, .h0 = true});
    // Full vectors and the elements that are left over; rows of several tiles.
    for (const auto& [label, size, direction] :
         {std::tuple{"_panels", Shape{2, 15, 20}, "bidirectional"},
          {"_wide", {2, 2, 40}, "reverse"},
          {"_whole_panels", {2, 3, 32}, "forward"},
          {"_several_blocks", {2, 2, 150}, "reverse"},
          {"_many_samples", {2, 50, 1}, "forward"}}) {
      LayerCase layer{.kind = kind,
                      .size = size,
                      .direction = direction,
                      .linear_before_reset = is_gru,
                      .bias_h = is_gru,
                      .h0 = true,
                      .c0 = is_lstm};
      if (size[1] == 15) {
        for (int b = 0; b < 15; ++b) layer.lengths.push_back(b % 3);
      }
      add_layer(cases, kind + label, layer, {.dy = true, .dh = true, .dc = true}, false);
      if (!is_gru) continue;
      layer.linear_before_reset = layer.bias_h = false;
      add_layer(cases, kind + "_reset_first" + label, layer, {.dy = true, .dh = true}, false);
    }
  }
  add_layer(cases, "gru_linear",
            {.kind = "gru", .size = small, .linear_before_reset = true, .h0 = true});
  add_layer(cases, "gru_linear_lengths",
            {.kind = "gru",
             .size = {3, 3, 2},
             .direction = "bidirectional",
             .linear_before_reset = true,
             .bias_h = true,
             .lengths = {3, 1, 2}},
            {.dy = true, .dh = true});
  add_layer(cases, "rnn_relu",
            {.kind = "rnn", .size = {2, 3, 20}, .activations = "Relu", .h0 = true}, {}, false);
  add_layer(cases, "lstm_only_last_cell", {.kind = "lstm", .size = small},
            {.dy = false, .dh = false, .dc = true});
  add_layer(
      cases, "lstm_peepholes",
      {.kind = "lstm", .size = small, .direction = "bidirectional", .c0 = true, .peepholes = true},
      {.dy = true, .dh = true, .dc = true});
  add_layer(cases, "lstm_input_forget",
            {.kind = "lstm", .size = small, .input_forget = true, .c0 = true, .peepholes = true},
            {.dy = true, .dh = false, .dc = true});
  add_layer(
      cases, "lstm_clip_peepholes",
      {.kind = "lstm", .size = small, .clip = 0.25, .h0 = true, .c0 = true, .peepholes = true});

  // Every activation in every role, with two values of its parameters.
  for (const RnnActivationKind& kind : rnn_activation_kinds()) {
    const std::string name = kind.name;
    const double alpha = kind.numbers > 0 ? kind.alpha : 0, beta = kind.numbers > 1 ? kind.beta : 0;
    const double other = kind.numbers > 0 ? 0.625 : 0, shift = kind.numbers > 1 ? 0.75 : 0;
    add_layer(cases, "rnn_" + name,
              {.kind = "rnn",
               .size = {2, 2, 3},
               .direction = "bidirectional",
               .activations = activations_of_both(name),
               .alphas = {alpha, other},
               .betas = {beta, shift},
               .h0 = true});
    add_layer(cases, "gru_" + name,
              {.kind = "gru",
               .size = {2, 1, 2},
               .activations = activations_of_both(name),
               .alphas = {other, alpha},
               .betas = {shift, beta},
               .h0 = true});
    add_layer(cases, "lstm_" + name,
              {.kind = "lstm",
               .size = {2, 1, 2},
               .activations = name + "," + activations_of_both(name),
               .alphas = {other, alpha, other},
               .betas = {shift, beta, shift},
               .h0 = true,
               .c0 = true});
  }
  // A negative slope, for which the result does not show the sign of x.
  add_layer(cases, "rnn_negative_slope",
            {.kind = "rnn", .size = small, .activations = "LeakyRelu", .alphas = {-0.5}});
}

}  // namespace tandem::testing
