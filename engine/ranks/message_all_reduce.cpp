// The messages of an all-reduce, of which few ranks exchange all at the same time, and many in
// pairs (Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations
// in MPICH"). However they are exchanged, the order of an element's sum is that of
// `reduce_elements`.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "engine/ranks/message_operations.h"
#include "engine/ranks/reduce_elements.h"

namespace tandem {
namespace {

/// Ranks that have a partner at every distance of a power of two below it.
int paired_ranks(int ranks) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
}

}  // namespace

void MessageOperations::all_reduce(const MessageTask& task, const char* from, char* to) {
  // Partial sums of 16-bit floats would be rounded on the way.
  const bool is_wide = !is_float(task.dtype) || size_of(task.dtype) >= sizeof(float);
  if (ranks_ == 1 || !is_wide) return reduce_directly(task, from, to);
  const CollectiveWork work{CollectiveKind::all_reduce, static_cast<double>(ranks_),
                            static_cast<double>(task.count * size_of(task.dtype))};
  const auto cheapest = [&] {
    const auto latency = static_cast<double>(sizes_.latency);
    return choose_collective(CollectiveLibrary::messages, work, latency).algorithm->method;
  };
  const CollectiveMethod method = sizes_.all_reduce ? *sizes_.all_reduce : cheapest();
  if (method == CollectiveMethod::whole) return reduce_wholes(task, from, to);
  if (method == CollectiveMethod::direct) return reduce_directly(task, from, to);
  reduce_in_pairs(task, method, from, to);
}

void MessageOperations::reduce_wholes(const MessageTask& task, const char* from, char* to) {
  const std::size_t bytes = task.count * size_of(task.dtype);
  const auto ranks = static_cast<std::size_t>(ranks_);
  char* const received = scratch(bytes * ranks);
  for (std::size_t r = 0; r < ranks; ++r) sources_[r] = received + r * bytes;
  sources_[static_cast<std::size_t>(rank_)] = from;
  for (int distance = 1; distance < ranks_; ++distance) {
    const int source = previous(distance);
    receive(source, Lane::data, received + static_cast<std::size_t>(source) * bytes, bytes,
            pieces_[0]);
  }
  for (int distance = 1; distance < ranks_; ++distance)
    send(next(distance), Lane::data, from, bytes, pieces_[0]);
  wait(pieces_[0], true);
  reduce_elements(to, sources_, task.count, task.dtype, task.reduction);
}

// Let p be the largest power of two that is not above the number of ranks. Rank p + i gives all its
// elements to rank i, and gets the results from it.
void MessageOperations::reduce_in_pairs(const MessageTask& task, CollectiveMethod method,
                                        const char* from, char* to) {
  const int paired = paired_ranks(ranks_), extra = rank_ + paired;
  const std::size_t bytes = task.count * size_of(task.dtype);
  const Range all{0, task.count};
  if (rank_ >= paired) {
    exchange_sums(task, rank_ - paired, from, all, {}, to);
    receive(rank_ - paired, Lane::result, to, bytes, results_[0]);
    return wait(results_[0], true);
  }
  const char* sums = from;
  if (extra < ranks_) {
    exchange_sums(task, extra, from, {}, all, to);
    sums = to;
  }
  if (method == CollectiveMethod::doubling) {
    reduce_by_doubling(task, sums, to);
  } else {
    reduce_by_halving(task, sums, to);
  }
  if (extra < ranks_) send(extra, Lane::result, to, bytes, results_[0]);
  wait(results_[0], true);
}

// Pairs of ranks exchange all sums that they have.
void MessageOperations::reduce_by_doubling(const MessageTask& task, const char* sums, char* to) {
  const Range all{0, task.count};
  for (int distance = paired_ranks(ranks_) / 2; distance > 0; distance /= 2) {
    exchange_sums(task, rank_ ^ distance, sums, all, all, to);
    sums = to;
  }
  if (task.reduction == Reduction::mean) divide_elements(to, task.count, task.dtype, ranks_);
}

// Pairs of ranks exchange halves of what each still adds up, until each has a part of all results;
// then they exchange these in the opposite order.
void MessageOperations::reduce_by_halving(const MessageTask& task, const char* sums, char* to) {
  const std::size_t size = size_of(task.dtype);
  const int paired = paired_ranks(ranks_);
  std::array<Range, 32> wholes;  // what a pair of ranks has together
  std::size_t steps = 0;
  Range own{0, task.count};
  for (int distance = paired / 2; distance > 0; distance /= 2) {
    wholes[steps++] = own;
    const std::size_t half = own.count / 2;
    Range kept{own.begin, half}, given{own.begin + half, own.count - half};
    if ((rank_ & distance) != 0) std::swap(kept, given);
    exchange_sums(task, rank_ ^ distance, sums, given, kept, to);
    sums = to;
    own = kept;
  }
  if (task.reduction == Reduction::mean)
    divide_elements(to + own.begin * size, own.count, task.dtype, ranks_);
  for (int distance = 1; distance < paired; distance *= 2) {
    const int other = rank_ ^ distance;
    const Range whole = wholes[--steps];
    const std::size_t theirs = own.begin == whole.begin ? own.begin + own.count : whole.begin;
    receive(other, Lane::result, to + theirs * size, (whole.count - own.count) * size, results_[0]);
    send(other, Lane::result, to + own.begin * size, own.count * size, results_[0]);
    wait(results_[0], true);
    own = whole;
  }
}

