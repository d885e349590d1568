// EmbeddingBag and its dense gradient.
#include <algorithm>

#include "engine/operators/tables/rows.h"
#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

/// The ids of bags, as rows of a table, and their weights.
struct Bags {
  Reader ids, weights;
  bool weighted;
  std::int64_t count;    // number of bags
  std::int64_t length;   // ids in each
  std::int64_t columns;  // elements of a row
  std::int64_t rows;     // rows of the table
  std::int64_t absent;   // the id that names none
  std::int32_t node;

  Bags(const KernelRequest& r, const Shape& table)
      : ids(r.inputs[1]),
        weighted(r.is_present(2)),
        length(r.inputs[1].type.shape.back()),
        columns(element_count(Shape(table.begin() + 1, table.end()))),
        rows(table[0]),
        absent(absent_id_of(r.inputs[1].type.dtype)),
        node(r.node_index) {
    count = r.inputs[1].type.elements() / length;
    if (weighted) weights = Reader(r.inputs[2]);
  }

  /// -1 for an absent id.
  std::int64_t row(const KernelArguments& a, std::int64_t position) const {
    const std::int64_t id = ids.integer(a.inputs[1], position);
    if (id == absent) return -1;
    const std::int64_t found = id < 0 ? id + rows : id;
    if (found >= 0 && found < rows) return found;
    report(a, ErrorWord::index_out_of_range, node, id);
    return found < 0 ? 0 : rows - 1;
  }
  double weight(const KernelArguments& a, std::int64_t position) const {
    return weighted ? weights.number(a.inputs[2], position) : 1.0;
  }
};

std::unique_ptr<PreparedKernel> embedding_bag(const KernelRequest& r) {
  const Bags bags(r, r.inputs[0].type.shape);
  return prepared(
      [=, table = Reader(r.inputs[0]), y = Writer(r.outputs[0])](const KernelArguments& a) {
        for (std::int64_t b = 0; b < bags.count; ++b) {
          for (std::int64_t c = 0; c < bags.columns; ++c) {
            double sum = 0;
            for (std::int64_t l = 0; l < bags.length; ++l) {
              const std::int64_t position = b * bags.length + l, row = bags.row(a, position);
              const double weight = bags.weight(a, position);
              if (row >= 0 && weight != 0)
                sum += weight * table.number(a.inputs[0], row * bags.columns + c);
            }
            y(a.outputs[0], b * bags.columns + c, sum);
          }
        }
      });
}

constexpr auto embedding_bag_grad = []<class T>(const KernelRequest& r, T) {
  const Bags bags(r, r.outputs[0].type.shape);
  return prepared([=, dy = Reader(r.inputs[0]),
                   places = Places(r.outputs[0])](const KernelArguments& a) {
    T* dx = static_cast<T*>(a.outputs[0]);
    for (std::int64_t i = 0; i < bags.rows * bags.columns; ++i) dx[places(i)] = rounded<T>(0);
    for (std::int64_t position = 0; position < bags.count * bags.length; ++position) {
      const std::int64_t row = bags.row(a, position), b = position / bags.length;
      for (std::int64_t c = 0; row >= 0 && c < bags.columns; ++c) {
        T& sum = dx[places(row * bags.columns + c)];
        const double more = bags.weight(a, position) * dy.number(a.inputs[0], b * bags.columns + c);
        sum = rounded<T>(static_cast<double>(sum) + more);
      }
    }
  });
};

}  // namespace

void add_embedding_bag(KernelList& list) {
  list.push_back(any_float_kernel("reference.embedding_bag", "EmbeddingBag",
                                  [](const KernelRequest& r, auto) { return embedding_bag(r); }));
  list.push_back(
      any_float_kernel("reference.embedding_bag_grad", "EmbeddingBagGrad", embedding_bag_grad));
}

}  // namespace tandem::reference
