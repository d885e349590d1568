// Training in 16 bits with masters and moments on the host: exported networks, through the
// configuration and a policy.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "include/tandem/error.h"
#include "tests/end_to_end/near_losses.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace testing;

constexpr int half_precision_steps = 10;
constexpr const char* split_policy =
    "policy = 1\n"
    "devices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }\n"
    "rules = [\n"
    "  { at = \"**\",   on = \"gpu\" },\n"
    "  { at = \"**:*\", state = \"cpu\" },\n"
    "]\n";

struct HalfCase {
  std::string network;
  std::size_t optimizer = 0;
  double tolerance = 0;  // relative, for every loss
  std::string type = "bfloat16";
};
void PrintTo(const HalfCase& c, std::ostream* stream) { *stream << c.network << " " << c.type; }

std::vector<double> losses_of_case(const HalfCase& c, const std::vector<std::string>& more) {
  const Json fixture = read_fixture(c.network);
  const std::int64_t batch = fixture["batch"];
  std::vector<std::string> settings =
      settings_of(fixture["optimizers"][c.optimizer], fixture, false);
  settings.insert(settings.end(), more.begin(), more.end());
  const auto feeds = read_feeds(fixture);
  api::Session session(
      parity_folder() + fixture["files"]["logits"]["torchscript"].get<std::string>(), batch,
      settings);
  std::vector<double> result;
  for (int step = 0; step < half_precision_steps; ++step) {
    api::Tensors fed;
    for (const auto& [name, tensor] : feeds) fed[name] = array_of(tensor, step * batch, batch);
    result.push_back(session.step(fed));
  }
  return result;
}

class HalfPrecisionTest : public ::testing::TestWithParam<HalfCase> {
 protected:
  std::string policy_setting() {
    const std::string path = folder_ / "policy.toml";
    std::ofstream(path) << split_policy;
    return "policy=" + Json(path).dump();
  }
  TemporaryFolder folder_;
};

TEST_P(HalfPrecisionTest, LossesStayNearThoseOfFloat32) {
  const HalfCase& c = GetParam();
  const std::string policy = policy_setting(), half = "precision.compute=" + c.type;
  const std::vector<double> expected = losses_of_case(c, {}),
                            got = losses_of_case(c, {policy, half});
  double largest = 0;
  for (int step = 0; step < half_precision_steps; ++step) {
    EXPECT_NEAR(got[step], expected[step], c.tolerance * std::abs(expected[step]))
        << "step " << step + 1;
    largest = std::max(largest, std::abs(got[step] - expected[step]));
  }
  EXPECT_GT(largest, 0) << "nothing was computed in 16 bits";
  // Without fast 16-bit kernels everything is computed as before, except that a loss scale keeps
  // updates out of products.
  const double same = c.type == "float16" ? 1e-5 : 0;
  const std::string keep = "precision.keep_float32=[\"**\"]";
  expect_near_losses(losses_of_case(c, {half}), expected, same);
  expect_near_losses(losses_of_case(c, {policy, half, keep}), losses_of_case(c, {policy}), same);
}

INSTANTIATE_TEST_SUITE_P(Networks, HalfPrecisionTest,
                         ::testing::Values(HalfCase{"mlp", 3, 0.03}, HalfCase{"lenet5", 3, 0.03},
                                           HalfCase{"conv_bn", 1, 0.05}, HalfCase{"gpt", 4, 0.03},
                                           HalfCase{"tied_decoder", 4, 0.03}),
                         [](const auto& info) { return info.param.network; });

// A bfloat16's mantissa has three bits less. Here LeNet-5 overshoots in its first steps, which
// multiplies any difference.
INSTANTIATE_TEST_SUITE_P(Float16, HalfPrecisionTest,
                         ::testing::Values(HalfCase{"mlp", 3, 0.004, "float16"},
                                           HalfCase{"lenet5", 3, 0.012, "float16"},
                                           HalfCase{"conv_bn", 1, 0.01, "float16"},
                                           HalfCase{"gpt", 4, 0.004, "float16"},
                                           HalfCase{"tied_decoder", 4, 0.004, "float16"}),
                         [](const auto& info) { return info.param.network; });

TEST(HalfPrecision, KeptSelectorsMustMatch) {
  const HalfCase c{"mlp"};
  try {
    losses_of_case(c, {"precision.compute=bfloat16", "precision.keep_float32=[\"nothing.**\"]"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("\"nothing.**\" matches no operator"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tandem
