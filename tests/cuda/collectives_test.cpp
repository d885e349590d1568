// Collective operations over NCCL with ranks as threads: numbers, types, in place, captured. The
// expected numbers follow from the formula of the inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/cuda/support/thread_ranks.h"
#include "tests/cuda/support/typed_numbers.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t collective_elements = 33;
const DType collective_types[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                                  DType::int8,    DType::int16,   DType::int32,   DType::int64,
                                  DType::uint8,   DType::uint16,  DType::uint32,  DType::uint64,
                                  DType::boolean};

/// Element i of a rank: small, so that every type holds sums of it exactly.
double element(int rank, std::size_t i) { return rank + 1 + static_cast<double>(i % 7); }

std::vector<double> elements(int rank, std::size_t from, std::size_t count) {
  std::vector<double> numbers;
  for (std::size_t i = from; i < from + count; ++i) numbers.push_back(element(rank, i));
  return numbers;
}

/// The reduction over ranks 0…ranks-1, whose numbers are rank + 1 + i % 7.
double reduced_element(Reduction reduction, int ranks, std::size_t i) {
  const double same = static_cast<double>(i % 7);
  switch (reduction) {
    case Reduction::sum:
      return ranks * (ranks + 1) / 2.0 + ranks * same;
    case Reduction::mean:
      return (ranks + 1) / 2.0 + same;
    case Reduction::maximum:
      return ranks + same;
    case Reduction::minimum:
      return 1 + same;
  }
  return 0;
}

std::vector<double> reduced_elements(Reduction reduction, int ranks, std::size_t from,
                                     std::size_t count) {
  std::vector<double> numbers;
  for (std::size_t i = from; i < from + count; ++i)
    numbers.push_back(reduced_element(reduction, ranks, i));
  return numbers;
}

bool is_reducible(DType dtype, Reduction reduction) {
  if (dtype == DType::int16 || dtype == DType::uint16) return false;
  if (reduction == Reduction::mean) return is_float(dtype);
  return reduction != Reduction::sum || dtype != DType::boolean;
}

constexpr Reduction all_reductions[] = {Reduction::sum, Reduction::mean, Reduction::maximum,
                                        Reduction::minimum};

/// Parameters: ranks, whether streams delay their work, polls that NCCL needs after each call.
class Collectives : public ::testing::TestWithParam<std::tuple<int, bool, int>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  void run(const std::function<void(ThreadRank&, Communicator&)>& f) {
    FakeNccl nccl;
    nccl.set_polls(std::get<2>(GetParam()));
    ThreadRanksOptions options;
    options.ranks = ranks();
    options.late = std::get<1>(GetParam());
    const std::vector<std::string> thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
      const auto communicator = rank.communicator();
      EXPECT_EQ(communicator->rank(), rank.rank);
      EXPECT_EQ(communicator->ranks(), ranks());
      f(rank, *communicator);
      communicator->check();
    });
    EXPECT_THAT(thrown, Each(""));
    EXPECT_THAT(nccl.problems(), IsEmpty());
    EXPECT_EQ(nccl.aborted(), 0);
  }
};

INSTANTIATE_TEST_SUITE_P(, Collectives,
                         ::testing::Combine(::testing::Values(1, 2, 4), ::testing::Bool(),
                                            ::testing::Values(0, 3)));

/// The first `count` elements that an operation leaves in `to`, which is filled with ones before.
template <class Enqueue>
std::vector<double> result_of(ThreadRank& rank, Communicator& communicator, DType dtype,
                              const std::vector<double>& from, std::size_t count,
                              const Enqueue& enqueue) {
  const auto input = rank.put(bytes_of(dtype, from));
  const auto output = rank.put(bytes_of(dtype, std::vector<double>(count, 1)));
  enqueue(RankElements{input->address(), output->address(), collective_elements, dtype});
  communicator.wait(*rank.stream);
  return numbers_in(dtype, rank.get(*output));
}

TEST_P(Collectives, AllReduce) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    for (const DType dtype : collective_types) {
      for (const Reduction reduction : all_reductions) {
        if (!is_reducible(dtype, reduction)) continue;
        const std::vector<double> got =
            result_of(rank, communicator, dtype, elements(rank.rank, 0, collective_elements),
                      collective_elements, [&](const RankElements& of) {
                        communicator.all_reduce(*rank.stream, "loss", of, reduction);
                      });
        EXPECT_EQ(got, reduced_elements(reduction, ranks(), 0, collective_elements))
            << name_of(dtype);
      }
    }
  });
}

