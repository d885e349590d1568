// A training step that another engine recorded: the loss before and after one AdamW step with
// ONNX's form of epsilon.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "tandem/tandem.h"
#include "tests/harness/folders.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

/// TANDEM_SHARED, or the folder `shared` next to the repository.
fs::path oracle_folder() {
  const char* shared = std::getenv("TANDEM_SHARED");
  const fs::path root =
      shared != nullptr ? fs::path(shared) : fs::path(source_folder()) / "../shared";
  return root / "corpus/ort-training-oracle";
}

Tensor read_floats(const std::string& file, std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  std::vector<float> values(static_cast<std::size_t>(count));
  const auto bytes = static_cast<std::streamsize>(values.size() * sizeof(float));
  std::ifstream stream(oracle_folder() / file, std::ios::binary);
  stream.read(reinterpret_cast<char*>(values.data()), bytes);
  EXPECT_EQ(stream.gcount(), bytes) << file;
  EXPECT_EQ(stream.peek(), std::char_traits<char>::eof()) << file;
  return Tensor::copy_of(std::move(shape), values);
}

/// The recorded network (784-500-10) with its initial weights.
Session open_oracle(const std::string& epsilon_form) {
  const std::string term =
      R"({ name = "loss", kind = "softmax_cross_entropy", logits = "output-0", labels = "labels" })";
  Session session(
      oracle_folder() / "zero_model.onnx", 2,
      {"model.bind={input-0_dim1 = 784}", "loss.terms=[" + term + "]", "optimizer.kind=adamw",
       "optimizer.lr=1e-3", "optimizer.betas=[0.9, 0.999]", "optimizer.eps=1e-6",
       "optimizer.weight_decay=0.0", "optimizer.epsilon_form=\"" + epsilon_form + "\""});
  const Tensors parameters = session.parameters();
  EXPECT_EQ(parameters.size(), 4u);
  for (const auto& [name, zeros] : parameters) {
    session.set_parameter(name, read_floats("init_" + name + ".f32le.bin", zeros.shape()));
  }
  return session;
}

Tensors feeds() {
  return {{"input-0", read_floats("input-0.f32le.bin", {2, 784})},
          {"labels", Tensor::copy_of({2}, std::vector<std::int64_t>{1, 1})}};
}

class OracleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(oracle_folder())) {
      GTEST_SKIP() << oracle_folder()
                   << " is missing; set TANDEM_SHARED to the folder that holds corpus/";
    }
  }
};

TEST_F(OracleTest, OneAdamWStepGivesTheRecordedLoss) {
  Session session = open_oracle("onnx");
  const double before = session.step(feeds()), after = session.step(feeds());
  EXPECT_NEAR(before, 2.1786249, 2.1786249e-6);
  EXPECT_NEAR(after, 0.36050943, 0.36050943e-6);
}

TEST_F(OracleTest, TheEpsilonFormsDiffer) {
  Session session = open_oracle("pytorch");
  session.step(feeds());
  EXPECT_NEAR(session.step(feeds()), 0.35833, 5e-6);
}

}  // namespace
}  // namespace tandem::api
