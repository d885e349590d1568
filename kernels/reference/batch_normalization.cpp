// Batch normalisation with given and with the batch's statistics, and its gradient, channel by
// channel.
#include <cmath>

#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

/// The elements of one channel (axis 1) of an operand [N, C, ...].
class Channels {
 public:
  explicit Channels(const Operand& operand)
      : places_(Places(operand).without(1, 2)), stride_(Places(operand).stride(1)) {}
  std::int64_t elements() const { return places_.count(); }
  std::int64_t operator()(std::int64_t channel, std::int64_t index) const {
    return channel * stride_ + places_(index);
  }

 private:
  Places places_;
  std::int64_t stride_;
};

constexpr auto inference = []<class T>(const KernelRequest& r, T) {
  const Channels x(r.inputs[0]), y(r.outputs[0]);
  const Reader scale(r.inputs[1]), bias(r.inputs[2]), mean(r.inputs[3]), var(r.inputs[4]);
  const std::int64_t channels = r.inputs[0].type.shape[1];
  const double epsilon = r.attributes().number("epsilon");
  return prepared([=](const KernelArguments& a) {
    const T* xs = static_cast<const T*>(a.inputs[0]);
    T* ys = static_cast<T*>(a.outputs[0]);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double centre = mean.number(a.inputs[3], c);
      const double factor =
          scale.number(a.inputs[1], c) / std::sqrt(var.number(a.inputs[4], c) + epsilon);
      const double shift = bias.number(a.inputs[2], c);
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        ys[y(c, i)] = rounded<T>((static_cast<double>(xs[x(c, i)]) - centre) * factor + shift);
      }
    }
  });
};

constexpr auto training = []<class T>(const KernelRequest& r, T) {
  const Channels x(r.inputs[0]), y(r.outputs[0]);
  const Reader scale(r.inputs[1]), bias(r.inputs[2]), old_mean(r.inputs[3]), old_var(r.inputs[4]);
  const Writer new_mean(r.outputs[1]), new_var(r.outputs[2]);
  const Writer saved_mean(r.outputs[3]), saved_rstd(r.outputs[4]);
  const std::int64_t channels = r.inputs[0].type.shape[1];
  const double epsilon = r.attributes().number("epsilon");
  const double momentum = r.attributes().number("momentum");
  return prepared([=](const KernelArguments& a) {
    const T* xs = static_cast<const T*>(a.inputs[0]);
    T* ys = static_cast<T*>(a.outputs[0]);
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto count = static_cast<double>(x.elements());
      double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < x.elements(); ++i) sum += static_cast<double>(xs[x(c, i)]);
      const double mean = sum / count;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const double centred = static_cast<double>(xs[x(c, i)]) - mean;
        squares += centred * centred;
      }
      const double var = squares / count;
      const double rstd = 1 / std::sqrt(var + epsilon);
      const double factor = scale.number(a.inputs[1], c) * rstd;
      const double shift = bias.number(a.inputs[2], c);
      if (ys != nullptr) {
        for (std::int64_t i = 0; i < x.elements(); ++i) {
          ys[y(c, i)] = rounded<T>((static_cast<double>(xs[x(c, i)]) - mean) * factor + shift);
        }
      }
      // The old statistics may lie in the same storage as the new ones: read, then write.
      const double before_mean = old_mean.number(a.inputs[3], c);
      const double before_var = old_var.number(a.inputs[4], c);
      new_mean(a.outputs[1], c, momentum * before_mean + (1 - momentum) * mean);
      new_var(a.outputs[2], c, momentum * before_var + (1 - momentum) * var);
      saved_mean(a.outputs[3], c, mean);
      saved_rstd(a.outputs[4], c, rstd);
    }
  });
};

constexpr auto batch_normalization_gradient = []<class T>(const KernelRequest& r, T) {
  const Channels dy(r.inputs[0]), x(r.inputs[1]), dx(r.outputs[0]);
  const Reader scale(r.inputs[2]), mean(r.inputs[3]), rstd(r.inputs[4]);
  const Writer dscale(r.outputs[1]), dbias(r.outputs[2]);
  const std::int64_t channels = r.inputs[1].type.shape[1];
  return prepared([=](const KernelArguments& a) {
    const T* dys = static_cast<const T*>(a.inputs[0]);
    const T* xs = static_cast<const T*>(a.inputs[1]);
    T* dxs = static_cast<T*>(a.outputs[0]);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double centre = mean.number(a.inputs[3], c), r_c = rstd.number(a.inputs[4], c);
      const auto normalized = [&](std::int64_t i) {
        return (static_cast<double>(xs[x(c, i)]) - centre) * r_c;
      };
      double sum_dy = 0, sum_dy_n = 0;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const auto dy_i = static_cast<double>(dys[dy(c, i)]);
        sum_dy += dy_i;
        sum_dy_n += dy_i * normalized(i);
      }
      dscale(a.outputs[1], c, sum_dy_n);
      dbias(a.outputs[2], c, sum_dy);
      if (dxs == nullptr) continue;
      const auto count = static_cast<double>(x.elements());
      const double factor = scale.number(a.inputs[2], c) * r_c;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const auto dy_i = static_cast<double>(dys[dy(c, i)]);
        dxs[dx(c, i)] =
            rounded<T>(factor * (dy_i - sum_dy / count - normalized(i) * sum_dy_n / count));
      }
    }
  });
};

}  // namespace

void add_batch_normalization(KernelList& list) {
  list.push_back(float_kernel("reference.batch_normalization", "BatchNormalization", inference));
  list.push_back(float_kernel("reference.batch_normalization_training",
                              "BatchNormalizationTraining", training));
  list.push_back(float_kernel("reference.batch_normalization_grad", "BatchNormalizationGrad",
                              batch_normalization_gradient));
}

}  // namespace tandem::reference