// While one piece is added, the next one arrives.
void MessageOperations::exchange_sums(const MessageTask& task, int other, const char* sums,
                                      const Range& given, const Range& kept, char* to) {
  const std::size_t size = size_of(task.dtype),
                    piece = std::max<std::size_t>(1, sizes_.piece / size);
  char* const received = scratch(2 * piece * size);
  const auto received_piece = [&](std::size_t k) { return received + k % 2 * piece * size; };
  const auto in_piece = [&](const Range& range, std::size_t k) {
    return std::min(piece, range.count - std::min(range.count, k * piece));
  };
  const auto begin_piece = [&](std::size_t k) {
    receive(other, Lane::data, received_piece(k), in_piece(kept, k) * size, pieces_[k % 2]);
    send(other, Lane::data, sums + (given.begin + k * piece) * size, in_piece(given, k) * size,
         pieces_[k % 2]);
  };
  const Reduction reduction =
      task.reduction == Reduction::mean ? Reduction::sum : task.reduction;  // divided at the end
  const std::size_t pieces = (std::max(given.count, kept.count) + piece - 1) / piece;
  if (pieces > 0) begin_piece(0);
  for (std::size_t k = 0; k < pieces; ++k) {
    if (k + 1 < pieces) begin_piece(k + 1);
    wait(pieces_[k % 2], true);
    const std::size_t at = (kept.begin + k * piece) * size;
    std::array<const void*, 2> both{sums + at, received_piece(k)};
    if (other < rank_) std::swap(both[0], both[1]);
    reduce_elements(to + at, both, in_piece(kept, k), task.dtype, reduction);
  }
}

// Each chunk has one rank that reduces it, in pieces: while one piece is reduced, the next ones
// arrive, and earlier results go to all ranks.
void MessageOperations::reduce_directly(const MessageTask& task, const char* from, char* to) {
  const Chunks chunks{task.count, static_cast<std::size_t>(ranks_)};
  const std::size_t size = size_of(task.dtype),
                    piece = std::max<std::size_t>(1, sizes_.piece / size);
  const auto in_piece = [&](int rank, std::size_t k) {  // elements
    const std::size_t chunk = chunks.size(rank), begin = std::min(chunk, k * piece);
    return std::min(piece, chunk - begin);
  };
  const std::size_t slot = piece * size;
  char* const received = scratch(2 * slot * chunks.ranks);
  const auto received_from = [&](int rank, std::size_t k) {
    return received + (k % 2 * chunks.ranks + static_cast<std::size_t>(rank)) * slot;
  };
  const auto begin_piece = [&](std::size_t k) {
    for (int distance = 1; distance < ranks_; ++distance) {
      const int source = previous(distance);
      receive(source, Lane::data, received_from(source, k), in_piece(rank_, k) * size,
              pieces_[k % 2]);
    }
    for (int distance = 1; distance < ranks_; ++distance) {
      const int target = next(distance);
      send(target, Lane::data, from + (chunks.begin(target) + k * piece) * size,
           in_piece(target, k) * size, pieces_[k % 2]);
    }
  };
  const std::size_t pieces = (chunks.size(0) + piece - 1) / piece;  // the first is the largest
  const std::size_t own_begin = chunks.begin(rank_);
  begin_piece(0);
  for (std::size_t k = 0; k < pieces; ++k) {
    if (k + 1 < pieces) begin_piece(k + 1);
    wait(pieces_[k % 2], true);
    const std::size_t count = in_piece(rank_, k);
    for (int rank = 0; rank < ranks_; ++rank)
      sources_[static_cast<std::size_t>(rank)] = received_from(rank, k);
    sources_[static_cast<std::size_t>(rank_)] = from + (own_begin + k * piece) * size;
    char* const reduced = to + (own_begin + k * piece) * size;
    reduce_elements(reduced, sources_, count, task.dtype, task.reduction);
    Requests& results = results_[k % 2];
    wait(results, true);
    for (int distance = 1; distance < ranks_; ++distance) {
      const int source = previous(distance);
      receive(source, Lane::result, to + (chunks.begin(source) + k * piece) * size,
              in_piece(source, k) * size, results);
    }
    for (int distance = 1; distance < ranks_; ++distance)
      send(next(distance), Lane::result, reduced, count * size, results);
  }
  wait(results_[0], true);
  wait(results_[1], true);
}

}  // namespace tandem
