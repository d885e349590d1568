// Brings consecutive rows of sharded states to the ranks that write them, a few MiB at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/ranks/communicator.h"
#include "engine/runtime/program.h"

namespace tandem {

struct RowRange {
  std::int64_t first = 0, rows = 0;
};

/// One rank's side; used only between steps. Throws Error{runtime} where another rank has gone.
class RowExchange {
 public:
  /// Bytes that come in one exchange, about.
  static constexpr std::size_t default_window = std::size_t{4} << 20;

  /// `host` has the communicator; its memory is the process's own.
  RowExchange(const StateStore& states, Device& host, std::size_t window = default_window);

  /// All ranks call it at the same point, with the rows of the whole state that each of them reads,
  /// in the order of the ranks. A range of rows [axis 0 of the whole] may be empty.
  void begin(const std::string& name, std::vector<RowRange> ranges);
  /// The next rows of the own range.
  void read(std::int64_t rows, void* to);
  /// Sends what other ranks still read. Every `begin` needs an `end`.
  void end();

 private:
  void exchange();
  void exchange_rows();
  void exchange_elements();
  void exchange_pieces();
  /// Part p of `sent_` to rank p, part p of `received_` from it.
  void all_to_all(std::size_t bytes);
  std::int64_t own_left() const;

  const StateStore& states_;
  Device& host_;
  Communicator& ranks_;
  std::unique_ptr<Stream> stream_;
  const std::size_t window_bytes_;

  std::string name_;
  const StateShard* shard_ = nullptr;
  std::vector<RowRange> ranges_;
  std::size_t row_bytes_ = 0;         // bytes of a row of the whole
  std::int64_t window_ = 0;           // rows that each rank gets in an exchange
  std::int64_t done_ = 0, most_ = 0;  // over all ranges: rows exchanged, rows of the longest
  std::int64_t taken_ = 0;            // rows of the own range that `read` has taken
  std::vector<char> sent_, received_, rows_;  // rows_: the rows of the own range exchanged last
};

}  // namespace tandem
