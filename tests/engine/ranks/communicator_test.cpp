// Operations over ranks in one process: numbers of every type, in place, small and in pieces, on
// the cpu's and the emulated device's streams; ranks that fail or disagree. The expected numbers
// follow from the formula of the inputs.
#include "engine/ranks/communicator.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <tuple>

#include "engine/graph/dtype_dispatch.h"
#include "engine/graph/error.h"
#include "engine/graph/half.h"
#include "engine/operators/tables/rows.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/emulated/emulated_device.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t n = 103;  // nothing divides it
const DType all_types[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                           DType::int8,    DType::int16,   DType::int32,   DType::int64,
                           DType::uint8,   DType::uint16,  DType::uint32,  DType::uint64,
                           DType::boolean};
constexpr Reduction all_reductions[] = {Reduction::sum, Reduction::mean, Reduction::maximum,
                                        Reduction::minimum};

/// Element i of a rank: small, so that every type holds sums of it exactly.
double element(int rank, std::size_t i) { return rank + 1 + static_cast<double>(i % 7); }

double reduced(Reduction reduction, int ranks, std::size_t i) {
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

/// Booleans as the bytes that hold them.
DType stored_as(DType dtype) { return dtype == DType::boolean ? DType::uint8 : dtype; }

std::string bytes_of(DType dtype, const std::vector<double>& numbers) {
  std::string bytes(numbers.size() * size_of(dtype), 0);
  with_type(stored_as(dtype), [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const T number = static_cast<T>(numbers[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &number, sizeof(T));
    }
  });
  return bytes;
}

std::vector<double> numbers_in(DType dtype, const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / size_of(dtype));
  with_type(stored_as(dtype), [&](auto number) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
      numbers[i] = static_cast<double>(number);
    }
  });
  return numbers;
}

bool is_reducible(DType dtype, Reduction reduction) {
  if (reduction == Reduction::mean) return is_float(dtype);
  return reduction != Reduction::sum || dtype != DType::boolean;
}

/// A rank's device, with one of its streams for operations over all ranks.
struct RankDevice {
  RankDevice(RankGroup& group, const std::string& kind)
      : device(kind == "cpu" ? make_cpu_device(1) : make_emulated_device({})) {
    device->join(group.make_communicator());
    stream = device->make_stream(StreamKind::collective);
  }
  Communicator& communicator() { return *device->communicator(); }
  std::unique_ptr<Memory> put(const std::string& bytes) {
    auto memory = device->allocate(std::max<std::size_t>(bytes.size(), 1));
    device->to_device(memory->address(), bytes.data(), bytes.size());
    return memory;
  }
  std::string get(Memory& memory, std::size_t bytes) {
    std::string got(bytes, 0);
    device->to_host(got.data(), memory.address(), bytes);
    return got;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

/// Ranks; bytes that go in the time of a message, bytes of a piece, bytes of a message; device.
using Setup = std::tuple<int, MessageSizes, std::string>;

class Communicators : public ::testing::TestWithParam<Setup> {
 protected:
  static int ranks() { return std::get<0>(GetParam()); }
  void run(const std::function<void(RankDevice&, int rank)>& f) {
    RankThreadsOptions options;
    options.ranks = ranks();
    options.sizes = std::get<1>(GetParam());
    EXPECT_THAT(RankThreads(options).run([&](RankGroup& group) {
      RankDevice device(group, std::get<2>(GetParam()));
      EXPECT_EQ(device.communicator().rank(), group.rank());
      EXPECT_EQ(device.communicator().ranks(), ranks());
      f(device, group.rank());
      device.communicator().check();
    }),
                Each(""));
  }
  /// What an operation leaves in `to` (filled with ones before), `count` elements. In place: `to`
  /// begins `place` elements after `from`, in memory of `all` elements.
  template <class Enqueue>
  std::vector<double> result_of(RankDevice& device, DType dtype, const std::vector<double>& from,
                                std::size_t count, const Enqueue& enqueue) {
    const auto input = device.put(bytes_of(dtype, from));
    const auto output = device.put(bytes_of(dtype, std::vector<double>(count, 1)));
    enqueue(RankElements{input->address(), output->address(), n, dtype});
    device.communicator().wait(*device.stream);
    EXPECT_EQ(numbers_in(dtype, device.get(*input, from.size() * size_of(dtype))), from);
    return numbers_in(dtype, device.get(*output, count * size_of(dtype)));
  }
};

constexpr MessageSizes large{}, in_pieces{.latency = 0, .piece = 64, .message = 40},
    one_by_one{.latency = 0, .piece = 1, .message = 1 << 20};

INSTANTIATE_TEST_SUITE_P(, Communicators,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5),
                                            ::testing::Values(large, in_pieces, one_by_one),
                                            ::testing::Values("cpu", "emulated")),
                         [](const auto& of) {
                           const MessageSizes& sizes = std::get<1>(of.param);
                           return std::get<2>(of.param) + std::to_string(std::get<0>(of.param)) +
                                  (sizes.latency > 0  ? "small"
                                   : sizes.piece == 1 ? "single"
                                                      : "pieces");
                         });

