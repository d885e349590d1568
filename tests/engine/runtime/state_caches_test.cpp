// A table of which a device caches rows: all who read and write it see one state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "engine/runtime/state_entry.h"
#include "tests/engine/runtime/machine.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t rows = 9, columns = 3;

HostTensor numbers(std::int64_t count, float first) {
  HostTensor tensor(TensorType{DType::float32, {count, columns}});
  std::iota(tensor.as<float>().begin(), tensor.as<float>().end(), first);
  return tensor;
}
std::vector<float> values(const HostTensor& tensor) {
  const auto all = tensor.as<float>();
  return {all.begin(), all.end()};
}

class StateCaches : public ::testing::Test {
 protected:
  StateStore::Entry& create(const std::string& name, const HostTensor& start, Device& device,
                            bool is_cache, const std::string& mirror_of = "") {
    State state;
    state.name = name;
    state.start = start;
    if (!mirror_of.empty()) state.derived = Mirror{mirror_of};
    if (is_cache) state.derived = CachedRows{"table", cached_};
    return states_.create(state, {0, row_major(start.shape())}, device);
  }
  Device& host() { return *machine_.devices[0]; }
  Device& accelerator() { return *machine_.devices[1]; }
  /// What lies in the memory itself.
  static std::vector<float> held(const StateStore::Entry& entry) {
    HostTensor tensor(entry.type);
    entry.device->to_host(tensor.data(), entry.memory->address(), entry.type.bytes());
    return values(tensor);
  }
  static std::vector<float> row(const std::vector<float>& all, std::int64_t row) {
    const auto begin = all.begin() + row * columns;
    return {begin, begin + columns};
  }

  std::shared_ptr<const std::vector<std::int64_t>> cached_ =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{0, 3, 4, 8});
  Machine machine_{1};
  StateStore states_;
};

TEST_F(StateCaches, StartWithWhatTheTableHolds) {
  const StateStore::Entry& table = create("table", numbers(rows, 100), host(), false);
  const StateStore::Entry& cache =
      create("table/cached", HostTensor({DType::float32, {4, columns}}), accelerator(), true);
  EXPECT_THAT(states_.names(), ElementsAre("table"));
  const std::vector<float> all = held(table), own = held(cache);
  for (std::size_t k = 0; k < cached_->size(); ++k)
    EXPECT_EQ(row(own, static_cast<std::int64_t>(k)), row(all, (*cached_)[k]));
  EXPECT_EQ(values(states_.read("table")), all);
}

TEST_F(StateCaches, AreReadInPlaceOfTheTable) {
  create("table", numbers(rows, 100), host(), false);
  create("table/cached", HostTensor({DType::float32, {4, columns}}), accelerator(), true);
  states_.write("table/cached", numbers(4, -50));  // as a step does
  std::vector<float> wanted = values(numbers(rows, 100));
  const std::vector<float> hot = values(numbers(4, -50));
  for (std::size_t k = 0; k < cached_->size(); ++k) {
    std::copy_n(hot.begin() + static_cast<std::ptrdiff_t>(k) * columns, columns,
                wanted.begin() + (*cached_)[k] * columns);
  }
  EXPECT_EQ(values(states_.read("table")), wanted);
  for (std::int64_t first = 0; first < rows; ++first) {
    for (std::int64_t count = 0; first + count <= rows; ++count) {
      std::vector<float> part(static_cast<std::size_t>(count * columns));
      states_.read_rows("table", first, count, part.data());
      EXPECT_EQ(part, std::vector<float>(wanted.begin() + first * columns,
                                         wanted.begin() + (first + count) * columns));
    }
  }
}

TEST_F(StateCaches, GetWhatIsWrittenToTheTable) {
  create("table", numbers(rows, 100), host(), false);
  const StateStore::Entry& cache =
      create("table/cached", HostTensor({DType::float32, {4, columns}}), accelerator(), true);
  const HostTensor fresh = numbers(rows, 1);
  states_.write("table", fresh);
  EXPECT_EQ(row(held(cache), 1), row(values(fresh), 3));
  EXPECT_EQ(values(states_.read("table")), values(fresh));
  const std::vector<float> two{7, 7, 7, 9, 9, 9};  // rows 4 and 5
  states_.write_rows("table", 4, 2, two.data());
  EXPECT_EQ(row(held(cache), 2), (std::vector<float>{7, 7, 7}));
  EXPECT_EQ(row(held(cache), 1), row(values(fresh), 3)) << "another row";
  std::vector<float> wanted = values(fresh);
  std::copy(two.begin(), two.end(), wanted.begin() + 4 * columns);
  EXPECT_EQ(values(states_.read("table")), wanted);
}

TEST_F(StateCaches, ThatComeBeforeTheirTableGetItsStart) {
  const StateStore::Entry& cache =
      create("table/cached", HostTensor({DType::float32, {4, columns}}), accelerator(), true);
  create("table", numbers(rows, 100), host(), false);
  EXPECT_EQ(row(held(cache), 3), row(values(numbers(rows, 100)), 8));
}

TEST_F(StateCaches, HandOnToTheirOwnCopies) {
  create("table", numbers(rows, 100), host(), false);
  create("table/cached", HostTensor({DType::float32, {4, columns}}), accelerator(), true);
  const StateStore::Entry& copy =
      create("table/cached/weight", HostTensor({DType::float32, {4, columns}}), accelerator(),
             false, "table/cached");
  EXPECT_EQ(row(held(copy), 2), row(values(numbers(rows, 100)), 4));
  states_.write("table", numbers(rows, 5));
  EXPECT_EQ(row(held(copy), 2), row(values(numbers(rows, 5)), 4));
  EXPECT_THAT(states_.names(), ElementsAre("table"));
}

// States with one number a row, and marks of rows.
TEST_F(StateCaches, OfOtherShapes) {
  State state;
  state.name = "sum";
  state.start = HostTensor::from<float>({rows}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  states_.create(state, {0, row_major({rows})}, host());
  State cache;
  cache.name = "cached/sum";
  cache.derived = CachedRows{"sum", cached_};
  cache.start = HostTensor(TensorType{DType::float32, {4}});
  states_.create(cache, {0, row_major({4})}, accelerator());
  EXPECT_EQ(values(states_.read("cached/sum")), (std::vector<float>{0, 3, 4, 8}));
  states_.write("cached/sum", HostTensor::from<float>({4}, {10, 13, 14, 18}));
  EXPECT_EQ(values(states_.read("sum")), (std::vector<float>{10, 1, 2, 13, 14, 5, 6, 7, 18}));
}

}  // namespace
}  // namespace tandem::testing
