// Models of scikit-learn by skl2onnx: predictions equal onnxruntime's, training equals PyTorch's,
// and the exported file computes what onnxruntime computes with PyTorch's weights in it
// (tests/scripts/sklearn_models.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/formats/arrays/npz_file.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string sklearn_folder = source_folder() + "/tests/data/sklearn/";
constexpr std::int64_t sklearn_steps = 5, sklearn_batch = 4;

const Json& values() {
  static const Json all = Json::parse(read_file(sklearn_folder + "values.json"));
  return all;
}

template <class T>
Tensor samples_of_step(const HostTensor& all, std::int64_t step) {
  Shape shape = all.shape();
  shape[0] = sklearn_batch;
  const std::int64_t count = element_count(shape);
  const auto part =
      all.as<T>().subspan(static_cast<std::size_t>(step * count), static_cast<std::size_t>(count));
  return Tensor::copy_of(shape, std::vector<T>(part.begin(), part.end()));
}

class Sklearn : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string name = GetParam();
  const std::string model = sklearn_folder + name + ".onnx";
  const NpzFile expected{sklearn_folder + name + ".npz"};
  const Json value = values().at(name);
  const bool has_classes = value["kind"] == "softmax_cross_entropy";

  std::vector<std::string> settings() const {
    const auto text = [&](const char* key) { return value[key].get<std::string>(); };
    return {"loss.terms=[{name=\"loss\", kind=\"" + text("kind") + "\", " + text("key") + "=\"" +
                text("value") + "\", " + text("labels") + "=\"target\"}]",
            "optimizer.kind=sgd", "optimizer.lr=0.05"};
  }

  Tensors x(std::int64_t step) const {
    return {{"x", samples_of_step<float>(expected.read("x", DType::float32), step)}};
  }

  Tensors feeds(std::int64_t step) const {
    Tensors fed = x(step);
    fed["target"] = has_classes
                        ? samples_of_step<std::int64_t>(expected.read("target", DType::int64), step)
                        : samples_of_step<float>(expected.read("target", DType::float32), step);
    return fed;
  }

  // Probabilities of a classifier, numbers of a regressor; there are also labels and scores.
  void expect_output(Session& session, const char* when) const {
    const HostTensor wanted = expected.read(when, DType::float32);
    const Tensors made = session.predict(x(0));
    const std::string output = made.contains("variable") ? "variable" : "output_probability";
    const std::vector<float> got = made.at(output).floats();
    ASSERT_EQ(got.size(), wanted.as<float>().size()) << output;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], wanted.as<float>()[i], 2e-6 * std::max(1.0f, std::abs(got[i])))
          << when << " the training: " << output << " " << i;
  }
};

TEST_P(Sklearn, TrainsAndComesBack) {
  Session session(model, sklearn_batch, settings());
  std::vector<std::string> parameters;
  for (const auto& [parameter, array] : session.parameters()) parameters.push_back(parameter);
  EXPECT_EQ(parameters, value["parameters"].get<std::vector<std::string>>());
  expect_output(session, "before");
  const HostTensor losses = expected.read("losses", DType::float64);
  for (std::int64_t step = 0; step < sklearn_steps; ++step) {
    const double loss = losses.as<double>()[static_cast<std::size_t>(step)];
    EXPECT_NEAR(session.step(feeds(step)), loss, 2e-5 * std::max(1.0, loss)) << "step " << step;
  }
  for (const std::string& parameter : parameters) {
    const HostTensor wanted = expected.read("parameter " + parameter, DType::float32);
    const std::vector<float> got = session.parameters().at(parameter).floats();
    ASSERT_EQ(got.size(), wanted.as<float>().size()) << parameter;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], wanted.as<float>()[i], 2e-5) << parameter << " " << i;
  }
  const TemporaryFolder place;
  session.save(place / "trained.onnx");
  Session trained(place / "trained.onnx", sklearn_batch, settings());
  EXPECT_EQ(trained.parameters().size(), parameters.size());
  for (const auto& [parameter, array] : session.parameters())
    EXPECT_EQ(trained.parameters().at(parameter), array) << parameter;
  expect_output(trained, "after");
}

TEST_P(Sklearn, InspectFindsAllParameters) {
  const InspectReport report = inspect(model);
  EXPECT_FALSE(report.blocks_training) << report.text;
  EXPECT_THAT(report.text, HasSubstr("ready to train")) << report.text;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, value] : values().items()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Sklearn, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::api