std::vector<double> elements(int rank, std::size_t from, std::size_t count) {
  std::vector<double> numbers;
  for (std::size_t i = from; i < from + count; ++i) numbers.push_back(element(rank, i));
  return numbers;
}

std::vector<double> reduced(Reduction reduction, int ranks, std::size_t from, std::size_t count) {
  std::vector<double> numbers;
  for (std::size_t i = from; i < from + count; ++i) numbers.push_back(reduced(reduction, ranks, i));
  return numbers;
}

TEST_P(Communicators, AllReduce) {
  run([&](RankDevice& device, int rank) {
    for (const DType dtype : all_types) {
      for (const Reduction reduction : all_reductions) {
        const auto enqueue = [&](const RankElements& of) {
          device.communicator().all_reduce(*device.stream, "loss", of, reduction);
        };
        if (!is_reducible(dtype, reduction)) {
          EXPECT_THROW(enqueue({nullptr, nullptr, n, dtype}), Error) << name_of(dtype);
          continue;
        }
        EXPECT_EQ(result_of(device, dtype, elements(rank, 0, n), n, enqueue),
                  reduced(reduction, ranks(), 0, n))
            << name_of(dtype);
        const auto memory = device.put(bytes_of(dtype, elements(rank, 0, n)));
        enqueue({memory->address(), memory->address(), n, dtype});
        device.communicator().wait(*device.stream);
        EXPECT_EQ(numbers_in(dtype, device.get(*memory, n * size_of(dtype))),
                  reduced(reduction, ranks(), 0, n))
            << name_of(dtype) << " in place";
      }
    }
  });
}

TEST_P(Communicators, AllGather) {
  run([&](RankDevice& device, int rank) {
    for (const DType dtype : all_types) {
      std::vector<double> expected;
      for (int r = 0; r < ranks(); ++r) {
        for (const double number : elements(r, 0, n)) expected.push_back(number);
      }
      const auto enqueue = [&](const RankElements& of) {
        device.communicator().all_gather(*device.stream, "rows", of);
      };
      EXPECT_EQ(result_of(device, dtype, elements(rank, 0, n), expected.size(), enqueue), expected)
          << name_of(dtype);
      std::vector<double> own(expected.size(), 1);
      std::copy_n(elements(rank, 0, n).begin(), n,
                  own.begin() + static_cast<std::ptrdiff_t>(n) * rank);
      const auto memory = device.put(bytes_of(dtype, own));
      char* const to = static_cast<char*>(memory->address());
      enqueue({to + n * static_cast<std::size_t>(rank) * size_of(dtype), to, n, dtype});
      device.communicator().wait(*device.stream);
      EXPECT_EQ(numbers_in(dtype, device.get(*memory, own.size() * size_of(dtype))), expected)
          << name_of(dtype) << " in place";
    }
  });
}

