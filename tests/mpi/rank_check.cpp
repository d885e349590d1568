// A program that mpirun starts as ranks: it joins them and does what its first argument says. Each
// rank prints its result as one line.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "engine/graph/error.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/mpi/join_ranks.h"
#include "tests/harness/rank_sums.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

struct Rank {
  RankGroup& group;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;

  explicit Rank(RankGroup& of) : group(of), device(make_cpu_device(1)) {
    device->join(group.make_communicator());
    stream = device->make_stream(StreamKind::collective);
  }
  Communicator& communicator() { return *device->communicator(); }
  void wait() { communicator().wait(*stream); }
  std::size_t number() const { return static_cast<std::size_t>(group.rank()); }
  std::size_t count() const { return static_cast<std::size_t>(group.ranks()); }
};

/// Pseudo-random numbers of many magnitudes, so that a sum in another order has other bits.
std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  std::vector<float> all(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (float& number : all) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const int exponent = static_cast<int>(state >> 60) - 8;
    number = std::ldexp(static_cast<float>(static_cast<std::int32_t>(state >> 20)), exponent - 20);
  }
  return all;
}

[[noreturn]] void wrong(const std::string& what) {
  throw Error(ErrorKind::runtime, Diagnostic{.message = "wrong result of " + what});
}

// Elements of a rank's part; the most that all ranks have together.
constexpr std::size_t sizes[] = {1, 7, 1000, 20000, 70001}, most_elements = 1 << 21;

/// Runs every operation at every size and compares with results computed here from all ranks'
/// inputs.
std::string operations(Rank& rank) {
  const std::size_t ranks = rank.count();
  std::uint64_t hash = 0;
  std::vector<std::size_t> all_sizes(std::begin(sizes), std::end(sizes));
  all_sizes.push_back(most_elements / ranks);
  for (const std::size_t n : all_sizes) {
    std::vector<std::vector<float>> inputs;
    for (std::size_t r = 0; r < ranks; ++r) inputs.push_back(numbers(n * ranks, r + 10 * n));
    const std::vector<float>& own = inputs[rank.number()];
    std::vector<float> sums(n * ranks), of_rank(ranks);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      for (std::size_t r = 0; r < ranks; ++r) of_rank[r] = inputs[r][i];
      sums[i] = testing::sum_of_ranks(of_rank);
    }
    const std::size_t part = n * rank.number();
    std::vector<float> got(n * ranks);

    rank.communicator().all_reduce(*rank.stream, "sum", {own.data(), got.data(), n * ranks},
                                   Reduction::sum);
    rank.wait();
    if (got != sums) wrong("all_reduce");
    for (const float number : got) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      hash = hash * 1099511628211ULL + bits;
    }
    std::vector<float> in_place = own;
    rank.communicator().reduce_scatter(
        *rank.stream, "part", {in_place.data(), in_place.data() + part, n}, Reduction::sum);
    rank.communicator().all_gather(*rank.stream, "parts",
                                   {in_place.data() + part, in_place.data(), n});
    rank.wait();
    if (in_place != sums) wrong("reduce_scatter and all_gather in place");

    // Two operands, one of which has incomplete parts.
    const std::size_t cut = n * ranks / 3, rest = n * ranks - cut;
    const PartSizes sizes[] = {{(cut + ranks - 1) / ranks, cut},
                               {(rest + ranks - 1) / ranks, rest}};
    std::vector<float> parts(sizes[0].part + sizes[1].part), wholes(n * ranks);
    const RankParts scattered[] = {{own.data(), parts.data(), sizes[0]},
                                   {own.data() + cut, parts.data() + sizes[0].part, sizes[1]}},
                    gathered[] = {{parts.data(), wholes.data(), sizes[0]},
                                  {parts.data() + sizes[0].part, wholes.data() + cut, sizes[1]}};
    rank.communicator().scatter_parts(*rank.stream, "two parts", DType::float32, scattered,
                                      Reduction::sum);
    rank.communicator().gather_parts(*rank.stream, "two wholes", DType::float32, gathered);
    rank.wait();
    if (wholes != sums) wrong("scatter_parts and gather_parts");

    rank.communicator().all_to_all(*rank.stream, "exchange", {own.data(), got.data(), n});
    rank.wait();
    for (std::size_t r = 0; r < ranks; ++r) {
      if (std::memcmp(got.data() + r * n, inputs[r].data() + part, n * sizeof(float)) != 0)
        wrong("all_to_all");
    }
    // Rank r has n / (1 + (r + p) % 3) rows of one element for rank p.
    std::vector<std::int32_t> sent, received;
    for (std::size_t r = 0; r < ranks; ++r) {
      sent.push_back(static_cast<std::int32_t>(n / (1 + (rank.number() + r) % 3)));
      received.push_back(sent.back());  // symmetric: received from rank r, too
    }
    rank.communicator().exchange_rows(*rank.stream, "rows", {own.data(), got.data(), 1},
                                      {sent.data(), received.data(), n * ranks, n * ranks});
    rank.wait();
    std::size_t at = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      std::size_t begin = 0;  // position in the rows that rank r sends
      for (std::size_t p = 0; p < rank.number(); ++p) begin += n / (1 + (r + p) % 3);
      const auto count = static_cast<std::size_t>(received[r]);
      if (std::memcmp(got.data() + at, inputs[r].data() + begin, count * sizeof(float)) != 0)
        wrong("exchange_rows");
      at += count;
    }
    for (std::size_t root = 0; root < ranks; ++root) {
      rank.communicator().broadcast(*rank.stream, "all", {own.data(), got.data(), n * ranks},
                                    static_cast<int>(root));
      rank.wait();
      if (got != inputs[root]) wrong("broadcast");
    }
  }
  return "bits " + std::to_string(hash);
}

