#include "engine/train/group/sample_exchange.h"

#include <utility>

#include "engine/graph/error.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {

bool SampleExchange::takes_rows(std::int64_t own) const {
  return ranks_.own == ranks_.most || ranks_.own == 0 || own % ranks_.own == 0;
}

std::int64_t SampleExchange::most_rows(std::int64_t own) const {
  if (ranks_.own == ranks_.most || ranks_.own == 0) return own;
  if (!takes_rows(own)) {
    Diagnostic d;
    d.path = g_.scope().path;
    d.message =
        "ranks compute different numbers of samples, and a product whose weight is sharded over "
        "them has no constant number of rows for each sample";
    d.expected = "a multiple of " + std::to_string(ranks_.own) + " rows";
    d.got = std::to_string(own);
    d.fix = "take a batch_size (and micro-batches) that the ranks divide, and drop_last = true";
    throw Error(ErrorKind::usage, std::move(d));
  }
  return own / ranks_.own * ranks_.most;
}

ValueId SampleExchange::collective(const char* name, ValueId value) {
  return g_.add_node(name, {value}, {{"ranks", std::int64_t{ranks_.ranks}}});
}

ValueId SampleExchange::slice(ValueId value, std::size_t axis, std::int64_t first,
                              std::int64_t count) {
  const Shape& shape = g_.shape(value);
  if (first == 0 && count == shape[axis]) return value;
  Ints starts(shape.size(), 0), sizes(shape.begin(), shape.end()), steps(shape.size(), 1);
  starts[axis] = first;
  sizes[axis] = count;
  return g_.add_node("Slice", {value}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

ValueId SampleExchange::padded(ValueId value, std::size_t axis, std::int64_t count, double filler) {
  TensorType rest = g_.type(value);
  rest.shape[axis] = count - rest.shape[axis];
  if (rest.shape[axis] == 0) return value;
  return g_.add_node("Concat", {value, g_.filled(filler, rest)},
                     {{"axis", static_cast<std::int64_t>(axis)}});
}

ValueId SampleExchange::gathered(ValueId own, double filler) {
  return collective(all_gather_name, padded(own, 0, most_rows(g_.shape(own)[0]), filler));
}

// [rows, .., ranks * share, ..] -> [rows, .., ranks, share, ..] -> [ranks, rows, .., share, ..]
SplitValue SampleExchange::split(ValueId own, std::size_t axis) {
  const std::int64_t extent = g_.shape(own)[axis], rows = most_rows(g_.shape(own)[0]);
  const std::int64_t share = block_of(extent, 0, ranks_.ranks).share;
  Shape shape = g_.shape(own);
  shape[0] = rows;
  shape[axis] = share;
  Shape blocks = shape;
  blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(axis), ranks_.ranks);
  ValueId value = padded(padded(own, 0, rows), axis, ranks_.ranks * share);
  Ints perm{static_cast<std::int64_t>(axis)};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i != axis) perm.push_back(static_cast<std::int64_t>(i));
  }
  value = g_.transpose(g_.reshape(value, std::move(blocks)), std::move(perm));
  shape[0] *= ranks_.ranks;
  return {collective(all_to_all_name, g_.reshape(value, std::move(shape))), axis, extent};
}

ValueId SampleExchange::of_each_rank(ValueId of_all, std::int64_t rows) {
  Shape shape = g_.shape(of_all);
  shape[0] /= ranks_.ranks;
  shape.insert(shape.begin(), ranks_.ranks);
  return slice(g_.reshape(collective(all_to_all_name, of_all), std::move(shape)), 1, 0, rows);
}

// [ranks, rows, .., share, ..] -> [rows, .., ranks, share, ..] -> [rows, .., ranks * share, ..]
ValueId SampleExchange::joined(const SplitValue& split, std::int64_t rows) {
  ValueId value = of_each_rank(split.value, rows);
  Ints perm;
  for (std::size_t i = 1; i < g_.shape(value).size(); ++i) {
    if (i == split.axis + 1) perm.push_back(0);
    perm.push_back(static_cast<std::int64_t>(i));
  }
  Shape shape = g_.shape(split.value);
  shape[0] = rows;
  shape[split.axis] *= ranks_.ranks;
  value = g_.reshape(g_.transpose(value, std::move(perm)), std::move(shape));
  return slice(value, split.axis, 0, split.extent);
}

ValueId SampleExchange::summed(ValueId parts, std::int64_t rows) {
  return slice(collective(reduce_scatter_name, parts), 0, 0, rows);
}

ValueId SampleExchange::own_block(ValueId whole, std::size_t axis) {
  const Block own = block_of(g_.shape(whole)[axis], ranks_.rank, ranks_.ranks);
  return padded(slice(whole, axis, own.first, own.filled), axis, own.share);
}

ValueId SampleExchange::filled(ValueId block, std::size_t axis, std::int64_t extent) {
  return slice(block, axis, 0, block_of(extent, ranks_.rank, ranks_.ranks).filled);
}

}  // namespace tandem
