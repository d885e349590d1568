// Initial values are functions of (seed, name, element), however a table is cut into ranges.
#include "engine/train/loading/initialise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/formats/files.h"
#include "engine/graph/builder.h"
#include "engine/graph/shard_conversion.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/peak_memory.h"
#include "tests/harness/program_check.h"
#include "tests/training/formats/packed_files.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// The definition, element by element.
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
double draw(std::uint64_t seed, const std::string& name, std::uint64_t k) {
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return static_cast<double>(mixed(seed + (k + 1) * 0x9e3779b97f4a7c15ull) >> 11) * 0x1.0p-53;
}

class Initialise : public ::testing::Test {
 protected:
  Initialise() {
    GraphBuilder g(engine_.operators);
    add(g, "wide", {3'000'000, 1});  // several ranges
    add(g, "deep", {300'000, 7});
    add(g, "small", {5, 3});
    graph_ = g.finish();
    own_ = testing::make_program(graph_, engine_.operators, *engine_.cpu);
  }
  static void add(GraphBuilder& g, const std::string& name, Shape shape) {
    State state;
    state.name = name + ".weight";
    state.path = name + ":weight";
    state.start = HostTensor(TensorType{DType::float32, std::move(shape)});
    state.starts_at_zero = true;
    g.output(name, g.add_node("Neg", {g.state(state)}));
  }
  std::vector<std::string> apply(const ParametersConfig& config) {
    return initialise_parameters(config, 9, graph_, own_.states);
  }
  static InitRule rule(const std::string& at, InitKind kind) { return {at, kind, {}}; }
  testing::SmallEngine engine_;
  Graph graph_;
  testing::OwnProgram own_;
};

TEST_F(Initialise, UniformIsTheDefinition) {
  ParametersConfig config;
  config.init = {rule("**", UniformInit{-2, 3})};
  apply(config);
  for (const std::string name : {"wide.weight", "deep.weight", "small.weight"}) {
    const HostTensor values = own_.states.read(name);
    for (std::int64_t i = 0; i < values.type().elements(); i += 1 + i / 50) {
      ASSERT_EQ(values.as<float>()[i], static_cast<float>(-2 + 5 * draw(9, name, i)))
          << name << " " << i;
    }
  }
}

// A part has the numbers of the whole, for any distribution and number of elements: rows r, r +
// ranks, ..., blocks of rows or columns, or a whole table on one rank; what pads the last part
// stays zero.
TEST_F(Initialise, PartsHaveTheNumbersOfTheWhole) {
  ParametersConfig config;
  config.init = {rule("**", NormalInit{0, 0.01}), rule("deep.**", UniformInit{-2, 3})};
  apply(config);
  constexpr int ranks = 4;
  constexpr ShardKind kinds[] = {ShardKind::rows, ShardKind::row_blocks, ShardKind::column_blocks,
                                 ShardKind::table};
  for (int i = 0; i < 4 * ranks; ++i) {
    const int rank = i % ranks;
    GraphBuilder g(engine_.operators);
    std::vector<State> wholes = graph_.states;
    for (State state : wholes) {
      keep_part(state, kinds[i / ranks], rank, ranks);
      const std::string path = state.path;
      g.output(path, g.add_node("Neg", {g.state(std::move(state))}));
    }
    const Graph graph = g.finish();
    testing::OwnProgram own = testing::make_program(graph, engine_.operators, *engine_.cpu);
    initialise_parameters(config, 9, graph, own.states);
    for (const State& state : graph.states) {
      const HostTensor part = own.states.read(state.name);
      const HostTensor expected =
          part_of(own_.states.read(state.name), *own.states.shard(state.name));
      ASSERT_EQ(std::memcmp(part.data(), expected.data(), part.bytes()), 0)
          << state.name << " on rank " << rank;
      ASSERT_EQ(part.type(), state.shard->part());
    }
  }
}

TEST_F(Initialise, NormalIsTheDefinition) {
  ParametersConfig config;
  config.init = {rule("**", NormalInit{0, 0.01})};
  apply(config);
  for (const std::string name : {"wide.weight", "deep.weight", "small.weight"}) {
    const HostTensor values = own_.states.read(name);
    for (std::int64_t i = 0; i < values.type().elements(); i += 1 + i / 50) {
      const double radius = std::sqrt(-2 * std::log(1 - draw(9, name, 2 * i)));
      const double wanted = 0.01 * radius * std::cos(2 * M_PI * draw(9, name, 2 * i + 1));
      ASSERT_EQ(values.as<float>()[i], static_cast<float>(wanted)) << name << " " << i;
    }
  }
}

TEST_F(Initialise, LargeTablesAreMadeInPairs) {
  GraphBuilder g(engine_.operators);
  add(g, "large", {2'400'001, 7});  // ranges begin at odd elements too
  const Graph graph = g.finish();
  testing::OwnProgram own = testing::make_program(graph, engine_.operators, *engine_.cpu);
  ParametersConfig config;
  config.init = {rule("**", NormalInit{0.5, 0.01})};
  initialise_parameters(config, 9, graph, own.states);
  const HostTensor values = own.states.read("large.weight");
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < values.type().elements(); ++i) {
    const double x = values.as<float>()[i] - 0.5;
    sum += x;
    squares += x * x;
    if (i % 1'001 > 1) continue;
    const double both = draw(9, "large.weight", i / 2) * 0x1.0p32;  // 53 bits of the draw
    const double u = (std::floor(both) + 1) * 0x1.0p-32;
    const double angle = 2 * M_PI * (both - std::floor(both));
    const double wanted = std::sqrt(-2 * std::log(u)) * (i % 2 ? std::sin(angle) : std::cos(angle));
    ASSERT_NEAR(x, 0.01 * wanted, 2e-5) << i;
  }
  const double count = static_cast<double>(values.type().elements());
  EXPECT_NEAR(sum / count, 0, 1e-5);
  EXPECT_NEAR(std::sqrt(squares / count), 0.01, 1e-5);
}

TEST_F(Initialise, FansAreThoseOfTheWholeTable) {
  ParametersConfig config;
  config.init = {rule("deep:*", XavierUniformInit{})};
  apply(config);
  const HostTensor values = own_.states.read("deep.weight");
  float largest = 0;
  for (const float x : values.as<float>()) largest = std::max(largest, std::fabs(x));
  EXPECT_NEAR(largest, std::sqrt(6.0 / 300'007), 1e-6);
}

TEST_F(Initialise, NumbersThatTheTypeCannotHoldAreRefused) {
  const auto refused = [&](InitKind kind) {
    ParametersConfig config;
    config.init = {rule("small", kind)};
    return testing::error_text([&] { apply(config); });
  };
  EXPECT_THAT(refused(ConstantInit{1e39}),
              ::testing::AllOf(HasSubstr("small:weight"), HasSubstr("value of"),
                               HasSubstr("float32"), HasSubstr("got 1e+39")));
  EXPECT_EQ(refused(ConstantInit{-3e38}), "no error");
  EXPECT_THAT(refused(NormalInit{0, 1e300}), HasSubstr("std of at most"));
  EXPECT_THAT(refused(NormalInit{-1e300, 1}), HasSubstr("mean of at most"));
  EXPECT_THAT(refused(UniformInit{-1e308, 1e308}), HasSubstr("low of at most"));
}

TEST_F(Initialise, TablesThatStayAtZeroAreSaid) {
  ParametersConfig config;
  ShapeRule shape;
  shape.at = "{wide,deep}:weight";
  config.shape = {shape};
  config.init = {rule("deep:*", OnesInit{})};
  const std::vector<std::string> notes = apply(config);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes[1], HasSubstr("wide:weight starts at zeros"));
  EXPECT_EQ(own_.states.read("deep.weight").as<float>()[2'000'000], 1);
  EXPECT_EQ(own_.states.read("wide.weight").as<float>()[2'000'000], 0);
  config.init.push_back(rule("wide:*", ZerosInit{}));
  EXPECT_EQ(apply(config).size(), 2u);  // one for each init rule
}

// Only what a parameter takes is unpacked, and converted on the way.
TEST_F(Initialise, WeightsOfAnArchiveAreReadOneByOne) {
  if (!testing::counts_allocations()) GTEST_SKIP() << "sanitizers take memory of their own";
  const testing::TemporaryFolder folder;
  const std::string start = testing::npy_start("<f8", "(3000000, 1)"), block(8'000'000, '\0');
  const std::string small = testing::npy_start("<f8", "(5, 3)") + std::string(15 * 8, '\0');
  write_file(
      folder / "w.npz",
      testing::zip_archive({testing::bomb("bomb.npy"),
                            {"wide.weight.npy", testing::deflated_repeats(start, block, 3),
                             start.size() + 24'000'000, testing::crc_of_repeats(start, block, 3)},
                            testing::packed("small.weight.npy", small)}));
  LoadRule load;
  load.at = "{wide,small}:weight";
  load.from = folder / "w.npz";
  ParametersConfig config;
  config.load = {load};
  // 12 MB as float32, here and in the state; those of the file, 24 MB, would come on top.
  EXPECT_LT(testing::peak_memory_of([&] { apply(config); }), std::size_t{36'000'000});
  EXPECT_THAT(apply(config).back(), HasSubstr("loaded 2 parameters"));
}

}  // namespace
}  // namespace tandem