/// More bytes than an int counts, moved in two messages.
std::string large(Rank& rank) {
  const std::size_t count = (std::size_t{1} << 31) + 5;
  std::vector<std::uint8_t> bytes(count);
  if (rank.group.rank() == 0) {
    for (std::size_t i = 0; i < count; i += 4096) bytes[i] = static_cast<std::uint8_t>(i >> 12);
    bytes.back() = 77;
  }
  rank.communicator().broadcast(*rank.stream, "large",
                                {bytes.data(), bytes.data(), count, DType::uint8}, 0);
  rank.wait();
  for (std::size_t i = 0; i < count; i += 4096) {
    if (bytes[i] != static_cast<std::uint8_t>(i >> 12)) wrong("broadcast");
  }
  return bytes.back() == 77 ? "all there" : "the end is missing";
}

/// Repeats a sum until something happens; `happens` is called on rank `whom` in round 20.
template <class F>
std::string until_something_happens(Rank& rank, int whom, const F& happens) {
  std::vector<float> gradient = numbers(100000, 1);
  for (int round = 0; round < 1000000; ++round) {
    if (round == 20 && rank.group.rank() == whom) {
      std::printf("at %lld\n", static_cast<long long>(time(nullptr)));
      std::fflush(stdout);
      happens();
    }
    rank.communicator().all_reduce(*rank.stream, "gradient",
                                   {gradient.data(), gradient.data(), gradient.size()},
                                   Reduction::maximum);
    rank.wait();
  }
  return "nothing has happened";
}

std::string speed(Rank& rank, std::size_t bytes) {
  std::vector<float> gradient(bytes / sizeof(float), 1);
  double best = 1e9, sum = 0;
  constexpr int rounds = 30;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    rank.communicator().all_reduce(*rank.stream, "gradient",
                                   {gradient.data(), gradient.data(), gradient.size()},
                                   Reduction::maximum);
    rank.wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (round > 2) best = std::min(best, seconds), sum += seconds;
  }
  char text[100];
  std::snprintf(text, sizeof text, "%zu bytes: best %.1f us, mean %.1f us, %.2f GB/s", bytes,
                best * 1e6, sum / (rounds - 3) * 1e6, static_cast<double>(bytes) / best / 1e9);
  return text;
}

std::string act(Rank& rank, const std::string& what, int number) {
  if (what == "operations") return operations(rank);
  if (what == "large") return large(rank);
  if (what == "speed") return speed(rank, static_cast<std::size_t>(number));
  if (what == "killed") {
    return until_something_happens(rank, number, [] { raise(SIGKILL); });
  }
  if (what == "stopped") {
    return until_something_happens(rank, number, [] { raise(SIGSTOP); });
  }
  if (what == "failing") {
    return until_something_happens(rank, number, [] {
      throw Error(ErrorKind::data, Diagnostic{.message = "row 17 has no label"});
    });
  }
  if (what == "sleeping") {  // the rank still sends signs of life
    return until_something_happens(rank, number,
                                   [] { std::this_thread::sleep_for(std::chrono::seconds(60)); });
  }
  if (what == "patient") {  // one rank pauses longer than silence may last
    if (rank.group.rank() == number) std::this_thread::sleep_for(std::chrono::seconds(12));
    return operations(rank);
  }
  return "rank " + std::to_string(rank.group.rank()) + " of " + std::to_string(rank.group.ranks()) +
         ", local " + std::to_string(rank.group.local_rank()) + " of " +
         std::to_string(rank.group.local_ranks()) + ", " +
         std::to_string(rank.group.core_sharers()) + " on its cores";
}

int run_check(int arguments, char** values) {
  const std::string what = arguments > 1 ? values[1] : "ranks";
  const int number = arguments > 2 ? std::atoi(values[2]) : 0;
  JoinOptions options;
  options.start_limit = std::chrono::seconds(20);
  if (arguments > 3) options.sizes.piece = static_cast<std::size_t>(std::atoi(values[3]));
  for (const CollectiveAlgorithm& algorithm : all_collective_algorithms()) {
    if (arguments > 4 && std::string(values[4]) == algorithm.name)
      options.sizes.all_reduce = algorithm.method;
  }
  if (what == "sleeping") options.operation_limit = std::chrono::seconds(3);
  std::shared_ptr<RankGroup> group;
  std::string said;
  int code = 0;
  try {
    group = join_ranks(options);
    if (what == "twice") {
      try {
        (void)join_ranks(options);
        wrong("a second group");
      } catch (const Error& error) {
        said = error.what();
      }
      group.reset();
      group = join_ranks(options);
    }
    Rank rank(*group);
    said += act(rank, what, number);
  } catch (const Error& error) {
    if (group) group->rendezvous()->fail(error.what());
    said = std::string("error: ") + error.what();
    code = static_cast<int>(error.kind());
  }
  std::printf("%s\n", said.c_str());
  std::fflush(stdout);
  return code;
}

}  // namespace
}  // namespace tandem

int main(int arguments, char** values) { return tandem::run_check(arguments, values); }
