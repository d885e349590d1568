// LambUpdate and many of them as one GroupedUpdate, in three launches for up to 64 tensors: moments
// and the sums of squares of chunks, the rate of each tensor, the step. Chunks are cut within each
// tensor and summed in a fixed order: what is grouped, addresses and the card's size change no bit.
#include <memory>
#include <utility>

#include "engine/runtime/update_proposal.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/updates/rules.h"
#include "kernels/cuda/updates/update_lists.h"
#include "kernels/cuda/updates/update_tensors.h"
#include "kernels/shared/lamb.h"

namespace tandem::cuda {
namespace {

constexpr int lamb_states = 2;

struct LambRule {
  using Step = LambStep<float>;
  LambSettings settings;

  TANDEM_HOST_DEVICE Step step(double, std::int64_t number, double scale) const {
    return lamb_step<float>(settings, number, scale);
  }
};
using LambFactors = StepFactors<LambRule>;

/// n elements, in one access where `vector` says so.
template <int n>
TANDEM_HOST_DEVICE Values<n> load_some(const void* data, Floats type, std::int64_t first,
                                       bool vector) {
  if (vector) return load<n>(data, type, first);
  Values<n> values;
  for (int k = 0; k < n; ++k) values.at[k] = load<1>(data, type, first + k).at[0];
  return values;
}
template <int n>
TANDEM_HOST_DEVICE void store_some(void* data, Floats type, std::int64_t first, bool vector,
                                   const Values<n>& values) {
  if (vector) return store<n>(data, type, first, values);
  for (int k = 0; k < n; ++k) store<1>(data, type, first + k, Values<1>{{values.at[k]}});
}

struct Squares {
  double master = 0, direction = 0;
};

/// squares[chunk] = those of the chunk's masters and directions, whose moments are replaced.
template <int capacity>
struct LambMoments {
  static constexpr int block_threads = update_threads;
  LambRule rule;
  StepScalars scalars;
  Squares* squares;
  UpdateTensors<capacity> all;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const LambFactors factors = step_factors(block, rule, scalars);
    if (factors.skipped) return;
    typename Block::template Private<double> masters, directions;
    for (std::int64_t number = block.index(); number < all.chunks; number += block.blocks()) {
      const auto [k, begin, end] = all.chunk(number);
      const UpdateTensor& tensor = all.tensors[k];
      const bool vector = all.is_vector(tensor, lamb_states);
      const std::int64_t whole = end - (end - begin) % 4;
      block.each([&, begin = begin, end = end](int thread) {
        Squares own;
        for (std::int64_t i = begin + 4 * thread; i < whole; i += 4 * update_threads) {
          replace<4>(factors.step, tensor, i, vector, own);
        }
        if (whole + thread < end) replace<1>(factors.step, tensor, whole + thread, vector, own);
        masters(thread) = own.master;
        directions(thread) = own.direction;
      });
      const double master = block.sum(masters), direction = block.sum(directions);
      block.one([&] { squares[number] = {master, direction}; });
    }
  }

  template <int n>
  TANDEM_HOST_DEVICE void replace(const LambStep<float>& step, const UpdateTensor& tensor,
                                  std::int64_t i, bool vector, Squares& own) const {
    const Values<n> master = load_some<n>(tensor.master, Floats::float32, i, vector);
    const Values<n> grad = load_some<n>(tensor.grad, all.grads, i, vector);
    Values<n> mean = load_some<n>(tensor.states[0], Floats::float32, i, vector);
    Values<n> square = load_some<n>(tensor.states[1], Floats::float32, i, vector);
    for (int k = 0; k < n; ++k) {
      lamb_moments(step, grad.at[k], mean.at[k], square.at[k]);
      const auto u =
          static_cast<double>(lamb_direction(step, master.at[k], mean.at[k], square.at[k]));
      const auto w = static_cast<double>(master.at[k]);
      own.master += w * w;
      own.direction += u * u;
    }
    store_some<n>(tensor.states[0], Floats::float32, i, vector, mean);
    store_some<n>(tensor.states[1], Floats::float32, i, vector, square);
  }
};

/// A block to each tensor: its rate from the squares of its chunks.
template <int capacity>
struct LambRates {
  static constexpr int block_threads = update_threads;
  LambSettings settings;
  StepScalars scalars;
  const Squares* squares;
  float* rates;
  UpdateTensors<capacity> all;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    if (*scalars.skip) return;  // no squares were written
    const int tensor = static_cast<int>(block.index());
    const std::int64_t end = all.end_of(tensor);
    typename Block::template Private<double> masters, directions;
    block.each([&](int thread) {
      Squares own;
      for (std::int64_t i = all.tensors[tensor].first_chunk + thread; i < end;
           i += update_threads) {
        own.master += squares[i].master;
        own.direction += squares[i].direction;
      }
      masters(thread) = own.master;
      directions(thread) = own.direction;
    });
    const double master = block.sum(masters), direction = block.sum(directions);
    block.one([&] {
      const auto rate = static_cast<double>(*scalars.lr);
      rates[tensor] = static_cast<float>(lamb_rate(settings, rate, master, direction));
    });
  }
};

