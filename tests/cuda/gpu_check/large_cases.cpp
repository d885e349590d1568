// Cases of several blocks, odd extents and long sums, for kernels on a real GPU.
#include <numeric>

#include "tests/cuda/gpu_check/stages.h"
#include "tests/operators/network_cases.h"

namespace tandem::gpu_check {
namespace {

using namespace testing;

constexpr double long_sum = 1e-4;

OperatorCase& add(Cases& cases, const char* op, const char* name, std::vector<CaseInput> inputs,
                  Attributes attributes = {}, double tolerance = 1e-5) {
  OperatorCase& c =
      add_case(cases, op, std::string("large ") + name, std::move(inputs), std::move(attributes));
  c.tolerance = tolerance;
  return c;
}

CaseInput integers(Shape shape, double below, DType dtype = DType::int64) {
  CaseInput input;
  input.shape = std::move(shape);
  input.dtype = dtype;
  input.fill = Fill::integers;
  input.low = 0;
  input.high = below;
  return input;
}

CaseInput positive(Shape shape) { return {.shape = std::move(shape), .fill = Fill::positive}; }

void add_products(Cases& cases) {
  add(cases, "MatMul", "odd", {random_input({129, 257}), random_input({257, 131})});
  add(cases, "MatMul", "aligned", {random_input({128, 256}), random_input({256, 64})});
  add(cases, "MatMul", "long sum", {random_input({17, 20'011}), random_input({20'011, 9})}, {},
      long_sum);
  add(cases, "MatMul", "batch", {random_input({6, 65, 33}), random_input({6, 33, 66})});
  add(cases, "Gemm", "Relu with bias",
      {random_input({130, 96}), random_input({96, 72}), random_input({72})},
      {{"activation", std::string("Relu")}});
}

void add_networks(Cases& cases) {
  const Attributes settings{{"strides", Ints{1, 1}},
                            {"pads", Ints{1, 1, 1, 1}},
                            {"dilations", Ints{1, 1}},
                            {"group", std::int64_t{1}}};
  const Shape x{4, 16, 29, 31}, weight{24, 16, 3, 3}, y{4, 24, 29, 31};
  add(cases, "Conv", "3x3", {random_input(x), random_input(weight), absent()}, settings);
  Attributes to_x = settings, to_weight = settings;
  to_x.set("shape", x);
  to_weight.set("shape", weight);
  add(cases, "ConvGradInput", "3x3", {random_input(y), random_input(weight)}, to_x);
  add(cases, "ConvGradWeight", "3x3", {random_input(x), random_input(y)}, to_weight, long_sum);

  const Attributes attention{{"scale", 0.125}, {"causal", std::int64_t{1}}};
  const Shape head{2, 4, 97, 64};
  add(cases, "Attention", "causal",
      {random_input(head), random_input(head), random_input(head), absent()}, attention);
}

void add_rows(Cases& cases) {
  add(cases, "Softmax", "vocabulary", {random_input({33, 50'257})}, {{"axis", std::int64_t{1}}});
  // Rows longer than one tile, which are read again for the gradient.
  add(cases, "SoftmaxCrossEntropyWithGrad", "vocabulary",
      {random_input({33}), random_input({33, 50'257}), indices({33}, 50'257), absent()},
      {{"label_smoothing", 0.1}});
  add(cases, "LayerNormalization", "wide",
      {random_input({257, 1'023}), random_input({1'023}), random_input({1'023})},
      {{"axis", std::int64_t{1}}});
  const Shape channels{19};
  add(cases, "BatchNormalizationTraining", "images",
      {random_input({16, 19, 27, 29}), random_input(channels), random_input(channels),
       fixed(random_input(channels)), fixed(positive(channels))},
      {}, long_sum);
  for (const std::int64_t axis : {std::int64_t{0}, std::int64_t{1}}) {
    const Attributes sums{{"axes", Ints{axis}}, {"keepdims", std::int64_t{0}}};
    add(cases, "ReduceSum", axis == 0 ? "columns" : "rows", {positive({1'531, 1'021})}, sums,
        long_sum);
  }
  add(cases, "ReduceSum", "all", {positive({3, 1'000'003})},
      {{"axes", Ints{0, 1}}, {"keepdims", std::int64_t{0}}}, long_sum);
}

void add_moves(Cases& cases) {
  add(cases, "Add", "over a million", {random_input({1'048'579}), random_input({1'048'579})});
  add(cases, "Mul", "broadcast", {random_input({513, 1, 129}), random_input({1, 17, 129})});
  add(cases, "Exp", "over a million", {random_input({1'048'579})});
  add(cases, "Gather", "rows", {random_input({20'011, 80}), integers({9'001}, 20'011)},
      {{"axis", std::int64_t{0}}});
  add(cases, "GatherGrad", "rows", {random_input({9'001, 16}), integers({9'001}, 503)},
      {{"axis", std::int64_t{0}}, {"shape", Ints{503, 16}}}, long_sum);
  // Rows in several chunks of 64 positions, whose sums are combined in shared memory.
  for (const std::int64_t columns : {16, 15}) {
    const std::string name = "300 equal ids, " + std::to_string(columns) + " columns";
    add(cases, "GatherGrad", name.c_str(),
        {random_input({300, columns}), valued({300}, std::vector<double>(300, 4), DType::int64)},
        {{"axis", std::int64_t{0}}, {"shape", Ints{9, columns}}});
  }
  for (const char* op : {"AdamUpdate", "RowwiseAdagradUpdate"}) {
    const bool whole = op[0] == 'R';
    std::vector<double> order(300);
    std::iota(order.begin(), order.end(), 0);
    const std::vector<double> unique{4, -1, -1, -1, -1, -1, -1, -1, -1};
    const std::vector<double> offsets{0, 300, 300, 300, 300, 300, 300, 300, 300, 300};
    std::vector<CaseInput> inputs{random_input({9, 24}), positive(whole ? Shape{9} : Shape{9, 24})};
    if (!whole) inputs.push_back(positive({9, 24}));
    for (CaseInput& more : std::vector<CaseInput>{
             valued({9}, unique, DType::int64), valued({300}, order, DType::int32),
             valued({10}, offsets, DType::int32), valued({}, {1}, DType::int32), valued({}, {0.01}),
             valued({}, {3}, DType::int64), valued({}, {1}), valued({}, {0}, DType::boolean),
             random_input({300, 24})})
      inputs.push_back(std::move(more));
    add(cases, "RowsUpdate", (std::string("300 equal ids, ") + op).c_str(), std::move(inputs),
        {{"op", std::string(op)}});
  }
  add(cases, "UniqueIndices", "many", {integers({50'021}, 3'000'000)},
      {{"rows", std::int64_t{3'000'000}}});
}

}  // namespace

std::vector<OperatorCase> large_cases() {
  Cases cases;
  add_products(cases);
  add_networks(cases);
  add_rows(cases);
  add_moves(cases);
  return cases;
}

}  // namespace tandem::gpu_check
