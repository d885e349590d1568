#include "kernels/cuda/pointwise/gather.h"

#include "kernels/cuda/pointwise/pointwise_kernel.h"
#include "kernels/cuda/pointwise/words.h"
#include "kernels/shared/block/each_index.h"

namespace tandem::cuda {
namespace {

// A unit of y: place `at` of row k of block `outer`.
struct GatherUnit {
  std::int64_t outer, k, at;
};

TANDEM_HOST_DEVICE GatherUnit unit_of(const GatherArguments& p, std::int64_t unit) {
  if (p.large) {
    const std::int64_t row = unit / p.inner.extent;
    return {row / p.count.extent, row % p.count.extent, unit % p.inner.extent};
  }
  std::uint32_t row = 0, at = 0, outer = 0, k = 0;
  p.inner.split_small(static_cast<std::uint32_t>(unit), row, at);
  p.count.split_small(row, outer, k);
  return {outer, k, at};
}

// The place in x, or -1 where zeros are read. One thread of each row reports.
TANDEM_HOST_DEVICE std::int64_t source_of(const GatherArguments& p, const GatherUnit& unit) {
  const std::int64_t row = p.indices.at(unit.k, unit.at == 0);
  return row < 0 ? -1 : (unit.outer * p.indices.rows + row) * p.inner.extent + unit.at;
}

// Several rows at once: their indices first, then their words, so that reads wait together.
template <class Word>
struct GatherKernel {
  GatherArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    constexpr int at_once = 4;
    const std::int64_t step = std::int64_t{block.blocks()} * block.threads();
    const std::int64_t begin = std::int64_t{block.index()} * block.threads();
    block.each([&](int thread) {
      const Word* const x = static_cast<const Word*>(p.x);
      Word* const y = static_cast<Word*>(p.y);
      for (std::int64_t unit = begin + thread; unit < p.units; unit += at_once * step) {
        std::int64_t sources[at_once];
        Word words[at_once];
        TANDEM_UNROLL
        for (int i = 0; i < at_once; ++i) {
          const bool inside = unit + i * step < p.units;
          sources[i] = inside ? source_of(p, unit_of(p, unit + i * step)) : -1;
        }
        TANDEM_UNROLL
        for (int i = 0; i < at_once; ++i) {
          detail::check_access(x, sizeof(Word));
          words[i] = sources[i] < 0 ? Word{} : x[sources[i]];
        }
        TANDEM_UNROLL
        for (int i = 0; i < at_once; ++i) {
          detail::check_access(y, sizeof(Word));
          if (unit + i * step < p.units) y[unit + i * step] = words[i];
        }
      }
    });
  }
};

template <class From, class To>
struct ConvertingGatherKernel {
  GatherArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, p.units, [&](std::int64_t unit) {
      const std::int64_t source = source_of(p, unit_of(p, unit));
      To value{};
      if (source >= 0) {
        const From x = static_cast<const From*>(p.x)[source];
        value = stored<To>(scalar::cast<ComputedType<To>>(widened(x)));
      }
      static_cast<To*>(p.y)[unit] = value;
    });
  }
};

}  // namespace

void launch_gather(GpuContext& gpu, const GatherArguments& arguments, int word,
                   const LaunchShape& shape, void* queue) {
  with_word(word, [&](auto tag) {
    const GatherKernel<decltype(tag)> body{arguments};
    gpu.launch(launch_of("gather", shape, body), queue);
  });
}

void launch_gather_converted(GpuContext& gpu, const GatherArguments& arguments, DType from,
                             DType to, const LaunchShape& shape, void* queue) {
  const auto run = [&](auto from_tag, auto to_tag) {
    const ConvertingGatherKernel<decltype(from_tag), decltype(to_tag)> body{arguments};
    gpu.launch(launch_of("gather_converted", shape, body), queue);
  };
  const auto into = [&](auto to_tag) {
    switch (from) {
      case DType::float16:
        return run(GpuFloat16{}, to_tag);
      case DType::bfloat16:
        return run(GpuBFloat16{}, to_tag);
      case DType::float32:
        return run(float{}, to_tag);
      default:
        return run(double{}, to_tag);
    }
  };
  if (to == DType::float64)
    into(double{});
  else
    into(float{});
}

}  // namespace tandem::cuda
