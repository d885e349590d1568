// Cases of the optimizers' updates, clipping and accumulation.
#include <cmath>

#include "engine/operators/update_kind.h"
#include "tests/harness/update_settings.h"
#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

const Shape shape{3, 5};

CaseInput scalar(double value, DType dtype = DType::float32) { return valued({}, {value}, dtype); }

/// lr 0.25, scale 0.5, as in operator_expectations.py.
std::vector<CaseInput> with_scalars(std::vector<CaseInput> tensors, double step,
                                    bool skip = false) {
  tensors.push_back(scalar(0.25));
  tensors.push_back(scalar(step, DType::int64));
  tensors.push_back(scalar(0.5));
  tensors.push_back(scalar(skip ? 1 : 0, DType::boolean));
  return tensors;
}

CaseInput squares(Shape of, int k) {
  CaseInput input = patterned(std::move(of), k);
  for (double& v : input.values) v = std::fabs(v);
  return input;
}

void add_sgd(Cases& cases) {
  const CaseInput master = patterned(shape), grad = patterned(shape, 1),
                  buffer = patterned(shape, 2);
  const Attributes nesterov{{"momentum", 0.9}, {"nesterov", 1}, {"weight_decay", 0.1}};
  const auto add = [&](const char* name, const CaseInput& momentum_buffer, double step,
                       const Attributes& attributes) {
    add_case(cases, "SgdUpdate", name, with_scalars({master, grad, momentum_buffer}, step),
             attributes);
  };
  add("torch_plain", absent(), 3, {{"weight_decay", 0.1}});
  add("no_decay", absent(), 1, {});
  add("torch_momentum", buffer, 3, {{"momentum", 0.9}, {"dampening", 0.5}});
  add("torch_nesterov", buffer, 3, nesterov);
  add("torch_first_step", patterned(shape, 4), 1, {{"momentum", 0.9}, {"dampening", 0.5}});
  add_case(cases, "SgdUpdate", "skipped", with_scalars({master, grad, buffer}, 3, true), nesterov);
  cases.back().expected = pattern(15);
  add_case(cases, "SgdUpdate", "skipped_plain", with_scalars({master, grad, absent()}, 3, true));
  cases.back().expected = pattern(15);
  std::vector<CaseInput> weighted = with_scalars({master, grad, absent()}, 3, true);
  weighted.push_back(valued(shape, std::vector<double>(15, 0.0), DType::bfloat16));
  add_case(cases, "SgdUpdate", "skipped_with_weight", weighted,
           {{"weight", std::string("bfloat16")}});
  cases.back().expected = pattern(15);

  Attributes grouped = nesterov;
  grouped.set("op", std::string("SgdUpdate"));
  grouped.set("count", std::int64_t{3});
  add_case(cases, "GroupedUpdate", "torch_sgd",
           with_scalars({master, grad, buffer, patterned({7}), patterned({7}, 1), patterned({7}, 2),
                         patterned({2, 1, 2}, 5), patterned({2, 1, 2}, 6), patterned({2, 1, 2}, 7)},
                        3),
           grouped);
  add_case(cases, "GroupedUpdate", "sgd_skipped", with_scalars({master, grad, absent()}, 3, true),
           {{"op", std::string("SgdUpdate")}, {"count", 1}});
  cases.back().expected = pattern(15);
  add_case(cases, "GroupedUpdate", "sgd_dampened", with_scalars({master, grad, buffer}, 3),
           {{"op", std::string("SgdUpdate")}, {"count", 1}, {"momentum", 0.9}, {"dampening", 0.5}});
  cases.back().expected = expectation("SgdUpdate/momentum");
  add_case(cases, "GroupedUpdate", "sgd_plain",
           with_scalars({master, grad, absent(), patterned({7}), patterned({7}, 1), absent()}, 3),
           {{"op", std::string("SgdUpdate")}, {"count", 2}});
}

