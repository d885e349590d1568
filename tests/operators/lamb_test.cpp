// LAMB over 25 steps against a script of the published formula in double (tests/scripts/lamb.py),
// one parameter at a time and grouped, on every kernel of the host.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tests/harness/folders.h"
#include "tests/operators/network_cases.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using Tensors = std::vector<HostTensor>;

const Json& lamb_script() {
  static const Json json = Json::parse(read_file(source_folder() + "/tests/data/lamb.json"));
  return json;
}

constexpr int first_state = 2, tensors_each = 4;  // master, grad, exp_avg, exp_avg_sq

/// The script's parameter with this number.
struct Parameter {
  Json json;
  int number = 0;

  Shape shape() const { return json["shape"].get<Shape>(); }
  HostTensor filled(int k, double factor, DType dtype) const {
    HostTensor tensor(TensorType{DType::float64, shape()});
    const std::vector<double> values = pattern(tensor.type().elements(), k);
    for (std::size_t i = 0; i < values.size(); ++i) tensor.as<double>()[i] = factor * values[i];
    return tensor.converted(dtype);
  }
  Tensors start(DType dtype) const {
    const HostTensor zeros = filled(0, 0, dtype);
    return {filled(number, json["zero_weight"] ? 0 : 1, dtype), zeros, zeros, zeros};
  }
  HostTensor gradient(int step, DType dtype) const {
    return filled(number + 5 * step, json["zero_gradient"] ? 0 : 0.5, dtype);
  }
};

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const Json& json : lamb_script()["parameters"])
    all.push_back({json, static_cast<int>(all.size())});
  return all;
}

Attributes lamb_attributes(const Json& options) {
  Attributes attributes{{"bias_correction", std::int64_t{options["bias_correction"].get<bool>()}}};
  for (const char* name : {"beta1", "beta2", "weight_decay", "trust_clip"})
    attributes.set(name, options[name].get<double>());
  attributes.set("epsilon", options["eps"].get<double>());
  return attributes;
}

Attributes grouped(Attributes attributes, std::size_t count) {
  attributes.set("op", std::string("LambUpdate"));
  attributes.set("count", static_cast<std::int64_t>(count));
  return attributes;
}

void append_scalars(Tensors& inputs, double lr, int step, DType dtype) {
  inputs.push_back(HostTensor::from<double>({}, {lr}).converted(dtype));
  inputs.push_back(HostTensor::from<std::int64_t>({}, {step}));
  inputs.push_back(HostTensor::from<double>({}, {1.0}).converted(dtype));
  inputs.push_back(HostTensor::from<bool>({}, {false}));
}

/// Runs all steps of these parameters in one node; returns their tensors, one parameter after
/// another.
Tensors train(const Kernel& kernel, const std::vector<Parameter>& parameters, const Json& options,
              DType dtype) {
  Tensors inputs;
  for (const Parameter& p : parameters) {
    const Tensors start = p.start(dtype);
    inputs.insert(inputs.end(), start.begin(), start.end());
  }
  const int steps = lamb_script()["steps"];
  const Attributes attributes = kernel.op == "GroupedUpdate"
                                    ? grouped(lamb_attributes(options), parameters.size())
                                    : lamb_attributes(options);
  for (int step = 1; step <= steps; ++step) {
    Tensors all = inputs;
    for (std::size_t p = 0; p < parameters.size(); ++p)
      all[p * tensors_each + 1] = parameters[p].gradient(step, dtype);
    append_scalars(all, options["lr"], step, dtype);
    const Graph graph = single_node(kernel.op, all, attributes);
    const Tensors next = run_node(kernel, graph, graph.nodes[0], all);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      inputs[p * tensors_each] = next[p * 3];
      for (std::size_t k = 0; k < 2; ++k)
        inputs[p * tensors_each + first_state + k] = next[p * 3 + 1 + k];
    }
  }
  return inputs;
}

/// Calls f(kernel, dtype) for each kernel of this operator that takes the parameters in that type.
template <class F>
void each(const std::string& op, const std::vector<Parameter>& parameters, F f) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Tensors inputs;
    for (const Parameter& p : parameters) {
      const Tensors start = p.start(dtype);
      inputs.insert(inputs.end(), start.begin(), start.end());
    }
    append_scalars(inputs, 1, 1, dtype);
    const Graph graph = single_node(
        op, inputs, op == "GroupedUpdate" ? grouped({}, parameters.size()) : Attributes{});
    each_kernel(graph, [&](const Kernel& kernel) { f(kernel, dtype); });
  }
}

void expect_lamb_result(const HostTensor& got, const Json& expected, const Parameter& p,
                        double tolerance, const std::string& what) {
  const int stride = p.json["stride"];
  std::vector<double> picked;
  for (std::int64_t i = 0; i < got.type().elements(); i += stride) picked.push_back(got.number(i));
  const auto count = static_cast<std::int64_t>(picked.size());
  ASSERT_EQ(picked.size(), expected.size());
  EXPECT_EQ(
      compare(HostTensor::from<double>({count}, picked),
              HostTensor::from<double>({count}, expected.get<std::vector<double>>()), tolerance),
      "")
      << what;
}

