// Rows of lookups and updates by indices, running sums, largest elements, and operators built from
// places; expected elements are written out.
#include <limits>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// x [2, 2, 2] is 0 to 7.
void add_gathers(Rows& rows) {
  for (DType dtype : {f32, bf16, i64}) {
    const HostTensor x = typed(dtype, {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    rows.push_back({.op = "GatherND",
                    .inputs = {x, integers({2, 3}, {0, -1, 1, 1, 0, -2})},
                    .outputs = {typed(dtype, {2}, {3, 4})},
                    .note = "elements"});
    rows.push_back({.op = "GatherND",
                    .inputs = {x, integers({1, 2, 1}, {1, -2})},
                    .outputs = {typed(dtype, {1, 2, 2, 2}, {4, 5, 6, 7, 0, 1, 2, 3})},
                    .note = "slices of one axis"});
    rows.push_back({.op = "GatherND",
                    .inputs = {x, integers({2, 2}, {0, 1, 1, 0})},
                    .outputs = {typed(dtype, {2, 2}, {2, 3, 4, 5})},
                    .note = "rows"});
    rows.push_back({.op = "GatherND",
                    .first = 12,
                    .inputs = {x, integers({2, 1}, {1, 0})},
                    .attributes = {{"batch_dims", 1}},
                    .outputs = {typed(dtype, {2, 2}, {2, 3, 4, 5})},
                    .note = "an index for each batch"});
    const HostTensor y = typed(dtype, {2, 3}, {0, 1, 2, 3, 4, 5});
    rows.push_back({.op = "GatherElements",
                    .inputs = {y, integers({2, 2}, {2, 0, -1, -3})},
                    .attributes = {{"axis", 1}},
                    .outputs = {typed(dtype, {2, 2}, {2, 0, 5, 3})},
                    .note = "from the end"});
    rows.push_back({.op = "GatherElements",
                    .inputs = {y, typed(i32, {1, 3}, {1, 0, 1})},
                    .outputs = {typed(dtype, {1, 3}, {3, 1, 5})},
                    .note = "int32, axis 0"});
  }
  rows.push_back({.op = "GatherElements",
                  .inputs = {floats({2, 3}, Numbers(6)), integers({3, 1}, {0, 0, 0})},
                  .attributes = {{"axis", 1}},
                  .note = "more indices than elements beside the axis",
                  .refused = "shape of the indices"});
  rows.push_back({.op = "GatherND",
                  .inputs = {floats({2}, {1, 2}), integers({1, 2}, {0, 0})},
                  .note = "longer tuples than axes",
                  .refused = "last axis of the indices"});
}

// Sums and products came with version 16, the largest and smallest with 18; Scatter is
// ScatterElements' old name.
void add_scatters(Rows& rows) {
  struct Reduction {
    const char* name;
    int first;
    double combined;  // 4 combined with the updates 6 and 3
  };
  for (const Reduction& reduction : {Reduction{"none", 16, 3},
                                     {"add", 16, 13},
                                     {"mul", 16, 72},
                                     {"max", 18, 6},
                                     {"min", 18, 3}}) {
    for (DType dtype : {f32, f64, i32}) {
      const std::vector<std::pair<std::string, NodeAttribute>> attributes{
          {"reduction", reduction.name}};
      rows.push_back({.op = "ScatterND",
                      .first = reduction.first,
                      .inputs = {typed(dtype, {2, 2}, {1, 2, 3, 4}),
                                 integers({2, 2}, {1, 1, -1, -1}), typed(dtype, {2}, {6, 3})},
                      .attributes = attributes,
                      .outputs = {typed(dtype, {2, 2}, {1, 2, 3, reduction.combined})},
                      .note = reduction.name});
      rows.push_back({.op = "ScatterElements",
                      .first = reduction.first,
                      .inputs = {typed(dtype, {1, 3}, {1, 4, 2}), integers({1, 2}, {1, -2}),
                                 typed(dtype, {1, 2}, {6, 3})},
                      .attributes = {{"reduction", reduction.name}, {"axis", 1}},
                      .outputs = {typed(dtype, {1, 3}, {1, reduction.combined, 2})},
                      .note = reduction.name});
    }
  }
  for (DType dtype : {f32, bf16, i64, DType::boolean}) {
    rows.push_back({.op = "ScatterND",
                    .inputs = {typed(dtype, {3, 2}, {0, 1, 1, 1, 0, 1}), integers({2, 1}, {-1, 0}),
                               typed(dtype, {2, 2}, {1, 0, 1, 0})},
                    .outputs = {typed(dtype, {3, 2}, {1, 0, 1, 1, 1, 0})},
                    .note = "rows"});
    for (const char* op : {"ScatterElements", "Scatter"}) {
      rows.push_back({.op = op,
                      .inputs = {typed(dtype, {2, 3}, {0, 0, 1, 1, 0, 0}),
                                 typed(i32, {2, 1}, {1, 2}), typed(dtype, {2, 1}, {1, 1})},
                      .attributes = {{"axis", 1}},
                      .outputs = {typed(dtype, {2, 3}, {0, 1, 1, 1, 0, 1})}});
    }
  }
  rows.push_back(
      {.op = "ScatterElements",
       .inputs = {floats({2, 2}, {1, 2, 3, 4}), integers({1, 2}, {1, -1}), floats({1, 2}, {7, 8})},
       .outputs = {floats({2, 2}, {1, 2, 7, 8})},
       .note = "axis 0, from the end"});
  rows.push_back({.op = "ScatterND",
                  .last = 13,
                  .inputs = {floats({2}, {1, 2}), integers({1, 1}, {0}), floats({1}, {3})},
                  .attributes = {{"reduction", "add"}},
                  .note = "sums",
                  .refused = "reduction"});
}

void add_cum_sums(Rows& rows) {
  for (DType dtype : {f32, f64, bf16, i32, i64, DType::uint32}) {
    const HostTensor x = typed(dtype, {2, 3}, {1, 2, 4, 8, 16, 32});
    rows.push_back({.op = "CumSum",
                    .inputs = {x, integers({}, {0})},
                    .outputs = {typed(dtype, {2, 3}, {1, 2, 4, 9, 18, 36})},
                    .note = "axis 0"});
    rows.push_back({.op = "CumSum",
                    .inputs = {x, typed(i32, {1}, {-1})},
                    .attributes = {{"exclusive", 1}, {"reverse", 1}},
                    .outputs = {typed(dtype, {2, 3}, {6, 4, 0, 48, 32, 0})},
                    .note = "exclusive, reverse, from the end"});
  }
}

// k: an attribute in version 1; smallest ones from 11 on.
void add_largest(Rows& rows) {
  for (DType dtype : {f32, f64, bf16, i64, u8}) {
    const HostTensor x = typed(dtype, {2, 4}, {3, 1, 3, 2, 0, 9, 5, 9});
    const std::vector<HostTensor> two{typed(dtype, {2, 2}, {3, 3, 9, 9}),
                                      integers({2, 2}, {0, 2, 1, 3})};
    rows.push_back({.op = "TopK",
                    .last = 1,
                    .inputs = {x},
                    .attributes = {{"k", 2}},
                    .outputs = two,
                    .note = "k as attribute"});
    rows.push_back({.op = "TopK",
                    .first = 10,
                    .inputs = {x, integers({2})},
                    .outputs = two,
                    .note = "k as input"});
    rows.push_back({.op = "TopK",
                    .first = 11,
                    .inputs = {x, integers({1})},
                    .attributes = {{"axis", 0}, {"largest", 0}, {"sorted", 0}},
                    .outputs = {typed(dtype, {1, 4}, {0, 1, 3, 2}), integers({1, 4}, {1, 0, 0, 0})},
                    .note = "smallest"});
    for (const bool largest : {true, false}) {
      const char* op = largest ? "ArgMax" : "ArgMin";
      const Numbers first = largest ? Numbers{0, 1} : Numbers{1, 0};
      const Numbers last = largest ? Numbers{2, 3} : Numbers{1, 0};
      rows.push_back({.op = op,
                      .inputs = {x},
                      .attributes = {{"axis", 1}},
                      .outputs = {integers({2, 1}, first)},
                      .note = "kept"});
      rows.push_back(
          {.op = op,
           .inputs = {x},
           .attributes = {{"keepdims", 0}},
           .outputs = {integers({4}, largest ? Numbers{0, 1, 1, 1} : Numbers{1, 0, 0, 0})},
           .note = "axis 0, gone"});
      rows.push_back({.op = op,
                      .first = 12,
                      .inputs = {x},
                      .attributes = {{"axis", -1}, {"select_last_index", 1}},
                      .outputs = {integers({2, 1}, last)},
                      .note = "the last of equal ones"});
    }
  }
  const double infinity = std::numeric_limits<double>::infinity();
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {2, 3}, {1, 4, 4, -infinity, 0, -1});
    rows.push_back({.op = "Hardmax",
                    .inputs = {x},
                    .attributes = {{"axis", 1}},
                    .outputs = {typed(dtype, {2, 3}, {0, 1, 0, 0, 1, 0})},
                    .note = "axis 1"});
    const HostTensor y = typed(dtype, {1, 2, 2}, {1, 4, 3, 2});
    rows.push_back({.op = "Hardmax",
                    .last = 11,
                    .inputs = {y},
                    .outputs = {typed(dtype, {1, 2, 2}, {0, 1, 0, 0})},
                    .note = "over all axes from 1 on"});
    rows.push_back({.op = "Hardmax",
                    .first = 13,
                    .inputs = {y},
                    .outputs = {typed(dtype, {1, 2, 2}, {0, 1, 1, 0})},
                    .note = "over the last axis"});
  }
}