TEST_P(Communicators, ReduceScatter) {
  run([&](RankDevice& device, int rank) {
    const std::size_t all = n * static_cast<std::size_t>(ranks()),
                      part = n * static_cast<std::size_t>(rank);
    for (const DType dtype : all_types) {
      for (const Reduction reduction : all_reductions) {
        const auto enqueue = [&](const RankElements& of) {
          device.communicator().reduce_scatter(*device.stream, "part", of, reduction);
        };
        if (!is_reducible(dtype, reduction)) {
          EXPECT_THROW(enqueue({nullptr, nullptr, n, dtype}), Error) << name_of(dtype);
          continue;
        }
        EXPECT_EQ(result_of(device, dtype, elements(rank, 0, all), n, enqueue),
                  reduced(reduction, ranks(), part, n))
            << name_of(dtype);
        const auto memory = device.put(bytes_of(dtype, elements(rank, 0, all)));
        char* const own = static_cast<char*>(memory->address()) + part * size_of(dtype);
        enqueue({memory->address(), own, n, dtype});
        device.communicator().wait(*device.stream);
        const std::vector<double> got =
            numbers_in(dtype, device.get(*memory, all * size_of(dtype)));
        EXPECT_EQ(std::vector<double>(got.begin() + static_cast<std::ptrdiff_t>(part),
                                      got.begin() + static_cast<std::ptrdiff_t>(part + n)),
                  reduced(reduction, ranks(), part, n))
            << name_of(dtype) << " in place";
      }
    }
  });
}

TEST_P(Communicators, AllToAll) {
  run([&](RankDevice& device, int rank) {
    const std::size_t all = n * static_cast<std::size_t>(ranks());
    for (const DType dtype : all_types) {
      std::vector<double> expected;
      for (int r = 0; r < ranks(); ++r) {
        for (const double number : elements(r, n * static_cast<std::size_t>(rank), n))
          expected.push_back(number);
      }
      EXPECT_EQ(result_of(device, dtype, elements(rank, 0, all), all,
                          [&](const RankElements& of) {
                            device.communicator().all_to_all(*device.stream, "ids", of);
                          }),
                expected)
          << name_of(dtype);
    }
  });
}

/// Rows that rank `from` has for rank `to`: none for some.
std::int32_t rows_for(int from, int to) { return (from * 3 + to * 5 + 1) % 4; }

// Rank r sends rank p the rows (element(r, 100 p + k), ...); three columns.
TEST_P(Communicators, ExchangeRows) {
  constexpr std::size_t columns = 3, room = 40;
  run([&](RankDevice& device, int rank) {
    const auto row = [&](int from, int to, int k, std::vector<double>& rows) {
      for (std::size_t c = 0; c < columns; ++c)
        rows.push_back(element(from, static_cast<std::size_t>(to + 2 * k) + c));
    };
    for (const DType dtype : all_types) {
      std::vector<double> from, expected;
      std::vector<std::int32_t> sent, received;
      for (int other = 0; other < ranks(); ++other) {
        sent.push_back(rows_for(rank, other));
        received.push_back(rows_for(other, rank));
        for (int k = 0; k < sent.back(); ++k) row(rank, other, k, from);
        for (int k = 0; k < received.back(); ++k) row(other, rank, k, expected);
      }
      const std::size_t all = from.size() / columns;
      // What follows is an id that names no row, or what was there before.
      const double before = 1;
      const double rest = dtype == DType::int32   ? -std::ldexp(1.0, 31)
                          : dtype == DType::int64 ? -std::ldexp(1.0, 63)
                                                  : before;
      expected.resize(room * columns, rest);
      const auto input = device.put(bytes_of(dtype, from));
      const auto output = device.put(bytes_of(dtype, std::vector<double>(room * columns, before)));
      const auto counts = [&](const std::vector<std::int32_t>& list) {
        return device.put({reinterpret_cast<const char*>(list.data()), list.size() * 4});
      };
      const auto out = counts(sent), in = counts(received);
      device.communicator().exchange_rows(
          *device.stream, "rows", {input->address(), output->address(), columns, dtype},
          {static_cast<const std::int32_t*>(out->address()),
           static_cast<const std::int32_t*>(in->address()), all, room});
      device.communicator().wait(*device.stream);
      EXPECT_EQ(numbers_in(dtype, device.get(*output, room * columns * size_of(dtype))), expected)
          << name_of(dtype);
    }
  });
}