void add_adam(Cases& cases) {
  const CaseInput master = patterned(shape), grad = patterned(shape, 1);
  const CaseInput mean = patterned(shape, 2), square = squares(shape, 3);
  const CaseInput zeros = valued(shape, std::vector<double>(15, 0.0));
  const auto add = [&](const char* name, double step, const Attributes& attributes,
                       bool skip = false) {
    add_case(cases, "AdamUpdate", name, with_scalars({master, grad, mean, square}, step, skip),
             attributes);
  };
  add("torch_plain", 3, {});
  add("torch_decayed", 3,
      {{"beta1", 0.8}, {"beta2", 0.95}, {"weight_decay", 0.1}, {"epsilon", 1e-3}});
  add("torch_decoupled", 7, {{"weight_decay", 0.1}, {"decoupled", 1}});
  add_case(cases, "AdamUpdate", "torch_first_step", with_scalars({master, grad, zeros, zeros}, 1));
  add("onnx", 3, {{"epsilon", 1e-2}, {"epsilon_form", std::string("onnx")}});
  add("uncorrected", 3, {{"bias_correction", 0}});
  add("uncorrected_onnx", 3, {{"bias_correction", 0}, {"epsilon_form", std::string("onnx")}});
  add("skipped", 3, {{"weight_decay", 0.1}, {"decoupled", 1}}, true);
  cases.back().expected = pattern(15);
  std::vector<CaseInput> weighted = with_scalars({master, grad, mean, square}, 3, true);
  weighted.push_back(valued(shape, std::vector<double>(15, 0.0), DType::bfloat16));
  add_case(cases, "AdamUpdate", "skipped_with_weight", weighted,
           {{"weight", std::string("bfloat16")}});
  cases.back().expected = pattern(15);

  add_case(cases, "GroupedUpdate", "adam_uncorrected",
           with_scalars({master, grad, mean, square}, 3),
           {{"op", std::string("AdamUpdate")},
            {"count", 1},
            {"beta1", 0.5},
            {"beta2", 0.9},
            {"epsilon", 1e-2},
            {"bias_correction", 0},
            {"epsilon_form", std::string("onnx")}});
  weighted = with_scalars({master, grad, mean, square, weighted.back()}, 3, true);
  add_case(cases, "GroupedUpdate", "skipped_with_weight", weighted,
           {{"op", std::string("AdamUpdate")}, {"count", 1}, {"weight", std::string("bfloat16")}});
  cases.back().expected = pattern(15);
  const Shape line{2, 4};
  add_case(
      cases, "GroupedUpdate", "torch_adam",
      with_scalars({master, grad, mean, square, patterned(line), patterned(line, 1),
                    patterned(line, 2), squares(line, 3)},
                   7),
      {{"op", std::string("AdamUpdate")}, {"count", 2}, {"weight_decay", 0.1}, {"decoupled", 1}});
}

/// Every setting with a value other than its default, for the kinds after SGD and Adam.
const Attributes other_settings{{"lr_decay", 0.5},  {"weight_decay", 0.1},
                                {"epsilon", 1e-3},  {"l1", 0.2},
                                {"l2", 0.1},        {"beta", 1.0},
                                {"l21", 0.1},       {"l2_shrinkage", 0.01},
                                {"lr_power", -0.7}, {"dialect", std::string("tensorflow")}};

Attributes with_other_settings(Attributes settings, std::initializer_list<const char*> names) {
  for (const char* name : names) settings.set(name, *other_settings.find(name));
  return settings;
}