void expect_results(const Tensors& tensors, std::size_t first, const Json& c, const Parameter& p,
                    DType dtype) {
  const double tolerance = dtype == DType::float32 ? 2e-6 : 1e-12;
  const Json& expected = c["results"][static_cast<std::size_t>(p.number)];
  SCOPED_TRACE(p.json["name"].get<std::string>() + " " + c["name"].get<std::string>());
  expect_lamb_result(tensors[first], expected["w"], p, tolerance, "w");
  expect_lamb_result(tensors[first + 2], expected["m"], p, tolerance, "m");
  expect_lamb_result(tensors[first + 3], expected["v"], p, tolerance, "v");
}

TEST(LambUpdate, AgreesWithTheScript) {
  ASSERT_GE(lamb_script()["steps"].get<int>(), 20);
  for (const Parameter& p : parameters()) {
    each("LambUpdate", {p}, [&](const Kernel& kernel, DType dtype) {
      for (const Json& c : lamb_script()["cases"])
        expect_results(train(kernel, {p}, c["options"], dtype), 0, c, p, dtype);
    });
  }
}

// Grouping parameters in one call changes no bit of any.
TEST(LambUpdate, GroupedIsTheSameAsAlone) {
  const std::vector<Parameter> all = parameters();
  each("GroupedUpdate", all, [&](const Kernel& kernel, DType dtype) {
    for (const Json& c : lamb_script()["cases"]) {
      const Tensors together = train(kernel, all, c["options"], dtype);
      for (std::size_t p = 0; p < all.size(); ++p) {
        expect_results(together, p * tensors_each, c, all[p], dtype);
        const Kernel* alone = nullptr;
        for (const Kernel& known : cpu_list()) {
          if (known.op == "LambUpdate" && known.reference == kernel.reference) alone = &known;
        }
        ASSERT_NE(alone, nullptr);
        const Tensors single = train(*alone, {all[p]}, c["options"], dtype);
        for (std::size_t k = 0; k < single.size(); ++k) {
          EXPECT_TRUE(single[k].bytes() == 0 ||
                      std::memcmp(single[k].data(), together[p * tensors_each + k].data(),
                                  single[k].bytes()) == 0)
              << all[p].json["name"] << " tensor " << k;
        }
      }
    }
  });
}

TEST(LambUpdate, ScalesTheGradientAndTakesSixteenBits) {
  const Parameter p = parameters().back();
  const Json& options = lamb_script()["cases"][1]["options"];
  for (const DType grads : {DType::bfloat16, DType::float16}) {
    Tensors inputs = p.start(DType::float32);
    inputs[1] = p.gradient(1, DType::float32).converted(grads);  // the numbers are exact in 16 bits
    append_scalars(inputs, 0.05, 1, DType::float32);
    Tensors plain = inputs;
    plain[1] = p.gradient(1, DType::float32);
    const Graph half = single_node("LambUpdate", inputs, lamb_attributes(options));
    const Graph full = single_node("LambUpdate", plain, lamb_attributes(options));
    each_kernel(half, [&](const Kernel& kernel) {
      const Tensors a = run_node(kernel, half, half.nodes[0], inputs),
                    b = run_node(kernel, full, full.nodes[0], plain);
      EXPECT_EQ(compare(a[0], b[0], 0), "");
      Tensors larger = plain;
      larger[1] = p.gradient(1, DType::float32);  // copies of a tensor share its memory
      for (float& x : larger[1].as<float>()) x *= 4;
      larger.end()[-2] = scalar_of(0.25f);
      const Tensors c = run_node(kernel, full, full.nodes[0], larger);
      EXPECT_EQ(compare(c[0], b[0], 0), "") << "a power of two changes no bit";
    });
  }
}

// A NaN norm makes the whole parameter NaN; the step is never computed with another ratio.
TEST(LambUpdate, SpreadsWhatIsNotANumber) {
  Tensors inputs = parameters().front().start(DType::float32);
  inputs[1] = parameters().front().gradient(1, DType::float32);
  inputs[1].as<float>()[4] = std::nanf("");
  append_scalars(inputs, 0.05, 1, DType::float32);
  const Graph graph = single_node("LambUpdate", inputs, {});
  each_kernel(graph, [&](const Kernel& kernel) {
    const Tensors results = run_node(kernel, graph, graph.nodes[0], inputs);
    for (const float w : results[0].as<float>()) EXPECT_TRUE(std::isnan(w));
  });
}

TEST(LambUpdate, RefusesRowsAndSettingsByName) {
  const auto message = [](const std::string& op, const Attributes& attributes) {
    Tensors inputs = parameters().front().start(DType::float32);
    append_scalars(inputs, 0.05, 1, DType::float32);
    try {
      single_node(op, inputs, attributes);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(message("LambUpdate", {{"beta2", 1.0}}), "beta2 is out of range"));
  EXPECT_TRUE(has(message("LambUpdate", {{"trust_clip", -1.0}}), "trust_clip"));
  const std::string rows = message("RowsUpdate", {{"op", std::string("LambUpdate")}});
  EXPECT_TRUE(has(rows, "cannot update single rows")) << rows;
  EXPECT_TRUE(has(rows, "LambUpdate")) << rows;
}

}  // namespace
}  // namespace tandem::testing