TEST(Communicator, RowsWithoutRoomAreRefused) {
  const auto errors = RankThreads(2).run([](RankGroup& group) {
    RankDevice device(group, "cpu");
    const std::vector<float> from(8, 1);
    std::vector<float> to(8);
    const std::vector<std::int32_t> counts{2, 2};
    device.communicator().exchange_rows(*device.stream, "rows", {from.data(), to.data(), 2},
                                        {counts.data(), counts.data(), 4, 3});
    device.communicator().wait(*device.stream);
  });
  EXPECT_THAT(errors, Each(HasSubstr("rows to be received: 4, with room for 3")));
}

TEST(Communicator, AnExchangeOfNoRowsIsOne) {
  on_rank_threads(3, [](RankGroup& group) {
    RankDevice device(group, "cpu");
    std::vector<std::int64_t> to(4, 7);
    const std::vector<std::int32_t> none{0, 0, 0};
    device.communicator().exchange_rows(*device.stream, "rows",
                                        {to.data(), to.data(), 2, DType::int64},
                                        {none.data(), none.data(), 0, 2});
    device.communicator().wait(*device.stream);
    EXPECT_THAT(to, Each(absent_id<std::int64_t>));
  });
}

TEST_P(Communicators, Broadcast) {
  run([&](RankDevice& device, int rank) {
    for (const DType dtype : all_types) {
      for (int root = 0; root < ranks(); ++root) {
        const auto enqueue = [&](const RankElements& of) {
          device.communicator().broadcast(*device.stream, "statistics", of, root);
        };
        EXPECT_EQ(result_of(device, dtype, elements(rank, 0, n), n, enqueue), elements(root, 0, n))
            << name_of(dtype);
        const auto memory = device.put(bytes_of(dtype, elements(rank, 0, n)));
        enqueue({rank == root ? memory->address() : nullptr, memory->address(), n, dtype});
        device.communicator().wait(*device.stream);
        EXPECT_EQ(numbers_in(dtype, device.get(*memory, n * size_of(dtype))), elements(root, 0, n))
            << name_of(dtype) << " in place";
      }
      EXPECT_THROW(device.communicator().broadcast(*device.stream, "statistics", {}, ranks()),
                   Error);
    }
  });
}

TEST(Communicator, NothingIsDoneForNoElements) {
  on_rank_threads(2, [](RankGroup& group) {
    RankDevice device(group, "cpu");
    if (group.rank() == 0)  // the others need not come
      device.communicator().all_reduce(*device.stream, "none", {nullptr, nullptr, 0},
                                       Reduction::sum);
    device.communicator().wait(*device.stream);
  });
}

TEST(Communicator, HalvesAreRoundedOnceAndNotANumberStays) {
  on_rank_threads(3, [](RankGroup& group) {
    RankDevice device(group, "cpu");
    // Next to 2048 float16 has no room for 1: rounded each time the sum would stay 2048.
    const Float16 of_rank[] = {Float16(2048), Float16(1), Float16(1)};
    Float16 half = of_rank[group.rank()];
    device.communicator().all_reduce(*device.stream, "half", {&half, &half, 1, DType::float16},
                                     Reduction::sum);
    std::vector<float> extremes(3, 1);
    extremes[static_cast<std::size_t>(group.rank())] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> least = extremes;
    device.communicator().all_reduce(*device.stream, "most", {extremes.data(), extremes.data(), 3},
                                     Reduction::maximum);
    device.communicator().all_reduce(*device.stream, "least", {least.data(), least.data(), 3},
                                     Reduction::minimum);
    device.communicator().wait(*device.stream);
    EXPECT_EQ(static_cast<float>(half), 2050.0F);
    for (const float number : extremes) EXPECT_TRUE(std::isnan(number));
    for (const float number : least) EXPECT_TRUE(std::isnan(number));
  });
}

