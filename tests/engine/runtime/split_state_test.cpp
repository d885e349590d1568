// A split table in a StateStore: everybody sees one float32 state, by rows and as a whole.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/graph/error.h"
#include "engine/graph/half.h"
#include "engine/graph/split_float.h"
#include "engine/runtime/state_entry.h"
#include "tests/engine/runtime/machine.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t split_rows = 70000, split_columns = 3;  // more than are joined at a time
const Shape shape{split_rows, split_columns};

HostTensor some_floats(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  HostTensor tensor(TensorType{DType::float32, shape});
  for (float& x : tensor.as<float>()) x = normal(random);
  return tensor;
}

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

State state_of(std::string name, DType dtype) {
  State state;
  state.name = std::move(name);
  state.start = HostTensor(TensorType{dtype, shape});
  state.starts_at_zero = true;
  return state;
}

class SplitState : public ::testing::TestWithParam<int> {
 protected:
  SplitState() : machine_(1) {
    create(state_of("table", DType::bfloat16));
    State tail = state_of("table/tail", DType::int16);
    tail.kind = StateKind::optimizer;
    tail.derived = LowHalf{"table"};
    create(tail);
  }
  void create(const State& state) {
    store_.create(state, {GetParam(), row_major(state.start.shape())},
                  *machine_.devices[static_cast<std::size_t>(GetParam())]);
  }
  /// What lies in memory.
  template <class T>
  std::vector<T> memory(const std::string& name) {
    const StateStore::Entry& entry = *store_.find(name);
    std::vector<T> bytes(static_cast<std::size_t>(split_rows * split_columns));
    entry.device->synchronize();
    entry.device->to_host(bytes.data(), entry.memory->address(), bytes.size() * sizeof(T));
    return bytes;
  }

  Machine machine_;
  StateStore store_;
};

TEST_P(SplitState, IsOneFloat32State) {
  EXPECT_EQ(store_.names(), std::vector<std::string>{"table"});
  EXPECT_EQ(store_.type("table"), (TensorType{DType::float32, shape}));
  EXPECT_EQ(store_.kind("table"), StateKind::parameter);
  EXPECT_TRUE(store_.has_direct_rows("table"));
  EXPECT_TRUE(same_bytes(store_.read("table"), HostTensor(TensorType{DType::float32, shape})));
}

TEST_P(SplitState, KeepsEveryBit) {
  const HostTensor value = some_floats(1);
  store_.write("table", value);
  EXPECT_TRUE(same_bytes(store_.read("table"), value));
  std::vector<std::uint16_t> tops(static_cast<std::size_t>(split_rows * split_columns));
  std::vector<std::int16_t> tails(tops.size());
  split_floats(value.as<float>().data(), tops.data(), tails.data(), split_rows * split_columns);
  EXPECT_EQ(memory<std::uint16_t>("table"), tops) << "what lookups read";
  EXPECT_EQ(memory<std::int16_t>("table/tail"), tails);
  EXPECT_THROW(store_.write("table", value.converted(DType::bfloat16)), Error);
}

TEST_P(SplitState, IsReadAndWrittenByRows) {
  const HostTensor value = some_floats(2), other = some_floats(3);
  store_.write("table", value);
  const std::int64_t first = 1234, count = 50000;
  HostTensor part(TensorType{DType::float32, {count, split_columns}});
  store_.read_rows("table", first, count, part.data());
  EXPECT_EQ(
      0, std::memcmp(part.data(), value.as<float>().data() + first * split_columns, part.bytes()));
  store_.write_rows("table", first, count, other.data());
  HostTensor expected = value.clone();
  std::memcpy(expected.as<float>().data() + first * split_columns, other.data(), part.bytes());
  EXPECT_TRUE(same_bytes(store_.read("table"), expected));
  store_.read_rows("table", 5, 0, nullptr);
  store_.write_rows("table", 5, 0, nullptr);
}

// A weight on another device than its master holds what lookups there read: the same halves, ties
// included.
TEST_P(SplitState, WeightsElsewhereAreItsUpperHalves) {
  HostTensor value = some_floats(4);
  value.as<float>()[0] = std::bit_cast<float>(0x3f808000u);  // a tie, even neighbour below
  const auto expect_tops = [&] {
    std::vector<std::uint16_t> tops(static_cast<std::size_t>(split_rows * split_columns));
    const HostTensor now = store_.read("table");
    split_floats(now.as<float>().data(), tops.data(), nullptr, split_rows * split_columns);
    EXPECT_EQ(memory<std::uint16_t>("table/weight"), tops);
  };
  store_.write("table", value);
  State weight = state_of("table/weight", DType::bfloat16);
  weight.derived = Mirror{"table"};
  create(weight);
  expect_tops();
  value.as<float>()[1] = std::bit_cast<float>(0xbf808000u);
  store_.write("table", value);
  expect_tops();
  store_.write_rows("table", 7, 3, value.data());
  expect_tops();
  EXPECT_EQ(memory<std::uint16_t>("table/weight")[0], 0x3f81);
}

TEST(SplitStates, StartWithTheValuesOfBothStates) {
  Machine machine(0);
  StateStore store;
  const HostTensor value = some_floats(5);
  State top = state_of("table", DType::bfloat16), tail = state_of("table/tail", DType::int16);
  split_floats(value.as<float>().data(), static_cast<std::uint16_t*>(top.start.data()),
               tail.start.as<std::int16_t>().data(), split_rows * split_columns);
  top.starts_at_zero = tail.starts_at_zero = false;
  tail.derived = LowHalf{"table"};
  store.create(top, {0, row_major(shape)}, *machine.cpu);
  store.create(tail, {0, row_major(shape)}, *machine.cpu);
  EXPECT_TRUE(same_bytes(store.read("table"), value));
}

INSTANTIATE_TEST_SUITE_P(Devices, SplitState, ::testing::Values(0, 1),
                         [](const auto& info) { return info.param == 0 ? "cpu" : "emulated"; });

}  // namespace
}  // namespace tandem::testing