void add_one_hots_and_diagonals(Rows& rows) {
  for (DType dtype : {f32, i64, DType::boolean}) {
    const HostTensor values = typed(dtype, {2}, {0, 1});
    rows.push_back({.op = "OneHot",
                    .inputs = {integers({3}, {1, 0, 5}), integers({}, {2}), values},
                    .outputs = {typed(dtype, {3, 2}, {0, 1, 1, 0, 0, 0})},
                    .note = "last axis; out of range is off"});
  }
  rows.push_back({.op = "OneHot",
                  .inputs = {floats({2}, {2, 0}), floats({1}, {3}), floats({2}, {-1, 4})},
                  .attributes = {{"axis", 0}},
                  .outputs = {floats({3, 2}, {-1, 4, -1, -1, 4, -1})},
                  .note = "axis 0, indices and depth of floating point"});
  rows.push_back({.op = "OneHot",
                  .first = 11,
                  .inputs = {integers({3}, {-1, -3, -4}), integers({1}, {3}), floats({2}, {0, 1})},
                  .attributes = {{"axis", -2}},
                  .outputs = {floats({3, 3}, {0, 1, 0, 0, 0, 0, 1, 0, 0})},
                  .note = "indices from the end"});
  for (DType dtype : {f32, f64, i32}) {
    const HostTensor x = typed(dtype, {2, 3}, {9, 9, 9, 9, 9, 9});
    rows.push_back({.op = "EyeLike",
                    .inputs = {x},
                    .attributes = {{"k", 1}},
                    .outputs = {typed(dtype, {2, 3}, {0, 1, 0, 0, 0, 1})},
                    .note = "above the diagonal"});
    rows.push_back({.op = "EyeLike",
                    .inputs = {x},
                    .attributes = {{"dtype", 7}, {"k", -1}},
                    .outputs = {integers({2, 3}, {0, 0, 0, 1, 0, 0})},
                    .note = "of another type"});
  }
  for (DType dtype : {f32, bf16, i64}) {
    const HostTensor deep = typed(dtype, {1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
    const HostTensor dcr = typed(dtype, {1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7});
    const HostTensor crd = typed(dtype, {1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    rows.push_back({.op = "DepthToSpace",
                    .inputs = {deep},
                    .attributes = {{"blocksize", 2}},
                    .outputs = {dcr},
                    .note = "DCR"});
    rows.push_back({.op = "DepthToSpace",
                    .first = 11,
                    .inputs = {deep},
                    .attributes = {{"blocksize", 2}, {"mode", "CRD"}},
                    .outputs = {crd},
                    .note = "CRD"});
    rows.push_back({.op = "SpaceToDepth",
                    .inputs = {dcr},
                    .attributes = {{"blocksize", 2}},
                    .outputs = {deep},
                    .note = "DCR"});
    rows.push_back({.op = "SpaceToDepth",
                    .first = 28,
                    .inputs = {crd},
                    .attributes = {{"blocksize", 2}, {"mode", "CRD"}},
                    .outputs = {deep},
                    .note = "CRD"});
  }
}

}  // namespace

void add_indexing_rows(std::vector<VersionRow>& rows) {
  add_gathers(rows);
  add_scatters(rows);
  add_cum_sums(rows);
  add_largest(rows);
  add_one_hots_and_diagonals(rows);
}

}  // namespace tandem::testing