void add_adagrad_and_ftrl(Cases& cases) {
  const CaseInput master = patterned(shape), grad = patterned(shape, 1);
  const CaseInput sum = squares(shape, 2), linear = patterned(shape, 3);
  const CaseInput row_sum = valued({3}, {0.5, 0.25, 1});
  const CaseInput weight = valued(shape, std::vector<double>(15, 0.0), DType::bfloat16);
  const auto add = [&](const std::string& op, const std::vector<CaseInput>& states,
                       const Attributes& settings) {
    std::vector<CaseInput> tensors{master, grad};
    tensors.insert(tensors.end(), states.begin(), states.end());
    add_case(cases, op, "plain", with_scalars(tensors, 3));
    add_case(cases, op, "all_settings", with_scalars(tensors, 3), settings);
    add_case(cases, op, "skipped", with_scalars(tensors, 3, true), settings);
    cases.back().expected = pattern(15);
    if (!find_update_kind(op)->whole_row) {
      std::vector<CaseInput> weighted = with_scalars(tensors, 3, true);
      weighted.push_back(weight);
      add_case(cases, op, "skipped_with_weight", weighted, {{"weight", std::string("bfloat16")}});
      cases.back().expected = pattern(15);
      Attributes grouped = settings;
      grouped.set("op", op);
      grouped.set("count", std::int64_t{1});
      add_case(cases, "GroupedUpdate", op, with_scalars(tensors, 3), grouped);
    }
  };
  const Attributes adagrad = with_other_settings({}, {"lr_decay", "weight_decay", "epsilon"});
  const Attributes ftrl =
      with_other_settings({}, {"l1", "l2", "beta", "l21", "l2_shrinkage", "lr_power", "dialect"});
  for (const char* op : {"FtrlUpdate", "GroupFtrlUpdate"}) {  // a schedule may end at 0
    std::vector<CaseInput> inputs = with_scalars({master, grad, sum, linear}, 3);
    inputs[4] = scalar(0);
    add_case(cases, op, "no_rate", inputs, ftrl);
    cases.back().expected = pattern(15);
  }
  add("AdagradUpdate", {sum}, adagrad);
  add("RowwiseAdagradUpdate", {row_sum}, adagrad);
  add("FtrlUpdate", {sum, linear}, ftrl);
  add("GroupFtrlUpdate", {sum, linear}, ftrl);
}

/// Every kind in the list, with the settings that tests try.
void add_every_kind(Cases& cases) {
  const CaseInput weight = valued(shape, std::vector<double>(15, 0.0), DType::bfloat16);
  for (const UpdateSettings& tried : settings_to_try()) {
    const UpdateKind& kind = *find_update_kind(tried.op);
    std::vector<CaseInput> tensors{patterned(shape), patterned(shape, 1)};
    for (std::size_t k = 0; k < kind.states.size(); ++k) {
      const Shape own = kind.state_shape(k, shape);
      tensors.push_back(!kind.keeps_state(k, tried.settings, shape)
                            ? absent()
                            : squares(own, 2 + static_cast<int>(k)));
      // The mean of squares is larger than the square of the mean, and no sum with a gradient is 0.
      for (double& x : tensors.back().values) x += k == 0 ? 1.0 : 0.01;
    }
    add_case(cases, tried.op, "tried_" + tried.name, with_scalars(tensors, 3), tried.settings);
    add_case(cases, tried.op, "tried_skipped_" + tried.name, with_scalars(tensors, 3, true),
             tried.settings);
    cases.back().expected = pattern(15);
    if (kind.whole_row) continue;
    Attributes weighted = tried.settings;
    weighted.set("weight", std::string("bfloat16"));
    std::vector<CaseInput> inputs = with_scalars(tensors, 3, true);
    inputs.push_back(weight);
    add_case(cases, tried.op, "tried_weight_" + tried.name, inputs, weighted);
    cases.back().expected = pattern(15);
    Attributes grouped = tried.settings;
    grouped.set("op", tried.op);
    grouped.set("count", std::int64_t{1});
    add_case(cases, "GroupedUpdate", "tried_" + tried.name, with_scalars(tensors, 3), grouped);
  }
}