TEST_P(Collectives, AllGather) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    for (const DType dtype : collective_types) {
      std::vector<double> expected;
      for (int r = 0; r < ranks(); ++r) {
        for (const double number : elements(r, 0, collective_elements)) expected.push_back(number);
      }
      const std::vector<double> got = result_of(
          rank, communicator, dtype, elements(rank.rank, 0, collective_elements),
          collective_elements * ranks(),
          [&](const RankElements& of) { communicator.all_gather(*rank.stream, "rows", of); });
      EXPECT_EQ(got, expected) << name_of(dtype);
    }
  });
}

TEST_P(Collectives, ReduceScatter) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    for (const DType dtype : collective_types) {
      for (const Reduction reduction : all_reductions) {
        if (!is_reducible(dtype, reduction)) continue;
        const std::vector<double> got = result_of(
            rank, communicator, dtype, elements(rank.rank, 0, collective_elements * ranks()),
            collective_elements, [&](const RankElements& of) {
              communicator.reduce_scatter(*rank.stream, "dw", of, reduction);
            });
        EXPECT_EQ(got, reduced_elements(reduction, ranks(), collective_elements * rank.rank,
                                        collective_elements))
            << name_of(dtype);
      }
    }
  });
}

// Full and incomplete parts, all in one group; twice, the second time captured.
TEST_P(Collectives, SeveralPartsTravelTogether) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    const DType dtype = DType::float32;
    const auto all = static_cast<std::size_t>(ranks());
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<RankParts> scattered, gathered;
    const auto put = [&](const std::vector<double>& numbers) {
      return memory.emplace_back(rank.put(bytes_of(dtype, numbers)))->address();
    };
    for (const std::size_t whole : {collective_elements * all, collective_elements, std::size_t{1},
                                    2 * collective_elements}) {
      const PartSizes sizes{(whole + all - 1) / all, whole};
      void* const part = put(std::vector<double>(sizes.part, 1));
      scattered.push_back({put(elements(rank.rank, 0, whole)), part, sizes});
      gathered.push_back({part, put(std::vector<double>(whole, 1)), sizes});
    }
    const auto enqueue = [&] {
      communicator.scatter_parts(*rank.stream, "gradients", dtype, scattered, Reduction::sum);
      communicator.gather_parts(*rank.stream, "weights", dtype, gathered);
    };
    const auto check = [&] {
      communicator.wait(*rank.stream);
      for (std::size_t k = 0; k < gathered.size(); ++k) {
        const PartSizes& sizes = gathered[k].sizes;
        EXPECT_EQ(numbers_in(dtype, rank.get(*memory[3 * k + 2])),
                  reduced_elements(Reduction::sum, ranks(), 0, sizes.whole));
        const std::vector<double> part = numbers_in(dtype, rank.get(*memory[3 * k]));
        for (std::size_t i = sizes.filled(rank.rank); i < sizes.part; ++i)
          EXPECT_EQ(part[i], 0) << "behind the whole";
      }
    };
    enqueue();
    check();
    rank.stream->begin_capture();
    enqueue();
    const std::unique_ptr<Captured> captured = rank.stream->end_capture();
    rank.stream->launch(*captured);
    communicator.watch(*rank.stream, "step");
    check();
  });
}

/// What rank `from` sends to rank `to`: from 0 to 43.
double sent(int from, int to, std::size_t i) {
  return 10 * from + to + static_cast<double>(i % 11);
}

TEST_P(Collectives, AllToAll) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    for (const DType dtype : collective_types) {
      std::vector<double> given, expected;
      for (int other = 0; other < ranks(); ++other) {
        for (std::size_t i = 0; i < collective_elements; ++i) {
          given.push_back(sent(rank.rank, other, i));
          expected.push_back(sent(other, rank.rank, i));
        }
      }
      const std::vector<double> got = result_of(
          rank, communicator, dtype, given, collective_elements * ranks(),
          [&](const RankElements& of) { communicator.all_to_all(*rank.stream, "ids", of); });
      EXPECT_EQ(got, expected) << name_of(dtype);
    }
  });
}

