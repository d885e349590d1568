// Several operands that ranks gather or scatter at once: parts that are not full, long and short
// ones, in pieces, in place, on the cpu's and the emulated device's streams.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <tuple>

#include "engine/ranks/communicator.h"
#include "engine/ranks/part_segments.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/emulated/emulated_device.h"
#include "tests/harness/rank_sums.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// Elements of all ranks' parts together; some have none for the last ranks.
const std::vector<std::size_t> wholes{103, 1, 7, 5000, 2, 64, 8192, 31, 5, 12};

float number(std::size_t operand, int rank, std::size_t i) {
  return std::sin(static_cast<float>(operand * 31 + static_cast<std::size_t>(rank) * 7 + i + 1));
}

/// Float operands of one rank in memory of its device.
class Operands {
 public:
  Operands(RankGroup& group, const std::string& kind)
      : rank(group.rank()),
        ranks(group.ranks()),
        device_(kind == "cpu" ? make_cpu_device(1) : make_emulated_device({})) {
    device_->join(group.make_communicator());
    stream_ = device_->make_stream(StreamKind::collective);
    const auto n = static_cast<std::size_t>(ranks);
    for (const std::size_t whole : wholes) sizes.push_back({(whole + n - 1) / n, whole});
  }

  Communicator& communicator() { return *device_->communicator(); }
  Stream& stream() { return *stream_; }
  float* put(const std::vector<float>& numbers) {
    memory_.push_back(device_->allocate(std::max<std::size_t>(numbers.size(), 1) * sizeof(float)));
    device_->to_device(memory_.back()->address(), numbers.data(), numbers.size() * sizeof(float));
    return static_cast<float*>(memory_.back()->address());
  }
  std::vector<float> get(const float* from, std::size_t count) {
    std::vector<float> numbers(count);
    device_->to_host(numbers.data(), from, count * sizeof(float));
    return numbers;
  }
  std::vector<float> whole(std::size_t k, int of) const {
    std::vector<float> numbers;
    for (std::size_t i = 0; i < wholes[k]; ++i) numbers.push_back(number(k, of, i));
    return numbers;
  }
  std::size_t first(std::size_t k) const {
    return std::min(wholes[k], static_cast<std::size_t>(rank) * sizes[k].part);
  }

  const int rank, ranks;
  std::vector<PartSizes> sizes;

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

/// Ranks; pieces, messages and what is packed; the device.
using Setup = std::tuple<int, MessageSizes, std::string>;

class MessageParts : public ::testing::TestWithParam<Setup> {
 protected:
  static void run(const std::function<void(Operands&)>& f) {
    RankThreadsOptions options;
    options.ranks = std::get<0>(GetParam());
    options.sizes = std::get<1>(GetParam());
    EXPECT_THAT(RankThreads(options).run([&](RankGroup& group) {
      Operands operands(group, std::get<2>(GetParam()));
      f(operands);
      operands.communicator().check();
    }),
                Each(""));
  }
};

constexpr MessageSizes undivided{}, none_packed{.piece = 64, .message = 40, .packed = 0},
    some_packed{.piece = 100, .message = 40, .packed = 48},
    single_elements{.piece = 1, .message = 1 << 20, .packed = 1 << 20};

INSTANTIATE_TEST_SUITE_P(, MessageParts,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 6, 7, 8),
                                            ::testing::Values(undivided, none_packed, some_packed,
                                                              single_elements),
                                            ::testing::Values("cpu", "emulated")),
                         [](const auto& of) {
                           const MessageSizes& sizes = std::get<1>(of.param);
                           return std::get<2>(of.param) + std::to_string(std::get<0>(of.param)) +
                                  "piece" + std::to_string(sizes.piece) + "packed" +
                                  std::to_string(sizes.packed);
                         });

TEST_P(MessageParts, GatheredWholes) {
  run([](Operands& of) {
    for (const bool in_place : {false, true}) {
      std::vector<RankParts> parts;
      for (std::size_t k = 0; k < wholes.size(); ++k) {
        const std::vector<float> all = of.whole(k, 0);
        const std::size_t first = of.first(k), filled = of.sizes[k].filled(of.rank);
        std::vector<float> before(wholes[k], 9), own(of.sizes[k].part, 5);
        for (std::size_t i = 0; i < filled; ++i) own[i] = before[first + i] = all[first + i];
        float* const to = of.put(in_place ? before : std::vector<float>(wholes[k], 9));
        parts.push_back({in_place ? to + first : of.put(own), to, of.sizes[k]});
      }
      of.communicator().gather_parts(of.stream(), "weights", DType::float32, parts);
      of.communicator().wait(of.stream());
      for (std::size_t k = 0; k < wholes.size(); ++k)
        EXPECT_EQ(of.get(static_cast<const float*>(parts[k].to), wholes[k]), of.whole(k, 0)) << k;
    }
  });
}

