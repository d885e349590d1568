// Gathering and scattering of several operands at once: few messages, and no copy of what is long.
#include <cstdint>
#include <cstring>

#include "engine/ranks/message_operations.h"
#include "engine/ranks/reduce_elements.h"

namespace tandem {

// Each rank reduces its own shards, in pieces: while one piece is reduced, the next one arrives.
void MessageOperations::scatter_parts(const MessageTask& task, const MessageOperands& operands) {
  const std::size_t size = size_of(task.dtype),
                    piece = std::max<std::size_t>(1, sizes_.piece / size), slot = piece * size;
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::span<const PartSizes> parts = operands.parts;
  char* const received = scratch((parts.size() > 1 ? 4 : 2) * slot * ranks);
  char* const packed = received + 2 * slot * ranks;  // only for several operands
  const auto slot_of = [&](char* slots, std::size_t k, int rank) {
    return slots + (k % 2 * ranks + static_cast<std::size_t>(rank)) * slot;
  };
  // Where this rank's elements for another one begin.
  const auto given = [&](const PartSegment& segment, int rank) {
    const std::size_t begin =
        static_cast<std::size_t>(rank) * parts[segment.operand].part + segment.begin;
    return static_cast<const char*>(operands.froms[segment.operand]) + begin * size;
  };
  PartSegment cursor;
  const auto begin_piece = [&](std::size_t k) {
    std::vector<PartSegment>& segments = segments_[k % 2];
    Requests& requests = pieces_[k % 2];
    take_segments(parts, piece, cursor, segments);
    for (int distance = 1; distance < ranks_; ++distance) {
      const int source = previous(distance);
      char* to = slot_of(received, k, source);
      for_each_message(segments, sizes_.packed / size, [&](std::span<const PartSegment> of) {
        const std::size_t bytes = filled(of, parts, rank_) * size;
        receive(source, Lane::data, to, bytes, requests);
        to += bytes;
      });
    }
    for (int distance = 1; distance < ranks_; ++distance) {
      const int target = next(distance);
      char* to = slot_of(packed, k, target);
      for_each_message(segments, sizes_.packed / size, [&](std::span<const PartSegment> of) {
        const std::size_t bytes = filled(of, parts, target) * size;
        if (of.size() == 1) return send(target, Lane::data, given(of[0], target), bytes, requests);
        const char* const message = to;
        for (const PartSegment& segment : of) {
          const std::size_t own = segment.filled(parts, target) * size;
          std::memcpy(to, given(segment, target), own);
          to += own;
        }
        send(target, Lane::data, message, bytes, requests);
      });
    }
  };
  std::size_t all = 0;
  for (const PartSizes& one : parts) all += one.part;
  const std::size_t pieces = (all + piece - 1) / piece;
  if (pieces > 0) begin_piece(0);
  for (std::size_t k = 0; k < pieces; ++k) {
    if (k + 1 < pieces) begin_piece(k + 1);
    wait(pieces_[k % 2], true);
    std::size_t offset = 0;
    for (const PartSegment& segment : segments_[k % 2]) {
      const std::size_t count = segment.filled(parts, rank_);
      if (count == 0) continue;
      for (int rank = 0; rank < ranks_; ++rank)
        sources_[static_cast<std::size_t>(rank)] = slot_of(received, k, rank) + offset;
      sources_[static_cast<std::size_t>(rank_)] = given(segment, rank_);
      reduce_elements(static_cast<char*>(operands.tos[segment.operand]) + segment.begin * size,
                      sources_, count, task.dtype, task.reduction);
      offset += count * size;
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t count = parts[i].filled(rank_);
    std::memset(static_cast<char*>(operands.tos[i]) + count * size, 0,
                (parts[i].part - count) * size);
  }
}

void MessageOperations::gather_parts(const MessageTask& task, const MessageOperands& operands) {
  const std::size_t size = size_of(task.dtype);
  const std::span<const PartSizes> parts = operands.parts;
  const std::vector<PartSegment>& segments = segments_[0];
  PartSegment cursor;
  take_segments(parts, SIZE_MAX, cursor, segments_[0]);
  const auto for_each = [&](const auto& f) { for_each_message(segments, sizes_.packed / size, f); };
  std::size_t packed = 0;  // bytes of a rank that are copied
  for_each([&](std::span<const PartSegment> of) {
    for (const PartSegment& segment : of) packed += of.size() > 1 ? segment.count * size : 0;
  });
  char* const slots = packed > 0 ? scratch(packed * static_cast<std::size_t>(ranks_)) : nullptr;
  const auto slot_of = [&](int rank) { return slots + static_cast<std::size_t>(rank) * packed; };
  const auto own = [&](const PartSegment& segment) {
    return static_cast<const char*>(operands.froms[segment.operand]);
  };
  const auto place = [&](const PartSegment& segment, int rank) {
    return static_cast<char*>(operands.tos[segment.operand]) +
           static_cast<std::size_t>(rank) * parts[segment.operand].part * size;
  };
  // Copies between a rank's slot and its short segments; `copy` decides the direction.
  const auto for_each_packed = [&](int rank, const auto& copy) {
    char* slot = slot_of(rank);
    for_each([&](std::span<const PartSegment> of) {
      for (std::size_t i = 0; of.size() > 1 && i < of.size(); ++i) {
        const std::size_t bytes = of[i].filled(parts, rank) * size;
        copy(of[i], slot, bytes);
        slot += bytes;
      }
    });
  };
  for (int distance = 1; distance < ranks_; ++distance) {
    const int source = previous(distance);
    char* slot = slot_of(source);
    for_each([&](std::span<const PartSegment> of) {
      const std::size_t bytes = filled(of, parts, source) * size;
      receive(source, Lane::data, of.size() > 1 ? slot : place(of[0], source), bytes, pieces_[0]);
      if (of.size() > 1) slot += bytes;
    });
  }
  for_each_packed(rank_, [&](const PartSegment& segment, char* slot, std::size_t bytes) {
    std::memcpy(slot, own(segment), bytes);
  });
  for (int distance = 1; distance < ranks_; ++distance) {
    const char* slot = slot_of(rank_);
    for_each([&](std::span<const PartSegment> of) {
      const std::size_t bytes = filled(of, parts, rank_) * size;
      send(next(distance), Lane::data, of.size() > 1 ? slot : own(of[0]), bytes, pieces_[0]);
      if (of.size() > 1) slot += bytes;
    });
  }
  for (const PartSegment& segment : segments) {
    char* const to = place(segment, rank_);
    if (to != own(segment)) std::memcpy(to, own(segment), segment.filled(parts, rank_) * size);
  }
  wait(pieces_[0], true);
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    for_each_packed(rank, [&](const PartSegment& segment, const char* slot, std::size_t bytes) {
      std::memcpy(place(segment, rank), slot, bytes);
    });
  }
}

}  // namespace tandem