TEST_P(Collectives, Broadcast) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    for (int root = 0; root < ranks(); ++root) {
      for (const DType dtype : collective_types) {
        const std::vector<double> got =
            result_of(rank, communicator, dtype, elements(rank.rank, 0, collective_elements),
                      collective_elements, [&](RankElements of) {
                        if (rank.rank != root) of.from = nullptr;
                        communicator.broadcast(*rank.stream, "weights", of, root);
                      });
        EXPECT_EQ(got, elements(root, 0, collective_elements)) << name_of(dtype);
      }
    }
  });
}

TEST_P(Collectives, InPlaceAndOneAfterTheOther) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    const DType dtype = DType::float32;
    const std::size_t part = collective_elements * sizeof(float);
    const auto whole =
        rank.put(bytes_of(dtype, elements(rank.rank, 0, collective_elements * ranks())));
    char* const own = static_cast<char*>(whole->address()) + part * rank.rank;
    // Reduces in parts, gathers the parts, then reduces everything again: ranks times the sum.
    communicator.reduce_scatter(
        *rank.stream, "first", {whole->address(), own, collective_elements, dtype}, Reduction::sum);
    communicator.all_gather(*rank.stream, "second",
                            {own, whole->address(), collective_elements, dtype});
    communicator.all_reduce(
        *rank.stream, "third",
        {whole->address(), whole->address(), collective_elements * ranks(), dtype}, Reduction::sum);
    communicator.broadcast(
        *rank.stream, "fourth",
        {whole->address(), whole->address(), collective_elements * ranks(), dtype}, ranks() - 1);
    communicator.all_reduce(*rank.stream, "nothing", {nullptr, nullptr, 0, dtype}, Reduction::sum);
    communicator.wait(*rank.stream);
    std::vector<double> expected =
        reduced_elements(Reduction::sum, ranks(), 0, collective_elements * ranks());
    for (double& number : expected) number *= ranks();
    EXPECT_EQ(numbers_in(dtype, rank.get(*whole)), expected);
  });
}

// Far more than are watched at once, with no check in between.
TEST_P(Collectives, ManyAreEnqueuedAhead) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    const auto sum = rank.put(bytes_of(DType::int64, {1}));
    if (rank.rank > 0) rank.rendezvous->exchange("rank 0 has enqueued all", "");
    for (int i = 0; i < 100; ++i) {
      communicator.all_reduce(*rank.stream, "sum",
                              {sum->address(), sum->address(), 1, DType::int64},
                              i < 20 ? Reduction::sum : Reduction::maximum);
    }
    if (rank.rank == 0) rank.rendezvous->exchange("rank 0 has enqueued all", "");
    communicator.wait(*rank.stream);
    double expected = 1;
    for (int i = 0; i < 20; ++i) expected *= ranks();
    EXPECT_EQ(numbers_in(DType::int64, rank.get(*sum)), std::vector<double>{expected});
  });
}

TEST_P(Collectives, CapturedAndReplayed) {
  run([&](ThreadRank& rank, Communicator& communicator) {
    const DType dtype = DType::float32;
    const auto x = rank.put(bytes_of(dtype, elements(rank.rank, 0, collective_elements)));
    const auto y = rank.put(bytes_of(dtype, std::vector<double>(collective_elements * ranks(), 0)));
    const auto z = rank.put(bytes_of(dtype, std::vector<double>(collective_elements, 0)));
    const auto before = rank.put(bytes_of(dtype, std::vector<double>(collective_elements, 0)));
    communicator.all_reduce(*rank.stream, "is under way when the capture begins",
                            {before->address(), before->address(), collective_elements, dtype},
                            Reduction::sum);
    rank.stream->begin_capture();
    communicator.all_gather(*rank.stream, "gather",
                            {x->address(), y->address(), collective_elements, dtype});
    communicator.all_reduce(*rank.stream, "sum",
                            {x->address(), z->address(), collective_elements, dtype},
                            Reduction::sum);
    communicator.all_to_all(
        *rank.stream, "turn",
        {y->address(), y->address(), 0, dtype});  // no elements; allowed in a capture
    const std::unique_ptr<Captured> captured = rank.stream->end_capture();
    EXPECT_EQ(numbers_in(dtype, rank.get(*z)),
              std::vector<double>(collective_elements, 0));  // nothing has run
    for (int step = 1; step <= 3; ++step) {
      std::vector<double> numbers = elements(rank.rank, 0, collective_elements);
      for (double& number : numbers) number *= step;
      const std::string bytes = bytes_of(dtype, numbers);
      rank.device->to_device(x->address(), bytes.data(), bytes.size());
      rank.stream->launch(*captured);
      communicator.watch(*rank.stream, "step");
      // A reduction between launches that is not captured.
      communicator.all_reduce(*rank.stream, "again",
                              {z->address(), z->address(), collective_elements, dtype},
                              Reduction::minimum);
      communicator.wait(*rank.stream);
      std::vector<double> expected =
          reduced_elements(Reduction::sum, ranks(), 0, collective_elements);
      for (double& number : expected) number *= step;
      EXPECT_EQ(numbers_in(dtype, rank.get(*z)), expected) << "step " << step;
      std::vector<double> gathered;
      for (int r = 0; r < ranks(); ++r) {
        for (const double number : elements(r, 0, collective_elements))
          gathered.push_back(step * number);
      }
      EXPECT_EQ(numbers_in(dtype, rank.get(*y)), gathered) << "step " << step;
    }
  });
}

