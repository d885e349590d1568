// What the reference kernels of updates have in common: the step's scalars, and the tensors of one
// update.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "engine/graph/half.h"
#include "engine/operators/grouped_update.h"
#include "engine/operators/update_kind.h"
#include "engine/optimizers/settings.h"
#include "kernels/reference/network_support.h"

namespace tandem::reference {

/// The inputs lr, step, scale, skip, from `first` on.
struct Scalars {
  Reader lr, step, scale, skip;
  std::size_t first;

  Scalars(const KernelRequest& r, std::size_t first_input)
      : lr(r.inputs[first_input]),
        step(r.inputs[first_input + 1]),
        scale(r.inputs[first_input + 2]),
        skip(r.inputs[first_input + 3]),
        first(first_input) {}

  double rate(const KernelArguments& a) const { return lr.number(a.inputs[first], 0); }
  std::int64_t number(const KernelArguments& a) const {
    return step.integer(a.inputs[first + 1], 0);
  }
  template <class Rule>
  bool skipped(const KernelArguments& a, const Rule&) const {
    return skip.integer(a.inputs[first + 3], 0) != 0 || Rule::Kind::is_no_step(rate(a));
  }
  /// The factors of this step.
  template <class Rule>
  auto step_of(const KernelArguments& a, const Rule& rule) const {
    return rule.step(rate(a), number(a), scale.number(a.inputs[first + 2], 0));
  }
};

/// The operands of one update: states follow master and gradient, and their new ones the new
/// master; some may be absent.
struct Tensors {
  Places master, new_master;
  Reader grad;
  std::vector<std::optional<Places>> states, new_states;
  std::vector<std::size_t> state_bytes;  // an element takes
  std::optional<Places> weight;          // the new master in another type
  DType weight_type = DType::float32;
  std::size_t input, output, weight_output = 0;

  Matrices axes;  // axes of the master

  Tensors(const KernelRequest& r, std::size_t first_input, std::size_t first_output,
          const UpdateGroup& sizes)
      : master(r.inputs[first_input]),
        new_master(r.outputs[first_output]),
        grad(r.inputs[first_input + 1]),
        input(first_input),
        output(first_output),
        axes(matrices_of(r.inputs[first_input].type.shape)) {
    for (std::size_t k = 0; k + 2 < sizes.tensors; ++k) {
      states.emplace_back();
      new_states.emplace_back();
      state_bytes.push_back(size_of(r.inputs[first_input + 2 + k].type.dtype));
      if (!r.is_present(first_input + 2 + k)) continue;
      states.back().emplace(r.inputs[first_input + 2 + k]);
      new_states.back().emplace(r.outputs[first_output + 1 + k]);
    }
    if (!sizes.weight) return;
    weight_output = first_output + sizes.results;
    weight.emplace(r.outputs[weight_output]);
    weight_type = r.outputs[weight_output].type.dtype;
  }

  /// Every element of master and states is read, given to f(master, grad, states) and written. The
  /// new values may lie in the same storage as the old.
  template <class T, class F>
  void update(const KernelArguments& a, F f) const {
    for (std::int64_t i = 0; i < master.count(); ++i) {
      T state[most_states] = {};
      for (std::size_t k = 0; k < states.size(); ++k) {
        if (states[k]) state[k] = static_cast<const T*>(a.inputs[input + 2 + k])[(*states[k])(i)];
      }
      const T old = static_cast<const T*>(a.inputs[input])[master(i)];
      const T grad_i = static_cast<T>(grad.number(a.inputs[input + 1], i));
      put_master(a, i, f(old, grad_i, state));
      for (std::size_t k = 0; k < states.size(); ++k) {
        if (new_states[k]) put(a, output + 1 + k, *new_states[k], i, state[k]);
      }
    }
  }
  /// Like `update`, but only for masters: f(i, master).
  template <class T, class F>
  void update_masters(const KernelArguments& a, F f) const {
    for (std::int64_t i = 0; i < master.count(); ++i)
      put_master(a, i, f(i, static_cast<const T*>(a.inputs[input])[master(i)]));
  }

  /// State k as row-major elements, and back.
  template <class T>
  void read_state(const KernelArguments& a, int k, T* to) const {
    const auto at = static_cast<std::size_t>(k);
    for (std::int64_t i = 0; i < states[at]->count(); ++i)
      to[i] = static_cast<const T*>(a.inputs[input + 2 + at])[(*states[at])(i)];
  }
  template <class T>
  void write_state(const KernelArguments& a, int k, const T* from) const {
    const auto at = static_cast<std::size_t>(k);
    for (std::int64_t i = 0; i < new_states[at]->count(); ++i)
      put(a, output + 1 + at, *new_states[at], i, from[i]);
  }
  template <class T>
  T master_at(const KernelArguments& a, std::int64_t i) const {
    return static_cast<const T*>(a.inputs[input])[master(i)];
  }

  /// The new states are the old ones.
  void keep_states(const KernelArguments& a) const {
    for (std::size_t k = 0; k < states.size(); ++k) {
      if (!states[k] || a.outputs[output + 1 + k] == nullptr) continue;
      const std::size_t size = state_bytes[k];
      const auto* const from = static_cast<const char*>(a.inputs[input + 2 + k]);
      auto* const to = static_cast<char*>(a.outputs[output + 1 + k]);
      for (std::int64_t i = 0; i < states[k]->count(); ++i)
        std::memcpy(to + size * static_cast<std::size_t>((*new_states[k])(i)),
                    from + size * static_cast<std::size_t>((*states[k])(i)), size);
    }
  }
  template <class T>
  void keep(const KernelArguments& a) const {
    update<T>(a, [](T old, T, T*) { return old; });
  }

 private:
  template <class T>
  static void put(const KernelArguments& a, std::size_t k, const Places& places, std::int64_t i,
                  T value) {
    if (a.outputs[k] != nullptr) static_cast<T*>(a.outputs[k])[places(i)] = value;
  }
  template <class T>
  void put_master(const KernelArguments& a, std::int64_t i, T updated) const {
    put(a, output, new_master, i, updated);
    if (!weight || a.outputs[weight_output] == nullptr) return;
    static_cast<std::uint16_t*>(a.outputs[weight_output])[(*weight)(i)] =
        weight_type == DType::bfloat16 ? float_to_bfloat16(static_cast<float>(updated))
                                       : float_to_half(static_cast<float>(updated));
  }
};

}  // namespace tandem::reference