TEST(Communicator, TheComputeLaneWaitsForItAndNotTheOtherWayRound) {
  on_rank_threads(2, [](RankGroup& group) {
    const auto device = make_cpu_device(1);
    device->join(group.make_communicator());
    const auto compute = device->make_stream(),
               collective = device->make_stream(StreamKind::collective);
    const auto ready = device->make_event(), done = device->make_event();
    std::vector<double> numbers(4096, 1);
    for (std::uint64_t step = 1; step <= 200; ++step) {
      compute->record(*ready, step);
      collective->wait(*ready, step);
      device->communicator()->all_reduce(*collective, "numbers",
                                         {numbers.data(), numbers.data(), 4096, DType::float64},
                                         Reduction::mean);
      collective->record(*done, step);
      compute->wait(*done, step);
      for (double& number : numbers) number += group.rank();  // mean: a half more each step
    }
    device->communicator()->check();
    EXPECT_EQ(numbers[0], 1 + 199 * 0.5 + group.rank());
  });
}

TEST(Communicator, TwoDevicesOfARankAtATime) {
  on_rank_threads(2, [](RankGroup& group) {
    RankDevice cpu(group, "cpu"), emulated(group, "emulated");
    const auto host = cpu.put(bytes_of(DType::int32, elements(group.rank(), 0, n)));
    const auto other = emulated.put(bytes_of(DType::int64, elements(group.rank(), 0, n)));
    for (int i = 0; i < 50; ++i) {  // each rank in its own order
      RankDevice* const first = group.rank() == 0 ? &cpu : &emulated;
      for (RankDevice* device : {first, first == &cpu ? &emulated : &cpu}) {
        const bool is_cpu = device == &cpu;
        void* const at = (is_cpu ? host : other)->address();
        device->communicator().all_reduce(*device->stream, "sum",
                                          {at, at, n, is_cpu ? DType::int32 : DType::int64},
                                          Reduction::maximum);
      }
    }
    cpu.communicator().wait(*cpu.stream);
    emulated.communicator().wait(*emulated.stream);
    EXPECT_EQ(numbers_in(DType::int32, cpu.get(*host, 4 * n)),
              reduced(Reduction::maximum, 2, 0, n));
    EXPECT_EQ(numbers_in(DType::int64, emulated.get(*other, 8 * n)),
              reduced(Reduction::maximum, 2, 0, n));
  });
}

TEST(Communicator, CapturedOperationsRunAtEachLaunch) {
  on_rank_threads(2, [](RankGroup& group) {
    RankDevice device(group, "emulated");
    const auto memory = device.put(bytes_of(DType::int32, {1, 2, 3}));
    device.stream->begin_capture();
    device.communicator().all_reduce(*device.stream, "sum",
                                     {memory->address(), memory->address(), 3, DType::int32},
                                     Reduction::sum);
    const auto captured = device.stream->end_capture();
    for (int i = 0; i < 10; ++i) device.stream->launch(*captured);
    device.communicator().watch(*device.stream, "graph");
    device.communicator().wait(*device.stream);
    EXPECT_EQ(numbers_in(DType::int32, device.get(*memory, 12)),
              (std::vector<double>{1024, 2048, 3072}));
  });
}