// Sums in the order that depends only on the number of ranks, and zeros after them, exact to the
// bit.
TEST_P(MessageParts, ScatteredSums) {
  run([](Operands& of) {
    std::vector<RankParts> parts;
    for (std::size_t k = 0; k < wholes.size(); ++k)
      parts.push_back({of.put(of.whole(k, of.rank)),
                       of.put(std::vector<float>(of.sizes[k].part, 7)), of.sizes[k]});
    for (int step = 0; step < 3; ++step)
      of.communicator().scatter_parts(of.stream(), "gradients", DType::float32, parts,
                                      Reduction::sum);
    of.communicator().wait(of.stream());
    for (std::size_t k = 0; k < wholes.size(); ++k) {
      std::vector<float> expected(of.sizes[k].part, 0);
      for (std::size_t i = 0; i < of.sizes[k].filled(of.rank); ++i) {
        std::vector<float> of_rank;
        for (int rank = 0; rank < of.ranks; ++rank)
          of_rank.push_back(number(k, rank, of.first(k) + i));
        expected[i] = sum_of_ranks(of_rank);
      }
      EXPECT_EQ(of.get(static_cast<const float*>(parts[k].to), expected.size()), expected) << k;
      EXPECT_EQ(of.get(static_cast<const float*>(parts[k].from), wholes[k]), of.whole(k, of.rank));
    }
  });
}

// As many elements in all, cut in another way.
TEST(MessagePartsOfRanks, OtherSizesAreNamed) {
  const auto errors = RankThreads(2).run([](RankGroup& group) {
    const auto device = make_cpu_device(1);
    device->join(group.make_communicator());
    const auto stream = device->make_stream(StreamKind::collective);
    std::vector<float> from(8), to(16);
    const std::size_t first = group.rank() == 0 ? 3 : 5;
    const std::vector<RankParts> parts{
        {from.data(), to.data(), {first, 2 * first}},
        {from.data() + first, to.data() + 2 * first, {8 - first, 16 - 2 * first}}};
    device->communicator()->gather_parts(*stream, "weights", DType::float32, parts);
    device->communicator()->wait(*stream);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("ranks run different operations"),
                                 HasSubstr("all_gather of 'weights' (8 float32)"))));
}

TEST(PartSegments, LongOnesTravelAloneAndShortNeighboursTogether) {
  const std::vector<PartSizes> parts{{2, 8}, {0, 0}, {3, 10}, {10, 40}, {1, 4}, {12, 48}, {2, 5}};
  std::vector<PartSegment> segments;
  PartSegment next;
  take_segments(parts, 1000, next, segments);
  std::vector<std::vector<std::size_t>> messages;
  for_each_message(segments, 10, [&](std::span<const PartSegment> of) {
    std::vector<std::size_t>& message = messages.emplace_back();
    for (const PartSegment& segment : of) message.push_back(segment.operand);
  });
  EXPECT_THAT(messages,
              ::testing::ElementsAre(std::vector<std::size_t>{0, 2}, std::vector<std::size_t>{3},
                                     std::vector<std::size_t>{4}, std::vector<std::size_t>{5},
                                     std::vector<std::size_t>{6}));
  // The last of four ranks has 1 of 3 in the operand of 10, and none of 2 in the one of 5.
  EXPECT_EQ(filled(segments, parts, 3), 2u + 1u + 10u + 1u + 12u);
  EXPECT_EQ(filled(segments, parts, 2), 2u + 3u + 10u + 1u + 12u + 1u);
}

TEST(PartSegments, PiecesFollowEachOther) {
  const std::vector<PartSizes> parts{{5, 20}, {0, 0}, {7, 28}};
  std::vector<PartSegment> segments;
  PartSegment next;
  std::vector<std::vector<std::size_t>> pieces;
  for (int k = 0; k < 3; ++k) {
    take_segments(parts, 4, next, segments);
    std::vector<std::size_t>& piece = pieces.emplace_back();
    for (const PartSegment& s : segments) piece.insert(piece.end(), {s.operand, s.begin, s.count});
  }
  EXPECT_THAT(pieces, ::testing::ElementsAre(std::vector<std::size_t>{0, 0, 4},
                                             std::vector<std::size_t>{0, 4, 1, 2, 0, 3},
                                             std::vector<std::size_t>{2, 3, 4}));
  take_segments(parts, 4, next, segments);
  EXPECT_TRUE(segments.empty());
}

}  // namespace
}  // namespace tandem::testing