// lamb_test.cpp compares several steps with independent numbers.
void add_lamb(Cases& cases) {
  const CaseInput master = patterned(shape), grad = patterned(shape, 1);
  const CaseInput mean = patterned(shape, 2), square = squares(shape, 3);
  const CaseInput zeros = valued(shape, std::vector<double>(15, 0.0));
  const auto add = [&](const char* name, std::vector<CaseInput> tensors, double step,
                       const Attributes& attributes, bool skip = false) {
    add_case(cases, "LambUpdate", name, with_scalars(std::move(tensors), step, skip), attributes);
  };
  add("plain", {master, grad, mean, square}, 3, {});
  add("decayed", {master, grad, mean, square}, 3,
      {{"beta1", 0.8}, {"beta2", 0.95}, {"weight_decay", 0.1}, {"epsilon", 1e-3}});
  add("uncorrected", {master, grad, mean, square}, 3, {{"bias_correction", 0}});
  add("clipped", {master, grad, mean, square}, 3, {{"trust_clip", 0.125}});
  add("first_step", {master, grad, zeros, zeros}, 1, {{"weight_decay", 0.1}});
  add("zero_master", {zeros, grad, mean, square}, 3, {{"weight_decay", 0.1}});
  add("zero_direction", {master, zeros, zeros, zeros}, 1, {});
  cases.back().expected = pattern(15);
  // u = 0.5 w, so that r = 2: w -= 0.25 * 2 * 0.5 w
  add("decay_alone", {master, zeros, zeros, zeros}, 1, {{"weight_decay", 0.5}});
  cases.back().expected = pattern(15);
  for (double& x : cases.back().expected) x *= 0.75;
  // w^2 and u^2 are too small for float32.
  add("tiny_master",
      {valued({4}, {1e-30, -2e-30, 0, 3e-30}), patterned({4}, 1), patterned({4}, 2),
       squares({4}, 3)},
      3, {});
  add("skipped", {master, grad, mean, square}, 3, {{"weight_decay", 0.1}}, true);
  cases.back().expected = pattern(15);
  std::vector<CaseInput> weighted = with_scalars({master, grad, mean, square}, 3, true);
  weighted.push_back(valued(shape, std::vector<double>(15, 0.0), DType::bfloat16));
  add_case(cases, "LambUpdate", "skipped_with_weight", weighted,
           {{"weight", std::string("bfloat16")}});
  cases.back().expected = pattern(15);

  const Shape line{2, 4};
  for (const std::int64_t correct : {0, 1}) {
    add_case(cases, "GroupedUpdate", correct ? "lamb" : "lamb_uncorrected",
             with_scalars({master, grad, mean, square, patterned(line), patterned(line, 1),
                           patterned(line, 2), squares(line, 3)},
                          7),
             {{"op", std::string("LambUpdate")},
              {"count", 2},
              {"weight_decay", 0.1},
              {"trust_clip", correct ? 0.0 : 0.125},
              {"bias_correction", correct}});
  }
}

// torch_optimizers_test.cpp compares several steps with PyTorch.
void add_adafactor(Cases& cases) {
  const auto tensors = [](const Shape& own, int seed) {
    std::vector<CaseInput> all{patterned(own, seed), patterned(own, seed + 1), absent(), absent(),
                               absent()};
    const UpdateKind& kind = *find_update_kind("AdafactorUpdate");
    if (own.size() < 2) {
      all[4] = squares(own, seed + 2);
      return all;
    }
    for (std::size_t k = 0; k < 2; ++k)
      all[2 + k] = squares(kind.state_shape(k, own), seed + 2 + static_cast<int>(k));
    return all;
  };
  for (const Shape& own : {Shape{}, Shape{15}, Shape{2, 3, 4}, Shape{2, 2, 3, 2}}) {
    const std::string name = "of_" + std::to_string(own.size()) + "_axes";
    add_case(cases, "AdafactorUpdate", name, with_scalars(tensors(own, 1), 3));
    add_case(cases, "AdafactorUpdate", name + "_first", with_scalars(tensors(own, 1), 1));
  }
  for (const auto& [name, first, second] :
       {std::tuple{"matrices", Shape{3, 4}, Shape{2, 2, 3}},
        std::tuple{"vectors", Shape{5}, Shape{7}},
        std::tuple{"matrix_and_vector", Shape{3, 4}, Shape{7}}}) {
    std::vector<CaseInput> both = tensors(first, 1);
    for (const CaseInput& input : tensors(second, 5)) both.push_back(input);
    add_case(cases, "GroupedUpdate", std::string("adafactor_") + name, with_scalars(both, 3),
             {{"op", std::string("AdafactorUpdate")}, {"count", 2}, {"weight_decay", 0.1}});
  }
}

