// RandomUniformLike and RandomNormalLike by the words of philox.h.
#include <cmath>

#include "kernels/reference/network_support.h"
#include "kernels/shared/philox.h"
#include "kernels/shared/random_elements.h"

namespace tandem::reference {
namespace {

/// f(stream, i) is element i, counted over all ranks.
template <class T, class F>
std::unique_ptr<PreparedKernel> random_elements(const KernelRequest& r, F f) {
  const Places y(r.outputs[0]);
  const std::uint64_t path = hash_of_path(r.node->path);
  const RandomElements elements = random_elements(r.attributes(), r.inputs[0].type.shape);
  return prepared([=](const KernelArguments& a) {
    const StepContext& context = *a.context;
    const std::uint64_t stream =
        random_stream(context.seed, context.step, context.micro_batch, path);
    for (std::int64_t i = 0; i < y.count(); ++i) {
      const std::uint64_t index =
          elements.index(context.first_sample, static_cast<std::uint64_t>(i));
      static_cast<T*>(a.outputs[0])[y(i)] = rounded<T>(f(stream, index));
    }
  });
}

constexpr auto uniform = []<class T>(const KernelRequest& r, T) {
  const double low = r.attributes().number("low"), high = r.attributes().number("high");
  return random_elements<T>(r, [=](std::uint64_t stream, std::uint64_t i) {
    return low + (high - low) * ((random_word(stream, i) >> 8) * 0x1p-24);
  });
};

constexpr auto normal = []<class T>(const KernelRequest& r, T) {
  const double mean = r.attributes().number("mean"), scale = r.attributes().number("scale");
  return random_elements<T>(r, [=](std::uint64_t stream, std::uint64_t i) {
    const double u = (random_word(stream, 2 * i) + 1.0) * 0x1p-32;
    const double v = random_word(stream, 2 * i + 1) * 0x1p-32;
    return mean + scale * (std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
  });
};

}  // namespace

void add_random(KernelList& list) {
  list.push_back(any_float_kernel("reference.random_uniform_like", "RandomUniformLike", uniform));
  list.push_back(any_float_kernel("reference.random_normal_like", "RandomNormalLike", normal));
}

}  // namespace tandem::reference