TEST(Communicator, AFailureOfOneRankEndsAllOthersWithItsName) {
  for (const std::string kind : {"cpu", "emulated"}) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::string> thrown = RankThreads(4).run([&](RankGroup& group) {
      RankDevice device(group, kind);
      const auto memory = device.put(bytes_of(DType::float32, std::vector<double>(1 << 18, 1)));
      const RankElements elements{memory->address(), memory->address(), 1 << 18};
      for (int i = 0; i < 1000; ++i) {
        if (group.rank() == 2 && i == 3)
          throw Error(ErrorKind::data, Diagnostic{.message = "row 17 has no label"});
        device.communicator().all_reduce(*device.stream, "gradient", elements, Reduction::sum);
        device.communicator().wait(*device.stream);
      }
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    EXPECT_EQ(thrown[2], "row 17 has no label");
    for (const int rank : {0, 1, 3}) {
      EXPECT_THAT(
          thrown[static_cast<std::size_t>(rank)],
          AllOf(HasSubstr("rank " + std::to_string(rank) + " of 4: the run cannot continue"),
                HasSubstr("rank 2 has ended with an error: row 17 has no label")));
    }
  }
}

TEST(Communicator, DifferentOperationsAreNamedToAll) {
  const auto thrown = RankThreads(3).run([](RankGroup& group) {
    RankDevice device(group, "cpu");
    std::vector<float> numbers(30, 1);
    const RankElements elements{numbers.data(), numbers.data(), group.rank() == 1 ? 9U : 10U};
    device.communicator().all_reduce(*device.stream, "weight", elements, Reduction::sum);
    device.communicator().wait(*device.stream);
  });
  EXPECT_THAT(thrown, Each(AllOf(HasSubstr("different operations"),
                                 HasSubstr("rank 1 at all_reduce of 'weight' (9 float32, sum)"))));
}

TEST(Communicator, TakesTooLong) {
  RankThreadsOptions options;
  options.operation_limit = std::chrono::milliseconds(2000);
  const auto thrown = RankThreads(options).run([](RankGroup& group) {
    RankDevice device(group, "cpu");
    float number = 1;
    if (group.rank() == 1) {
      while (!group.rendezvous()->failure())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    device.communicator().all_reduce(*device.stream, "loss", {&number, &number, 1}, Reduction::sum);
    device.communicator().wait(*device.stream);
  });
  EXPECT_THAT(thrown[0],
              AllOf(HasSubstr("rank 0 of 2: all_reduce of 'loss' (1 float32, sum) failed"),
                    HasSubstr("was not done within 2 s")));
}

TEST(Communicator, AnAbortEndsWhatIsUnderWay) {
  const auto thrown = RankThreads(2).run([](RankGroup& group) {
    RankDevice device(group, "cpu");
    float number = 1;
    if (group.rank() == 1) return;
    device.communicator().all_reduce(*device.stream, "loss", {&number, &number, 1}, Reduction::sum);
    device.communicator().abort("the user wants it");
    device.stream->synchronize();
    device.communicator().check();
  });
  EXPECT_THAT(thrown[0], HasSubstr("rank 0 of 2: the communicator was aborted: the user wants it"));
}

TEST(RankThreadsHarness, ExchangesAndRanksThatDoNotCome) {
  RankThreadsOptions options;
  options.ranks = 3;
  options.exchange_limit = std::chrono::milliseconds(300);
  const auto thrown = RankThreads(options).run([](RankGroup& group) {
    const std::string own(1, static_cast<char>('a' + group.rank()));
    EXPECT_THAT(group.rendezvous()->exchange("one", own), ::testing::ElementsAre("a", "b", "c"));
    if (group.rank() != 1) group.rendezvous()->exchange("two", own);
  });
  EXPECT_EQ(thrown[1], "");
  EXPECT_THAT(thrown[0], HasSubstr("rank 1 has not come to 'two'"));
  EXPECT_THAT(thrown[2], HasSubstr("rank 1 has not come to 'two'"));
}

}  // namespace
}  // namespace tandem::testing
