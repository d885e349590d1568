// Updates of kinds whose states are bytes (engine/optimizers/adam8bit.h): all states are decoded,
// the formula takes its step, and what they have become is encoded block by block.
#include <cmath>

#include "engine/optimizers/dynamic_map.h"
#include "kernels/reference/update_support.h"

namespace tandem::reference {
namespace {

/// The code of the nearest number, the lower one of two.
template <class T>
std::uint8_t nearest_code(const std::array<float, 256>& map, T x) {
  std::size_t best = 0;
  for (std::size_t code = 1; code < map.size(); ++code) {
    if (std::fabs(x - static_cast<T>(map[code])) < std::fabs(x - static_cast<T>(map[best])))
      best = code;
  }
  return static_cast<std::uint8_t>(best);
}

/// The bytes of state k and their scales, which are state number k + `states`.
template <class T>
struct ByteState {
  const Tensors& group;
  std::size_t k, scales;
  std::array<float, 256> map;

  ByteState(const Tensors& of, std::size_t number, std::size_t states, StateForm form)
      : group(of), k(number), scales(number + states), map(dynamic_map(form)) {}

  void decode(const KernelArguments& a, T* to) const {
    const auto* const codes = static_cast<const std::uint8_t*>(a.inputs[group.input + 2 + k]);
    const auto* const scale = static_cast<const T*>(a.inputs[group.input + 2 + scales]);
    const Places &places = *group.states[k], &blocks = *group.states[scales];
    for (std::int64_t i = 0; i < places.count(); ++i)
      to[i] = static_cast<T>(map[codes[places(i)]]) * scale[blocks(i / state_block)];
  }

  void encode(const KernelArguments& a, const T* from) const {
    auto* const codes = static_cast<std::uint8_t*>(a.outputs[group.output + 1 + k]);
    auto* const scale = static_cast<T*>(a.outputs[group.output + 1 + scales]);
    const Places &places = *group.new_states[k], &blocks = *group.new_states[scales];
    for (std::int64_t first = 0; first < places.count(); first += state_block) {
      const std::int64_t end = std::min(first + state_block, places.count());
      T largest = 0;  // NaN stays NaN
      for (std::int64_t i = first; i < end; ++i) {
        const T size = std::fabs(from[i]);
        if (size > largest || std::isnan(size)) largest = size;
      }
      if (scale != nullptr) scale[blocks(first / state_block)] = largest;
      for (std::int64_t i = first; i < end && codes != nullptr; ++i)
        codes[places(i)] = nearest_code(map, largest == 0 ? T(0) : from[i] / largest);
    }
  }
};

template <class T, class R>
std::unique_ptr<PreparedKernel> byte_update(const KernelRequest& r, const R& rule) {
  const UpdateKind& kind = update_kind(*r.node);
  const Tensors group(r, 0, 0, update_group(*r.node));
  const Scalars scalars(r, first_scalar(*r.node));
  const std::size_t states = kind.states.size() / 2;
  const std::int64_t elements = group.master.count();
  return prepared(
      [=, &kind](const KernelArguments& a) {
        T* const numbers = static_cast<T*>(a.workspace);
        const auto each = [&](auto f) {
          for (std::size_t k = 0; k < states; ++k)
            f(ByteState<T>(group, k, states, kind.states[k].form),
              numbers + static_cast<std::int64_t>(k) * elements);
        };
        if (scalars.skipped(a, rule)) {
          group.update_masters<T>(a, [](std::int64_t, T master) { return master; });
          group.keep_states(a);
          return;
        }
        each([&](const ByteState<T>& state, T* own) { state.decode(a, own); });
        const auto step = scalars.step_of(a, rule);
        group.update_masters<T>(a, [&](std::int64_t i, T master) {
          T own[most_states] = {};
          for (std::size_t k = 0; k < states; ++k)
            own[k] = numbers[static_cast<std::int64_t>(k) * elements + i];
          const T grad = static_cast<T>(group.grad.number(a.inputs[group.input + 1], i));
          const T updated = R::element(step, master, grad, own);
          for (std::size_t k = 0; k < states; ++k)
            numbers[static_cast<std::int64_t>(k) * elements + i] = own[k];
          return updated;
        });
        each([&](const ByteState<T>& state, const T* own) { state.encode(a, own); });
      },
      static_cast<std::size_t>(elements) * states * sizeof(T));
}

constexpr auto update_bytes = []<class T>(const KernelRequest& r, T) {
  const UpdateKind& kind = update_kind(*r.node);
  return with_rule<T>(kind.rule, r.attributes(),
                      [&](const auto& rule) -> std::unique_ptr<PreparedKernel> {
                        using R = std::decay_t<decltype(rule)>;
                        if constexpr (R::whole_row || R::whole_tensor)
                          fail_update(kind.op, "has no rule for single elements");
                        else
                          return byte_update<T>(r, rule);
                      });
};

}  // namespace

void add_byte_updates(KernelList& list) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.keeps_bytes()) continue;
    list.push_back(float_kernel("reference." + kind.op, kind.op, update_bytes));
  }
}

}  // namespace tandem::reference
