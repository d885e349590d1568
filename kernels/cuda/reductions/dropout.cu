// Dropout with the mask of philox.h, and its gradient.
#include "kernels/cuda/reductions/reductions.h"
#include "kernels/cuda/reductions/rows.h"
#include "kernels/cuda/reductions/walk.h"
#include "kernels/shared/block/each_index.h"
#include "kernels/shared/block/step_context.h"
#include "kernels/shared/philox.h"
#include "kernels/shared/random_elements.h"

namespace tandem::cuda::reductions {

/// random_word of philox.h, without an index into registers.
TANDEM_HOST_DEVICE inline std::uint32_t word_of(const PhiloxBlock& words, std::uint64_t at) {
  const std::uint32_t low = at == 0 ? words.word[0] : words.word[1];
  const std::uint32_t high = at == 2 ? words.word[2] : words.word[3];
  return at < 2 ? low : high;
}

/// y = x mask factor, where element i of the mask is 0 for random_word(stream, i) < threshold; i
/// counts over all ranks. Packs, which are whole blocks of Philox, are for row-major operands.
template <class T, int pack>
struct DropoutForward {
  static constexpr int block_threads = 256;

  const T* x;
  T* y;                 // null: it is not read
  unsigned char* mask;  // null: it is not read
  const DeviceStepContext* context;
  std::uint64_t path;  // hash of the node's
  RandomElements elements;
  std::int64_t packs;
  Walk places;  // from the order in memory to the row-major index; of row-major operands, empty
  std::uint32_t threshold;
  float factor;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::uint64_t stream =
        random_stream(context->seed, context->step, context->micro_batch, path);
    each_index(block, packs, [&](std::int64_t i) {
      float values[pack] = {};
      unsigned char keep[pack];
      if (y != nullptr) load_pack<pack>(x + i * pack, values);
      if constexpr (pack == 1) {
        const std::uint64_t index =
            elements.index(context->first_sample,
                           static_cast<std::uint64_t>(places.rank() == 0 ? i : places.at(i)));
        keep[0] = word_of(random_block(stream, index / 4), index % 4) >= threshold ? 1 : 0;
      } else {
        const std::uint64_t first =
            elements.index(context->first_sample, static_cast<std::uint64_t>(i) * pack) / 4;
        TANDEM_UNROLL
        for (int k = 0; k < pack; k += 4) {
          const PhiloxBlock words = random_block(stream, first + k / 4);
          TANDEM_UNROLL
          for (int j = 0; j < 4; ++j) keep[k + j] = words.word[j] >= threshold ? 1 : 0;
        }
      }
      TANDEM_UNROLL
      for (int k = 0; k < pack; ++k) values[k] *= keep[k] != 0 ? factor : 0.0f;
      if (y != nullptr) store_pack<pack>(y + i * pack, values);
      if (mask != nullptr) store_pack<pack>(mask + i * pack, keep);
    });
  }
};

/// dx = dy mask factor.
template <class T, int pack>
struct DropoutBackward {
  static constexpr int block_threads = 256, ahead = 4;

  const T* dy;
  const unsigned char* mask;
  T* dx;
  std::int64_t packs;
  float factor;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t step = static_cast<std::int64_t>(block.blocks()) * block.threads();
    block.each([&](int thread) {
      for (std::int64_t i = static_cast<std::int64_t>(block.index()) * block.threads() + thread;
           i < packs; i += ahead * step) {
        float values[ahead][pack];
        unsigned char keep[ahead][pack];
        TANDEM_UNROLL
        for (int j = 0; j < ahead; ++j) {
          if (i + j * step >= packs) continue;
          load_pack<pack>(dy + (i + j * step) * pack, values[j]);
          load_pack<pack>(mask + (i + j * step) * pack, keep[j]);
        }
        TANDEM_UNROLL
        for (int j = 0; j < ahead; ++j) {
          if (i + j * step >= packs) continue;
          TANDEM_UNROLL
          for (int k = 0; k < pack; ++k) values[j][k] *= keep[j][k] != 0 ? factor : 0.0f;
          store_pack<pack>(dx + (i + j * step) * pack, values[j]);
        }
      }
    });
  }
};