// byte_optimizers_test.cpp compares several steps with the script of the published formula.
void add_bytes(Cases& cases) {
  const Attributes decoupled{{"weight_decay", 0.1}, {"decoupled", 1}};
  const auto add = [&](const std::string& name, const Shape& own, double step,
                       const Attributes& attributes, bool skip = false) {
    const std::int64_t elements = element_count(own), blocks = (elements + 255) / 256;
    std::vector<double> first, second;
    for (std::int64_t i = 0; i < elements; ++i) {
      first.push_back(static_cast<double>(i * 37 % 256));
      second.push_back(static_cast<double>(i * 91 % 256));
    }
    const auto bytes = [&](const std::vector<double>& values) {
      return valued(own, values, DType::uint8);
    };
    add_case(cases, "Adam8bitUpdate", name,
             with_scalars({patterned(own), patterned(own, 1), bytes(first), bytes(second),
                           squares({blocks}, 2), squares({blocks}, 3)},
                          step, skip),
             attributes);
    if (skip) cases.back().expected = pattern(elements);
  };
  add("one_block", {3, 5}, 3, {});
  add("several_blocks", {3, 171}, 7, decoupled);
  add("first_step", {256}, 1, decoupled);
  add("options", {300}, 3,
      {{"beta1", 0.8}, {"beta2", 0.95}, {"weight_decay", 0.1}, {"epsilon", 1e-3}});
  add("onnx", {3, 5}, 3, {{"epsilon", 1e-2}, {"epsilon_form", std::string("onnx")}});
  add("uncorrected", {3, 5}, 3, {{"bias_correction", 0}});
  add("skipped", {3, 5}, 3, decoupled, true);
  Attributes with_weight = decoupled;
  with_weight.set("weight", std::string("bfloat16"));
  add("skipped_with_weight", {3, 5}, 3, with_weight, true);
  cases.back().inputs.push_back(valued(shape, std::vector<double>(15, 0.0), DType::bfloat16));
}

}  // namespace

void add_update_cases(Cases& cases) {
  add_every_kind(cases);
  add_lamb(cases);
  add_adafactor(cases);
  add_bytes(cases);
  add_adagrad_and_ftrl(cases);
  add_sgd(cases);
  add_adam(cases);
  double sum = 0, other = 0;
  for (double v : pattern(4)) sum += v * v;
  for (double v : pattern(4, 1)) other += v * v;
  add_case(cases, "ClipScale", "torch_clips", {scalar(sum), scalar(other)}, {{"max_norm", 0.25}});
  cases.back().expected.resize(1);
  add_case(cases, "ClipScale", "leaves", {scalar(0.5), scalar(0.0), scalar(1.75)},
           {{"max_norm", 10.0}});
  cases.back().expected = {1};
  add_case(cases, "ClipScale", "zero", {scalar(0)}, {{"max_norm", 1.0}});
  cases.back().expected = {1};
  const auto add_scale = [&](const char* name, double good_steps, const Attributes& attributes,
                             double new_scale) {
    add_case(cases, "LossScale", name,
             {scalar(1024), scalar(good_steps, DType::int64), scalar(3, DType::int64),
              scalar(9, DType::int64), scalar(9 * 0x1p20), scalar(16 * 0x1p20)},
             attributes);
    cases.back().expected = {new_scale};
  };
  add_scale("takes", 4, {}, 1024);
  add_scale("grows", 4, {{"growth_interval", 5}, {"growth_factor", 4.0}}, 4096);
  add_scale("clips", 0, {{"max_norm", 0.5}, {"backoff_factor", 0.25}}, 1024);
  add_case(cases, "Accumulate", "torch_sum", {patterned(shape), patterned(shape, 1)});
  add_case(cases, "Accumulate", "first", {patterned(shape), patterned(shape, 1)}, {{"first", 1}});
  cases.back().expected = pattern(15, 1);
  add_case(cases, "Assign", "takes", {patterned(shape), patterned(shape, 1)});
  cases.back().expected = pattern(15, 1);
  add_case(cases, "Assign", "counter", {scalar(3, DType::int64), scalar(4, DType::int64)});
  cases.back().expected = {4};
}

}  // namespace tandem::testing
