// Cases of the loss over sequences of labels.
#include "tests/operators/network_cases.h"

namespace tandem::testing {

void add_ctc_cases(Cases& cases) {
  const auto add = [&](const std::string& name, const CaseInput& log_probs, const CaseInput& labels,
                       const CaseInput& label_lengths, const CaseInput& lengths,
                       const Attributes& attributes = {}) {
    add_case(cases, "CtcLoss", name, {log_probs, labels, label_lengths, lengths}, attributes);
    add_case(cases, "CtcLossGrad", name,
             {patterned({log_probs.shape[0]}, 3), log_probs, labels, label_lengths, lengths},
             attributes);
  };
  const auto wide = [](Shape shape, std::vector<double> numbers) {
    return valued(std::move(shape), std::move(numbers), DType::int64);
  };
  const CaseInput all = absent();
  const Attributes zero{{"zero_infinity", std::int64_t{1}}};
  add("torch_labels", patterned({3, 5, 4}), wide({3, 3}, {1, 2, 3, 2, 2, 0, 3, 0, 0}),
      wide({3}, {3, 2, 1}), all);
  add("torch_lengths", patterned({3, 5, 4}),
      valued({3, 3}, {1, 2, 1, 2, 2, 0, 3, 0, 0}, DType::int32), ints({3, 2, 0}),
      wide({3}, {4, 3, 2}));
  add("torch_blank", patterned({2, 4, 3}), wide({2, 2}, {0, 1, 1, 1}), wide({2}, {2, 2}), all,
      {{"blank", std::int64_t{2}}});
  add("torch_one_frame", patterned({2, 1, 3}), wide({2, 1}, {1, 2}), ints({1, 0}), all);
  add("torch_zero_infinity", patterned({3, 2, 3}), wide({3, 2}, {1, 1, 1, 2, 2, 0}),
      ints({2, 2, 1}), ints({2, 2, 0}), zero);
  CaseInput many = random_input({9, 17, 6});
  many.low = -9, many.high = 0;
  add("many", many, indices({9, 7}, 5), ints({7, 6, 5, 4, 3, 2, 1, 0, 7}),
      ints({17, 16, 17, 9, 6, 5, 1, 17, 17}), {{"blank", std::int64_t{5}}});
  add("no_labels", patterned({2, 3, 2}), wide({2, 0}, {}), ints({0, 0}), all);
  add("one_class", patterned({2, 3, 1}), wide({2, 0}, {}), ints({0, 0}), ints({3, 1}), zero);
  add("no_frames", patterned({2, 0, 3}), wide({2, 1}, {1, 2}), ints({0, 0}), all);
  add("empty_batch", patterned({0, 3, 4}), wide({0, 2}, {}), wide({0}, {}), all);
}

}  // namespace tandem::testing
