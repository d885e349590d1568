// The activations of recurrent layers (engine/operators/rnn_scan.h) and their slopes.
#pragma once

#include "engine/operators/rnn_scan.h"
#include "kernels/shared/scalar.h"

namespace tandem::scalar {

template <class T>
T rnn_value(const RnnFunction& f, T x) {
  const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta);
  switch (f.activation) {
    case RnnActivation::sigmoid:
      return sigmoid(x);
    case RnnActivation::tanh:
      return std::tanh(x);
    case RnnActivation::relu:
      return relu(x);
    case RnnActivation::affine:
      return alpha * x + beta;
    case RnnActivation::leaky_relu:
      return leaky_relu(x, alpha);
    case RnnActivation::thresholded_relu:
      return thresholded_relu(x, alpha);
    case RnnActivation::scaled_tanh:
      return alpha * std::tanh(beta * x);
    case RnnActivation::hard_sigmoid:
      return hard_sigmoid(x, alpha, beta);
    case RnnActivation::elu:
      return elu(x, alpha);
    case RnnActivation::softsign:
      return softsign(x);
    case RnnActivation::softplus:
      return softplus(x);
  }
  return x;
}

template <class T>
T rnn_slope(const RnnFunction& f, T x) {
  const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta);
  switch (f.activation) {
    case RnnActivation::sigmoid:
      return sigmoid_grad(T(1), sigmoid(x));
    case RnnActivation::tanh:
      return tanh_grad(T(1), T(std::tanh(x)));
    case RnnActivation::relu:
      return relu_grad(T(1), x);
    case RnnActivation::affine:
      return alpha;
    case RnnActivation::leaky_relu:
      return leaky_relu_grad(T(1), x, alpha);
    case RnnActivation::thresholded_relu:
      return x <= alpha ? T(0) : T(1);
    case RnnActivation::scaled_tanh:
      return alpha * beta * tanh_grad(T(1), T(std::tanh(beta * x)));
    case RnnActivation::hard_sigmoid: {
      const T line = alpha * x + beta;
      return line <= T(0) || line >= T(1) ? T(0) : alpha;
    }
    case RnnActivation::elu:
      return x > T(0) ? T(1) : alpha * std::exp(x);
    case RnnActivation::softsign: {
      const T rest = T(1) / (T(1) + std::fabs(x));
      return rest * rest;
    }
    case RnnActivation::softplus:
      return sigmoid(x);
  }
  return T(1);
}

}  // namespace tandem::scalar
