// TfIdfVectorizer of integers: how often sequences from a pool occur, found by comparing every
// place with every sequence of a length.
#include <fmt/format.h>

#include <algorithm>

#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

/// The sequences of one length, [count, length] in the pool, and the results that count them.
struct Grams {
  std::int64_t length = 1;
  std::vector<std::int64_t> items, columns;

  std::int64_t count() const { return static_cast<std::int64_t>(columns.size()); }
};

// ngram_counts has where each length begins in the pool.
std::vector<Grams> read_pool(NodeContext& node, const Ints& columns) {
  const Ints pool = node.integers("pool_int64s", {}), starts = node.integers("ngram_counts", {});
  std::vector<Grams> all;
  std::size_t next = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto size = static_cast<std::int64_t>(pool.size());
    const std::int64_t first = starts[i], last = i + 1 < starts.size() ? starts[i + 1] : size;
    const auto length = static_cast<std::int64_t>(i) + 1;
    if (first < 0 || first > last || last > size || (last - first) % length != 0) {
      node.fail("ngram_counts", "places in the pool, whole sequences apart",
                to_string(Shape(starts)));
    }
    Grams grams;
    grams.length = length;
    grams.items.assign(pool.begin() + first, pool.begin() + last);
    for (std::int64_t k = 0; k < (last - first) / length; ++k, ++next) {
      if (next >= columns.size()) {
        node.fail("ngram_indexes", "one for each sequence of the pool",
                  std::to_string(columns.size()));
      }
      grams.columns.push_back(columns[next]);
    }
    all.push_back(std::move(grams));
  }
  return all;
}

// x [B, C]: how often each sequence occurs in each row, [B, count], its items `step` apart.
Term occurrences(NodeContext& node, const Term& x, const Grams& grams, std::int64_t step) {
  const std::int64_t rows = x.type.shape[0];
  const std::int64_t places = x.type.shape[1] - (grams.length - 1) * step;
  Term all;
  for (std::int64_t k = 0; k < grams.length; ++k) {
    std::vector<std::int64_t> items;
    for (std::int64_t g = 0; g < grams.count(); ++g) {
      items.push_back(grams.items[static_cast<std::size_t>(g * grams.length + k)]);
    }
    const Term here = node.make(
        "Slice", {x},
        {{"starts", Ints{0, k * step}}, {"sizes", Ints{rows, places}}, {"steps", Ints{1, 1}}});
    const Term equal =
        node.make("Equal", {node.reshape(here, {rows, places, 1}),
                            node.constant(HostTensor::from({1, 1, grams.count()}, items))});
    all = k == 0 ? equal : node.make("And", {all, equal});
  }
  return node.make("ReduceSum", {node.cast(all, DType::float32)},
                   {{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}});
}

// counts [B, results] as they are, as 0 and 1, or either times the weights of the results.
Term weighted(NodeContext& node, const Term& counts) {
  const std::string mode = node.text("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") node.fail("mode", "TF, IDF or TFIDF", mode);
  if (mode == "TF") return counts;
  const std::int64_t results = counts.type.shape[1];
  std::vector<float> weights(static_cast<std::size_t>(results), 1);
  if (const auto* given = node.attribute("weights"); given != nullptr && given->floats_size() > 0) {
    if (given->floats_size() < results) {
      node.fail("weights", fmt::format("{} numbers", results),
                std::to_string(given->floats_size()));
    }
    std::copy_n(given->floats().begin(), results, weights.begin());
  }
  Term y = counts;
  if (mode == "IDF") {
    y = node.cast(node.make("Greater", {counts, node.scalar(0, DType::float32)}), DType::float32);
  }
  return node.make("Mul", {y, node.constant(HostTensor::from({results}, weights))});
}

}  // namespace

void tf_idf_vectorizer(NodeContext& node) {
  if (node.has_attribute("pool_strings")) node.unsupported("element type STRING is not supported");
  const Shape given = node.shape(0);
  if (given.size() > 2) node.fail("input", "[C] or [B, C]", to_string(given));
  const std::int64_t rows = given.size() == 2 ? given[0] : 1;
  const std::int64_t length = given.empty() ? 1 : given.back();
  const Term x = node.reshape(node.cast(node.in(0), DType::int64), {rows, length});
  const Ints columns = node.integers("ngram_indexes", {});
  const std::int64_t least = node.integer("min_gram_length");
  const std::int64_t longest = node.integer("max_gram_length");
  const std::int64_t skips = node.integer("max_skip_count");
  if (columns.empty() || *std::min_element(columns.begin(), columns.end()) < 0 ||
      *std::max_element(columns.begin(), columns.end()) > (1 << 26)) {
    node.fail("ngram_indexes", "numbers from 0 to 2^26", to_string(Shape(columns)));
  }
  if (least < 1 || longest < least || skips < 0) {
    node.fail("lengths and skips", "1 <= min_gram_length <= max_gram_length, max_skip_count >= 0",
              fmt::format("{}, {}, {}", least, longest, skips));
  }
  if (skips > 1000) node.unsupported("more than 1000 skips are not supported");
  const std::int64_t results = *std::max_element(columns.begin(), columns.end()) + 1;
  Term counts = node.expand(node.scalar(0, DType::float32), {results, rows});
  for (const Grams& grams : read_pool(node, columns)) {
    if (grams.length < least || grams.length > longest || grams.count() == 0) continue;
    // Skips do not matter to single items.
    const std::int64_t most = grams.length == 1 ? 0 : std::min(skips, length);
    for (std::int64_t step = 1; step <= most + 1; ++step) {
      if ((grams.length - 1) * step >= length) break;
      const Term found = node.transpose(occurrences(node, x, grams, step), {1, 0});
      counts = node.make(
          "ScatterRows",
          {counts, node.constant(HostTensor::from({grams.count()}, grams.columns)), found},
          {{"reduction", std::string("add")}});
    }
  }
  Shape shape{results};
  if (given.size() == 2) shape.insert(shape.begin(), rows);
  const Term y = weighted(node, node.transpose(counts, {1, 0}));
  node.out(0, node.make("Reshape", {y}, {{"shape", shape}}));
}

}  // namespace tandem::importer::operators