template <class F>
std::string usage_error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(CollectivesRefuse, WhatNcclLacks) {
  FakeNccl nccl;
  ThreadRanksOptions options;
  options.ranks = 1;
  const auto thrown = on_ranks(options, nccl, [&](ThreadRank& rank) {
    const auto communicator = rank.communicator();
    const auto x = rank.put(std::string(64, 0));
    const auto text = [&](DType dtype, Reduction reduction) {
      return usage_error_of([&] {
        communicator->all_reduce(*rank.stream, "x", {x->address(), x->address(), 1, dtype},
                                 reduction);
      });
    };
    for (const DType dtype : collective_types) {
      for (const Reduction reduction : all_reductions)
        EXPECT_EQ(text(dtype, reduction).empty(), is_reducible(dtype, reduction))
            << name_of(dtype) << " " << static_cast<int>(reduction);
    }
    EXPECT_EQ(text(DType::int32, Reduction::mean),
              "cuda:0: rank 0 of 1: all_reduce of 'x': NCCL has no mean of int32 (cast to float32 "
              "or int32 before it)");
    const RankElements of{x->address(), x->address(), 1, DType::float32};
    EXPECT_THAT(usage_error_of([&] { communicator->broadcast(*rank.stream, "x", of, 1); }),
                HasSubstr("broadcast of 'x': there is no rank 1"));
    EXPECT_THAT(usage_error_of([&] { communicator->exchange_rows(*rank.stream, "x", of, {}); }),
                HasSubstr("exchange_rows of 'x': NCCL has no exchange whose counts"));
    rank.stream->begin_capture();
    EXPECT_THAT(usage_error_of([&] { communicator->wait(*rank.stream); }),
                HasSubstr("the stream captures"));
    EXPECT_THAT(usage_error_of([&] { communicator->watch(*rank.stream, "x"); }),
                HasSubstr("after each launch"));
    (void)rank.stream->end_capture();
  });
  EXPECT_THAT(thrown, Each(""));
}

TEST(CollectivesRefuse, StreamsOfOtherGpus) {
  FakeNccl nccl;
  FakeRuntimeOptions two;
  two.gpus = 2;
  const auto runtime = std::make_shared<FakeRuntime>(two);
  const auto libraries = nccl_alone(nccl.table());
  nccl.on_this_thread(runtime);
  CudaOptions options;
  options.name = "cuda:1";
  options.ordinal = 1;
  const auto other = cuda::make_device(options, runtime, libraries);
  const auto stream = other->make_stream();
  {
    const auto communicator = cuda::make_nccl_communicator(
        {}, std::shared_ptr<Rendezvous>(make_rendezvous({})), runtime, libraries);
    EXPECT_THAT(usage_error_of([&] {
                  communicator->all_reduce(*stream, "x", {nullptr, nullptr, 1, DType::float32},
                                           Reduction::sum);
                }),
                AllOf(HasSubstr("all_reduce of 'x'"), HasSubstr("not one of cuda:0")));
  }
  EXPECT_EQ(nccl.live_communicators(), 0);
}

}  // namespace
}  // namespace tandem::testing