namespace {

// The row-major index by the place in a dense operand; empty where they are the same.
Walk row_major_index(const Operand& operand) {
  const Shape& shape = operand.type.shape;
  if (is_row_major(operand.layout, shape) || operand.type.elements() == 0) return {};
  std::vector<WalkAxis> axes;
  std::vector<std::int64_t> places;
  const Layout logical = row_major(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    const std::int64_t place = operand.layout.strides[i];
    const auto at = std::find_if(places.begin(), places.end(),
                                 [&](std::int64_t other) { return other < place; });
    axes.insert(axes.begin() + (at - places.begin()), {shape[i], logical.strides[i], 0});
    places.insert(at, place);
  }
  return Walk(axes);
}

template <class T>
bool takes_mask_packs(const void* mask) {
  return reinterpret_cast<std::uintptr_t>(mask) % full_pack<T> == 0;
}

// Whether no pack crosses a stretch, and each begins with a block of Philox on every rank.
bool keeps_packs(const RandomElements& elements, int pack) {
  const auto divides = [&](std::uint64_t count, int by) { return count % by == 0; };
  return divides(elements.own, pack) && divides(elements.all, 4) && divides(elements.sample, 4);
}

std::unique_ptr<PreparedKernel> prepare_forward(const KernelRequest& request, const Gpu& gpu) {
  const double ratio = request.attributes().number("ratio");
  const std::int64_t count = request.inputs[0].type.elements();
  const Walk places = row_major_index(request.inputs[0]);
  const std::uint64_t path = hash_of_path(request.node->path);
  const RandomElements elements =
      random_elements(request.attributes(), request.inputs[0].type.shape);
  return with_float(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=, threshold = dropout_threshold(ratio),
                     factor = static_cast<float>(1 / (1 - ratio))](const KernelArguments& a) {
      if (count == 0) return;
      const T* x = static_cast<const T*>(a.inputs[0]);
      T* y = static_cast<T*>(a.outputs[0]);
      auto* mask = static_cast<unsigned char*>(a.outputs[1]);
      const bool packs = places.rank() == 0 && keeps_packs(elements, full_pack<T>) &&
                         takes_packs<T>(x, count) && takes_packs<T>(y, count) &&
                         takes_mask_packs<T>(mask);
      const auto launch = [&](auto pack) {
        const DropoutForward<T, pack> body{
            .x = x,
            .y = y,
            .mask = mask,
            .context = reinterpret_cast<const DeviceStepContext*>(a.context),
            .path = path,
            .elements = elements,
            .packs = count / pack,
            .places = places,
            .threshold = threshold,
            .factor = factor};
        const LaunchShape shape = spread(body.packs, gpu->properties.multiprocessors);
        gpu->launch(launch_of("dropout", shape, body), a.queue);
      };
      if (packs) {
        launch(std::integral_constant<int, full_pack<T>>{});
      } else {
        launch(std::integral_constant<int, 1>{});
      }
    });
  });
}

std::unique_ptr<PreparedKernel> prepare_gradient(const KernelRequest& request, const Gpu& gpu) {
  const std::int64_t count = request.inputs[0].type.elements();
  const auto factor = static_cast<float>(1 / (1 - request.attributes().number("ratio")));
  return with_float(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (count == 0) return;
      const T* dy = static_cast<const T*>(a.inputs[0]);
      const auto* mask = static_cast<const unsigned char*>(a.inputs[1]);
      T* dx = static_cast<T*>(a.outputs[0]);
      const auto launch = [&](auto pack) {
        const DropoutBackward<T, pack> body{dy, mask, dx, count / pack, factor};
        const LaunchShape shape = spread(body.packs, gpu->properties.multiprocessors);
        gpu->launch(launch_of("dropout_grad", shape, body), a.queue);
      };
      if (takes_packs<T>(dy, count) && takes_packs<T>(dx, count) && takes_mask_packs<T>(mask)) {
        launch(std::integral_constant<int, full_pack<T>>{});
      } else {
        launch(std::integral_constant<int, 1>{});
      }
    });
  });
}

// Operands of more axes than a walk has must be row-major.
std::vector<Proposal> propose_forward(const KernelRequest& request) {
  if (request.inputs[0].type.rank() > Walk::most) return {Proposal{}};
  const LayoutConstraint dense{LayoutConstraint::Kind::dense, {}};
  return {{{dense}, {dense, dense}, 0}};
}

std::vector<Proposal> propose_gradient(const KernelRequest&) {
  const LayoutConstraint dense{LayoutConstraint::Kind::dense, {}};
  return {{{dense, dense}, {dense}, 0}};
}

}  // namespace

void add_dropout(KernelList& list, const Gpu& gpu) {
  const auto refuse = only_floats({0});
  list.push_back({"cuda.dropout", "Dropout", refuse, propose_forward, on(gpu, prepare_forward)});
  list.push_back(
      {"cuda.dropout_grad", "DropoutGrad", refuse, propose_gradient, on(gpu, prepare_gradient)});
}

}  // namespace tandem::cuda::reductions
