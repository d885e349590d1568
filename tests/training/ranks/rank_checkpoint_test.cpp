// Checkpoints that ranks write together have the bytes of one process, whichever states are
// sharded.
#include "engine/train/checkpoints/rank_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/formats/files.h"
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/graph/shard_conversion.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/harness/program_check.h"
#include "tests/harness/rank_threads.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OwnProgram;
using testing::RankThreads;
using testing::SmallEngine;

constexpr std::uint64_t step = 7;

struct Kept {
  std::string name;
  Shape shape;
  std::optional<ShardKind> kind;
  StateKind is = StateKind::optimizer;
};

// Large and small states; each rank keeps equally many rows or one less, some ranks none.
const std::vector<Kept> kept{
    {"table", {10'001, 16}, ShardKind::rows, StateKind::parameter},
    {"table/acc", {10'001}, ShardKind::rows},
    {"whole", {30'000}, {}, StateKind::parameter},
    {"short", {2, 3}, ShardKind::rows, StateKind::parameter},
    {"fc", {3, 4}, {}, StateKind::parameter},
    {"fc/exp_avg", {201, 256}, ShardKind::elements},
    {"fc/exp_avg_sq", {7, 3}, ShardKind::elements},
    {"one/exp_avg", {1}, ShardKind::elements},
    {"head", {201, 128}, ShardKind::column_blocks, StateKind::parameter},
    {"back", {203, 128}, ShardKind::row_blocks, StateKind::parameter},
    {"head/exp_avg", {5, 8}, ShardKind::column_blocks, StateKind::optimizer},
    {"back/exp_avg", {6, 3}, ShardKind::row_blocks, StateKind::optimizer},
    {"own", {300, 64}, ShardKind::table, StateKind::parameter},
    {"own/acc", {300}, ShardKind::table},
};

HostTensor numbers(const Shape& shape, float first) {
  HostTensor tensor(TensorType{DType::float32, shape});
  std::iota(tensor.as<float>().begin(), tensor.as<float>().end(), first);
  return tensor;
}

class RankCheckpoint : public ::testing::Test {
 protected:
  /// The states that a rank keeps, all of them with one rank. `zero`: as before the first step.
  static OwnProgram states(const SmallEngine& engine, int rank, int ranks, bool zero = false) {
    GraphBuilder g(engine.operators);
    float first = 1;
    for (const Kept& each : kept) {
      State state;
      state.name = each.name;
      state.kind = each.is;
      state.start =
          zero ? HostTensor(TensorType{DType::float32, each.shape}) : numbers(each.shape, first++);
      if (each.kind && ranks > 1) keep_part(state, *each.kind, rank, ranks, ranks - 1);
      g.output(each.name + ".negative", g.add_node("Neg", {g.state(std::move(state))}));
    }
    return testing::make_program(g.finish(), engine.operators, *engine.cpu);
  }

  /// Writes on that many ranks; returns what each has thrown.
  std::vector<std::string> write(int ranks, const std::string& folder) const {
    return RankThreads(ranks).run([&](RankGroup& group) {
      SmallEngine engine;
      engine.cpu->join(group.make_communicator());
      const OwnProgram own = states(engine, group.rank(), ranks);
      CheckpointSources sources = sources_of(own.states);
      sources.position = testing::position_at(step);
      RowExchange exchange(own.states, *engine.cpu, 3000);
      write_rank_checkpoint(folder, sources, options_, *group.rendezvous(), exchange);
    });
  }

  void write_alone(const std::string& folder, std::uint64_t at = step) const {
    SmallEngine engine;
    const OwnProgram own = states(engine, 0, 1);
    CheckpointSources sources = sources_of(own.states);
    sources.position = testing::position_at(at);
    write_checkpoint(folder, sources, options_);
  }

  const CheckpointOptions options_{60'000};
  testing::TemporaryFolder folder_;
};

TEST_F(RankCheckpoint, HasTheBytesOfOneProcess) {
  write_alone(folder_ / "1");
  const std::string expected = (folder_ / "1") + "/" + checkpoint_name(step);
  const std::vector<std::string> files = list_directory(expected);
  EXPECT_EQ(files.size(), 4u + 10u + 2u + 4u + 2u + 2u + 2u);  // rows of six states
  for (const int ranks : {2, 3, 4, 7}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const std::string folder = folder_ / std::to_string(ranks);
    EXPECT_THAT(write(ranks, folder), Each(IsEmpty()));
    const std::string found = folder + "/" + checkpoint_name(step);
    ASSERT_EQ(list_directory(found), files);
    for (const std::string& file : files)
      EXPECT_EQ(read_file(found + "/" + file), read_file(expected + "/" + file)) << file;
  }
}

TEST_F(RankCheckpoint, IsReadByAnyNumber) {
  EXPECT_THAT(write(3, folder_.path()), Each(IsEmpty()));
  const CheckpointContent content = read_checkpoint(folder_ / checkpoint_name(step));
  for (const int ranks : {1, 2, 3, 5}) {
    for (int rank = 0; rank < ranks; ++rank) {
      SmallEngine engine;
      OwnProgram read = states(engine, rank, ranks, true);
      const OwnProgram expected = states(engine, rank, ranks);
      restore_states(read.states, content);
      EXPECT_EQ(testing::difference(read.states, expected.states), "")
          << "rank " << rank << " of " << ranks;
    }
  }
}

// The second file of the table's rows is rank 1's; the others wait for none of its rows.
TEST_F(RankCheckpoint, OneRankThatCannotWriteEndsAll) {
  for (const std::string file : {"model.table1-00002", "optimizer.safetensors"}) {
    set_file_hook([&](std::string_view operation, std::string_view path) {
      if (operation == "sync" && path.find(file) != std::string_view::npos)
        throw Error(ErrorKind::runtime, Diagnostic{.message = "no room"});
    });
    const std::vector<std::string> errors = write(3, folder_.path());
    set_file_hook({});
    EXPECT_THAT(errors, Each(HasSubstr("no room")));
    EXPECT_THAT(list_directory(folder_.path()), IsEmpty());
  }
  EXPECT_THAT(write(3, folder_.path()), Each(IsEmpty()));
  EXPECT_THAT(list_directory(folder_.path()), ::testing::ElementsAre(checkpoint_name(step)));
}

// Only one rank checks each file, and all ranks learn the result.
TEST_F(RankCheckpoint, DamageIsFoundByWhoeverLooks) {
  write_alone(folder_.path());
  const std::string newer = folder_ / checkpoint_name(step + 1);
  write_alone(folder_.path(), step + 1);
  const auto newest = [&](int rank_that_tells) {
    std::vector<std::string> found(3), told(3);
    const std::vector<std::string> errors = RankThreads(3).run([&](RankGroup& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      std::vector<std::string> messages;
      std::string path;
      newest_checkpoint(folder_.path(), messages, &path, {}, *group.rendezvous());
      found[rank] = path;
      for (const std::string& message : messages) told[rank] += message;
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
    EXPECT_THAT(found, Each(found[0]));
    return found[0] + "\n" + told[static_cast<std::size_t>(rank_that_tells)];
  };
  EXPECT_EQ(newest(0), newer + "\n");
  for (const std::string& file : list_directory(newer)) {
    SCOPED_TRACE(file);
    const std::string whole = read_file(newer + "/" + file);
    std::string damaged = whole;
    damaged[damaged.size() - 3] ^= 1;
    replace_file(newer + "/" + file, damaged);
    EXPECT_THAT(newest(0), ::testing::AllOf(HasSubstr(checkpoint_name(step) + "\n"),
                                            HasSubstr("is broken and is not used")));
    replace_file(newer + "/" + file, whole);
  }
}

// A step whose evaluation was made up for is saved again; at no time is it without a checkpoint.
TEST_F(RankCheckpoint, OneThatIsThereIsReplacedAtOnce) {
  write_alone(folder_.path());
  const std::string manifest = (folder_ / checkpoint_name(step)) + "/manifest.json";
  const std::string before = read_file(manifest);
  bool is_exchanged = false, is_there = true;
  set_file_hook([&](std::string_view operation, std::string_view) {
    is_exchanged = is_exchanged || operation == "exchange";
    is_there = is_there && path_exists(manifest);
  });
  const std::vector<std::string> errors = write(2, folder_.path());
  set_file_hook({});
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_TRUE(is_exchanged);
  EXPECT_TRUE(is_there);
  EXPECT_EQ(read_file(manifest), before);
  EXPECT_EQ(list_directory(folder_.path()), (std::vector<std::string>{checkpoint_name(step)}));
}

}  // namespace
}  // namespace tandem