/// master -= rate * direction, which is made again from the new moments.
template <int capacity>
struct LambApply {
  static constexpr int block_threads = update_threads;
  LambRule rule;
  StepScalars scalars;
  const float* rates;
  UpdateTensors<capacity> all;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const LambFactors factors = step_factors(block, rule, scalars);
    for (std::int64_t number = block.index(); number < all.chunks; number += block.blocks()) {
      const auto [k, begin, end] = all.chunk(number);
      const UpdateTensor& tensor = all.tensors[k];
      const float rate = factors.skipped ? 0 : rates[k];
      const bool vector = all.is_vector(tensor, lamb_states);
      const std::int64_t whole = end - (end - begin) % 4;
      block.each([&, begin = begin, end = end](int thread) {
        for (std::int64_t i = begin + 4 * thread; i < whole; i += 4 * update_threads) {
          step<4>(factors, tensor, rate, i, vector);
        }
        if (whole + thread < end) step<1>(factors, tensor, rate, whole + thread, vector);
      });
    }
  }

  // A skipped step leaves the master alone; the weight is the master's all the same.
  template <int n>
  TANDEM_HOST_DEVICE void step(const LambFactors& factors, const UpdateTensor& tensor, float rate,
                               std::int64_t i, bool vector) const {
    Values<n> master = load_some<n>(tensor.master, Floats::float32, i, vector);
    if (!factors.skipped) {
      const Values<n> mean = load_some<n>(tensor.states[0], Floats::float32, i, vector);
      const Values<n> square = load_some<n>(tensor.states[1], Floats::float32, i, vector);
      for (int k = 0; k < n; ++k) {
        master.at[k] -= rate * lamb_direction(factors.step, master.at[k], mean.at[k], square.at[k]);
      }
      store_some<n>(tensor.master, Floats::float32, i, vector, master);
    }
    if (tensor.weight != nullptr) store_some<n>(tensor.weight, all.weights, i, vector, master);
  }
};

class LambUpdate final : public PreparedKernel {
 public:
  LambUpdate(const Card& card, const KernelRequest& r)
      : card_(card),
        rule_{lamb_settings(r.attributes())},
        operands_(card, r, update_count(r), lamb_states) {
    std::int64_t most = 0;
    for (std::size_t first = 0; first < operands_.count(); first += most_tensors)
      most = std::max(most, operands_.chunks(first, part(first)));
    squares_bytes_ = padded(static_cast<std::size_t>(most) * sizeof(Squares));
    workspace_bytes = squares_bytes_ + most_tensors * sizeof(float);
  }

  // Parts share the workspace: they run one after the other.
  void run(const KernelArguments& a) noexcept override {
    for (std::size_t first = 0; first < operands_.count(); first += most_tensors) {
      if (part(first) == 1)
        run_part<1>(a, first);
      else
        run_part<most_tensors>(a, first);
    }
  }

 private:
  std::size_t part(std::size_t first) const {
    return std::min<std::size_t>(operands_.count() - first, most_tensors);
  }

  template <int capacity>
  void run_part(const KernelArguments& a, std::size_t first) {
    const auto all = operands_.tensors<capacity>(a, first, part(first));
    if (all.count == 0) return;
    const StepScalars scalars(a, operands_.scalars());
    auto* const squares = static_cast<Squares*>(a.workspace);
    auto* const rates = reinterpret_cast<float*>(static_cast<char*>(a.workspace) + squares_bytes_);
    const LaunchShape shape{.blocks = blocks_for(*card_, all.chunks, 1),
                            .threads = update_threads,
                            .shared_bytes = sizeof(LambFactors)};
    const LambMoments<capacity> moments{rule_, scalars, squares, all};
    card_->launch(launch_of("lamb moments", shape, moments), a.queue);
    const LaunchShape by_tensor{.blocks = static_cast<unsigned>(all.count),
                                .threads = update_threads};
    const LambRates<capacity> sums{rule_.settings, scalars, squares, rates, all};
    card_->launch(launch_of("lamb rates", by_tensor, sums), a.queue);
    const LambApply<capacity> apply{rule_, scalars, rates, all};
    card_->launch(launch_of("lamb step", shape, apply), a.queue);
  }

  Card card_;
  LambRule rule_;
  UpdateOperands operands_;
  std::size_t squares_bytes_ = 0;
};

Kernel lamb_kernel(const Card& card, std::string name, std::string op) {
  return {.name = std::move(name),
          .op = std::move(op),
          .refuse = [](const KernelRequest& r) -> std::optional<std::string> {
            const std::string& kind = update_kind(*r.node).op;
            if (kind != "LambUpdate") return "updates of kind " + kind;
            return refuse_update(r);
          },
          .propose = propose_update,
          .prepare = [card](const KernelRequest& r) -> std::unique_ptr<PreparedKernel> {
            return std::make_unique<LambUpdate>(card, r);
          }};
}

}  // namespace

void add_lamb_updates(KernelList& list, const Card& card) {
  list.push_back(lamb_kernel(card, "cuda.LambUpdate", "LambUpdate"));
  list.push_back(lamb_kernel(card, "cuda.grouped_lamb_update", "GroupedUpdate"));
}

}  // namespace tandem::cuda
