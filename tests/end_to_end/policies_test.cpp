// A policy never changes results beyond rounding: networks under many placements against the run
// that has everything on the cpu.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "include/tandem/error.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace testing;

struct PolicyCase {
  std::string network;
  std::size_t optimizer = 0;
};
void PrintTo(const PolicyCase& c, std::ostream* stream) { *stream << c.network; }

constexpr int steps = 10, policies = 20;

/// What rules may name in the file.
struct Names {
  std::vector<std::string> operators, parameters;
};

Names names_of(const std::string& model, std::int64_t batch) {
  api::PolicyOptions options;
  options.model = model;
  options.bind = {{"batch", batch}};
  Names names;
  const Json listed = Json::parse(api::policy_names(options, "", "graph").json);
  for (const Json& row : listed["names"]) {
    const std::string op = row["op"], path = row["path"];
    if (path.empty()) continue;
    (op == "parameter" ? names.parameters : names.operators).push_back(path);
  }
  return names;
}

/// Rules with operators, weights and states anywhere.
std::string random_policy(const Names& names, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto device = [&] { return random() % 2 == 0 ? "cpu" : "gpu"; };
  std::string text =
      "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }\nrules = [\n";
  const auto rule = [&](const std::string& at, const std::string& key, const char* value) {
    text += "  { at = \"" + at + "\", " + key + " = \"" + value + "\" },\n";
  };
  rule("**", "on", device());
  const std::uint64_t one_in = 1 + random() % 4;
  for (const std::string& path : names.operators) {
    if (random() % one_in == 0) rule(path, "run", device());
  }
  for (const std::string& path : names.parameters) {  // their readers may be on both
    rule(path, "param", device());
    if (random() % 2 == 0) rule(path, "state", device());
  }
  if (random() % 4 == 0) rule("loss.**", "run", device());
  return text + "]\n";
}

std::vector<double> losses_under(const PolicyCase& c, const std::string& policy) {
  const Json fixture = read_fixture(c.network);
  const std::int64_t batch = fixture["batch"];
  std::vector<std::string> settings =
      settings_of(fixture["optimizers"][c.optimizer], fixture, false);
  if (!policy.empty()) settings.push_back("policy=" + Json(policy).dump());
  const auto feeds = read_feeds(fixture);
  api::Session session(
      parity_folder() + fixture["files"]["logits"]["torchscript"].get<std::string>(), batch,
      settings);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    std::map<std::string, api::Array> fed;
    for (const auto& [name, tensor] : feeds) fed[name] = array_of(tensor, step * batch, batch);
    losses.push_back(session.step(fed));
  }
  return losses;
}

class PoliciesTest : public ::testing::TestWithParam<PolicyCase> {};

TEST_P(PoliciesTest, LossesAreThoseOfTheCpu) {
  const PolicyCase& c = GetParam();
  const Json fixture = read_fixture(c.network);
  const Names names =
      names_of(parity_folder() + fixture["files"]["logits"]["torchscript"].get<std::string>(),
               fixture["batch"]);
  ASSERT_FALSE(names.operators.empty());
  ASSERT_FALSE(names.parameters.empty());
  const std::vector<double> expected = losses_under(c, "");
  const TemporaryFolder folder;
  for (int seed = 0; seed < policies; ++seed) {
    const std::string policy = random_policy(names, static_cast<std::uint64_t>(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string path = folder / "policy.toml";
    std::ofstream(path) << policy;
    const std::vector<double> losses = losses_under(c, path);
    for (int step = 0; step < steps; ++step) {
      ASSERT_NEAR(losses[step], expected[step], 1e-5 * std::abs(expected[step]))
          << "step " << step + 1 << "\n"
          << policy;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PoliciesTest,
                         ::testing::Values(PolicyCase{"mlp", 0}, PolicyCase{"lenet5", 3},
                                           PolicyCase{"conv_bn", 1}, PolicyCase{"gpt", 4},
                                           PolicyCase{"encoder", 2}, PolicyCase{"tied_decoder", 4}),
                         [](const auto& info) { return info.param.network; });

}  // namespace
}  // namespace tandem
